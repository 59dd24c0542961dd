//! A machine that exists only as recorded files and outputs, for tests (`testdata/<case>/host.toml`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::Gpu;
use crate::host::{Command, Ended, Host, Output};

/// A scripted machine. What it does not name is not there.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ScriptedHost {
    /// What the case shows.
    pub(crate) shows: String,
    /// File contents by path.
    pub(crate) files: BTreeMap<String, String>,
    /// Outputs by command line; the longest key that the line starts with wins.
    pub(crate) commands: BTreeMap<String, ScriptedOutput>,
    /// Programs on the search path beyond those of `commands`.
    pub(crate) programs: BTreeSet<String>,
    /// Environment variables that have a value.
    pub(crate) env: BTreeSet<String>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ScriptedOutput {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) hangs: bool,
}

impl ScriptedHost {
    pub(crate) fn load(case: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("testdata")
            .join(case)
            .join("host.toml");
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

impl Host for ScriptedHost {
    fn run(&self, command: &Command) -> Output {
        let line = command.line();
        let line = line.strip_prefix("/usr/bin/").unwrap_or(&line);
        let best = self
            .commands
            .iter()
            .filter(|(key, _)| line.starts_with(key.as_str()))
            .max_by_key(|(key, _)| key.len());
        match best {
            Some((_, output)) => Output {
                ended: if output.hangs {
                    Ended::TimedOut
                } else {
                    Ended::Exited(output.status)
                },
                stdout: output.stdout.clone(),
                stderr: output.stderr.clone(),
            },
            None if self.find(&command.program).is_some() => Output::absent(Ended::Exited(1)),
            None => Output::absent(Ended::NotFound),
        }
    }

    fn read(&self, path: &Path) -> Option<String> {
        self.files.get(path.to_str()?).cloned()
    }

    fn list(&self, path: &Path) -> Vec<String> {
        let names: BTreeSet<String> = self
            .files
            .keys()
            .filter_map(|file| {
                let rest = Path::new(file).strip_prefix(path).ok()?;
                Some(rest.iter().next()?.to_str()?.to_owned())
            })
            .collect();
        names.into_iter().collect()
    }

    fn exists(&self, path: &Path) -> bool {
        self.files.keys().any(|file| Path::new(file).starts_with(path))
    }

    fn find(&self, program: &str) -> Option<PathBuf> {
        let known = self.programs.contains(program)
            || self
                .commands
                .keys()
                .any(|line| line.split(' ').next() == Some(program));
        known.then(|| {
            if program.contains('/') {
                program.into()
            } else {
                Path::new("/usr/bin").join(program)
            }
        })
    }

    fn home(&self) -> Option<PathBuf> {
        Some("/home/user".into())
    }

    fn has_env(&self, name: &str) -> bool {
        self.env.contains(name)
    }

    fn nvml_gpus(&self) -> Option<Vec<Gpu>> {
        None
    }
}
