//! A post-mortem as lines for people, from the same figures as its JSON.

use std::fmt;

use super::Postmortem;
use crate::planner::StepState;

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", 100.0 * share))
}

fn factor(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}x"))
}

impl fmt::Display for Postmortem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match (self.outcome, &self.reason) {
            (Some(outcome), Some(reason)) => format!("{outcome} ({reason})"),
            (Some(outcome), None) => outcome.to_owned(),
            (None, _) => "not finished".to_owned(),
        };
        writeln!(f, "run              {} of {}: {outcome}", self.run, self.instance)?;
        let claims = &self.claims;
        writeln!(
            f,
            "claims           {} of {} predicted gains accepted ({}); {} statements without a record",
            claims.accepted,
            claims.predicted,
            percent(claims.acceptance),
            claims.unproved
        )?;
        let waste = &self.waste;
        writeln!(
            f,
            "waste            {} of {} rounds without a gain ({}); {:.1} of {:.1} s of judging not crowned; {} refused unjudged",
            waste.without_gain,
            waste.rounds,
            percent(waste.ratio),
            waste.judge_s_dropped,
            waste.judge_s,
            waste.refused
        )?;
        let gain = &self.gain;
        let confirmed = gain.over_baseline.map_or_else(
            || "none".to_owned(),
            |gain| format!("{:.2}x ({:.2} to {:.2})", gain.point, gain.lower, gain.upper),
        );
        writeln!(
            f,
            "gain             {confirmed} over the baseline; {} a round, {} a dollar ({:.2} USD), {} an hour",
            factor(gain.per_round),
            factor(gain.per_dollar),
            gain.dollars,
            factor(gain.per_hour)
        )?;
        let prediction = &self.prediction;
        writeln!(
            f,
            "prediction       {} pairs: off by {} (median), bias {}, rank correlation {}",
            prediction.pairs,
            factor(prediction.median_factor),
            factor(prediction.bias),
            prediction
                .rank_correlation
                .map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"))
        )?;
        let reviews = &self.reviews;
        writeln!(
            f,
            "reviews          {} held, {} vetoes, {} not passed, {} findings ({} repeated)",
            reviews.held, reviews.vetoes, reviews.not_passed, reviews.findings, reviews.repeated
        )?;
        for (code, count) in &self.process {
            writeln!(f, "gate             {code}: {count}")?;
        }
        writeln!(
            f,
            "time             {:.1} s of work, {:.1} s of waiting",
            self.wall_s, self.waiting_s
        )?;
        for (kind, seconds) in &self.time_s {
            writeln!(f, "                 {kind} {seconds:.1} s")?;
        }
        for step in &self.plan {
            let state = match step.state {
                StepState::Done => "done",
                StepState::GivenUp => "given up",
                StepState::Open => "open",
            };
            writeln!(f, "plan             {state}: {}", step.step)?;
        }
        f.write_str(self.scope_note)
    }
}
