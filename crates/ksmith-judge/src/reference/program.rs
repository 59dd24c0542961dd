//! A trusted function with its signature, built and ready to start.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ksmith_box::{BoxSpec, Level, Limits, Profile};
use ksmith_task::Digest;

use super::driver;
use super::error::ReferenceError;

/// How a trusted function sees an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `double`.
    Real,
    /// `int64_t`.
    Whole,
}

/// One tensor argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub kind: Kind,
    /// Number of dimensions.
    pub rank: usize,
    /// Whether the function writes it.
    pub written: bool,
}

/// The arguments of a trusted function: tensors, scalars, axes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signature {
    /// Tensors in order.
    pub tensors: Vec<Argument>,
    /// Scalars in order.
    pub scalars: Vec<Kind>,
    /// Number of axes.
    pub axes: usize,
}

impl Signature {
    /// Word index of each tensor's offset in a request; its sizes follow.
    pub(crate) fn places(&self) -> Vec<usize> {
        let mut next = 1;
        self.tensors
            .iter()
            .map(|tensor| {
                let place = next;
                next += 1 + tensor.rank;
                place
            })
            .collect()
    }

    /// Words of a request.
    pub(crate) fn words(&self) -> usize {
        1 + self.tensors.iter().map(|tensor| 1 + tensor.rank).sum::<usize>() + self.scalars.len() + self.axes
    }
}

/// The isolation that trusted programs get.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Confinement {
    pub(crate) least: Level,
    pub(crate) unsandboxed: bool,
}

impl Confinement {
    pub(crate) fn apply(self, spec: BoxSpec) -> BoxSpec {
        let spec = spec.least(self.least);
        if self.unsandboxed {
            spec.unsandboxed()
        } else {
            spec
        }
    }
}

/// A trusted function, compiled (or found, for Python).
#[derive(Debug, Clone)]
pub struct Program {
    pub(crate) source: PathBuf,
    pub(crate) signature: Signature,
    pub(crate) launch: Launch,
    pub(crate) confinement: Confinement,
    pub(crate) threads: u32,
}

#[derive(Debug, Clone)]
pub(crate) enum Launch {
    Executable(PathBuf),
    Python { interpreter: PathBuf, driver: PathBuf },
}

impl Program {
    /// Compiles `source` (found in `folder`) with a driver for `signature`, or finds the same build in `cache`.
    ///
    /// # Errors
    /// When it does not compile, needs what is not installed, or is of a kind that this tier does not run.
    pub fn build(
        source: &Path,
        entry: &str,
        signature: Signature,
        cache: &Path,
        options: (Level, bool, u32),
    ) -> Result<Self, ReferenceError> {
        let (least, unsandboxed, threads) = options;
        let confinement = Confinement { least, unsandboxed };
        fs::create_dir_all(cache).map_err(ReferenceError::io("could not make the reference cache"))?;
        // Boxes show paths by their absolute names.
        let source = &fs::canonicalize(source).map_err(ReferenceError::io("could not find the reference"))?;
        let cache =
            &fs::canonicalize(cache).map_err(ReferenceError::io("could not find the reference cache"))?;
        let launch = match source.extension().and_then(|extension| extension.to_str()) {
            Some("c") => Launch::Executable(compile(source, entry, &signature, cache, confinement)?),
            Some("py") => python(source, entry, &signature, cache, confinement)?,
            _ => return Err(ReferenceError::Unsupported(source.to_owned())),
        };
        Ok(Self {
            source: source.to_owned(),
            signature,
            launch,
            confinement,
            threads,
        })
    }

    pub(crate) fn spec(&self) -> BoxSpec {
        let folder = self.source.parent().unwrap_or(Path::new("/"));
        let threads = self.threads.max(1).to_string();
        let spec = match &self.launch {
            Launch::Executable(path) => BoxSpec::program(path, Profile::Reference).read_only(path),
            Launch::Python { interpreter, driver } => BoxSpec::program(interpreter, Profile::Reference)
                .args(["-I", "-B"])
                .arg(driver.display().to_string())
                .read_only(driver)
                .read_only(folder)
                .proc_view(),
        };
        self.confinement
            .apply(spec.system().env("OMP_NUM_THREADS", &threads).limits(Limits {
                wall: None,
                cpu: None,
                memory_bytes: Some(16 << 30),
                ..Limits::default()
            }))
    }
}

