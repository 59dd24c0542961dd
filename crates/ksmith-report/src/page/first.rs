//! The first page: what was proved, what was not, and the figures that a reader looks for.

use ksmith_ledger::{CandidateHistory, FloorLine, GateOutcome, Speedup};
use maud::{Markup, html};

use super::{Links, line, scope};
use crate::RunView;
use crate::chart;

pub(super) fn verdict_line(view: &RunView) -> String {
    let history = &view.history;
    // Never the gain over the baseline alone: flags may have earned most of it.
    let times = |champion: &CandidateHistory| match (champion.over_baseline(), champion.over_flag_control()) {
        (Some(gain), Some(flags)) => {
            format!(
                "At least {:.2}× the baseline's speed, {:.2}× the flag control's",
                gain.lower, flags.lower
            )
        }
        (Some(gain), None) => {
            format!(
                "At least {:.2}× the baseline's speed, not measured over the flag control",
                gain.lower
            )
        }
        (None, _) => format!("Champion {}", champion.id()),
    };
    match (history.champion(), &history.closed) {
        (Some(champion), Some(_)) => times(champion),
        (Some(champion), None) => format!("{} (run not finished)", times(champion)),
        (None, Some(_)) => capitalised(&history.without_champion()),
        (None, None) => format!("Run not finished; {}", history.without_champion()),
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

pub(super) fn warnings(view: &RunView) -> Markup {
    let history = &view.history;
    let opened = &history.opened;
    html! {
        @if opened.unsandboxed {
            p.alarm role="alert" {
                strong { "WITHOUT A SANDBOX. " }
                "The user passed " code { "--unsandboxed" } ": candidates ran with the user's rights and could have "
                "changed the judge, this machine and this record. Trust these results as far as you trust every line "
                "of every candidate."
            }
        }
        @if history.closed.is_none() {
            p.warn { "This run is not closed: nothing here is certified." }
        }
        @if history.closed.is_some() && view.signed_by.is_none() {
            p.warn { "There is no signed certificate that fits this record." }
        }
        @for (time, interruption) in &history.interruptions {
            p.warn { "Interrupted at " (line(time)) ": " (line(&interruption.reason)) "." }
        }
    }
}

/// Two columns: what a reader may rely on, and what they may not.
pub(super) fn proved(view: &RunView) -> Markup {
    html! {
        div.columns {
            section aria-labelledby="proved" {
                h2 #proved { "What was proved" }
                ul { @for text in proofs(view) { li { (text) } } }
            }
            section aria-labelledby="not-proved" {
                h2 #not-proved { "What was not" }
                ul { @for text in limits(view) { li { (text) } } }
            }
        }
    }
}

fn proofs(view: &RunView) -> Vec<Markup> {
    let history = &view.history;
    let mut proofs = Vec::new();
    match history.champion() {
        Some(champion) => {
            let passed = champion
                .gates()
                .iter()
                .filter(|gate| gate.result == GateOutcome::Pass)
                .count();
            proofs.push(html! {
                strong { "Correct. " }
                "Every element of every hidden case, and of every timed call, of " code { (line(champion.id())) }
                " lies within the contract's tolerance of the float64 reference, and it touched nothing else: "
                a href="#gates" { (passed) " gates passed" } "."
            });
            proofs.extend(shown_gain("Faster than the baseline. ", champion.over_baseline()));
            proofs.extend(shown_gain(
                "Faster than better flags. ",
                champion.over_flag_control(),
            ));
            if let Some(floor) = nearest_floor(champion) {
                proofs.push(html! {
                    strong { "Possible. " }
                    "It takes " (format!("{:.1}", floor.candidate_us / floor.floor_us))
                    " times what moving the same bytes takes, and never less: " a href="#physics" { "the floor" } "."
                });
            }
        }
        None => proofs
            .push(html! { "No candidate was shown to be faster: " (line(&history.without_champion())) "." }),
    }
    proofs.push(html! {
        strong { "Recorded. " }
        (history.records) " records in one hash chain"
        @if view.signed_by.is_some() { ", with a signed certificate" }
        ": " a href="#verify" { "how to verify" } "."
    });
    proofs
}

/// A gain that is bounded above one, as a proof.
fn shown_gain(what: &str, gain: Option<Speedup>) -> Option<Markup> {
    let gain = gain.filter(|gain| gain.lower > 1.0)?;
    Some(html! {
        strong { (what) }
        "At least " (format!("{:.2}", gain.lower)) " times as fast (median " (format!("{:.2}", gain.point))
        "), in interleaved pairs beside an A/A control, confirmed with new processes and secrets."
    })
}

/// A gain that is not, as a limit.
fn open_gain(over: &str, gain: Option<Speedup>) -> Option<Markup> {
    match gain {
        Some(gain) if gain.lower > 1.0 => None,
        Some(gain) => Some(html! {
            strong { "Faster than " (over) ": not shown. " }
            "Between " (format!("{:.2}", gain.lower)) " and " (format!("{:.2}", gain.upper)) " times as fast."
        }),
        None => Some(html! {
            strong { "Faster than " (over) ": not measured " }
            "in this run."
        }),
    }
}

fn limits(view: &RunView) -> Vec<Markup> {
    let history = &view.history;
    let opened = &history.opened;
    let mut limits = Vec::new();
    if let Some(champion) = history.champion() {
        limits.extend(open_gain("the baseline", champion.over_baseline()));
        limits.extend(open_gain(
            "the baseline under better flags",
            champion.over_flag_control(),
        ));
    }
    let unstated = history.unstated();
    if unstated > 0 {
        limits.push(html! {
            strong { (unstated) " scored without a statement. " }
            "The machine was too busy or too noisy to measure, or the time was up; these may be faster or slower."
        });
    }
    for (_, note) in history
        .notes
        .iter()
        .filter(|(_, note)| note.text.contains("confirm"))
    {
        limits.push(html! { (line(&note.text)) "." });
    }
    if !scope(view).is_empty() {
        limits.push(html! { (scope(view)) });
    }
    limits.push(html! {
        "Anything about another machine, another compiler than " (line(&opened.compiler))
        ", or shapes and values outside the contract."
    });
    limits.push(html! { "Gains below 1 %: the mere layout of code moves times by as much." });
    let champion = history.champion();
    if champion.is_some() && champion.and_then(nearest_floor).is_none() {
        limits.push(html! { "How far from physics it is: no floor was measured." });
    }
    limits.push(html! {
        "Anything against whoever owns the machine and rewrites the whole record, unless you hold its head or know its key."
    });
    limits
}

/// The workload that comes nearest to its floor.
fn nearest_floor(champion: &CandidateHistory) -> Option<&FloorLine> {
    let times = |line: &FloorLine| line.candidate_us / line.floor_us;
    champion
        .bench()?
        .floor
        .iter()
        .filter(|line| times(line).is_finite() && line.floor_us > 0.0)
        .min_by(|a, b| times(a).total_cmp(&times(b)))
}

pub(super) fn headline(view: &RunView) -> Markup {
    html! {
        section aria-labelledby="claim" {
            h2 #claim { "Claim" }
            p.claim { (line(&view.headline())) }
        }
    }
}

fn card(figure: &str, over: &str, quiet: &str) -> Markup {
    html! {
        div.card {
            p.figure { (figure) }
            p { (over) }
            @if !quiet.is_empty() { p.quiet { (quiet) } }
        }
    }
}

fn gain_card(gain: Option<Speedup>, over: &str) -> Markup {
    match gain {
        Some(gain) => card(
            &format!("{:.2}×", gain.lower),
            &format!("lower bound over {over}"),
            &format!("median {:.2}, upper bound {:.2}", gain.point, gain.upper),
        ),
        None => card("–", &format!("not measured over {over}"), ""),
    }
}

fn floor_card(champion: &CandidateHistory) -> Markup {
    match nearest_floor(champion) {
        Some(floor) => card(
            &format!("{:.1}×", floor.candidate_us / floor.floor_us),
            "the time of moving its bytes",
            &format!(
                "workload {}: floor {:.1} µs, median {:.1} µs",
                line(&floor.workload),
                floor.floor_us,
                floor.candidate_us
            ),
        ),
        None => card("–", "no floor was measured", ""),
    }
}

pub(super) fn gains(view: &RunView) -> Markup {
    let champion = view.history.champion();
    let met = view.history.closed.as_ref().map(|_| view.history.ending());
    html! {
        section aria-labelledby="gains" {
            h2 #gains { "Gains" }
            @if let Some(champion) = champion {
                div.cards {
                    (gain_card(champion.over_baseline(), "the task's baseline"))
                    (gain_card(champion.over_flag_control(), "the flag control"))
                    (floor_card(champion))
                }
                p.quiet {
                    "The flag control is the baseline's own source under the best of several flag sets: what remains "
                    "over it is the gain of the idea. Goal: at most " (format!("{:.2}", view.history.opened.goal))
                    " of the baseline's time"
                    @if let Some(met) = met { " (" (met) ")" }
                    "."
                }
            } @else {
                p { "No candidate was confirmed to be faster: " (line(&view.history.without_champion())) "." }
            }
            @if let Some(chart) = chart::intervals(&view.history) {
                figure {
                    div.scroll { (chart) }
                    figcaption {
                        "Times as fast as the baseline, point and interval, logarithmic axis. Filled: champion. Dashed: goal. "
                        (scope(view))
                    }
                }
            }
        }
    }
}

/// Sections of this page, and files of the run where they lie beside it. Every link works without a network.
pub(super) fn contents(view: &RunView, links: Links) -> Markup {
    let champion = view.history.champion().is_some();
    let sections = [
        ("candidates", "Candidates", true),
        ("gates", "Gates", champion),
        ("source", "Source", champion),
        ("physics", "Physics", true),
        ("contract", "Contract", true),
        ("machine", "Machine", true),
        ("verify", "How to verify", true),
    ];
    let files = [
        "draft.md",
        "plan.md",
        "candidates.jsonl",
        "benchmark.csv",
        "certificate.json",
        "ledger.jsonl",
    ];
    html! {
        nav aria-label="Contents" {
            @for (id, name, is_there) in sections {
                @if is_there { a href={ "#" (id) } { (name) } " " }
            }
            @if links == Links::RunFolder {
                span.quiet { "Files: " }
                @for file in files.into_iter().filter(|file| view.files.iter().any(|found| found == file)) {
                    a href=(file) { (file) } " "
                }
            }
        }
    }
}
