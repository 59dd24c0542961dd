//! What comes next: a pure function of what is recorded, the clock and the policy.
//!
//! Promotion is decided here, by code alone: a writer or reviewer has no way to cause it.

use ksmith_agents::process::Rung;
use ksmith_agents::review::Occasion;
use ksmith_ledger::{Decision, Role};

use crate::memory::{Candidacy, Memory, fastest};
use crate::{Mechanism, Mechanisms, Stop, course, shortlist};

/// A direction is left after this many rounds without a gain (the KDA workflow's rule).
pub const TRIES_PER_DIRECTION: u64 = 5;
/// A run ends after this many rounds without a gain.
pub const PLATEAU_ROUNDS: u64 = 24;
/// Below this quick gain over the champion a full scoring is not worth its time. The quick pass can be off by some
/// percent, so a candidate that looks slightly slower still gets its full scoring when nothing looks better.
pub const PROMISING: f64 = 0.97;
/// What a first full scoring is expected to take, in seconds (two stages of about 10 s, and the gates).
pub const FIRST_SCORING_S: f64 = 20.0;
/// Full scorings that must fit into the wall time for the flag control to get one of its own before the search.
pub const FLAG_CONTROL_ROOM: f64 = 4.0;
/// How often a candidate is scored in all when the machine was too busy or too noisy for a statement.
pub const SCORINGS: u32 = 3;
/// How often the last confirmation is repeated when the machine was too busy for a statement.
pub const FINAL_TRIES: usize = 3;
/// What is kept back for the last confirmation, as a multiple of the longest full scoring so far.
const RESERVE: f64 = 1.2;
/// Seconds kept back beyond that: the longest step that is not a scoring (a round's compilation), and the files.
const RESERVE_S: f64 = 3.0;

/// The next thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Audit the task.
    Audit,
    /// Prove and measure the baseline.
    Baseline,
    /// Write and gate the draft.
    Draft,
    /// Write and gate the plan.
    Plan,
    /// Propose the baseline's source under other flags.
    FlagControl,
    /// Ask the writer.
    Propose,
    /// Quick pass of a candidate.
    Screen(String),
    /// Measure the best of the quick pass beside each other, since the rounds are over.
    Shortlist(Stop),
    /// Full pass of a candidate.
    Score(String),
    /// Wait for a person's answer.
    Ask(String),
    /// Have a candidate reviewed that would be crowned.
    ReviewCrown(String),
    /// Have the course of the run reviewed, on an occasion with its mark.
    ReviewCourse(Occasion, String),
    /// Close a direction that keeps failing with one code.
    CloseDirection(String, String),
    /// Change course, since nothing gains.
    Descend(Rung),
    /// Make an accepted candidate the champion.
    Promote(String),
    /// Take that back: the last confirmation refused it.
    Demote(String),
    /// Last confirmation of the champion.
    Final(String, Stop),
    /// Certificate, views, report and the closing record.
    Close(Stop),
    /// Nothing is left.
    Nothing,
}

/// What the driver knows beside the records.
#[derive(Debug, Clone, Copy, Default)]
pub struct Now {
    /// Seconds since the last record.
    pub since_record_s: f64,
    /// Whether the writer said that it has nothing left.
    pub writer_is_exhausted: bool,
    /// Whether the task stops at its goal and the champion has confirmed it.
    pub goal_is_reached: bool,
    /// Whether the writer says that it is done; a claim, not a fact.
    pub writer_says_done: bool,
}

/// Says what comes next.
pub fn next(memory: &Memory, on: &Mechanisms, now: Now) -> Step {
    if memory.opened.is_none() || memory.closed.is_some() {
        return Step::Nothing;
    }
    if on.has(Mechanism::Audit) && memory.audit.is_none() {
        return Step::Audit;
    }
    if let Some(accepted) = memory.candidates.iter().find(|c| {
        c.is_accepted() && !memory.is_promoted(&c.proposed.candidate) && !course::is_barred(memory, c)
    }) {
        let id = accepted.proposed.candidate.clone();
        return if needs_review(memory, on, accepted) {
            Step::ReviewCrown(id)
        } else {
            Step::Promote(id)
        };
    }
    // Shortlist and last confirmation are only begun after the rounds: then nothing new is proposed.
    if memory.shortlist.is_some() || !memory.finals.is_empty() {
        let listed = memory.shortlist.as_ref().and_then(|list| Stop::named(&list.stop));
        let stop = listed
            .or_else(|| stop_of_budget(memory, on, now))
            .unwrap_or(Stop::Exhausted);
        return finish(memory, on, now, stop);
    }
    if let Some(stop) = stop_of_budget(memory, on, now) {
        return finish(memory, on, now, stop);
    }
    if memory.baseline.is_none() {
        return Step::Baseline;
    }
    if course::is_abandoned(memory) {
        return finish(memory, on, now, Stop::NeedsHuman);
    }
    if let Some((_, question)) = course::open_question(memory) {
        return Step::Ask(question.id.clone());
    }
    if on.has(Mechanism::Draft) && memory.draft.is_none() {
        return Step::Draft;
    }
    if on.has(Mechanism::Plan) && memory.plan.is_none() {
        return Step::Plan;
    }
    if on.has(Mechanism::FlagControl) && memory.candidates.is_empty() {
        return Step::FlagControl;
    }
    match next_of_round(memory, on, now) {
        Some(Step::Score(_)) if !has_time_to_score(memory, on, now) => {
            return finish(memory, on, now, Stop::Wall);
        }
        Some(step) => return step,
        None => {}
    }
    if let Some(step) = change_of_course(memory, on, now) {
        return step;
    }
    if now.goal_is_reached {
        return finish(memory, on, now, Stop::Goal);
    }
    if on.has(Mechanism::Plateau) && memory.rounds_without_gain(None) >= PLATEAU_ROUNDS {
        return finish(memory, on, now, Stop::Plateau);
    }
    if now.writer_is_exhausted {
        return finish(memory, on, now, Stop::Exhausted);
    }
    Step::Propose
}

