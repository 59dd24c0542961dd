//! Interval chart: one line per measured candidate, gain over the baseline on a logarithmic axis, as inline SVG.

use ksmith_ledger::{History, Speedup, Status};
use maud::{Markup, html};

use crate::clean::clean_line;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 86.0;
const RIGHT: f64 = 20.0;
const ROW: f64 = 26.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 34.0;

struct Bar<'a> {
    id: &'a str,
    gain: Speedup,
    status: Status,
}

/// A logarithmic axis over a closed range.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn over(bars: &[Bar<'_>], marks: &[f64]) -> Self {
        let values = bars
            .iter()
            .flat_map(|bar| [bar.gain.lower, bar.gain.upper])
            .chain(marks.iter().copied());
        let (low, high) = values.fold((1.0_f64, 1.0_f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        // Room at both ends, so that no mark sits on the frame.
        Self {
            low: low / 1.08,
            high: high * 1.08,
        }
    }

    fn x(&self, value: f64) -> f64 {
        let share = (value / self.low).ln() / (self.high / self.low).ln();
        LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    /// Round values within the range, few enough to be read.
    fn ticks(&self) -> Vec<f64> {
        let fine = self.high / self.low < 2.5;
        let steps: &[f64] = if fine {
            &[1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.25, 2.5, 5.0, 7.5, 8.0, 9.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        (-3..6)
            .flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)))
            .filter(|tick| (self.low..=self.high).contains(tick))
            .collect()
    }
}

fn is_drawable(gain: &Speedup) -> bool {
    [gain.lower, gain.point, gain.upper]
        .iter()
        .all(|value| value.is_finite() && *value > 0.0)
}

/// Draws the chart; nothing where nothing was measured.
pub(crate) fn intervals(history: &History) -> Option<Markup> {
    let bars: Vec<Bar<'_>> = history
        .candidates
        .iter()
        .filter_map(|candidate| {
            let gain = candidate.over_baseline().filter(is_drawable)?;
            Some(Bar {
                id: candidate.id(),
                gain,
                status: candidate.status(),
            })
        })
        .collect();
    if bars.is_empty() {
        return None;
    }
    let goal = Some(1.0 / history.opened.goal).filter(|goal| goal.is_finite() && *goal > 0.0);
    let axis = Axis::over(&bars, &goal.into_iter().collect::<Vec<_>>());
    let height = TOP + ROW * bars.len() as f64 + BOTTOM;
    let floor = height - BOTTOM;
    let view_box = format!("0 0 {WIDTH} {height}");
    Some(html! {
        svg.chart viewBox=(view_box) role="img" aria-labelledby="chart-title" xmlns="http://www.w3.org/2000/svg" {
            title id="chart-title" {
                "Times as fast as the baseline, with interval, for " (bars.len()) " measured candidates; the table of "
                "candidates holds the same figures."
            }
            @for tick in axis.ticks() {
                line.grid x1=(px(axis.x(tick))) x2=(px(axis.x(tick))) y1=(px(TOP)) y2=(px(floor)) {}
                text.tick x=(px(axis.x(tick))) y=(px(floor + 18.0)) text-anchor="middle" { (tick_text(tick)) "×" }
            }
            line.base x1=(px(axis.x(1.0))) x2=(px(axis.x(1.0))) y1=(px(TOP - 6.0)) y2=(px(floor)) {}
            text.tick x=(px(axis.x(1.0))) y=(px(TOP - 11.0)) text-anchor="middle" { "baseline" }
            @if let Some(goal) = goal {
                line.goal x1=(px(axis.x(goal))) x2=(px(axis.x(goal))) y1=(px(TOP - 6.0)) y2=(px(floor)) {}
                @if (axis.x(goal) - axis.x(1.0)).abs() > 70.0 {
                    text.tick x=(px(axis.x(goal))) y=(px(TOP - 11.0)) text-anchor="middle" { "goal" }
                }
            }
            @for (index, bar) in bars.iter().enumerate() {
                @let y = TOP + ROW * (index as f64 + 0.5);
                text.label x=(px(LEFT - 10.0)) y=(px(y + 4.0)) text-anchor="end" { (clean_line(bar.id)) }
                g class=(class(bar.status)) {
                    title {
                        (clean_line(bar.id)) ": " (format!("{:.2}", bar.gain.point)) " times, interval "
                        (format!("{:.2}", bar.gain.lower)) " to " (format!("{:.2}", bar.gain.upper)) ", "
                        (bar.status.name())
                    }
                    line x1=(px(axis.x(bar.gain.lower))) x2=(px(axis.x(bar.gain.upper))) y1=(px(y)) y2=(px(y)) {}
                    line x1=(px(axis.x(bar.gain.lower))) x2=(px(axis.x(bar.gain.lower))) y1=(px(y - 5.0)) y2=(px(y + 5.0)) {}
                    line x1=(px(axis.x(bar.gain.upper))) x2=(px(axis.x(bar.gain.upper))) y1=(px(y - 5.0)) y2=(px(y + 5.0)) {}
                    circle cx=(px(axis.x(bar.gain.point))) cy=(px(y)) r="4" {}
                }
            }
        }
    })
}

fn class(status: Status) -> &'static str {
    match status {
        Status::Champion => "bar won",
        Status::Superseded | Status::Confirmed => "bar kept",
        Status::Rejected
        | Status::NoGain
        | Status::NotConfirmed
        | Status::InFlight
        | Status::Screened
        | Status::Demoted
        | Status::Revise
        | Status::Ambiguous
        | Status::Error
        | Status::Unconfirmed => "bar dropped",
    }
}

fn px(value: f64) -> String {
    format!("{value:.1}")
}

fn tick_text(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
