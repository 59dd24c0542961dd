//! Where a command works: the current folder, its runs, the signing key. The environment is read here and nowhere
//! below.

use std::path::PathBuf;
use std::sync::Arc;

use ksmith_agents::writers::Deny;
use ksmith_ledger::KeyPair;
use ksmith_ledger::lookup::LookupError;
use ksmith_ledger::runs::{self, FoundRun};
use ksmith_loop::AgentHost;
use ksmith_task::ExitCode;

use crate::approve::Terminal;
use crate::failure::Failure;
use crate::ui::Ui;

/// The folder under which `.ksmith/` lies.
pub(crate) fn home() -> PathBuf {
    PathBuf::from(".")
}

/// Where runs lie.
pub(crate) fn runs_dir() -> PathBuf {
    home().join(runs::RUNS_DIR)
}

/// Finds a run by id, unique prefix or path.
pub(crate) fn find(wanted: &str) -> Result<FoundRun, Failure> {
    runs::resolve(&runs_dir(), wanted).map_err(|error| {
        Failure::of(ExitCode::Usage, &error).hint("`ksmith log` lists the runs under this folder.")
    })
}

/// Where the user's signing key lies.
pub(crate) fn signing_key() -> Option<PathBuf> {
    KeyPair::default_path(
        std::env::var_os("XDG_STATE_HOME").as_deref(),
        std::env::var_os("HOME").as_deref(),
    )
}

/// The command line for the record: the program by its name only, files that are there as seen from here.
pub(crate) fn command() -> Vec<String> {
    let mut arguments = std::env::args_os();
    let program = arguments.next().map(PathBuf::from).unwrap_or_default();
    let name = program
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let shown = |argument: std::ffi::OsString| {
        let path = std::path::Path::new(&argument);
        let path = if path.is_absolute() {
            ksmith_loop::relative_to(&home(), path)
        } else {
            path.to_owned()
        };
        path.to_string_lossy().into_owned()
    };
    std::iter::once(name).chain(arguments.map(shown)).collect()
}

/// Where private toolchains are kept: `$XDG_DATA_HOME/ksmith`, else below `~/.local/share`, else `.ksmith`.
pub(crate) fn data_dir() -> PathBuf {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
        .map_or_else(|| home().join(".ksmith"), |data| data.join("ksmith"))
}

/// What of this machine agents may use.
pub(crate) fn agent_host(ui: &Ui) -> AgentHost {
    AgentHost {
        search_path: std::env::var_os("PATH"),
        ksmith: std::env::current_exe().ok(),
        variable: Arc::new(|name| std::env::var(name).ok()),
        approver: if ui.can_ask() {
            Arc::new(Terminal)
        } else {
            Arc::new(Deny)
        },
    }
}

/// A candidate that the record does not have is the user's slip; a damaged object is not. That there is no champion is an
/// answer.
pub(crate) fn lookup(error: LookupError) -> Failure {
    let code = match error {
        LookupError::Object(_) => ExitCode::Changed,
        LookupError::NoChampion(_) => ExitCode::NotAccepted,
        _ => ExitCode::Usage,
    };
    Failure::of(code, &error)
}
