//! Tables for a terminal. Plain text without colour; every cell is cleaned, every CPU table ends with the scope.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, Width};
use ksmith_ledger::lookup::{CandidateDiff, LogRow, Shown, log as log_rows};
use ksmith_ledger::verify::{Exported, LoneCertificate};
use ksmith_ledger::{Anchors, GateResult, History, Report, Speedup, Status, Verdict};

use crate::RunView;
use crate::clean::{clean, clean_line};

/// Lays a table out for `width` columns.
fn table(width: u16, header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width.max(40));
    if !header.is_empty() {
        table.set_header(header.to_vec());
    }
    table
}

fn cell(text: &str) -> Cell {
    Cell::new(clean_line(text))
}

fn right(text: impl Into<String>) -> Cell {
    Cell::new(clean_line(&text.into())).set_alignment(CellAlignment::Right)
}

/// `2.25 (2.10 to 2.40)`, or a dash.
pub fn interval(speedup: Option<Speedup>) -> String {
    match speedup {
        Some(Speedup { point, lower, upper }) => format!("{point:.2} ({lower:.2} to {upper:.2})"),
        None => "–".into(),
    }
}

fn with_scope(text: String, scope_note: &str) -> String {
    if scope_note.is_empty() {
        text
    } else {
        format!("{text}\n{}", clean_line(scope_note))
    }
}

/// The table at the end of a run: champion, both gains, what was spent, the head.
pub fn summary(view: &RunView, width: u16) -> String {
    let history = &view.history;
    let opened = &history.opened;
    let mut rows = table(width, &[]);
    let mut row = |name: &str, value: String| {
        rows.add_row(vec![cell(name), cell(&value)]);
    };
    row("run", opened.run.clone());
    row("task", opened.instance.clone());
    match &history.closed {
        Some(closed) => row("outcome", format!("{} ({})", history.ending(), closed.reason)),
        None => row("outcome", format!("not finished ({})", history.ending())),
    }
    match history.champion() {
        Some(champion) => {
            row(
                "champion",
                format!("{} · {}", champion.id(), champion.proposed.hypothesis),
            );
            row(
                "times as fast as the baseline",
                interval(champion.over_baseline()),
            );
            row(
                "times as fast as the flag control",
                interval(champion.over_flag_control()),
            );
        }
        None => row("champion", format!("none: {}", history.without_champion())),
    }
    row("device", opened.device_name.clone());
    row("isolation", isolation(history));
    row("tier, protocol", format!("{}, {}", opened.tier, opened.protocol));
    if let Some(closed) = &history.closed {
        let (candidates, screened, wall) = (closed.candidates, closed.screened, closed.wall_s);
        row(
            "spent",
            format!("{candidates} scored, {screened} screened, {wall:.0} s"),
        );
    }
    row("head", history.head.to_string());
    with_scope(rows.to_string(), opened.scope.sentence())
}

fn isolation(history: &History) -> String {
    let opened = &history.opened;
    if opened.unsandboxed {
        format!(
            "{} – WITHOUT A SANDBOX: candidates could read and change anything",
            opened.isolation
        )
    } else {
        opened.isolation.clone()
    }
}

/// One verdict: decision, gains, gates.
pub fn verdict(verdict: &Verdict, width: u16) -> String {
    let mut rows = table(width, &[]);
    let mut row = |name: &str, value: &str| {
        rows.add_row(vec![cell(name), cell(value)]);
    };
    row(
        "verdict",
        &format!("{} ({})", verdict.verdict.name(), verdict.code),
    );
    // Never one gain alone; where nothing was measured, none.
    if verdict.speedup.is_some() || verdict.over_baseline.is_some() {
        row("over the champion", &interval(verdict.speedup));
        row("over the baseline", &interval(verdict.over_baseline));
        row("over the flag control", &interval(verdict.over_flag_control));
    }
    row(
        "tier, isolation",
        &format!("{}, {}", verdict.tier, verdict.isolation),
    );
    let text = format!("{rows}\n{}", gates(&verdict.gates, width));
    with_scope(text, &verdict.scope_note)
}

