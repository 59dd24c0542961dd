//! The judge as the loop sees it: open for one task instance, then screen and score candidates.

mod beside;
mod corpus;
mod dev;
mod error;
mod halt;
mod options;
mod scoring;
mod session;
mod timing;
mod verdict;

pub use beside::Ranking;
pub use dev::{DevFailure, DevTime};
pub use error::JudgeError;
pub use halt::Halt;
pub use options::{Effort, JudgeOptions};
pub use session::Judge;
pub(crate) use timing::{least_ns, totals};
