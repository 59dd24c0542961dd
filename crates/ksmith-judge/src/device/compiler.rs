//! Compiles device code, ahead of need where candidates are known early. Same sources, same module: the digest decides.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use ksmith_box::Level;
use ksmith_task::{Candidate, Digest, Instance, chain};
use ksmith_worker::cuda::{CompileOptions, Cubin, CudaError, CudaFault, compile};

/// A compiled candidate for the device.
#[derive(Debug, Clone)]
pub(crate) struct Code {
    /// The module.
    pub(crate) cubin: Arc<Cubin>,
    /// Hash of module and launch plan, flags aside: two candidates of the same digest do the same.
    pub(crate) digest: Digest,
    /// Whether it was compiled before.
    pub(crate) cached: bool,
}

/// Sources that make no module.
#[derive(Debug, Clone)]
pub(crate) struct Unfit {
    /// Second part of the code.
    pub(crate) cause: &'static str,
    /// What the compiler said, capped.
    pub(crate) log: String,
}

/// What came of a compilation.
pub(crate) type Compiled = Result<Result<Code, Unfit>, CudaError>;

/// The compiler and what it has made in this run.
pub(crate) struct Compiler {
    template: CompileOptions,
    least: Level,
    unsandboxed: bool,
    coming: Mutex<HashMap<Digest, JoinHandle<Result<Cubin, CudaError>>>>,
    done: Mutex<HashMap<Digest, Arc<Cubin>>>,
}

