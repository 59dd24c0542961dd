//! Runs one agent's command line in its box, once, and says what was seen of it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ksmith_box::{BoxError, Ended, Level};

use super::agent_box::{is_system, port};
use super::relay::Errand;
use super::{AgentBox, Desk, Profile, PromptBy, Sockets, Values};

/// Environment that every agent has.
const COMMON: [(&str, &str); 3] = [("TERM", "dumb"), ("LANG", "C.UTF-8"), ("NO_COLOR", "1")];
/// Where a box looks for programs.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The variable that names the socket of our tools inside the box.
pub(crate) const TOOLS_VARIABLE: &str = "KSMITH_TOOLS";
/// How long an agent may take to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(20);

/// Why an agent cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// Its program is not on the search path.
    #[error("program `{program}` of agent `{agent}` is not installed{}", hint(install))]
    Missing {
        /// The agent.
        agent: String,
        /// The program.
        program: String,
        /// How to get it.
        install: Option<String>,
    },
    /// Its box cannot be made.
    #[error("the agent's box")]
    Box(#[from] BoxError),
}

fn hint(install: &Option<String>) -> String {
    install
        .as_ref()
        .map(|command| format!("; `{command}` gets it"))
        .unwrap_or_default()
}

/// An agent's program on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Its real path.
    pub program: PathBuf,
    /// What a box must show beyond the system for it to run.
    pub show: Vec<PathBuf>,
    /// Folders to add to the search path.
    pub path: Vec<PathBuf>,
}

/// Finds an agent's program on a search path, and what it needs to run: the packages around a script, its interpreter.
///
/// # Errors
/// When it is not there.
pub fn find(profile: &Profile, search: Option<&OsStr>) -> Result<Found, DriverError> {
    let missing = || DriverError::Missing {
        agent: profile.name.clone(),
        program: profile.program.clone(),
        install: profile.install.clone(),
    };
    let program = locate(&profile.program, search).ok_or_else(missing)?;
    let mut found = Found {
        show: profile.show.clone(),
        program,
        ..Found::default()
    };
    found.need(&found.program.clone());
    if let Some(interpreter) = interpreter(&found.program)
        && let Some(path) = locate(&interpreter, search)
    {
        found.need(&path);
    }
    Ok(found)
}

impl Found {
    /// Shows a program, if the system does not.
    fn need(&mut self, program: &Path) {
        if is_system(program) {
            return;
        }
        // Packages of npm need those beside them.
        let mut packages = PathBuf::new();
        let whole = program.components().any(|part| {
            packages.push(part);
            part.as_os_str() == "node_modules"
        });
        self.show.push(if whole { packages } else { program.to_owned() });
        self.path.extend(program.parent().map(Path::to_owned));
    }
}

fn locate(program: &str, search: Option<&OsStr>) -> Option<PathBuf> {
    let runs = |path: PathBuf| {
        use std::os::unix::fs::PermissionsExt as _;
        let meta = std::fs::metadata(&path).ok()?;
        (meta.is_file() && meta.permissions().mode() & 0o111 != 0)
            .then(|| path.canonicalize().ok())
            .flatten()
    };
    if program.contains('/') {
        return runs(program.into());
    }
    std::env::split_paths(search?).find_map(|folder| runs(folder.join(program)))
}

/// The program that a script names after `env` in its first line, or directly.
fn interpreter(script: &Path) -> Option<String> {
    let mut head = [0u8; 128];
    let count = std::fs::File::open(script).ok()?.read(&mut head).ok()?;
    let line = head[..count]
        .strip_prefix(b"#!")?
        .split(|&byte| byte == b'\n')
        .next()?;
    let line = String::from_utf8_lossy(line).into_owned();
    let mut words = line.split_whitespace();
    let first = words.next()?;
    if first.ends_with("/env") {
        words.find(|word| !word.starts_with('-')).map(str::to_owned)
    } else {
        Some(first.to_owned())
    }
}

/// One session to be run.
#[derive(Debug)]
pub struct Session<'a> {
    /// The agent.
    pub profile: &'a Profile,
    /// Its program.
    pub found: &'a Found,
    /// Its desk.
    pub desk: &'a Desk,
    /// What it is told, its model, key and turns; the paths and the address are filled in here.
    pub values: Values,
    /// Sockets to gateway and tools.
    pub sockets: Sockets,
    /// This program, if it is to stand in the box as the client of our tools.
    pub ksmith: Option<PathBuf>,
    /// Whether our tools are given by MCP as well.
    pub mcp: bool,
    /// The box.
    pub cage: AgentBox,
}

/// What was seen of one session.
#[derive(Debug, Clone)]
pub struct Ran {
    /// How its box ended.
    pub ended: Ended,
    /// Whether it was ended for its flood of output.
    pub flooded: bool,
    /// The first part of its standard output.
    pub stdout: Vec<u8>,
    /// The first part of its standard error.
    pub stderr: Vec<u8>,
    /// Whether either was longer than what is kept.
    pub truncated: bool,
    /// Wall time.
    pub wall: Duration,
    /// The level of isolation that its box really had.
    pub level: Level,
    /// The command line, with the prompt in its place.
    pub command: Vec<String>,
}

impl<'a> Session<'a> {
    /// Files of the profile that belong on the desk and into the home, filled in, by their paths there.
    pub fn files(
        profile: &Profile,
        values: &Values,
    ) -> (BTreeMap<String, Vec<u8>>, BTreeMap<String, Vec<u8>>) {
        let (mut desk, mut home) = (BTreeMap::new(), BTreeMap::new());
        for file in &profile.files {
            let text = values.fill(&file.text).into_bytes();
            if let Some(path) = file.path.strip_prefix("{desk}/") {
                desk.insert(path.to_owned(), text);
            } else if let Some(path) = file.path.strip_prefix("{home}/") {
                home.insert(path.to_owned(), text);
            }
        }
        (desk, home)
    }

