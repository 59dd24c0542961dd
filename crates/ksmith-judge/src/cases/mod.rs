//! Cases: secrets, random streams, drawn inputs, expectations.

mod case;
mod crossed;
#[cfg(test)]
mod device_tests;
mod domain;
mod draw;
#[cfg(test)]
mod draw_tests;
mod layout;
mod near;
mod padding;
mod paired;
mod plan;
mod pressed;
mod pressure;
mod quantile;
mod residues;
mod secret;
mod shapes;
mod stream;
mod structured;

pub use case::{Case, CaseSpec, Expected, InputFill, Inputs, ScalarDraw, Sight, storage};
pub(crate) use case::{DeviceDraw, seed_of};
pub use draw::{Target, draw};
pub use layout::{POISONS, gaps_untouched, gather, scatter};
pub(crate) use plan::bind;
pub use plan::{Plan, dev_fills, distribution_fills, distributions, mixed_fills};
pub(crate) use pressed::Pressed;
pub(crate) use pressure::{Tier, takes_pressure};
pub(crate) use residues::residues;
pub use secret::{Secret, SecretBook};
pub(crate) use shapes::in_small;
pub use shapes::{Shape, draw_shape, neighbour, tiny};
pub use stream::{BLOCK, Key, Stream};
