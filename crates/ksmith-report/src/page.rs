//! The sections of the page, in the order in which a doubtful reader asks.

mod first;

use ksmith_ledger::{CandidateHistory, GateOutcome};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::RunView;
use crate::clean::{clean, clean_line};
use crate::table::interval;

const STYLE: &str = include_str!("page.css");

/// Nothing is loaded and nothing runs, even if foreign text broke out of its place.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// Which links the page may hold besides those within itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// The page lies in the run's folder: files beside it can be named.
    RunFolder,
    /// It lies elsewhere and stands alone.
    Alone,
}

pub(crate) fn page(view: &RunView, links: Links) -> Markup {
    let opened = &view.history.opened;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="color-scheme" content="light dark";
                title { (line(&opened.instance)) " · " (line(&opened.run)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    p.kicker { "Kernelsmith · " (line(&opened.instance)) " · run " code { (line(&opened.run)) } }
                    h1 { (line(&first::verdict_line(view))) }
                }
                main {
                    (first::warnings(view))
                    (first::proved(view))
                    (first::gains(view))
                    (first::headline(view))
                    (first::contents(view, links))
                    (candidates(view))
                    (gates(view))
                    (source(view))
                    (physics(view, links))
                    (contract(view))
                    (machine(view))
                    (how_to_verify(view))
                }
                footer { p { (scope(view)) } }
            }
        }
    }
}

fn line(text: &str) -> String {
    clean_line(text)
}

fn scope(view: &RunView) -> &'static str {
    view.history.opened.scope.sentence()
}

fn candidates(view: &RunView) -> Markup {
    let history = &view.history;
    let unnamed = history.screened.len();
    html! {
        section aria-labelledby="candidates" {
            h2 #candidates { "Candidates" }
            @if history.candidates.is_empty() {
                p { "None was proposed." }
            } @else {
                div.scroll tabindex="0" role="region" aria-label="Table of candidates" {
                    table {
                        thead {
                            tr {
                                th scope="col" { "Id" }
                                th scope="col" { "Outcome" }
                                th scope="col" { "Hypothesis" }
                                th.number scope="col" { "Predicted" }
                                th.number scope="col" { "Over champion" }
                                th.number scope="col" { "Over baseline" }
                                th.number scope="col" { "Over flag control" }
                                th scope="col" { "Reason" }
                            }
                        }
                        tbody {
                            @for candidate in &history.candidates { (candidate_row(candidate)) }
                        }
                    }
                }
            }
            @if unnamed > 0 { p.quiet { (unnamed) " more configurations left in screening." } }
            p.quiet { (scope(view)) }
        }
    }
}

fn candidate_row(candidate: &CandidateHistory) -> Markup {
    let proposed = &candidate.proposed;
    let predicted = proposed
        .predicted
        .map_or("–".to_owned(), |predicted| format!("{predicted:.2}"));
    html! {
        tr {
            th scope="row" { code { (line(candidate.id())) } }
            td {
                (candidate.status().name())
                @if let Some(code) = candidate.code() { br; code { (line(code)) } }
            }
            td { (line(&proposed.hypothesis)) }
            td.number { (predicted) }
            td.number { (interval(candidate.over_champion())) }
            td.number { (interval(candidate.over_baseline())) }
            td.number { (interval(candidate.over_flag_control())) }
            td { (line(candidate.reason().unwrap_or("–"))) }
        }
    }
}

