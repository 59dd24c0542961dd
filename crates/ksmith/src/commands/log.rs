//! `ksmith log`

use std::fmt::Write as _;

use ksmith_ledger::{History, lookup, read_records, runs};
use ksmith_report::clean_line;
use ksmith_task::ExitCode;
use serde_json::json;

use super::{Outcome, place};
use crate::failure::Failure;
use crate::live::show_gain;
use crate::ui::Ui;

/// List runs, or the candidates of one run
///
/// Without a run: one line per run under this folder, newest last. With one: its candidates, or with `--records` every
/// record, one line each.
///
/// Example: ksmith log 3f07
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A run id, a unique prefix of one, or the path of a run folder
    run: Option<String>,
    /// List every record of the run
    #[arg(long, requires = "run")]
    records: bool,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    match &args.run {
        None => list(ui),
        Some(run) if args.records => records(run, ui),
        Some(run) => candidates(run, ui),
    }
}

fn list(ui: &mut Ui) -> Outcome {
    let runs_dir = place::runs_dir();
    let mut histories: Vec<(String, Result<History, ksmith_ledger::ReadError>)> = runs::list(&runs_dir)
        .into_iter()
        .map(|id| (id.clone(), History::load(&runs_dir.join(id))))
        .collect();
    histories.sort_by_key(|(_, history)| {
        history
            .as_ref()
            .map(|history| history.opened_at.clone())
            .unwrap_or_default()
    });
    let rows: Vec<_> = histories
        .iter()
        .map(|(id, history)| match history {
            Ok(history) => json!({
                "run": id,
                "instance": history.opened.instance,
                "opened_at": history.opened_at,
                "state": state(history),
                "champion": history.champion,
                "over_baseline": history.champion().and_then(|champion| champion.over_baseline()),
                "no_statement": history.allows_no_statement(),
                "candidates": history.candidates.len(),
                "head": history.head,
            }),
            Err(error) => json!({ "run": id, "state": "unreadable", "error": error.to_string() }),
        })
        .collect();
    ui.result(&json!({ "runs": rows }), || {
        let mut text = String::new();
        for (id, history) in &histories {
            let _ = match history {
                Ok(history) => {
                    let champion = match history.champion() {
                        Some(champion) => format!(
                            "{} {}",
                            champion.id(),
                            champion.over_baseline().map_or_else(String::new, show_gain)
                        ),
                        None => history.without_champion(),
                    };
                    let at = &history.opened_at;
                    writeln!(
                        text,
                        "{id}  {at}  {:<21}  {:<20}  {champion}",
                        history.ending(),
                        history.opened.instance
                    )
                }
                Err(error) => writeln!(text, "{id}  unreadable: {error}"),
            };
        }
        if text.is_empty() {
            text.push_str("no runs under this folder; `ksmith run TASK` makes one");
        }
        text
    })?;
    Ok(ExitCode::Done)
}

/// The outcome as the record names it, for programs.
fn state(history: &History) -> &'static str {
    match &history.closed {
        Some(closed) => closed.outcome.name(),
        None => "open",
    }
}

fn candidates(run: &str, ui: &mut Ui) -> Outcome {
    let found = place::find(run)?;
    let history = History::load(&found.dir).map_err(|error| Failure::of(ExitCode::Changed, &error))?;
    let value = json!({
        "run": history.opened.run,
        "candidates": lookup::log(&history),
        "scope": history.opened.scope,
        "scope_note": history.opened.scope_note,
    });
    let width = ui.width();
    ui.result(&value, || ksmith_report::table::log(&history, width))?;
    Ok(ExitCode::Done)
}

fn records(run: &str, ui: &mut Ui) -> Outcome {
    let found = place::find(run)?;
    let records = read_records(&found.dir).map_err(|error| Failure::of(ExitCode::Changed, &error))?;
    ui.result(&json!({ "records": records }), || {
        records
            .iter()
            .map(|record| {
                let what = record
                    .entry()
                    .map_or_else(|error| error.to_string(), |entry| gist(&entry));
                format!(
                    "{:>4}  {}  {:<12}  {}\n",
                    record.seq,
                    record.time,
                    record.kind,
                    clean_line(&what)
                )
            })
            .collect()
    })?;
    Ok(ExitCode::Done)
}

