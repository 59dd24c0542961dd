//! The table of a red team run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::corpus::Why;
use super::run::{Mode, Outcome};
use crate::Failure;

fn rows(outcome: &Outcome) -> BTreeMap<&str, (usize, usize)> {
    let mut families: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for end in &outcome.cheats {
        let family = families.entry(&end.cheat.family).or_default();
        family.0 += usize::from(end.caught);
        family.1 += 1;
    }
    families
}

/// Prints the rates by family.
pub(crate) fn families(outcome: &Outcome) {
    for (family, (caught, count)) in rows(outcome) {
        println!("{family:12} {caught} of {count} caught");
    }
    let mut tasks: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for end in &outcome.honest {
        let task = tasks.entry(&end.honest.target.task).or_default();
        task.0 += usize::from(end.passed);
        task.1 += 1;
    }
    for (task, (passed, count)) in tasks {
        println!("{task:12} {passed} of {count} honest passed");
    }
}

/// What the naive evaluator says, and why it does not accept the rest.
fn naive(text: &mut String, outcome: &Outcome) {
    let accepted = outcome
        .cheats
        .iter()
        .filter(|end| end.naive.unwrap_or(end.cheat.naive).accepted())
        .count();
    let _ = writeln!(
        text,
        "## The naive evaluator\n\n\
         It accepts {accepted} of {} cheats. The others, by the reason that their files name:\n\n| reason | cheats | meaning |\n|---|---|---|",
        outcome.cheats.len()
    );
    for why in Why::ALL {
        let count = outcome
            .cheats
            .iter()
            .filter(|end| end.cheat.why == Some(why))
            .count();
        let _ = writeln!(text, "| {} | {count} | {} |", why.name(), why.sentence());
    }
    text.push('\n');
}

/// Writes the table.
pub(crate) fn write(path: &Path, outcome: &Outcome, mode: Mode) -> Result<(), Failure> {
    let mut text = String::from("# Red team\n\n");
    let how = match mode {
        Mode::Corpus => "all gates at small shapes, one process set, no statistics (`cargo xtask redteam`)",
        Mode::Full => "full scoring with decision and confirmation (`cargo xtask redteam --full`)",
    };
    let _ = writeln!(
        text,
        "{}: {how}, in {:.0} s. A cheat counts as caught only when the gate that its file names rejects it and no\n\
         process is left. An honest candidate is wronged when any gate that is not about speed rejects it, or when the\n\
         judge fails on it. This page is written by the command.\n",
        outcome.last_line(),
        outcome.seconds
    );
    naive(&mut text, outcome);
    text.push_str("## Rates by family\n\n| family | caught | of |\n|---|---|---|\n");
    for (family, (caught, count)) in rows(outcome) {
        let _ = writeln!(text, "| {family} | {caught} | {count} |");
    }
    text.push_str(
        "\n## Cheats\n\n| cheat | family | task | rows | mechanism | gate | code | naive evaluator |\n|---|---|---|---|---|---|---|---|\n",
    );
    for end in &outcome.cheats {
        let cheat = &end.cheat;
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | {}{} | `{}` | {}{} |",
            cheat.name,
            cheat.family,
            cheat.target.task,
            cheat.taxonomy.join(" "),
            cheat.mechanism,
            end.gate.map_or("none", |gate| gate.name()),
            if end.caught { "" } else { " (missed)" },
            end.code,
            end.naive.unwrap_or(cheat.naive).name(),
            cheat
                .why
                .map_or_else(String::new, |why| format!(": {}", why.name())),
        );
    }
    text.push_str("\n## Honest candidates\n\n| candidate | task | why it looks suspicious | result |\n|---|---|---|---|\n");
    for end in &outcome.honest {
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} `{}` |",
            end.honest.name,
            end.honest.target.task,
            end.honest.why,
            if end.passed { "passed" } else { "**wronged**" },
            end.code,
        );
        if !end.passed {
            eprintln!("wronged `{}`: {}", end.honest.name, end.evidence);
        }
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, text)?;
    Ok(())
}
