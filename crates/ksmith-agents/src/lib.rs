//! Writers and reviewers that are agents, and the two gateways between them and the world: models and tools.

mod credentials;
pub mod gateway;
pub mod process;
pub mod review;
pub mod tools;
pub mod writers;