fn compile(
    source: &Path,
    entry: &str,
    signature: &Signature,
    cache: &Path,
    confinement: Confinement,
) -> Result<PathBuf, ReferenceError> {
    // No contraction and no fast math: the reference means what it says.
    const FLAGS: [&str; 6] = [
        "-std=gnu11",
        "-O2",
        "-ftree-vectorize",
        "-ffp-contract=off",
        "-fopenmp",
        "-pipe",
    ];
    let text = fs::read(source).map_err(ReferenceError::io("could not read the reference"))?;
    let driver = driver::c_driver(entry, signature);
    let folder = source.parent().unwrap_or(Path::new("/"));
    let mut parts = vec![
        ("source", text),
        ("driver", driver.clone().into_bytes()),
        ("flags", FLAGS.join(" ").into()),
    ];
    // Headers beside the source are part of the program.
    let mut headers: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(ReferenceError::io("could not list the reference's folder"))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "h"))
        .collect();
    headers.sort();
    for header in headers {
        parts.push((
            "header",
            fs::read(header).map_err(ReferenceError::io("could not read a header"))?,
        ));
    }
    let digest = Digest::of_parts(parts.iter().map(|(name, bytes)| (*name, &bytes[..])));
    let built = cache.join(format!("reference-{digest}"));
    if built.is_file() {
        return Ok(built);
    }
    let work = tempfile::tempdir_in(cache)
        .map_err(ReferenceError::io("could not make a folder for the compiler"))?;
    let driver_path = work.path().join("driver.c");
    fs::write(&driver_path, driver).map_err(ReferenceError::io("could not write the driver"))?;
    open_to_all(work.path())?;
    let output = work.path().join("program");
    let spec = BoxSpec::program("/usr/bin/gcc", Profile::Compiler)
        .args(FLAGS)
        .arg("-I")
        .arg(folder.display().to_string())
        .arg("-o")
        .arg(output.display().to_string())
        .arg(driver_path.display().to_string())
        .arg(source.display().to_string())
        .args(["-lm", "-lpthread"])
        .env("PATH", "/usr/bin:/bin")
        .env("TMPDIR", &work.path().display().to_string())
        .cwd(work.path())
        .system()
        .read_only(source)
        .read_only(folder)
        .read_write(work.path())
        .wall(Duration::from_secs(60));
    let finished = ksmith_box::run(&confinement.apply(spec))?;
    if !finished.ended.success() {
        let log = String::from_utf8_lossy(&finished.stderr)
            .chars()
            .take(4000)
            .collect();
        return Err(ReferenceError::Compile {
            path: source.to_owned(),
            log,
        });
    }
    fs::rename(&output, &built).map_err(ReferenceError::io("could not keep the compiled reference"))?;
    Ok(built)
}

/// The box may run under another user: what it is shown must be open to it.
fn open_to_all(folder: &Path) -> Result<(), ReferenceError> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777))
        .map_err(ReferenceError::io("could not open the compiler's folder"))
}

fn python(
    source: &Path,
    entry: &str,
    signature: &Signature,
    cache: &Path,
    confinement: Confinement,
) -> Result<Launch, ReferenceError> {
    let missing = |what| ReferenceError::Missing {
        path: source.to_owned(),
        what,
    };
    let interpreter = ["/usr/bin/python3", "/usr/local/bin/python3"]
        .into_iter()
        .map(PathBuf::from)
        .find(|path| path.exists())
        .ok_or_else(|| missing("Python 3"))?;
    let text = driver::python_driver(&source.display().to_string(), entry, signature);
    let driver = cache.join(format!("driver-{}.py", Digest::of(text.as_bytes())));
    fs::write(&driver, text).map_err(ReferenceError::io("could not write the driver"))?;
    let probe = BoxSpec::program(&interpreter, Profile::Reference)
        .args(["-I", "-B", "-c", "import numpy"])
        .system()
        .proc_view()
        .wall(Duration::from_secs(30));
    if !ksmith_box::run(&confinement.apply(probe))?.ended.success() {
        return Err(missing("NumPy for Python 3"));
    }
    Ok(Launch::Python { interpreter, driver })
}
