//! Compiles a candidate's sources into a library, boxed and cached.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ksmith_box::{BoxError, BoxSpec, Ended, Finished, Level, Limits, Profile};
use ksmith_task::Digest;

use crate::exports;

/// No library of a kernel is larger.
const LARGEST_LIBRARY: u64 = 64 << 20;

/// A tool that changes the build so that mistakes become visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sanitizer {
    /// Out-of-bounds and use-after-free.
    Address,
    /// Undefined behaviour.
    Undefined,
    /// Data races.
    Thread,
}

/// What to compile: a folder, its sources, and flags that were checked before.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The candidate's folder; the only folder of `-I` and the only one that is shown beside the system's.
    pub folder: PathBuf,
    /// Sources relative to the folder, in order: `.c`, `.cc`, `.cpp`, `.cxx`.
    pub files: Vec<String>,
    /// The symbol that must be exported.
    pub entry: String,
    /// Flags of the manifest, already checked against the allow-list.
    pub flags: Vec<String>,
}

/// How to compile.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// Where finished libraries are kept, by digest.
    pub cache: PathBuf,
    /// Wall limit of the whole build.
    pub wall: Duration,
    /// Memory of the compiler.
    pub memory_bytes: u64,
    /// Sanitizer build, for the gates that ask for one.
    pub sanitizer: Option<Sanitizer>,
    /// Least isolation.
    pub least: Level,
    /// Whether the user allowed less than that by name.
    pub unsandboxed: bool,
}

impl BuildOptions {
    /// Usual limits (20 s, 2 GiB) with this cache folder.
    pub fn new(cache: &Path) -> Self {
        Self {
            cache: cache.to_owned(),
            wall: Duration::from_secs(20),
            memory_bytes: 2 << 30,
            sanitizer: None,
            least: Level::Kernel,
            unsandboxed: false,
        }
    }
}

/// What came of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Build {
    /// A library.
    Library(Library),
    /// The candidate does not compile: its own fault, hence data.
    Refused(Refused),
}

/// A finished library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// Where it lies, read-only, named by the digest of all that went into it.
    pub path: PathBuf,
    /// SHA-256 of the library itself.
    pub digest: Digest,
    /// What the compiler said (warnings), capped.
    pub log: String,
    /// Wall milliseconds of the build; of the original one if it was cached.
    pub ms: u64,
    /// Whether it came from the cache.
    pub cached: bool,
}

/// Why there is no library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Stable code: `compile/error`, `compile/timeout`, `compile/memory`, `compile/forbidden-call`, `compile/no-entry`.
    pub code: &'static str,
    /// What the compiler said, capped; foreign text.
    pub stderr: String,
}