/// What `test` says: whether the candidate is correct. Nothing was timed, so there is no verdict on its speed.
pub fn proof(verdict: &Verdict, failed: Option<&str>, width: u16) -> String {
    let mut rows = table(width, &[]);
    let mut row = |name: &str, value: &str| {
        rows.add_row(vec![cell(name), cell(value)]);
    };
    let result = match failed {
        Some(code) => format!("not correct ({code})"),
        None if verdict.verdict.is_statement() => "correct: every gate passed; not timed".to_owned(),
        None => format!("no statement ({})", verdict.code),
    };
    row("result", &result);
    row(
        "tier, isolation",
        &format!("{}, {}", verdict.tier, verdict.isolation),
    );
    let text = format!("{rows}\n{}", gates(&verdict.gates, width));
    with_scope(text, &verdict.scope_note)
}

/// Gates in order.
pub fn gates<'a>(gates: impl IntoIterator<Item = &'a GateResult>, width: u16) -> String {
    let mut rows = table(width, &["gate", "result", "code", "ms"]);
    for gate in gates {
        rows.add_row(vec![
            cell(gate.name.name()),
            cell(gate.result.name()),
            cell(gate.code.as_deref().unwrap_or("")),
            right(format!("{:.1}", gate.ms)),
        ]);
    }
    rows.to_string()
}

/// The log of a run: one row per candidate.
pub fn log(history: &History, width: u16) -> String {
    with_scope(rows(&log_rows(history), width), history.opened.scope.sentence())
}

/// One line per candidate: where it left, or where it stands; gains as ratios of times; the idea as far as it fits.
fn rows(log: &[LogRow], width: u16) -> String {
    let header = [
        "id",
        "state",
        "predicted\n(times)",
        "over champion\n(times as fast)",
        "over baseline\n(times as fast)",
        "hypothesis",
    ];
    let mut rows = table(width, &header);
    rows.set_truncation_indicator("…");
    for row in log {
        let left = matches!(row.status, Status::Rejected | Status::Ambiguous | Status::Error);
        let state = row.code.as_deref().filter(|_| left).unwrap_or(row.status.name());
        let over_champion = match (row.over_champion, row.screened) {
            (None, Some(ratio)) => format!("about {ratio:.1}"),
            (gain, _) => narrow(gain),
        };
        let predicted = row
            .predicted
            .map_or("–".into(), |predicted| format!("{predicted:.2}"));
        let mut line = Row::from(vec![
            cell(&row.candidate),
            cell(state),
            right(predicted),
            right(over_champion),
            right(narrow(row.over_baseline)),
            cell(&row.hypothesis),
        ]);
        line.max_height(1);
        rows.add_row(line);
    }
    let last = header.len() - 1;
    for index in 0..last {
        if let Some(column) = rows.column_mut(index) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    if let Some(column) = rows.column_mut(last) {
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(14)));
    }
    rows.to_string()
}

/// `2.25 (2.10–2.40)`, or a dash: an interval in a column.
fn narrow(speedup: Option<Speedup>) -> String {
    match speedup {
        Some(Speedup { point, lower, upper }) => format!("{point:.2} ({lower:.2}–{upper:.2})"),
        None => "–".into(),
    }
}

