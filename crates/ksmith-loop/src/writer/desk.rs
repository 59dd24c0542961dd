//! What an agent finds on its desk: the brief in words, the contract without its hidden part, and the sources.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use ksmith_agents::tools::Verb;
use ksmith_agents::writers::{Bounds, Laid, Snapshot};
use ksmith_task::contract::Compare;
use ksmith_task::{Brief, Instance, Outcome};

use super::WriterError;
use super::known::known;

/// Earlier candidates whose sources are shown, newest first.
const SHOWN: usize = 3;
/// Earlier candidates that the brief tells of, newest last.
const TOLD: usize = 24;
/// Where files that a person granted wait for the next session, below the run's folder.
pub(super) const GRANTED: [&str; 2] = ["work", "granted"];
/// Characters of evidence told of one earlier candidate.
const EVIDENCE: usize = 600;

/// Whether the agent has our tools in its box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tools {
    /// `ksmith tool VERB` works there.
    Here,
    /// It is a model that calls them by their names.
    Called,
    /// It works with its own tools alone.
    Absent,
}

/// Puts together what an agent finds. `run` is the run's folder, where earlier candidates lie.
pub(super) fn laid(
    brief: &Brief,
    instance: &Instance,
    run: &Path,
    tools: Tools,
) -> Result<Laid, WriterError> {
    let contract = instance.task().contract();
    let mut task = BTreeMap::new();
    task.insert("task.toml".to_owned(), public_contract(instance)?.into_bytes());
    task.insert("kernel.h".to_owned(), brief.header.clone().into_bytes());
    task.insert("tests/dev.md".to_owned(), dev_tests(brief, instance).into_bytes());
    let mut sources = vec![contract.reference.source.clone()];
    sources.extend(
        contract
            .generator
            .iter()
            .map(|generator| generator.source.clone()),
    );
    for output in &contract.outputs {
        if let Compare::Checker { source } = &output.compare {
            sources.push(source.clone());
        }
    }
    for source in sources {
        let path = instance.task().dir().join(&source);
        let bytes = std::fs::read(&path).map_err(|source| WriterError::Io {
            what: "read",
            path: path.clone(),
            source,
        })?;
        task.insert(source.display().to_string(), bytes);
    }
    if let Some(baseline) = contract.baseline.get(&brief.backend) {
        show(&mut task, "baseline", &instance.task().dir().join(baseline));
    }
    show(&mut task, "champion", &brief.champion);
    for past in brief.history.iter().rev().take(SHOWN) {
        let folder = run.join("candidates").join(&past.candidate);
        show(&mut task, &format!("tried/{}", past.candidate), &folder);
    }
    let candidate = Snapshot::read(&brief.champion, &[], Bounds::CANDIDATE);
    let granted = Snapshot::read(&run.join(GRANTED[0]), &GRANTED[1..], Bounds::CANDIDATE).files;
    // A library that cannot be read is no reason to leave a task alone.
    let lore = known(instance, brief.backend, run, "").unwrap_or_default();
    Ok(Laid {
        brief: text(brief, &lore, tools),
        task,
        candidate,
        granted,
        ..Laid::default()
    })
}

fn show(task: &mut BTreeMap<String, Vec<u8>>, name: &str, folder: &Path) {
    let files = Snapshot::read(folder, &[], Bounds::CANDIDATE).files;
    task.extend(
        files
            .into_iter()
            .map(|(path, bytes)| (format!("{name}/{path}"), bytes)),
    );
}

/// The expanded contract without what the judge draws its hidden cases from.
pub(super) fn public_contract(instance: &Instance) -> Result<String, WriterError> {
    let wrong = |error: &dyn std::fmt::Display| WriterError::Failed(format!("the contract's text: {error}"));
    let mut table: toml::Table = instance.task().full().parse().map_err(|error| wrong(&error))?;
    table.remove("hidden");
    for part in ["inputs", "scalars"] {
        let Some(entries) = table.get_mut(part).and_then(toml::Value::as_array_mut) else {
            continue;
        };
        for entry in entries.iter_mut().filter_map(toml::Value::as_table_mut) {
            entry.remove("hidden");
        }
    }
    let text = toml::to_string(&table).map_err(|error| wrong(&error))?;
    Ok(format!(
        "# The contract as it is locked, without what the judge keeps to itself. A copy: changing it changes nothing.\n{text}"
    ))
}

fn dev_tests(brief: &Brief, instance: &Instance) -> String {
    let mut text = String::from(
        "# Visible cases\n\nInputs are drawn as the contract's `fill` says, at these sizes. The judge draws further, \
         hidden sizes and values that satisfy the axes and constraints: odd tails, extremes, neighbours.\n\n",
    );
    for workload in &brief.workloads {
        let axes: Vec<String> = workload
            .axes
            .iter()
            .map(|(axis, size)| format!("{axis} = {size}"))
            .collect();
        let _ = writeln!(
            text,
            "- `{}`: {} (weight {})",
            workload.name,
            axes.join(", "),
            workload.weight
        );
    }
    text.push('\n');
    for input in &instance.task().contract().inputs {
        let _ = writeln!(text, "- input `{}`: fill `{}`", input.name, input.fill);
    }
    text
}