/// Nothing is left half-done in these maps: a panic elsewhere does not spoil them.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Compiler {
    pub(crate) fn new(template: CompileOptions, least: Level, unsandboxed: bool) -> Self {
        Self {
            template,
            least,
            unsandboxed,
            coming: Mutex::default(),
            done: Mutex::default(),
        }
    }

    /// Begins to compile in threads of their own, at most `most` at a time.
    pub(crate) fn ahead(&self, instance: &Instance, candidates: &[Candidate], most: usize) {
        let mut coming = locked(&self.coming);
        for candidate in candidates {
            if coming.len() >= most {
                return;
            }
            let Ok(options) = self.options(instance, candidate) else {
                continue;
            };
            let digest = digest(&options);
            if options.sources.is_empty()
                || coming.contains_key(&digest)
                || locked(&self.done).contains_key(&digest)
            {
                continue;
            }
            let (least, unsandboxed) = (self.least, self.unsandboxed);
            let job = std::thread::spawn(move || compile(&options, least, unsandboxed));
            coming.insert(digest, job);
        }
    }

    /// Waits for every compilation that was begun: nothing of ours runs beside a timing.
    pub(crate) fn settle(&self) {
        let jobs: Vec<_> = locked(&self.coming).drain().collect();
        for (digest, job) in jobs {
            if let Ok(Ok(cubin)) = job.join() {
                locked(&self.done).insert(digest, Arc::new(cubin));
            }
        }
    }

    /// Compiles a candidate, or takes what was compiled before.
    pub(crate) fn compile(&self, instance: &Instance, candidate: &Candidate) -> Compiled {
        let options = match self.options(instance, candidate) {
            Ok(options) => options,
            Err(unfit) => return Ok(Err(unfit)),
        };
        let digest = digest(&options);
        let known = locked(&self.done).get(&digest).cloned();
        let cached = known.is_some();
        let cubin = match known {
            Some(cubin) => cubin,
            None => {
                let coming = locked(&self.coming).remove(&digest);
                let made = match coming.map(JoinHandle::join) {
                    Some(Ok(made)) => made,
                    Some(Err(_)) | None => self.make(&options, candidate),
                };
                match made {
                    Ok(cubin) => Arc::new(cubin),
                    Err(CudaError::Fault(CudaFault::Load { message })) => {
                        return Ok(Err(Unfit {
                            cause: "error",
                            log: message,
                        }));
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        locked(&self.done).insert(digest, Arc::clone(&cubin));
        let plan = candidate.cuda().map(|plan| {
            let mut plan = plan.clone();
            plan.flags.clear();
            format!("{plan:?}")
        });
        Ok(Ok(Code {
            digest: Digest::of_parts([
                ("module", cubin.image.as_slice()),
                ("plan", plan.unwrap_or_default().as_bytes()),
            ]),
            cubin,
            cached,
        }))
    }

    /// Compiles a float64 reference, which may include `headers`: no contraction, and functions without a space of
    /// their own run on the device.
    pub(crate) fn reference(
        &self,
        instance: &Instance,
        candidate: &Candidate,
        headers: Vec<(String, String)>,
    ) -> Result<Arc<Cubin>, String> {
        let mut options = self
            .options(instance, candidate)
            .map_err(|unfit| format!("the reference for the device: {}", unfit.log))?;
        options.sources.extend(headers);
        options
            .flags
            .extend(["--fmad=false", "--device-as-default-execution-space"].map(str::to_owned));
        compile(&options, self.least, self.unsandboxed)
            .map(Arc::new)
            .map_err(|error| chain(&error))
    }

    fn make(&self, options: &CompileOptions, candidate: &Candidate) -> Result<Cubin, CudaError> {
        // Text for the driver's own assembler needs no compiler; kernels keep their names.
        if let [source] = candidate.sources.as_slice()
            && source.path.extension().is_some_and(|ending| ending == "ptx")
        {
            return Ok(Cubin {
                image: source.text.clone().into_bytes(),
                lowered: options
                    .kernels
                    .iter()
                    .map(|name| (name.clone(), name.clone()))
                    .collect(),
                log: String::new(),
                ms: 0.0,
            });
        }
        compile(options, self.least, self.unsandboxed)
    }

    fn options(&self, instance: &Instance, candidate: &Candidate) -> Result<CompileOptions, Unfit> {
        let refuse = |log: &str| {
            Err(Unfit {
                cause: "error",
                log: log.to_owned(),
            })
        };
        let Some(plan) = candidate.cuda() else {
            return refuse("this candidate holds no device code");
        };
        if plan.compiler == "nvcc" {
            return refuse("this judge compiles with NVRTC: write `compiler = \"nvrtc\"`");
        }
        if !plan.headers.is_empty() {
            return refuse("this judge has no header libraries: copy what is needed into the candidate");
        }
        let arch = match plan.arch.as_str() {
            "native" => self.template.arch.clone(),
            named => named.to_owned(),
        };
        Ok(CompileOptions {
            sources: program(candidate),
            kernels: plan.kernels(),
            arch,
            flags: [plan.flags.clone(), instance.defines()].concat(),
            ..self.template.clone()
        })
    }
}

/// The one translation unit: the `.cu` files in order, with everything as headers.
fn program(candidate: &Candidate) -> Vec<(String, String)> {
    let named: Vec<(String, String)> = candidate
        .sources
        .iter()
        .map(|source| (source.path.display().to_string(), source.text.clone()))
        .collect();
    let units: Vec<&(String, String)> = named.iter().filter(|(name, _)| name.ends_with(".cu")).collect();
    match units.as_slice() {
        [unit] => {
            let others = named.iter().filter(|(name, _)| name != &unit.0).cloned();
            std::iter::once((*unit).clone()).chain(others).collect()
        }
        units => {
            let text: String = units
                .iter()
                .map(|(name, _)| format!("#include \"{name}\"\n"))
                .collect();
            std::iter::once(("candidate.cu".to_owned(), text))
                .chain(named.iter().cloned())
                .collect()
        }
    }
}

fn digest(options: &CompileOptions) -> Digest {
    let mut parts: Vec<(String, Vec<u8>)> = vec![
        ("arch".to_owned(), options.arch.clone().into_bytes()),
        ("flags".to_owned(), options.flags.join("\n").into_bytes()),
        ("kernels".to_owned(), options.kernels.join("\n").into_bytes()),
    ];
    for (name, text) in &options.sources {
        parts.push((format!("source {name}"), text.clone().into_bytes()));
    }
    Digest::of_parts(
        parts
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice())),
    )
}