/// One candidate: what it is, its verdict, findings, compiler output and files.
pub fn show(shown: &Shown, width: u16) -> String {
    let row = &shown.row;
    let mut facts = table(width, &[]);
    let mut fact = |name: &str, value: &str| {
        if !value.is_empty() {
            facts.add_row(vec![cell(name), cell(value)]);
        }
    };
    fact("candidate", &format!("{} ({})", row.candidate, row.role.name()));
    fact("status", row.status.name());
    fact("made from", &shown.parents.join(", "));
    fact("writer", &shown.writer);
    fact("family", &shown.family);
    fact("direction", &shown.direction);
    fact("hypothesis", &row.hypothesis);
    fact(
        "predicted",
        &row.predicted
            .map_or(String::new(), |predicted| format!("{predicted:.2}")),
    );
    fact("reason", row.reason.as_deref().unwrap_or(""));
    fact("command", &shown.command.join(" "));
    let mut text = facts.to_string();
    match &shown.verdict {
        Some(verdict) => text.push_str(&format!("\n{}", self::verdict(verdict, width))),
        None => text = with_scope(text, &shown.scope_note),
    }
    for finding in &shown.findings {
        text.push_str(&format!("\n- {}", clean_line(finding)));
    }
    if let Some(log) = shown.compiler_log.as_ref().filter(|log| !log.trim().is_empty()) {
        text.push_str(&format!("\n\ncompiler output\n{}", clean(log)));
    }
    for file in &shown.files {
        text.push_str(&format!(
            "\n\n{}\n{}",
            clean_line(&file.path),
            clean(&file.text).trim_end()
        ));
    }
    text
}

/// How two candidates differ: figures, then source, then assembly.
pub fn diff(diff: &CandidateDiff, width: u16) -> String {
    let mut rows = table(width, &["", &clean_line(&diff.a), &clean_line(&diff.b)]);
    for number in &diff.numbers {
        rows.add_row(vec![
            cell(number.name),
            right(interval(number.a)),
            right(interval(number.b)),
        ]);
    }
    let mut text = with_scope(rows.to_string(), &diff.scope_note);
    for file in diff.source.iter().chain(&diff.assembly) {
        text.push_str(&format!("\n\n{}", clean(&file.unified).trim_end()));
    }
    text
}

/// Result of `verify`.
pub fn verification(report: &Report, width: u16) -> String {
    let mut rows = table(width, &[]);
    let mut row = |name: &str, value: String| {
        rows.add_row(vec![cell(name), cell(&value)]);
    };
    row("run", report.run.clone().unwrap_or_else(|| "unknown".into()));
    row("records", report.records.to_string());
    row(
        "objects",
        format!("{} ({} bytes)", report.objects, report.object_bytes),
    );
    row("head", report.head.map_or("–".into(), |head| head.to_string()));
    if let Some(certificate) = &report.certificate {
        let known = if certificate.known {
            "the key you gave"
        } else {
            "compare it with a key you know"
        };
        row("signed by", format!("{} ({known})", certificate.key));
        row("claim", certificate.claim.clone());
    }
    if let Some(damage) = &report.damage {
        row("first damage", damage.detail.clone());
        row("place", damage.place.to_string());
    }
    for warning in &report.warnings {
        row("note", warning.clone());
    }
    format!("{rows}\n{}", clean_line(&report.sentence()))
}

/// Result of `verify` on a certificate away from its record, with the files beside it.
pub fn lone_certificate(found: &LoneCertificate, exported: &Exported, width: u16) -> String {
    let certificate = &found.certificate;
    let mut rows = table(width, &[]);
    let mut row = |name: &str, value: String| {
        rows.add_row(vec![cell(name), cell(&value)]);
    };
    row("run", certificate.run.clone());
    row("head", certificate.head.to_string());
    let known = if found.anchors.public_key {
        "the key you gave"
    } else {
        "compare it with a key you know"
    };
    row("signed by", format!("{} ({known})", found.key));
    row("claim", certificate.claim.clone());
    row(
        "files beside it",
        match exported.checked.is_empty() {
            false => format!("{}: the champion's, byte for byte", exported.checked.join(", ")),
            true => "none that it names".into(),
        },
    );
    let mut text = format!("{rows}\nThe signature fits the text.");
    if !exported.extra.is_empty() {
        text.push_str(&format!(
            " The certificate says nothing of {}.",
            clean_line(&exported.extra.join(", "))
        ));
    }
    text.push_str(&format!(
        " The figures stand in the run's record, which is not here: ask for the folder of run {} to check them.",
        clean_line(&certificate.run)
    ));
    text.push_str(&prefix_note(&found.anchors));
    text
}

fn prefix_note(anchors: &Anchors) -> String {
    match anchors.head_digits {
        Some(digits) => format!(" Of the head, {digits} digits were compared."),
        None => String::new(),
    }
}
