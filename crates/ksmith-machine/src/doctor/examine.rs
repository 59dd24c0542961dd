//! The whole examination of this machine, as the command line calls it.

use std::path::PathBuf;

use crate::{LocalHost, Machine, noise, quiet};

use super::{Diagnosis, IsolationFacts, Probes, Rental, doctor};

/// What an examination is told by its caller.
#[derive(Debug, Clone, Default)]
pub struct Examination {
    /// What the sandbox said of itself.
    pub isolation: IsolationFacts,
    /// Where private toolchains are kept.
    pub data_dir: PathBuf,
    /// A program with arguments that calls [`crate::launch_probe_kernel`]; usually this program itself.
    pub kernel_program: Option<Vec<String>>,
    /// Price and time for the estimate of a rented device, if known.
    pub rental: Option<Rental>,
}

/// Reads this machine, measures load and noise (half a second), and runs all probes.
pub fn examine(examination: Examination) -> (Machine, Diagnosis) {
    let host = LocalHost::new();
    let machine = Machine::read_from(&host);
    let load = quiet::sample(quiet::WINDOW, &[]);
    let noise = noise();
    let diagnosis = doctor(&Probes {
        host: &host,
        machine: &machine,
        isolation: examination.isolation,
        noise: Some(noise),
        load: Some(load),
        data_dir: examination.data_dir,
        kernel_program: examination.kernel_program,
        rental: examination.rental,
    });
    (machine, diagnosis)
}
