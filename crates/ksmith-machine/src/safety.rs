//! `doctor --safety`: the five measures against an agent that does harm.
//!
//! A measure that cannot be checked is not ok. Files are searched for what looks like a key; a key itself is never
//! shown, only file and line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::IsolationFacts;
use crate::host::Host;

/// Whether a measure holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeasureState {
    /// It holds.
    Ok,
    /// It does not hold.
    NotOk,
}

/// One measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// A stable name.
    pub name: String,
    /// What it asks for.
    pub asks: String,
    /// Whether it holds.
    pub state: MeasureState,
    /// Why, with file and line where something was found. Never a key.
    pub reason: String,
    /// What to do where it does not hold.
    pub fix: Option<String>,
}

/// What is configured about agents; filled in by whoever holds the agent profiles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFacts {
    /// Whether agents are started in the box without the home folder.
    pub boxed_without_home: bool,
    /// Whether agents have no network by default but the model gateway.
    pub network_denied: bool,
    /// Whether dangerous commands are denied by default.
    pub dangerous_denied: bool,
    /// Whether changes of tests and benchmarks by an agent are shown.
    pub protected_diffs_shown: bool,
    /// Command lines of the configured agents, by profile name.
    pub command_lines: Vec<(String, Vec<String>)>,
}

/// What the safety check may use.
#[derive(Clone)]
pub struct SafetyProbes<'a> {
    /// The machine to ask.
    pub host: &'a dyn Host,
    /// What the sandbox said of itself.
    pub isolation: IsolationFacts,
    /// What is configured about agents.
    pub agents: AgentFacts,
    /// The folder that is worked in.
    pub folder: PathBuf,
}

/// Checks the five measures.
pub fn safety(probes: &SafetyProbes<'_>) -> Vec<Measure> {
    vec![
        boxed(probes),
        keys(probes),
        denied(probes),
        diffs(probes),
        approvals(probes),
    ]
}

fn measure(name: &str, asks: &str, finding: Result<String, (String, &str)>) -> Measure {
    let (state, reason, fix) = match finding {
        Ok(reason) => (MeasureState::Ok, reason, None),
        Err((reason, fix)) => (MeasureState::NotOk, reason, Some(fix.to_owned())),
    };
    Measure {
        name: name.to_owned(),
        asks: asks.to_owned(),
        state,
        reason,
        fix,
    }
}

fn boxed(probes: &SafetyProbes<'_>) -> Measure {
    let level = probes.isolation.level.as_str();
    let finding = match (level, probes.agents.boxed_without_home) {
        ("box", true) => {
            Ok("agents start in a box of level `box` that holds their working folder and no home".to_owned())
        }
        ("box", false) => Err((
            "the machine offers a box, and an agent profile starts outside it".to_owned(),
            "remove `unboxed` from the agent profile",
        )),
        ("", _) => Err((
            "the sandbox was not probed".to_owned(),
            "ksmith doctor --safety, from the installed binary",
        )),
        (level, _) => Err((
            format!("the machine offers level `{level}` only, which cannot hide the home folder"),
            "allow user namespaces (in a container: --security-opt seccomp=unconfined), then: ksmith doctor --safety",
        )),
    };
    measure(
        "agent boxed",
        "agents run in a box without the home folder",
        finding,
    )
}

/// Files of ours and of the project in which keys are found in practice.
fn key_files(probes: &SafetyProbes<'_>) -> Vec<PathBuf> {
    let mut files = vec![probes.folder.join(".env"), probes.folder.join("ksmith.toml")];
    let mut folders = vec![probes.folder.join(".ksmith")];
    if let Some(home) = probes.host.home() {
        folders.push(home.join(".config/ksmith"));
    }
    for folder in folders {
        for name in probes.host.list(&folder) {
            if [".toml", ".json", ".env"].iter().any(|end| name.ends_with(end)) {
                files.push(folder.join(name));
            }
        }
    }
    files
}

fn keys(probes: &SafetyProbes<'_>) -> Measure {
    let mut found = Vec::new();
    for path in key_files(probes) {
        let Some(text) = probes.host.read(&path) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            if holds_key(line) {
                found.push(format!("`{}:{}`", path.display(), number + 1));
            }
        }
    }
    let finding = if found.is_empty() {
        Ok("no file of ksmith or of this folder holds a key; profiles name environment variables".to_owned())
    } else {
        Err((
            format!("something that looks like a key stands in {}", found.join(", ")),
            "delete the line, revoke the key, and put the new one in the environment of the shell",
        ))
    };
    measure(
        "keys in the environment",
        "keys are kept in the environment only",
        finding,
    )
}

