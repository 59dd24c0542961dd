//! The GPU on which candidates run: the judge's own context, its compilers, spare workers, and who may time on it.
//!
//! One thread, one context: a second judge in the same thread shares it.

#[cfg(test)]
mod agreement;
mod compiler;
mod lock;
mod maker;
mod reference;
mod resident;
mod spare;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ksmith_box::Level;
use ksmith_machine::{DeviceSample, LocalHost, Nvml, Toolchain};
use ksmith_task::{Candidate, Instance, chain};
use ksmith_worker::cuda::{
    Checks, CompileOptions, CudaError, DeviceFacts, Owner, Roofs, Worker, WorkerOptions,
};

pub(crate) use compiler::{Code, Compiler};
pub(crate) use lock::TimingLock;
pub(crate) use maker::Maker;
pub(crate) use resident::Resident;
use spare::Spares;

use crate::judge::JudgeError;

/// Timed calls of each of our own kernels; the median counts.
const ROOF_CALLS: usize = 12;

/// An open device.
pub(crate) struct Device {
    pub(crate) compiler: Compiler,
    pub(crate) checks: Checks,
    pub(crate) owner: Owner,
    spares: Mutex<Spares>,
    nvml: Option<(Nvml, u32)>,
    /// The best found so far, by number of bytes.
    roofs: Mutex<BTreeMap<usize, Roofs>>,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device")
            .field("facts", self.owner.facts())
            .finish_non_exhaustive()
    }
}

thread_local! {
    static OPEN: RefCell<Weak<Device>> = const { RefCell::new(Weak::new()) };
}

impl Device {
    /// Opens the first device, or takes the one that this thread has open.
    pub(crate) fn open(least: Level, unsandboxed: bool) -> Result<Arc<Self>, JudgeError> {
        if let Some(device) = OPEN.with(|open| open.borrow().upgrade()) {
            return Ok(device);
        }
        let owner = Owner::open(0).map_err(lacking)?;
        let facts = owner.facts().clone();
        // A machine with a device has the toolkit, or the loader knows its library.
        let template = template(Path::new("/"), native_arch(&facts));
        let checks = Checks::load(&owner, &template, least, unsandboxed).map_err(lacking)?;
        let options = WorkerOptions {
            ordinal: 0,
            least,
            unsandboxed,
        };
        let nvml = Nvml::open().ok().and_then(|nvml| {
            let gpus = nvml.gpus().ok()?;
            let ours = gpus.iter().find(|gpu| same_uuid(&gpu.uuid, &facts.uuid))?.index;
            Some((nvml, ours))
        });
        let device = Arc::new(Self {
            compiler: Compiler::new(template, least, unsandboxed),
            checks,
            owner,
            spares: Mutex::new(Spares::new(options)),
            nvml,
            roofs: Mutex::default(),
        });
        OPEN.with(|open| *open.borrow_mut() = Arc::downgrade(&device));
        Ok(device)
    }

    /// The trust tier of results from here.
    pub(crate) fn tier(&self) -> String {
        // No memory checker of the vendor runs here yet: the tier says so.
        let base = if self.owner.facts().pageable_access {
            "device-hmm"
        } else {
            "device"
        };
        format!("{base}, unsanitized")
    }

    /// A worker with a context, ready to load; the time it takes to start was spent earlier where that was possible.
    pub(crate) fn worker(&self) -> Result<Worker, CudaError> {
        let mut worker = self.spares().take()?;
        worker.flush_with(&self.owner)?;
        Ok(worker)
    }

    fn spares(&self) -> MutexGuard<'_, Spares> {
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to start `count` workers beside what the judge does next; never while something is timed.
    pub(crate) fn prepare(&self, count: usize) {
        self.spares().prepare(count);
    }

    /// Keeps `count` workers ready from now on, until the next [`Self::settle`].
    pub(crate) fn keep(&self, count: usize) {
        self.spares().keep(count);
    }

    /// Ends a worker beside what the judge does next.
    pub(crate) fn retire(&self, worker: Worker) {
        self.spares().retire(worker);
    }

    /// Waits until no worker is being started or ended: from here on nothing of ours disturbs a timing.
    pub(crate) fn settle(&self) {
        self.spares().settle();
    }