/// Whether a candidate may not be crowned before a reviewer has seen it.
fn needs_review(memory: &Memory, on: &Mechanisms, candidacy: &Candidacy) -> bool {
    on.has(Mechanism::Review)
        && has_reviewer(memory)
        && crate::steps::is_reviewed(candidacy.proposed.role)
        && course::crown_review(memory, candidacy).is_none()
}

fn has_reviewer(memory: &Memory) -> bool {
    memory
        .opened
        .as_ref()
        .is_some_and(|opened| opened.reviewer.is_some())
}

/// What a round's end calls for before the next begins.
fn change_of_course(memory: &Memory, on: &Mechanisms, now: Now) -> Option<Step> {
    if on.has(Mechanism::Process)
        && let Some((direction, code)) = course::repeated_error(memory)
    {
        return Some(Step::CloseDirection(direction, code));
    }
    if on.has(Mechanism::Review)
        && has_reviewer(memory)
        && let Some((occasion, mark)) = course::review_due(memory, now)
    {
        return Some(Step::ReviewCourse(occasion, mark));
    }
    if on.has(Mechanism::Process) {
        match course::rung(memory) {
            Some(rung @ (Rung::Replan | Rung::OtherFamily)) => return Some(Step::Descend(rung)),
            // The end of the rounds is mechanism `plateau`'s own.
            Some(Rung::Stop) | None => {}
        }
    }
    None
}

/// Seconds that a full scoring is expected to take: the longest so far, at first [`FIRST_SCORING_S`], and never more
/// than a third of the whole, so that a short run still scores something. The judge is halted when the wall time is up,
/// so a wrong guess costs a scoring and never time.
pub(crate) fn scoring_s(memory: &Memory) -> f64 {
    let known = if memory.longest_scoring_s > 0.0 {
        memory.longest_scoring_s
    } else {
        FIRST_SCORING_S
    };
    known.min(memory.budget().wall_s / 3.0)
}

/// What the last confirmation of a champion needs; nothing where it is switched off.
fn reserve_s(memory: &Memory, on: &Mechanisms) -> f64 {
    if on.has(Mechanism::Final) {
        RESERVE * scoring_s(memory) + RESERVE_S
    } else {
        0.0
    }
}

fn spent_s(memory: &Memory, now: Now) -> f64 {
    memory.spent.wall_s + now.since_record_s
}

/// Time for the last confirmation is kept back, so that the wall time holds with the certificate included.
fn stop_of_budget(memory: &Memory, on: &Mechanisms, now: Now) -> Option<Stop> {
    let mut spent = memory.spent;
    spent.wall_s = spent_s(memory, now);
    let mut budget = memory.budget();
    if memory.champion().is_some() {
        budget.wall_s -= reserve_s(memory, on);
        budget.device_s = budget.device_s.map(|device| device - reserve_s(memory, on));
        if shortlist::is_due(memory, on) {
            budget.wall_s -= shortlist::SECONDS + scoring_s(memory);
        }
    }
    budget.stop(&spent)
}

/// Whether a full scoring, if begun now, would end within the wall time. A first champion is worth the time that its
/// last confirmation would take: its promotion is a confirmation too.
fn has_time_to_score(memory: &Memory, on: &Mechanisms, now: Now) -> bool {
    let reserve = match memory.champion() {
        Some(_) => reserve_s(memory, on),
        None => 0.0,
    };
    spent_s(memory, now) + scoring_s(memory) + reserve <= memory.budget().wall_s
}

/// What is left of the quick pass gets a last chance where there is time for it, a scoring, and a last confirmation.
fn last_chance(memory: &Memory, on: &Mechanisms, now: Now, stop: Stop) -> Option<Step> {
    // A task that stops at its goal has it.
    let is_settled = matches!(stop, Stop::Goal | Stop::NeedsHuman);
    if !memory.finals.is_empty() || is_settled || memory.baseline.is_none() {
        return None;
    }
    let left = memory.budget().wall_s - spent_s(memory, now);
    let scorings = 2.0 * scoring_s(memory);
    match &memory.shortlist {
        None if shortlist::is_due(memory, on) && left >= shortlist::SECONDS + scorings => {
            Some(Step::Shortlist(stop))
        }
        Some(list) if left >= scorings && memory.spent.candidates < memory.budget().candidates => {
            let next = shortlist::next(memory, list)?;
            Some(Step::Score(next.proposed.candidate.clone()))
        }
        None | Some(_) => None,
    }
}