/// Whether a line assigns a literal that looks like a secret: a known prefix, or a long mixed token to a telling name.
fn holds_key(line: &str) -> bool {
    const PREFIXES: [&str; 8] = [
        "sk-",
        "sk_live",
        "ghp_",
        "github_pat_",
        "hf_",
        "AIza",
        "xai-",
        "gsk_",
    ];
    let line = line.trim();
    if line.starts_with('#') {
        return false;
    }
    let Some((name, value)) = line.split_once(['=', ':']) else {
        return false;
    };
    let value = value.trim().trim_end_matches(',').trim_matches(['"', '\'']);
    let token = !value.is_empty()
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.+/=".contains(&b));
    if !token || value.len() < 16 {
        return false;
    }
    if PREFIXES.iter().any(|prefix| value.starts_with(prefix)) {
        return true;
    }
    let name = name.to_ascii_lowercase();
    let telling = ["key", "token", "secret", "password"]
        .iter()
        .any(|word| name.contains(word));
    // `api_key_env = "OPENAI_API_KEY"` names a variable; digests are named otherwise.
    let names_variable = value
        .bytes()
        .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    let mixed = value.bytes().any(|b| b.is_ascii_digit()) && value.bytes().any(|b| b.is_ascii_alphabetic());
    telling && !names_variable && mixed
}

fn denied(probes: &SafetyProbes<'_>) -> Measure {
    let agents = &probes.agents;
    let finding = match (agents.dangerous_denied, agents.network_denied) {
        (true, true) => {
            Ok("agents have no network but the model gateway, and dangerous commands are denied".to_owned())
        }
        (false, true) => Err((
            "dangerous commands are not denied by default".to_owned(),
            "remove `allow_dangerous` from the agent profile",
        )),
        (true, false) => Err((
            "an agent profile opens the network".to_owned(),
            "remove `network` from the agent profile",
        )),
        (false, false) => Err((
            "neither network nor dangerous commands are denied by default".to_owned(),
            "remove `network` and `allow_dangerous` from the agent profile",
        )),
    };
    measure(
        "denied by default",
        "dangerous commands and the network are denied by default",
        finding,
    )
}

fn diffs(probes: &SafetyProbes<'_>) -> Measure {
    let finding = if probes.agents.protected_diffs_shown {
        Ok("a change of a test, a benchmark or the contract stops the run and is shown as a diff".to_owned())
    } else {
        Err((
            "changes of tests and benchmarks are not shown".to_owned(),
            "run without `--quiet`, and keep the lock of the contract on",
        ))
    };
    measure(
        "protected diffs",
        "changes of tests and benchmarks are shown",
        finding,
    )
}

/// Arguments that make an agent skip its approvals or its own sandbox.
const SKIPS: [&str; 8] = [
    "--dangerously-skip-permissions",
    "--dangerously-bypass-approvals-and-sandbox",
    "--yolo",
    "bypassPermissions",
    "danger-full-access",
    "--full-auto",
    "--allow-all-tools",
    "approval_policy=never",
];

/// Settings of a user's own agents: file under the home folder, and texts (blanks and quotes removed) that skip
/// approvals for every start of that agent.
const SETTINGS: [(&str, &[&str]); 5] = [
    (".claude/settings.json", &["defaultMode:bypassPermissions"]),
    (
        ".codex/config.toml",
        &["approval_policy=never", "sandbox_mode=danger-full-access"],
    ),
    (".qwen/settings.json", &["approvalMode:yolo"]),
    (
        ".config/opencode/opencode.json",
        &["permission:allow", "bash:allow"],
    ),
    (".gemini/settings.json", &["approvalMode:yolo"]),
];