/// Why *we* could not build.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The box could not be made.
    #[error("the compiler's box")]
    Box(#[from] BoxError),
    /// No compiler for these sources.
    #[error("no `{0}` on this machine: install gcc and g++")]
    NoCompiler(&'static str),
    /// A file operation of ours failed.
    #[error("{what} `{path}`")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

/// Compiles, or finds the same build in the cache.
pub fn compile(sources: &Sources, options: &BuildOptions) -> Result<Build, BuildError> {
    let started = Instant::now();
    let compiler = if plain_c(sources) {
        "/usr/bin/gcc"
    } else {
        "/usr/bin/g++"
    };
    if !Path::new(compiler).exists() {
        return Err(BuildError::NoCompiler(if compiler.ends_with("gcc") {
            "gcc"
        } else {
            "g++"
        }));
    }
    let files = read_folder(&sources.folder)?;
    let arguments = arguments(sources, options);
    let key = key(&files, &arguments, compiler);
    let path = options.cache.join(format!("{key}.so"));
    if let Ok(bytes) = fs::read(&path) {
        let log = fs::read_to_string(options.cache.join(format!("{key}.log"))).unwrap_or_default();
        let (ms, log) = log.split_once('\n').unwrap_or(("0", ""));
        // The entry is no part of the key.
        if let Some(stderr) = exports::lacks(&bytes, &sources.entry) {
            return Ok(no_entry(stderr));
        }
        return Ok(Build::Library(Library {
            digest: Digest::of(&bytes),
            path,
            log: log.to_owned(),
            ms: ms.parse().unwrap_or(0),
            cached: true,
        }));
    }
    let room = Room::create(&options.cache, &files)?;
    let failed = match options.sanitizer {
        None => None,
        Some(_) => preprocess(compiler, sources, &room, options)?,
    };
    let finished = match failed {
        Some(finished) => finished,
        None => boxed(compiler, &arguments, &room, options)?,
    };
    // That we take the question for files away is nothing to tell anyone.
    let text = |bytes: &[u8]| -> String {
        let text = String::from_utf8_lossy(bytes);
        let lines = text.split_inclusive('\n');
        lines
            .filter(|line| !line.contains("warning: undefining \"__has_include"))
            .collect()
    };
    let refused = |code| {
        Ok(Build::Refused(Refused {
            code,
            stderr: text(&finished.stderr),
        }))
    };
    match &finished.ended {
        Ended::Exited(0) => {}
        Ended::Exited(_) | Ended::Signal(_) | Ended::Killed => return refused("compile/error"),
        Ended::TimedOut => return refused("compile/timeout"),
        Ended::OutOfMemory => return refused("compile/memory"),
        Ended::ForbiddenCall(_) => return refused("compile/forbidden-call"),
    }
    let Some(bytes) = room.library()? else {
        return refused("compile/error");
    };
    if let Some(stderr) = exports::lacks(&bytes, &sources.entry) {
        return Ok(no_entry(stderr));
    }
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let log = text(&finished.stderr);
    keep(
        &options.cache,
        &format!("{key}.log"),
        format!("{ms}\n{log}").as_bytes(),
        0o644,
    )?;
    keep(&options.cache, &format!("{key}.so"), &bytes, 0o555)?;
    Ok(Build::Library(Library {
        digest: Digest::of(&bytes),
        path,
        log,
        ms,
        cached: false,
    }))
}

fn no_entry(stderr: String) -> Build {
    Build::Refused(Refused {
        code: "compile/no-entry",
        stderr,
    })
}

/// What every step of a build is told: the manifest's flags, then ours.
///
/// Without start files nothing of a library runs when it is loaded or unloaded: their hooks (`_init`, `__gmon_start__`, clone
/// tables, `__cxa_finalize`) are there for anyone to define, and fast-math's would change the processor's rounding mode for
/// the whole worker. What is built must not depend on the day, nor on which files the compiler sees; headers of C++ ask
/// for files themselves, so there gate `policy` alone looks for the question.
fn common(sources: &Sources) -> Vec<String> {
    let fixed = [
        "-shared",
        "-fPIC",
        "-fdiagnostics-color=never",
        "-frandom-seed=ksmith",
        "-Wl,--build-id=none",
        "-nostartfiles",
        "-Werror=date-time",
        "-I.",
    ];
    let same_everywhere: &[&str] = if plain_c(sources) {
        &["-U__has_include", "-U__has_include_next"]
    } else {
        &[]
    };
    let own = fixed
        .into_iter()
        .chain(same_everywhere.iter().copied())
        .map(str::to_owned);
    sources.flags.iter().cloned().chain(own).collect()
}

fn plain_c(sources: &Sources) -> bool {
    sources.files.iter().all(|file| file.ends_with(".c"))
}

/// The whole command line of the build after the compiler's name; sources and headers are found from the working folder.
fn arguments(sources: &Sources, options: &BuildOptions) -> Vec<String> {
    let sanitizer: &[&str] = match options.sanitizer {
        None => &[],
        Some(Sanitizer::Address) => &["-fpreprocessed", "-fsanitize=address", "-g1"],
        Some(Sanitizer::Undefined) => &[
            "-fpreprocessed",
            "-fsanitize=undefined",
            "-fno-sanitize-recover=undefined",
            "-g1",
        ],
        Some(Sanitizer::Thread) => &["-fpreprocessed", "-fsanitize=thread", "-g1"],
    };
    let inputs = sources
        .files
        .iter()
        .enumerate()
        .map(|(number, file)| match options.sanitizer {
            None => format!("./{file}"),
            Some(_) => format!("./{}", preprocessed_name(sources, number)),
        });
    common(sources)
        .into_iter()
        .chain(sanitizer.iter().copied().map(str::to_owned))
        .chain(["-o", "../out/library.so"].map(str::to_owned))
        .chain(inputs)
        .chain(["-lm".to_owned()])
        .collect()
}

fn preprocessed_name(sources: &Sources, number: usize) -> String {
    let ending = if plain_c(sources) { "i" } else { "ii" };
    format!(".preprocessed-{number}.{ending}")
}

/// Attributes that switch a sanitizer off, and what stands for them in the builds that sanitize: attributes that no compiler
/// knows, hence ignores.
const UNSANITIZED: [(&str, &str); 3] = [
    ("no_sanitize", "ks_sanitize"),
    ("no_address_safety_analysis", "ks_address_safety_analysis"),
    (
        "disable_sanitizer_instrumentation",
        "ks_able_sanitizer_instrumentation",
    ),
];

/// Preprocesses every source as the plain build sees it, so that a sanitizer's build compiles the same program: no macro
/// tells it from the plain one, and no attribute takes part of it out. Returns the step that failed, if one did.
fn preprocess(
    compiler: &str,
    sources: &Sources,
    room: &Room,
    options: &BuildOptions,
) -> Result<Option<Finished>, BuildError> {
    for (number, file) in sources.files.iter().enumerate() {
        let name = preprocessed_name(sources, number);
        let mut arguments = common(sources);
        arguments.extend([
            "-E".to_owned(),
            "-o".to_owned(),
            format!("../out/{name}"),
            format!("./{file}"),
        ]);
        let finished = boxed(compiler, &arguments, room, options)?;
        if finished.ended != Ended::Exited(0) {
            return Ok(Some(finished));
        }
        let path = room.output().join(&name);
        let text = fs::read(&path).map_err(io_error("read", &path))?;
        let mut text = String::from_utf8_lossy(&text).into_owned();
        for (attribute, ignored) in UNSANITIZED {
            text = text.replace(attribute, ignored);
        }
        let path = room.source().join(&name);
        fs::write(&path, text).map_err(io_error("write", &path))?;
    }
    Ok(None)
}

fn key(files: &BTreeMap<String, Vec<u8>>, arguments: &[String], compiler: &str) -> Digest {
    let version = compiler_version(compiler);
    let machine = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    // `-march=native` depends on these two lines.
    let machine: String = machine
        .lines()
        .filter(|l| l.starts_with("model name") || l.starts_with("flags"))
        .take(2)
        .collect();
    let command = arguments.join("\0");
    let own = [
        ("compiler", version.as_bytes()),
        ("machine", machine.as_bytes()),
        ("command", command.as_bytes()),
    ];
    Digest::of_parts(
        own.into_iter().chain(
            files
                .iter()
                .map(|(name, bytes)| (name.as_str(), bytes.as_slice())),
        ),
    )
}

/// Path, size and time of the compiler's file: another compiler is another build.
fn compiler_version(compiler: &str) -> String {
    let file = fs::canonicalize(compiler).unwrap_or_else(|_| PathBuf::from(compiler));
    let facts = fs::metadata(&file).map(|metadata| (metadata.len(), metadata.modified().ok()));
    format!("{} {facts:?}", file.display())
}

fn io_error<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> BuildError + 'a {
    move |source| BuildError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}

/// All regular files of a candidate's folder, by relative name; links and hidden files are left out.
fn read_folder(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, BuildError> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).map_err(io_error("read the folder", &next))? {
            let entry = entry.map_err(io_error("read the folder", &next))?;
            let (path, kind) = (
                entry.path(),
                entry.file_type().map_err(io_error("look at", &next))?,
            );
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            if kind.is_dir() && !hidden {
                folders.push(path);
            } else if kind.is_file() && !hidden {
                let bytes = fs::read(&path).map_err(io_error("read", &path))?;
                let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
                files.insert(name, bytes);
            }
        }
    }
    Ok(files)
}