/// A champion is confirmed once more where there is time for it. What its last confirmation says decides: a refusal
/// takes the promotion back, no statement leaves it, and the one before it gets its own.
fn finish(memory: &Memory, on: &Mechanisms, now: Now, stop: Stop) -> Step {
    if let Some(step) = last_chance(memory, on, now, stop) {
        return step;
    }
    let Some(champion) = memory.champion() else {
        return Step::Close(stop);
    };
    let id = champion.proposed.candidate.clone();
    let budget = memory.budget();
    let has_device = |device: f64| memory.spent.device_s + scoring_s(memory) <= device;
    let has_time =
        spent_s(memory, now) + scoring_s(memory) <= budget.wall_s && budget.device_s.is_none_or(has_device);
    let again = match memory
        .finals_of_champion()
        .next_back()
        .map(|last| last.verdict.verdict)
    {
        None => true,
        Some(Decision::Ambiguous | Decision::Error) => memory.finals_of_champion().count() < FINAL_TRIES,
        Some(Decision::Accept) => false,
        Some(Decision::Revise | Decision::Reject) => return Step::Demote(id),
    };
    if again && has_time && on.has(Mechanism::Final) {
        Step::Final(id, stop)
    } else {
        Step::Close(stop)
    }
}

/// What is left to do in the last round, if anything.
fn next_of_round(memory: &Memory, on: &Mechanisms, now: Now) -> Option<Step> {
    let round = memory.last_round();
    let in_round = || {
        memory
            .candidates
            .iter()
            .filter(move |candidate| candidate.proposed.round == round)
    };
    let id = |candidate: &Candidacy| candidate.proposed.candidate.clone();
    let open: Vec<&Candidacy> = in_round()
        .filter(|candidate| candidate.decided.is_none() && !candidate.left_in_screening())
        .collect();
    // The flag control is the yardstick and needs the quick pass to find the best flags, whatever is switched off.
    let screens = on.has(Mechanism::Screen) || open.iter().any(|c| c.proposed.role == Role::FlagControl);
    if !screens {
        return open.first().map(|candidate| Step::Score(id(candidate)));
    }
    if let Some(unscreened) = open.iter().find(|candidate| candidate.screened.is_none()) {
        return Some(Step::Screen(id(unscreened)));
    }
    // The best of a round is worth waiting for a quieter machine; a new round would meet the same noise.
    // The flag control needs no statement of its own: it is an arm of every later measurement.
    let again = |candidate: &&Candidacy| {
        candidate.is_unstated()
            && candidate.scorings < SCORINGS
            && candidate.proposed.role != Role::FlagControl
    };
    if let Some(again) = in_round().find(again) {
        return Some(Step::Score(id(again)));
    }
    let settled = in_round().any(is_measured);
    let best = fastest(open.into_iter()).filter(|_| !settled)?;
    let worth = if best.proposed.role == Role::FlagControl {
        flag_control_is_scored(memory, best, now)
    } else {
        best.quick_gain().is_none_or(|gain| gain >= PROMISING)
    };
    worth.then(|| Step::Score(id(best)))
}

/// The flag control is an arm of every later measurement, scored or not: in a short run its own statement would take the
/// search's time. Of flags that change nothing there is nothing to state (the quick pass says exactly 1 of equal code).
fn flag_control_is_scored(memory: &Memory, best: &Candidacy, now: Now) -> bool {
    let room = FLAG_CONTROL_ROOM * scoring_s(memory);
    best.quick_gain() != Some(1.0) && spent_s(memory, now) + room <= memory.budget().wall_s
}

/// Whether a full scoring got as far as a gain: then the rest of its round, which looked slower, is not scored. A
/// failed gate says nothing of the others.
pub(crate) fn is_measured(candidate: &Candidacy) -> bool {
    candidate
        .decided
        .as_ref()
        .is_some_and(|decided| match decided.verdict.verdict {
            // Where the machine allows no statement on the best, it allows none on the others.
            Decision::Accept | Decision::Revise | Decision::Ambiguous | Decision::Error => true,
            Decision::Reject => decided.verdict.speedup.is_some(),
        })
}

/// Directions that have had their tries without a gain.
pub fn closed_directions(memory: &Memory) -> Vec<String> {
    let by_gates = course::closed(memory);
    memory
        .directions()
        .into_iter()
        .filter(|direction| {
            memory.rounds_without_gain(Some(direction)) >= TRIES_PER_DIRECTION
                || by_gates.iter().any(|closed| closed == direction)
        })
        .map(str::to_owned)
        .collect()
}
