//! Command-line agents and model keys. The built-in offline agent needs neither.

use std::time::Duration;

use crate::compiler::version_in;
use crate::host::{Command, Ended};

use super::{Probes, Row, State};

/// Name, program and package of each known agent.
const AGENTS: [(&str, &str, &str); 5] = [
    ("Codex", "codex", "@openai/codex"),
    ("Claude Code", "claude", "@anthropic-ai/claude-code"),
    ("Qwen Code", "qwen", "@qwen-code/qwen-code"),
    ("opencode", "opencode", "opencode-ai"),
    ("pi", "pi", "@mariozechner/pi-coding-agent"),
];

/// Variables in which keys are commonly kept. Only whether one has a value is asked, never the value.
const KEYS: [&str; 6] = [
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "DEEPSEEK_API_KEY",
    "DASHSCOPE_API_KEY",
    "OPENROUTER_API_KEY",
];

pub(super) fn rows(probes: &Probes<'_>) -> Vec<Row> {
    vec![clis(probes), keys(probes)]
}

fn clis(probes: &Probes<'_>) -> Row {
    const NAME: &str = "agent CLIs";
    let mut found = Vec::new();
    let mut silent = Vec::new();
    for (name, program, _) in AGENTS {
        if probes.host.find(program).is_none() {
            continue;
        }
        let output = probes
            .host
            .run(&Command::new(program, ["--version"]).limit(Duration::from_secs(20)));
        let version = output
            .success()
            .and_then(|text| text.lines().find_map(version_in));
        match (version, output.ended) {
            (Some(version), _) => found.push(format!("{name} {version}")),
            (None, Ended::TimedOut) => silent.push(format!("`{program} --version` hangs")),
            (None, _) => silent.push(format!("`{program}` gives no version")),
        }
    }
    match (found.is_empty(), silent.is_empty()) {
        (true, true) => Row::new(
            NAME,
            State::Missing,
            "none; the built-in offline agent needs none",
        )
        .fix(format!("npm install -g {}", AGENTS[0].2)),
        (false, true) => Row::new(NAME, State::Ok, found.join(", ")),
        (_, false) => {
            found.extend(silent);
            Row::new(NAME, State::Limited, found.join(", ")).fix("reinstall the agent that does not answer")
        }
    }
}

fn keys(probes: &Probes<'_>) -> Row {
    const NAME: &str = "model keys";
    let set: Vec<&str> = KEYS
        .into_iter()
        .filter(|name| probes.host.has_env(name))
        .collect();
    if set.is_empty() {
        return Row::new(
            NAME,
            State::Missing,
            "none in the environment; only model-driven agents need one",
        )
        .fix("export OPENAI_API_KEY=... in the shell that starts ksmith");
    }
    Row::new(NAME, State::Ok, format!("in the environment: {}", set.join(", ")))
}