/// Writes a file of the cache so that nobody ever sees half of it.
fn keep(cache: &Path, name: &str, bytes: &[u8], mode: u32) -> Result<(), BuildError> {
    let path = cache.join(name);
    let partial = cache.join(format!(".{name}.{}", unique()));
    fs::write(&partial, bytes)
        .and_then(|()| fs::set_permissions(&partial, fs::Permissions::from_mode(mode)))
        .and_then(|()| fs::rename(&partial, &path))
        .map_err(io_error("write", &path))
}

fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A private copy of the sources and a folder for the output; removed when dropped.
struct Room {
    folder: PathBuf,
}

impl Room {
    fn create(cache: &Path, files: &BTreeMap<String, Vec<u8>>) -> Result<Self, BuildError> {
        fs::create_dir_all(cache).map_err(io_error("make the folder", cache))?;
        let cache = fs::canonicalize(cache).map_err(io_error("find the folder", cache))?;
        let room = Self {
            folder: cache.join(format!(".build-{}", unique())),
        };
        for folder in [room.source(), room.output()] {
            fs::create_dir_all(&folder).map_err(io_error("make the folder", &folder))?;
        }
        for (name, bytes) in files {
            let path = room.source().join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(io_error("make the folder", parent))?;
            }
            fs::write(&path, bytes).map_err(io_error("write", &path))?;
        }
        Ok(room)
    }

    fn source(&self) -> PathBuf {
        self.folder.join("source")
    }

    fn output(&self) -> PathBuf {
        self.folder.join("out")
    }

    /// The library, if the compiler left a plain file of reasonable size.
    fn library(&self) -> Result<Option<Vec<u8>>, BuildError> {
        let path = self.output().join("library.so");
        match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_file() && metadata.len() <= LARGEST_LIBRARY => {
                fs::read(&path).map(Some).map_err(io_error("read", &path))
            }
            Ok(_) | Err(_) => Ok(None),
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn boxed(
    compiler: &str,
    arguments: &[String],
    room: &Room,
    options: &BuildOptions,
) -> Result<Finished, BoxError> {
    let limits = Limits {
        wall: Some(options.wall),
        cpu: Some(options.wall),
        memory_bytes: Some(options.memory_bytes),
        file_bytes: Some(LARGEST_LIBRARY),
        processes: Some(24),
        ..Limits::default()
    };
    let mut spec = BoxSpec::program(compiler, Profile::Compiler)
        .system()
        .read_only(room.source())
        .read_write(room.output())
        .cwd(&room.source())
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C")
        .env("TMPDIR", &room.output().display().to_string())
        .args(arguments)
        .limits(limits)
        .least(options.least);
    if options.unsandboxed {
        spec = spec.unsandboxed();
    }
    ksmith_box::run(&spec)
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