/// The brief in words. `lore` is what earlier runs showed, a line each.
fn text(brief: &Brief, lore: &[String], tools: Tools) -> String {
    let mut text = format!(
        "# Write a faster kernel: {}\n\n\
         Work in this folder. Change the files in `candidate/` so that the kernel is faster than the champion and still \
         right for every input that the contract allows. When you stop, `candidate/` is read and judged: it is compiled, \
         proved against a float64 reference on hidden cases, and timed beside champion and baseline. Nothing that you \
         print or write elsewhere counts.\n\n\
         - Goal: {:.3} times the baseline's time or less.\n\
         - Threads: {}. Target: {}.\n\
         - Left: {:.0} s of wall time, {} full scorings, {:.2} USD.\n",
        brief.instance,
        brief.goal,
        brief.threads,
        brief.backend.name(),
        brief.left.wall_s,
        brief.left.candidates,
        brief.left.cost_usd,
    );
    text.push_str(
        "\n## What lies here\n\n\
         - `candidate/`: yours. At first a copy of the champion: `candidate.toml` and its sources.\n\
         - `proposal.toml`: state your one idea there before you stop: hypothesis, direction, predicted gain.\n\
         - `task/`: the contract, the header of the entry symbol (`kernel.h`), the reference, visible cases (`tests/`), \
         baseline, champion and the candidates tried last. Copies: they may not be changed, and a change ends the \
         session without a proposal.\n",
    );
    if let Some(direction) = &brief.direction {
        let _ = writeln!(text, "\nThe plan's next step is the direction `{direction}`.");
    }
    if tools == Tools::Here {
        text.push_str("\n## Tools\n\nRun them in the shell; each prints one short JSON object.\n\n");
        for verb in Verb::ALL {
            let _ = writeln!(text, "- `ksmith tool {verb}`: {}", verb.help());
        }
    }
    if tools == Tools::Called {
        text.push_str("\n## Tools\n\nCall them: `list`, `read` and `write` for files, and the probes.\n");
    }
    text.push_str("\n## Rules\n\n- One idea per candidate.\n- No network, no files outside this folder.\n");
    for note in &brief.notes {
        let _ = writeln!(text, "- {}", one_line(note, EVIDENCE));
    }
    if !lore.is_empty() {
        text.push_str("\n## What earlier runs of this place showed\n\n");
        for line in lore {
            let _ = writeln!(text, "- {}", one_line(line, EVIDENCE));
        }
    }
    if !brief.history.is_empty() {
        text.push_str("\n## What was tried, oldest first\n\n");
        let skipped = brief.history.len().saturating_sub(TOLD);
        if skipped > 0 {
            let _ = writeln!(text, "({skipped} earlier ones are left out.)\n");
        }
        for past in brief.history.iter().skip(skipped) {
            told(&mut text, past);
        }
    }
    text
}

fn told(text: &mut String, past: &Outcome) {
    let ratio = |gain: Option<f64>| gain.map_or_else(|| "nothing".to_owned(), |gain| format!("{gain:.3}"));
    let _ = writeln!(
        text,
        "- {} ({}): {}. {} `{}`; predicted {}, measured {}.",
        past.candidate,
        one_line(&past.direction, 60),
        one_line(&past.hypothesis, 300),
        past.verdict,
        past.code,
        ratio(past.predicted),
        ratio(past.measured),
    );
    if !past.evidence.is_empty() {
        let _ = writeln!(text, "  {}", one_line(&past.evidence, EVIDENCE));
    }
}

fn one_line(text: &str, most: usize) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(most)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn softmax() -> Instance {
        let task = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tasks/softmax");
        ksmith_task::Task::load(task).unwrap().instances().remove(0)
    }

    #[test]
    fn the_public_contract_says_nothing_of_hidden_cases() {
        let text = public_contract(&softmax()).unwrap();
        assert!(text.contains("softmax") && text.contains("rtol"));
        for secret in [
            "hidden",
            "spike",
            "no-max-subtraction",
            "masked",
            "subnormal",
            "uniform(80",
        ] {
            assert!(!text.contains(secret), "{secret}");
        }
    }

    #[test]
    fn no_given_file_of_any_shipped_task_names_a_hidden_probe() {
        let tasks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tasks");
        let mut looked_at = 0;
        for entry in std::fs::read_dir(tasks).unwrap().flatten() {
            let Ok(task) = ksmith_task::Task::load(entry.path()) else {
                continue;
            };
            for instance in task.instances() {
                let text = public_contract(&instance).unwrap();
                let contract = instance.task().contract();
                for probe in &contract.hidden.probes {
                    // Some probes share a name with a visible workload.
                    if contract
                        .workloads
                        .iter()
                        .any(|workload| workload.name == probe.name)
                    {
                        continue;
                    }
                    assert!(!text.contains(&format!("\"{}\"", probe.name)), "{}", probe.name);
                    looked_at += 1;
                }
            }
        }
        assert!(looked_at > 10, "only {looked_at} probes were looked for");
    }
}
