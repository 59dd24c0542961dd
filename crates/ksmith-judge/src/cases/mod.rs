//! Cases: secrets, random streams, drawn inputs, expectations.

mod quantile;
mod secret;
mod stream;

pub use secret::{Revealed, Secret, SecretBook};
pub use stream::{BLOCK, Key, Stream};