fn gates(view: &RunView) -> Markup {
    let Some(champion) = view.history.champion() else {
        return html! {};
    };
    html! {
        section aria-labelledby="gates" {
            h2 #gates { "Gates passed by " code { (line(champion.id())) } }
            div.scroll tabindex="0" role="region" aria-label="Table of gates" {
                table {
                    thead {
                        tr {
                            th scope="col" { "Gate" }
                            th scope="col" { "Result" }
                            th scope="col" { "Code" }
                            th.number scope="col" { "ms" }
                        }
                    }
                    tbody {
                        @for gate in champion.gates() {
                            tr {
                                th scope="row" { (gate.name.name()) }
                                td class=(outcome_class(gate.result)) { (gate.result.name()) }
                                td { @if let Some(code) = &gate.code { code { (line(code)) } } }
                                td.number { (format!("{:.1}", gate.ms)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn outcome_class(outcome: GateOutcome) -> &'static str {
    match outcome {
        GateOutcome::Pass => "pass",
        GateOutcome::Fail | GateOutcome::Error => "fail",
        GateOutcome::Skipped => "quiet",
    }
}

fn source(view: &RunView) -> Markup {
    if view.history.champion().is_none() {
        return html! {};
    }
    html! {
        section aria-labelledby="source" {
            h2 #source { "What changed against the baseline" }
            @for file in &view.champion_diff {
                details open {
                    summary { code { (line(&file.path)) } }
                    pre.scroll tabindex="0" {
                        @for text in clean(&file.unified).lines() {
                            span class=(diff_class(text)) { (text) "\n" }
                        }
                    }
                }
            }
            @if view.champion_diff.is_empty() { p { "Nothing: the files are the same." } }
            @for file in &view.champion_source {
                details {
                    summary { "Whole file " code { (line(&file.path)) } }
                    pre.scroll tabindex="0" { (clean(&file.text)) }
                }
            }
        }
    }
}

fn diff_class(text: &str) -> &'static str {
    match text.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] | [b'@', b'@', ..] => "head",
        [b'+', ..] => "added",
        [b'-', ..] => "removed",
        _ => "same",
    }
}

fn physics(view: &RunView, links: Links) -> Markup {
    let bench = view.history.champion().and_then(CandidateHistory::bench);
    html! {
        section aria-labelledby="physics" {
            h2 #physics { "What physics allows" }
            @match bench.filter(|bench| !bench.floor.is_empty()) {
                None => p { "No floor was measured." },
                Some(bench) => ul {
                    @for floor in &bench.floor {
                        li {
                            "Workload " code { (line(&floor.workload)) } ": " (format!("{:.3}", floor.bytes / 1e6))
                            " MB and " (format!("{:.3}", floor.flops / 1e6)) " million operations; the fastest "
                            (line(&floor.probe)) " probe sets a floor of " (format!("{:.1}", floor.floor_us))
                            " µs, the champion takes " (format!("{:.1}", floor.candidate_us)) " µs ("
                            (format!("{:.1}", floor.candidate_us / floor.floor_us)) " times the floor)."
                        }
                    }
                },
            }
            @if let Some(control) = bench.and_then(|bench| bench.control) {
                p.quiet {
                    "A/A control (the same code in two arms): " (interval(Some(control)))
                    ". A gain within this is none."
                }
            }
            @if let Some(samples) = bench.and_then(|bench| bench.samples) {
                @let name = samples.blob.to_string();
                p.quiet {
                    "Raw samples of the measurement (" (samples.bytes) " bytes of JSON): "
                    @if links == Links::RunFolder {
                        a href={ "objects/" (&name[..2]) "/" (&name[2..]) } { code.hash { (name) } }
                    } @else {
                        code.hash { (name) }
                    }
                }
            }
        }
    }
}

fn contract(view: &RunView) -> Markup {
    let opened = &view.history.opened;
    html! {
        section aria-labelledby="contract" {
            h2 #contract { "Contract" }
            dl {
                dt { "Task" } dd { (line(&opened.instance)) }
                dt { "Goal" } dd { "at most " (format!("{:.2}", opened.goal)) " of the baseline's time" }
                dt { "Protocol" } dd { (line(&opened.protocol)) }
                @for (name, digest) in &opened.locks {
                    dt { "Lock: " (line(name)) } dd { code.hash { (digest) } }
                }
            }
            details {
                summary { "Expanded contract, as locked" }
                pre.scroll tabindex="0" { (clean(&view.contract)) }
            }
        }
    }
}

fn machine(view: &RunView) -> Markup {
    let opened = &view.history.opened;
    let record = serde_json::to_string_pretty(&opened.machine).unwrap_or_default();
    let switched = |on: bool| {
        let names = opened.mechanisms.iter().filter(move |(_, state)| **state == on);
        let text = names.map(|(name, _)| line(name)).collect::<Vec<_>>().join(", ");
        if text.is_empty() { "none".to_owned() } else { text }
    };
    html! {
        section aria-labelledby="machine" {
            h2 #machine { "Machine and run" }
            dl {
                dt { "Device" } dd { (line(&opened.device_name)) }
                dt { "Compiler" } dd { (line(&opened.compiler)) }
                dt { "Isolation" }
                dd {
                    (line(&opened.isolation))
                    @if opened.unsandboxed { strong.fail { " – WITHOUT A SANDBOX" } }
                }
                dt { "Tier" } dd { (line(&opened.tier)) }
                dt { "Writer" } dd { (line(&opened.writer)) }
                dt { "Reviewer" } dd { (line(opened.reviewer.as_deref().unwrap_or("none"))) }
                dt { "Mechanisms on" } dd { (switched(true)) }
                dt { "Mechanisms off" } dd { (switched(false)) }
                dt { "Command" } dd { code { (line(&opened.command.join(" "))) } }
                dt { "Opened" } dd { (line(&view.history.opened_at)) }
                dt { "Last record" } dd { (line(&view.history.last_at)) }
                @if let Some(closed) = &view.history.closed {
                    dt { "Outcome" } dd { (view.history.ending()) " (" (line(&closed.reason)) ")" }
                    dt { "Spent" }
                    dd {
                        (closed.candidates) " scored, " (closed.screened) " screened, "
                        (format!("{:.0}", closed.wall_s)) " s"
                    }
                }
            }
            details {
                summary { "Machine record" }
                pre.scroll tabindex="0" { (clean(&record)) }
            }
        }
    }
}

fn how_to_verify(view: &RunView) -> Markup {
    let history = &view.history;
    let run = line(&history.opened.run);
    html! {
        section aria-labelledby="verify" {
            h2 #verify { "How to verify" }
            p {
                "This page is only a picture of the record. Check the record, with a head or a key that you know from "
                "somewhere else than this folder:"
            }
            pre.scroll tabindex="0" {
                "ksmith verify " (run) " --head " (history.head) "\n"
                "ksmith verify " (run) " --replay\n"
            }
            dl {
                dt { "Records" } dd { (history.records) }
                dt { "Head" } dd { code.hash { (history.head) } }
                dt { "Signed by" }
                dd {
                    @match view.signed_by {
                        Some(key) => code.hash { (key) },
                        None => "nobody",
                    }
                }
            }
            p.quiet {
                "Without such an anchor only accidents are found: whoever can write the folder can write a new chain, "
                "a new signature and a new page."
            }
        }
    }
}
