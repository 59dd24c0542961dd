//! Cases: secrets, random streams, drawn inputs, expectations.

mod domain;
mod draw;
mod layout;
mod quantile;
mod secret;
mod stream;
mod structured;

pub use draw::{Target, draw};
pub use layout::{POISONS, gaps_untouched, gather, scatter};
pub use secret::{Secret, SecretBook};
pub use stream::{BLOCK, Key, Stream};
