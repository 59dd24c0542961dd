//! Progress of a run: one line that is redrawn on a terminal, plain lines elsewhere.

use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ksmith_ledger::Speedup;
use ksmith_loop::{Budget, Event, Progress, Spent, Stage};

use crate::duration;
use crate::ui::Ui;

/// Longest line: hypotheses stand in the record in full.
const LINE: usize = 180;

/// Shows what a run does.
pub(crate) struct Live {
    bar: ProgressBar,
    is_live: bool,
    is_quiet: bool,
    began: Instant,
    budget: Option<Budget>,
    spent: Spent,
    stage: String,
    best: Option<(String, Option<Speedup>)>,
}

impl Live {
    pub(crate) fn new(ui: &Ui) -> Self {
        let is_live = ui.is_live();
        let bar = if is_live {
            let bar = ProgressBar::new_spinner();
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style.tick_strings(&["-", "\\", "|", "/", " "]));
            }
            bar.enable_steady_tick(std::time::Duration::from_millis(250));
            bar
        } else {
            ProgressBar::hidden()
        };
        Self {
            bar,
            is_live,
            is_quiet: ui.is_quiet(),
            began: Instant::now(),
            budget: None,
            spent: Spent::default(),
            stage: String::new(),
            best: None,
        }
    }

    /// Removes the line, so that results stand alone.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn line(&self, text: &str) {
        if self.is_quiet {
            return;
        }
        let short: String = ksmith_report::clean_line(text).chars().take(LINE).collect();
        let text = format!("[{:>7.1} s] {short}", self.began.elapsed().as_secs_f64());
        if self.is_live {
            self.bar.println(text);
        } else {
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }

    fn redraw(&self) {
        if !self.is_live {
            return;
        }
        let best = match &self.best {
            None => "best: none yet".to_owned(),
            Some((id, gain)) => format!("best: {id} {}", gain.map_or_else(String::new, show_gain)),
        };
        let left = self.budget.map_or_else(String::new, |budget| {
            let wall = if budget.wall_s.is_finite() {
                format!(
                    "{} of {} left",
                    duration::show(budget.wall_s - self.spent.wall_s),
                    duration::show(budget.wall_s)
                )
            } else {
                duration::show(self.spent.wall_s)
            };
            format!(
                "{wall}, {} of {} scorings",
                self.spent.candidates, budget.candidates
            )
        });
        self.bar.set_message(format!(
            "{} | {best} | {left} | {} screened",
            self.stage, self.spent.screened
        ));
    }
}

/// A gain with its interval.
pub(crate) fn show_gain(gain: Speedup) -> String {
    format!("{:.2}x ({:.2} to {:.2})", gain.point, gain.lower, gain.upper)
}

impl Progress for Live {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Started {
                run,
                instance,
                budget,
            } => {
                self.budget = Some(*budget);
                self.best = None;
                let wall = if budget.wall_s.is_finite() {
                    format!("{} of wall time", duration::show(budget.wall_s))
                } else {
                    "no limit of time".to_owned()
                };
                let scorings = match budget.candidates {
                    1 => "one full scoring".to_owned(),
                    count => format!("{count} full scorings"),
                };
                self.line(&format!("run {run} of {instance}: {wall}, {scorings}"));
            }
            Event::Stage { stage, candidate } => {
                self.stage = match candidate {
                    Some(candidate) => format!("{} {candidate}", stage.name()),
                    None => stage.name().to_owned(),
                };
                // A quick pass says at its end what came of it; there are many, and each is short.
                if !self.is_live && *stage != Stage::Screen {
                    self.line(&self.stage);
                }
            }
            Event::Screened {
                candidate,
                hypothesis,
                kept,
                code,
                ratio,
            } => {
                let outcome = match (kept, code, ratio) {
                    (true, _, Some(ratio)) => format!("stays, about {ratio:.2}x"),
                    (true, _, None) => "stays".to_owned(),
                    (false, code, _) => format!("leaves: {}", code.unwrap_or("unknown")),
                };
                self.line(&format!("screen {candidate} {outcome}; {hypothesis}"));
            }
            Event::Judged {
                candidate,
                hypothesis,
                verdict,
            } => {
                let gain = match (verdict.speedup, verdict.over_baseline) {
                    (None, _) => String::new(),
                    (Some(gain), Some(over)) if gain == over => {
                        format!(", {} over the baseline", show_gain(gain))
                    }
                    (Some(gain), _) => format!(", {} over the champion", show_gain(gain)),
                };
                self.line(&format!(
                    "judge {candidate}: {} ({}){gain}; {hypothesis}",
                    verdict.verdict.name(),
                    verdict.code
                ));
            }
            Event::Champion {
                candidate,
                over_baseline,
            } => {
                let gain = over_baseline.map_or_else(String::new, |gain| {
                    format!(", {} over the baseline", show_gain(gain))
                });
                self.best = Some(((*candidate).to_owned(), *over_baseline));
                self.line(&format!("champion: {candidate}{gain}"));
            }
            Event::Spent(spent) => self.spent = *spent,
            // Without a limit of time this is one judgement, whose end needs no reason.
            Event::Stopped(_) if self.budget.is_some_and(|budget| budget.wall_s.is_infinite()) => {}
            Event::Stopped(stop) => self.line(stop.sentence()),
            Event::Waited(time) => {
                self.line(&format!("waited {:.1} s for a quiet moment", time.as_secs_f64()))
            }
            Event::Note(text) => self.line(text),
            _ => {}
        }
        self.redraw();
    }
}