    fn errand(&self, values: &Values, port: u16) -> Errand {
        let mut path: Vec<String> = self
            .ksmith
            .iter()
            .filter_map(|program| program.parent())
            .chain(self.found.path.iter().map(PathBuf::as_path))
            .map(|folder| folder.display().to_string())
            .collect();
        path.push(SYSTEM_PATH.to_owned());
        let mut env: BTreeMap<String, String> = COMMON
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        env.insert("PATH".into(), path.join(":"));
        env.insert("HOME".into(), values.home.clone());
        env.insert("TMPDIR".into(), "/tmp".into());
        if let Some(tools) = &self.sockets.tools {
            env.insert(TOOLS_VARIABLE.into(), tools.display().to_string());
        }
        for (name, value) in &self.profile.env {
            env.insert(name.clone(), values.fill(value));
        }
        Errand {
            program: self.found.program.clone(),
            args: self.profile.arguments(values, self.mcp),
            env,
            relay: self.sockets.gateway.clone().map(|socket| (port, socket)),
        }
    }
}

/// The address of the model inside a box made now.
pub(crate) fn address(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// Values with the paths of a desk and the address inside its box filled in.
pub fn placed(values: &Values, desk: &Desk, ksmith: Option<&Path>) -> (Values, u16) {
    let port = port();
    let values = Values {
        home: desk.home().display().to_string(),
        desk: desk.path().display().to_string(),
        url: address(port),
        ksmith: ksmith.map(|path| path.display().to_string()).unwrap_or_default(),
        ..values.clone()
    };
    (values, port)
}

/// Runs a session to its end, its deadline, its flood bound, or until `keep_on` says no.
///
/// # Errors
/// When no box can be made; whatever happens *in* the box is seen, not an error.
pub fn run(session: &Session<'_>, keep_on: &dyn Fn() -> bool) -> Result<Ran, DriverError> {
    let (mut values, port) = placed(&session.values, session.desk, session.ksmith.as_deref());
    if let Some(tools) = &session.sockets.tools {
        values.tools = tools.display().to_string();
    }
    let errand = session.errand(&values, port);
    let mut command = vec![errand.program.display().to_string()];
    command.extend(errand.args.iter().cloned());
    let shown = session
        .found
        .show
        .iter()
        .chain(&session.ksmith)
        .chain(&session.sockets.folder)
        .cloned();
    let mut spec = session.cage.clone().show(shown).spec(&errand);
    if session.profile.prompt == PromptBy::Stdin {
        spec = spec.stdin(values.prompt.into_bytes());
    }
    let finished = ksmith_box::run_while(&spec, keep_on)?;
    Ok(Ran {
        ended: finished.ended,
        flooded: finished.flooded,
        stdout: finished.stdout,
        stderr: finished.stderr,
        truncated: finished.truncated,
        wall: finished.wall,
        level: finished.level,
        command,
    })
}

/// The agent's version, asked in a box of its own; none if it does not say.
pub fn version(profile: &Profile, found: &Found, cage: &AgentBox, desk: &Desk) -> Option<String> {
    if profile.version.is_empty() {
        return None;
    }
    let (values, _) = placed(&Values::default(), desk, None);
    let mut path: Vec<String> = found
        .path
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    path.push(SYSTEM_PATH.to_owned());
    let errand = Errand {
        program: found.program.clone(),
        args: profile.version.clone(),
        env: [
            ("PATH".to_owned(), path.join(":")),
            ("HOME".to_owned(), values.home),
        ]
        .into(),
        relay: None,
    };
    let spec = cage
        .clone()
        .show(found.show.iter().cloned())
        .wall(VERSION_LIMIT)
        .spec(&errand);
    let finished = ksmith_box::run(&spec).ok()?;
    let text = String::from_utf8_lossy(&finished.stdout).into_owned();
    let line: String = text
        .lines()
        .next()?
        .chars()
        .filter(|c| !c.is_control())
        .take(60)
        .collect();
    (!line.trim().is_empty()).then(|| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_program_of_the_system_needs_nothing_shown() {
        let profile = Profile::command(Path::new("/bin/sh"));
        let found = find(&profile, None).unwrap();
        assert!(found.show.is_empty() && found.path.is_empty(), "{found:?}");
    }

    #[test]
    fn a_script_in_a_package_shows_the_packages_around_it_and_its_interpreter() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let script = home.join("lib/node_modules/@a/b/cli.js");
        std::fs::create_dir_all(script.parent().unwrap()).unwrap();
        std::fs::create_dir_all(home.join("bin")).unwrap();
        std::fs::write(&script, "#!/usr/bin/env -S runner --flag\n").unwrap();
        std::fs::write(home.join("bin/runner"), "").unwrap();
        for file in [&script, &home.join("bin/runner")] {
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::os::unix::fs::symlink(&script, home.join("bin/agent")).unwrap();
        let mut profile = Profile::command(Path::new("x"));
        profile.program = "agent".into();
        let found = find(&profile, Some(home.join("bin").as_os_str())).unwrap();
        assert_eq!(found.program, script);
        assert_eq!(
            found.show,
            [home.join("lib/node_modules"), home.join("bin/runner")]
        );
        assert!(found.path.contains(&home.join("bin")));
    }

    #[test]
    fn a_missing_program_says_how_to_get_it() {
        let mut profile = Profile::load("qwen").unwrap();
        profile.program = "no-such-program".into();
        let error = find(&profile, Some(OsStr::new("/nowhere")))
            .unwrap_err()
            .to_string();
        assert!(error.contains("npm install"), "{error}");
    }
}