/// A record in a few words.
fn gist(entry: &ksmith_ledger::Entry) -> String {
    use ksmith_ledger::Entry;
    match entry {
        Entry::RunOpened(opened) => format!("{} on {}", opened.instance, opened.device_name),
        Entry::Audited(audit) => format!("passed {}, {} findings", audit.passed, audit.findings.len()),
        Entry::Draft(draft) => format!("accepted {}", draft.accepted),
        Entry::Plan(plan) => format!("accepted {}, {} steps", plan.accepted, plan.steps.len()),
        Entry::Committed(committed) => format!(
            "seed {} committed as {}",
            committed.seed.purpose,
            committed.seed.commitment.short()
        ),
        Entry::Proposed(proposed) => format!(
            "{} round {}: {}",
            proposed.candidate, proposed.round, proposed.hypothesis
        ),
        Entry::Screened(screened) => format!(
            "{} {}",
            screened.candidate.as_deref().unwrap_or("-"),
            match (&screened.code, screened.ratio) {
                (Some(code), _) => format!("leaves: {code}"),
                (None, Some(ratio)) => format!("stays, about {ratio:.2}x"),
                (None, None) => "stays".to_owned(),
            }
        ),
        Entry::Shortlisted(shortlisted) => format!(
            "{} beside each other, {} rounds{}",
            shortlisted.entries.len(),
            shortlisted.rounds,
            shortlisted
                .entries
                .iter()
                .filter_map(|entry| Some((entry.ratio?, &entry.candidate)))
                .max_by(|a, b| a.0.total_cmp(&b.0))
                .map_or_else(String::new, |(ratio, best)| format!(", best {best}: {ratio:.3}x"))
        ),
        Entry::Checked(checked) => of_gates(&checked.candidate, checked.code.as_deref()),
        Entry::Tested(tested) => of_gates(&tested.candidate, tested.code.as_deref()),
        Entry::Benched(benched) => format!(
            "{} {}{}",
            benched.candidate,
            benched.stage.name(),
            benched
                .over_champion
                .map_or_else(String::new, |gain| format!(" {}", show_gain(gain)))
        ),
        Entry::Profiled(profiled) => format!("{} by {}", profiled.candidate, profiled.tool),
        Entry::Reviewed(reviewed) => {
            let (occasion, outcome) = reviewed.detail.as_ref().map_or(("", ""), |detail| {
                (detail.occasion.as_str(), detail.outcome.as_str())
            });
            format!(
                "{} {occasion} {} {outcome}",
                reviewed.reviewer,
                reviewed.candidate.as_deref().unwrap_or("-")
            )
        }
        Entry::Decided(decided) => format!("{} {}", decided.candidate, decided.reason),
        Entry::Confirmed(confirmed) => format!("{} {}", confirmed.candidate, confirmed.reason),
        Entry::Promoted(promoted) => promoted.candidate.clone(),
        Entry::Demoted(demoted) => demoted.reason.clone(),
        Entry::Resumed(resumed) => format!("by {}", resumed.tool),
        Entry::Interrupted(interrupted) => interrupted.reason.clone(),
        Entry::BudgetSpent(budget) => format!("{:.1} s, {} scorings", budget.wall_s, budget.candidates),
        Entry::Note(note) => note.text.clone(),
        Entry::ProcessGate(gate) => format!(
            "{} {}: {}",
            gate.candidate.as_deref().unwrap_or("-"),
            gate.code,
            gate.detail
        ),
        Entry::Waited(waited) => format!("{:.1} s for {}", waited.seconds, waited.what),
        Entry::Asked(asked) => format!("{}: {}", asked.id, asked.text),
        Entry::Answered(answered) => format!(
            "{}: {}",
            answered.id,
            answered.answer.as_deref().unwrap_or("nobody answered in time")
        ),
        Entry::AgentCall(call) => format!("{} {}", call.agent, call.purpose),
        Entry::ModelSent(sent) => format!("{} {} to {}", sent.call, sent.role, sent.model),
        Entry::ModelCall(call) => format!(
            "{} {} {:.4} USD{}",
            call.call,
            call.model,
            call.cost_usd,
            if call.estimated { " at most" } else { "" }
        ),
        Entry::ToolCall(call) => format!("{} allowed {}", call.tool, call.allowed),
        Entry::Closed(closed) => format!("{} ({})", closed.outcome.name(), closed.reason),
    }
}

fn of_gates(candidate: &str, code: Option<&str>) -> String {
    format!("{candidate} {}", code.unwrap_or("passed"))
}