fn approvals(probes: &SafetyProbes<'_>) -> Measure {
    let mut found = Vec::new();
    for (name, line) in &probes.agents.command_lines {
        for skip in SKIPS {
            if line.iter().any(|arg| squeeze(arg).contains(skip)) {
                found.push(format!("profile `{name}` passes `{skip}`"));
            }
        }
    }
    if let Some(home) = probes.host.home() {
        for (file, texts) in SETTINGS {
            let Some(text) = probes.host.read(&home.join(file)) else {
                continue;
            };
            let text = squeeze(&text);
            for skip in texts.iter().filter(|skip| text.contains(**skip)) {
                found.push(format!("`~/{file}` sets `{skip}`"));
            }
        }
    }
    let boxed = probes.isolation.level == "box" && probes.agents.boxed_without_home;
    let finding = match (found.is_empty(), boxed) {
        (true, _) => Ok("no configured agent skips its approvals".to_owned()),
        (false, true) => Ok(format!(
            "{}; inside the box that is what holds, not the approval",
            found.join("; ")
        )),
        (false, false) => Err((
            format!("{}, and nothing else holds it", found.join("; ")),
            "remove the setting, or run the agent in the box",
        )),
    };
    measure(
        "approvals",
        "it is known which agent skips its approvals",
        finding,
    )
}

/// A text without blanks and quotes, so that spellings of one setting look alike.
fn squeeze(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && *c != '"' && *c != '\'')
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::ScriptedHost;

    fn good() -> AgentFacts {
        AgentFacts {
            boxed_without_home: true,
            network_denied: true,
            dangerous_denied: true,
            protected_diffs_shown: true,
            command_lines: vec![("codex".to_owned(), vec!["codex".to_owned(), "exec".to_owned()])],
        }
    }

    fn check(host: &ScriptedHost, level: &str, agents: AgentFacts) -> Vec<Measure> {
        safety(&SafetyProbes {
            host,
            isolation: IsolationFacts {
                level: level.to_owned(),
                layers: Vec::new(),
            },
            agents,
            folder: "/project".into(),
        })
    }

    fn states(measures: &[Measure]) -> Vec<MeasureState> {
        measures.iter().map(|measure| measure.state).collect()
    }

    #[test]
    fn a_careful_setup_has_five_measures_that_hold() {
        let measures = check(&ScriptedHost::default(), "box", good());
        assert_eq!(states(&measures), vec![MeasureState::Ok; 5]);
        assert!(measures.iter().all(|measure| measure.fix.is_none()));
    }

    #[test]
    fn nothing_known_means_nothing_holds_but_what_was_looked_at() {
        let measures = check(&ScriptedHost::default(), "", AgentFacts::default());
        let expected = [
            MeasureState::NotOk,
            MeasureState::Ok,
            MeasureState::NotOk,
            MeasureState::NotOk,
            MeasureState::Ok,
        ];
        assert_eq!(states(&measures), expected);
        assert!(
            measures
                .iter()
                .all(|measure| (measure.state == MeasureState::Ok) == measure.fix.is_none())
        );
    }

    #[test]
    fn careless_settings_are_found_by_file_and_line_and_no_key_is_shown() {
        let host = ScriptedHost::load("careless-settings");
        let mut agents = good();
        agents.command_lines.push((
            "claude".to_owned(),
            vec!["claude".to_owned(), "--dangerously-skip-permissions".to_owned()],
        ));
        let measures = check(&host, "kernel", agents);
        assert_eq!(measures[1].state, MeasureState::NotOk);
        assert!(
            measures[1].reason.contains("`/project/.env:2`"),
            "{}",
            measures[1].reason
        );
        assert!(
            measures[1]
                .reason
                .contains("`/home/user/.config/ksmith/agents.toml:3`"),
            "{}",
            measures[1].reason
        );
        assert!(!measures[1].reason.contains("sk-"), "{}", measures[1].reason);
        assert_eq!(measures[4].state, MeasureState::NotOk);
        for part in [
            "profile `claude`",
            "~/.codex/config.toml",
            "~/.claude/settings.json",
        ] {
            assert!(measures[4].reason.contains(part), "{}", measures[4].reason);
        }
    }

    #[test]
    fn names_of_variables_and_digests_are_not_keys() {
        assert!(holds_key("OPENAI_API_KEY=sk-abcdefghijklmnop123"));
        assert!(holds_key("api_key = \"a1b2c3d4e5f6a7b8c9d0\""));
        assert!(!holds_key("api_key_env = \"OPENAI_API_KEY\""));
        assert!(!holds_key("sha256 = \"a1b2c3d4e5f6a7b8c9d0a1b2c3d4e5f6\""));
        assert!(!holds_key("# key = \"a1b2c3d4e5f6a7b8c9d0\""));
        assert!(!holds_key("token = \"$TOKEN\""));
    }
}
