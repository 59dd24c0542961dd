//! The whole check of a run folder, in order: chain, anchors, blobs, files beside the ledger.

use std::fs;
use std::path::Path;

use super::chain::{Chain, read};
use super::damage::{Cause, Checked, at_file, damage};
use super::report::{Anchors, Report, RunState, VerifyOptions};
use super::scan::{Scan, scan};
use super::{anchor, files, objects};
use crate::{Entry, Kind, LEDGER_FILE, Record};

/// Checks the run in `run_dir` and reports the first damage with its exact place.
///
/// Never fails: a folder that cannot be read is a damaged one.
pub fn verify(run_dir: &Path, options: &VerifyOptions) -> Report {
    let mut report = Report {
        run: None,
        records: 0,
        head: None,
        state: RunState::Open,
        torn_bytes: 0,
        anchors: Anchors::default(),
        certificate: None,
        objects: 0,
        object_bytes: 0,
        unreferenced_objects: 0,
        warnings: Vec::new(),
        gaps: Vec::new(),
        uncovered: Vec::new(),
        damage: None,
    };
    if let Err(damage) = check(run_dir, options, &mut report) {
        report.damage = Some(*damage);
    }
    report
}

fn check(run_dir: &Path, options: &VerifyOptions, report: &mut Report) -> Checked {
    let bytes = read(run_dir, LEDGER_FILE, Cause::NoLedger)?
        .ok_or_else(|| damage(Cause::NoLedger, at_file(LEDGER_FILE), "there is no ledger"))?;
    let scan = scan(&bytes);
    report.records = scan.records.len() as u64;
    report.head = scan.records.last().map(|record| record.hash);
    report.torn_bytes = scan.torn_bytes;
    report.state = state(&scan);
    let opened = match scan.records.first().map(Record::entry) {
        Some(Ok(Entry::RunOpened(opened))) => Some(opened),
        _ => None,
    };
    report.run = opened.as_ref().map(|opened| opened.run.clone());
    if let Some(damage) = &scan.damage {
        return Err(Box::new(damage.clone()));
    }
    let Some(opened) = opened else {
        report
            .warnings
            .push("The ledger holds no record: the run died before its first step.".into());
        return match &options.head {
            None => Ok(()),
            Some(_) => Err(damage(
                Cause::HeadMismatch,
                at_file(LEDGER_FILE),
                "the ledger is empty",
            )),
        };
    };
    let chain = Chain { scan, opened };
    if let Some(wanted) = options.run.as_ref().filter(|wanted| **wanted != chain.opened.run) {
        let detail = format!(
            "this is the record of run `{}`, not of `{wanted}`",
            chain.opened.run
        );
        return Err(damage(Cause::OtherRun, chain.place(0), detail));
    }
    anchor::seeds(&chain)?;
    anchor::head(&chain, options, report)?;
    anchor::certificate(run_dir, &chain, options, report)?;
    objects::check(run_dir, &chain, report)?;
    files::check(run_dir, &chain, report)?;
    remarks(run_dir, &chain, report);
    Ok(())
}

fn state(scan: &Scan) -> RunState {
    match scan.records.last().map(|record| record.kind) {
        Some(Kind::Closed) => RunState::Closed,
        Some(Kind::Interrupted) => RunState::Interrupted,
        _ if scan.torn_bytes > 0 => RunState::Interrupted,
        _ => RunState::Open,
    }
}

/// What is worth a word and proves nothing.
fn remarks(run_dir: &Path, chain: &Chain, report: &mut Report) {
    let name = fs::canonicalize(run_dir)
        .ok()
        .and_then(|path| path.file_name().map(|name| name.to_owned()));
    if name.is_some_and(|name| name != chain.opened.run.as_str()) {
        report.warnings.push(format!(
            "The folder does not bear the run's id, `{}`.",
            chain.opened.run
        ));
    }
    let backwards = chain
        .records()
        .windows(2)
        .find(|pair| pair[1].time < pair[0].time);
    if let Some([_, record]) = backwards {
        report
            .warnings
            .push(format!("The clock went backwards before record {}.", record.seq));
    }
}