    /// Clocks, temperature, power and throttle reasons now, where the management library is there.
    pub(crate) fn sample(&self) -> Option<DeviceSample> {
        let (nvml, index) = self.nvml.as_ref()?;
        nvml.sample(*index).ok()
    }

    /// Times of our own copies, write and read of `bytes` from cold caches: the best that this process has seen.
    pub(crate) fn roofs(&self, bytes: usize) -> Result<Roofs, CudaError> {
        let found = self.checks.roofs(&self.owner, bytes, ROOF_CALLS)?;
        let mut roofs = self.roofs.lock().unwrap_or_else(PoisonError::into_inner);
        let best = match roofs.get(&bytes) {
            Some(known) => found.better(known),
            None => found,
        };
        roofs.insert(bytes, best.clone());
        Ok(best)
    }

    /// Takes the right to time on this device, over all processes of this machine.
    pub(crate) fn lock(&self) -> Result<TimingLock, JudgeError> {
        TimingLock::take(&self.owner.facts().uuid)
    }
}

/// A candidate compiled for a device that need not be here.
#[derive(Debug, Clone)]
pub struct Checked {
    /// What the compiler said.
    pub log: String,
    /// Wall time of the compilation in milliseconds.
    pub ms: f64,
}

/// Compiles a CUDA candidate without a device; the inner error is what the compiler refused, with its code. Private
/// toolchains are looked for under `toolchains`; `native` means the first device here, or sm_90a without one.
///
/// # Errors
/// When there is no compiler or no box.
pub fn compile_for_device(
    instance: &Instance,
    candidate: &Candidate,
    toolchains: &Path,
    least: Level,
    unsandboxed: bool,
) -> Result<Result<Checked, (String, String)>, JudgeError> {
    let native = Nvml::open()
        .ok()
        .and_then(|nvml| nvml.gpus().ok()?.first()?.arch())
        .unwrap_or_else(|| "sm_90a".to_owned());
    let compiler = Compiler::new(template(toolchains, native), least, unsandboxed);
    match compiler.compile(instance, candidate) {
        Ok(Ok(code)) => Ok(Ok(Checked {
            log: code.cubin.log.clone(),
            ms: code.cubin.ms,
        })),
        Ok(Err(unfit)) => Ok(Err((
            crate::codes::code(ksmith_ledger::Gate::Compile, unfit.cause),
            unfit.log,
        ))),
        Err(error) => Err(lacking(error)),
    }
}

/// Compiler library, headers and architecture of every compilation.
fn template(toolchains: &Path, arch: String) -> CompileOptions {
    let toolchain = Toolchain::find(&LocalHost::new(), toolchains);
    CompileOptions {
        sources: Vec::new(),
        kernels: Vec::new(),
        arch,
        flags: Vec::new(),
        include: toolchain
            .iter()
            .filter_map(|found| found.include.clone())
            .collect(),
        library: toolchain.and_then(|found| found.nvrtc),
    }
}

/// The architecture of a device with its own features, as compilers name it.
fn native_arch(facts: &DeviceFacts) -> String {
    let (major, minor) = facts.capability;
    let suffix = if major >= 9 { "a" } else { "" };
    format!("sm_{major}{minor}{suffix}")
}

/// Whether `GPU-8-4-4-4-12` and 32 hex digits name one device.
fn same_uuid(named: &str, plain: &str) -> bool {
    let digits: String = named
        .trim_start_matches("GPU-")
        .chars()
        .filter(char::is_ascii_hexdigit)
        .collect();
    digits.eq_ignore_ascii_case(plain)
}

/// A failure on the judge's side of the device.
pub(crate) fn ours(error: &CudaError) -> JudgeError {
    JudgeError::Worker(chain(error))
}

fn lacking(error: CudaError) -> JudgeError {
    match error {
        CudaError::Box(error) => JudgeError::Box(error),
        CudaError::Unavailable(what) => JudgeError::Unsupported(what),
        other => JudgeError::Unsupported(format!("the device cannot be used: {}", chain(&other))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_the_same_in_both_spellings() {
        let plain = "0123456789abcdef0123456789abcdef";
        assert!(same_uuid("GPU-01234567-89AB-cdef-0123-456789abcdef", plain));
        assert!(!same_uuid("GPU-11234567-89ab-cdef-0123-456789abcdef", plain));
        assert!(!same_uuid("", plain));
    }
}
