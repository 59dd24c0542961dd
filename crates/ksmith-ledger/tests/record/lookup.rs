//! What `log`, `show` and `diff` are given.

use ksmith_ledger::*;

use crate::support;

#[test]
fn the_log_has_one_row_per_candidate_with_its_status_and_reason() {
    let sample = support::sample();
    let history = History::load(&sample.run_dir).unwrap();
    let rows = lookup::log(&history);
    let told: Vec<_> = rows
        .iter()
        .map(|row| (row.candidate.as_str(), row.status, row.code.as_deref().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ("c0001", Status::Superseded, "accept/confirmed"),
            ("c0002", Status::Rejected, "hidden/mismatch"),
            ("c0003", Status::Champion, "accept/confirmed"),
            ("c0004", Status::NoGain, "gain/below-floor"),
            ("c0005", Status::Rejected, "compile/refused"),
        ]
    );
    assert_eq!(history.champion.as_deref(), Some("c0003"));
    assert!(rows.iter().all(|row| row.reason.is_some()));
}

#[test]
fn show_gives_files_verdict_and_compiler_log_of_the_champion() {
    let sample = support::sample();
    let history = History::load(&sample.run_dir).unwrap();
    let shown = lookup::show(&sample.run_dir, &history, "champion").unwrap();
    assert_eq!(shown.row.candidate, "c0003");
    assert_eq!(shown.files.len(), 2);
    assert_eq!(shown.compiler_log.as_deref(), Some(support::HOSTILE));
    assert_eq!(shown.verdict.unwrap().verdict, Decision::Accept);
    assert_eq!(shown.scope_note, Scope::Cpu.sentence());
    let baseline = lookup::show(&sample.run_dir, &history, "baseline").unwrap();
    assert_eq!((baseline.row.role, baseline.files.len()), (Role::Baseline, 2));
    let missing = lookup::show(&sample.run_dir, &history, "c9")
        .unwrap_err()
        .to_string();
    assert!(missing.contains("no candidate `c9`"), "{missing}");
}

#[test]
fn diff_compares_source_numbers_and_assembly() {
    let sample = support::sample();
    let history = History::load(&sample.run_dir).unwrap();
    let diff = lookup::diff(&sample.run_dir, &history, "c0001", "champion").unwrap();
    assert_eq!(diff.source.len(), 1, "candidate.toml is the same in both");
    assert!(
        diff.source[0]
            .unified
            .starts_with("--- c0001/kernel.c\n+++ c0003/kernel.c\n"),
        "{}",
        diff.source[0].unified
    );
    assert!(
        diff.source[0]
            .unified
            .contains("-  /* c0001 */\n+  /* c0003 */\n")
    );
    assert!(diff.assembly.unwrap().unified.contains("-c0001\n+c0003\n"));
    assert_eq!(diff.numbers[1].b, support::speedup(7.9, 8.2, 8.5));
    let baseline = lookup::diff(&sample.run_dir, &history, "baseline", "c0003").unwrap();
    assert_eq!(baseline.assembly, None);
    assert!(baseline.source[0].unified.contains("-  /* slow */"));
}

#[test]
fn views_have_the_known_columns_join_by_id_and_tell_each_reason() {
    let sample = support::sample();
    let text = std::fs::read_to_string(sample.run_dir.join(views::CANDIDATES_FILE)).unwrap();
    let rows: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told: Vec<_> = rows
        .iter()
        .map(|row| (row["id"].as_str().unwrap(), row["status"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ("c0001", "promoted"),
            ("c0002", "rejected"),
            ("c0003", "promoted"),
            ("c0004", "nogo"),
            ("c0005", "rejected")
        ]
    );
    for row in &rows {
        let dropped = matches!(row["status"].as_str(), Some("nogo" | "rejected"));
        assert_eq!(row["rejection_reason"].is_string(), dropped, "{row}");
        assert_eq!(row["scope"], "cpu");
    }
    let csv = std::fs::read_to_string(sample.run_dir.join(views::BENCHMARK_FILE)).unwrap();
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some(views::BENCHMARK_COLUMNS.join(",").as_str()));
    let ids: Vec<&str> = lines.map(|line| line.split(',').nth(1).unwrap()).collect();
    assert!(ids.contains(&"c0003") && ids.iter().all(|id| rows.iter().any(|row| row["id"] == *id)));
}
