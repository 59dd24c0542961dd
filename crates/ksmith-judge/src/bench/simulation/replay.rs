//! Recorded A/A timings, drawn anew: every arm of a recording runs the same bytes, so any of them may play any part.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::rc::Rc;
use std::time::Duration;

use super::random::Random;
use crate::bench::{Arm, CaseId, Fault, Host, Load, Role, Stage, StageRecord, TimedCall};

/// Judge's work between two recorded calls, in nanoseconds; only the time limit of a stage depends on it.
const BETWEEN_NS: f64 = 2e4;

/// One recorded lane: the time of each call and whether it was preempted; the first call warms up.
type Lane = Vec<(u64, bool)>;

/// Recorded process sets of one kernel: for each set and arm the calls in order of time, lane by lane.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// What ran, and where.
    pub name: String,
    /// Calls of a lane, without its warm-up call.
    pub lane_calls: u32,
    /// Sets, arms, lanes.
    sets: Vec<Vec<Vec<Lane>>>,
}

/// Why a recording cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    /// A line is not what it should be.
    #[error("line {line}: {what}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// There are too few sets or arms to draw from.
    #[error("at least 10 sets of 3 arms are needed")]
    TooSmall,
}

impl Recording {
    /// Takes the first workload of stages in which every arm ran the same bytes.
    pub fn from_stages<'a>(name: &str, records: impl IntoIterator<Item = &'a StageRecord>) -> Self {
        let records: Vec<&StageRecord> = records.into_iter().collect();
        let sets = records.iter().flat_map(|record| &record.sets).map(|set| {
            let roles: BTreeSet<Role> = set.lanes.iter().map(|lane| lane.role).collect();
            let lanes_of = |role| {
                let lanes = set
                    .lanes
                    .iter()
                    .filter(move |lane| lane.role == role && lane.workload == 0);
                lanes.map(|lane| {
                    let timed = lane
                        .ns
                        .iter()
                        .enumerate()
                        .map(|(at, ns)| (*ns, lane.preempted >> at & 1 == 1));
                    std::iter::once((lane.warmup_ns, false)).chain(timed).collect()
                })
            };
            roles.into_iter().map(|role| lanes_of(role).collect()).collect()
        });
        Self {
            name: name.to_owned(),
            lane_calls: records
                .iter()
                .find_map(|record| record.lane_calls.first())
                .copied()
                .unwrap_or(1),
            sets: sets.collect(),
        }
    }

    /// The text form: a header, then one line for each set and arm; lanes apart by `;`, preempted calls marked `!`.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{} calls={}\n",
            self.name.replace(char::is_whitespace, "-"),
            self.lane_calls
        );
        for (number, set) in self.sets.iter().enumerate() {
            for lanes in set {
                let lanes: Vec<String> = lanes
                    .iter()
                    .map(|lane| {
                        let calls = lane
                            .iter()
                            .map(|(ns, lost)| format!("{ns}{}", if *lost { "!" } else { "" }));
                        calls.collect::<Vec<_>>().join(" ")
                    })
                    .collect();
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{number}:{}", lanes.join(";"));
            }
        }
        text
    }

    /// Reads the text form.
    pub fn from_text(text: &str) -> Result<Self, RecordingError> {
        let fail = |line, what| RecordingError::Line { line, what };
        let mut lines = text.lines().enumerate();
        let (_, header) = lines.next().ok_or(fail(1, "no header"))?;
        let (name, calls) = header
            .split_once(" calls=")
            .ok_or(fail(1, "no header `NAME calls=N`"))?;
        let lane_calls = calls.trim().parse().map_err(|_| fail(1, "calls is no number"))?;
        let mut sets: Vec<Vec<Vec<Lane>>> = Vec::new();
        for (at, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let (set, lanes) = line.split_once(':').ok_or(fail(at + 1, "no set number"))?;
            let set: usize = set.parse().map_err(|_| fail(at + 1, "the set is no number"))?;
            if set > sets.len() {
                return Err(fail(at + 1, "sets are not in order"));
            }
            if set == sets.len() {
                sets.push(Vec::new());
            }
            let call = |text: &str| {
                let ns = text
                    .trim_end_matches('!')
                    .parse()
                    .map_err(|_| fail(at + 1, "a time is no number"))?;
                Ok((ns, text.ends_with('!')))
            };
            let lane = |text: &str| text.split_whitespace().map(call).collect::<Result<Vec<_>, _>>();
            let lanes = lanes.split(';').map(lane).collect::<Result<Vec<_>, _>>()?;
            if lanes.iter().any(Vec::is_empty) {
                return Err(fail(at + 1, "a lane is empty"));
            }
            sets[set].push(lanes);
        }
        if sets.len() < 10 || sets.iter().any(|arms| arms.len() < 3) {
            return Err(RecordingError::TooSmall);
        }
        Ok(Self {
            name: name.to_owned(),
            lane_calls,
            sets,
        })
    }

    /// Number of recorded process sets.
    pub fn sets(&self) -> usize {
        self.sets.len()
    }

    /// Recorded rounds of a set.
    pub fn rounds(&self) -> usize {
        self.sets.iter().flatten().map(Vec::len).min().unwrap_or(0)
    }

    /// The least recorded time of a call in nanoseconds.
    pub fn least_ns(&self) -> u64 {
        self.sets
            .iter()
            .flatten()
            .flatten()
            .flatten()
            .map(|(ns, _)| *ns)
            .min()
            .unwrap_or(0)
    }
}

/// A host that replays recorded sets: drawn without replacement until none is left, arms permuted, rounds rotated.
pub struct ReplayHost<'a> {
    recording: &'a Recording,
    saved: f64,
    random: Random,
    /// Sets that this judgement has not drawn yet.
    left: Vec<usize>,
    /// The set in use, its arms in the order in which parts take them, and the round it starts with.
    drawn: Option<(u32, usize, Vec<usize>, usize)>,
    now_ns: Rc<RefCell<f64>>,
}

impl<'a> ReplayHost<'a> {
    /// Replays `recording` with a candidate that saves `saved` of each of its calls.
    pub fn new(recording: &'a Recording, saved: f64, seed: u64) -> Self {
        Self {
            recording,
            saved,
            random: Random::new(seed, 12),
            left: Vec::new(),
            drawn: None,
            now_ns: Rc::new(RefCell::new(0.0)),
        }
    }

    fn draw(&mut self, set: u32) -> (usize, Vec<usize>, usize) {
        if let Some((drawn, number, arms, round)) = &self.drawn
            && *drawn == set
        {
            return (*number, arms.clone(), *round);
        }
        if self.left.is_empty() {
            self.left = (0..self.recording.sets.len()).collect();
        }
        let number = self.left.swap_remove(self.random.below(self.left.len()));
        let mut arms: Vec<usize> = (0..self.recording.sets[number].len()).collect();
        for last in (1..arms.len()).rev() {
            arms.swap(last, self.random.below(last + 1));
        }
        let round = self.random.below(self.recording.rounds());
        self.drawn = Some((set, number, arms.clone(), round));
        (number, arms, round)
    }
}

/// One replayed worker.
pub struct ReplayArm<'a> {
    lanes: &'a [Lane],
    factor: f64,
    round: usize,
    call: usize,
    now_ns: Rc<RefCell<f64>>,
}

impl Arm for ReplayArm<'_> {
    fn call(&mut self, _case: CaseId) -> Result<TimedCall, Fault> {
        let lane = self.lanes.get(self.round % self.lanes.len().max(1));
        let (ns, preempted) = lane
            .and_then(|lane| lane.get(self.call % lane.len()))
            .copied()
            .ok_or_else(|| Fault::Judge("the recording has an empty lane".to_owned()))?;
        self.call += 1;
        let ns = ns as f64 * self.factor;
        *self.now_ns.borrow_mut() += ns + BETWEEN_NS;
        Ok(TimedCall {
            ns: ns as u64,
            judge_preempted: false,
            worker_preempted: preempted,
        })
    }

    fn wake(&mut self) -> Result<(), Fault> {
        self.call = 0;
        Ok(())
    }

    fn park(&mut self) -> Result<(), Fault> {
        self.round += 1;
        Ok(())
    }
}

impl<'a> Host for ReplayHost<'a> {
    type Arm = ReplayArm<'a>;

    fn begin(&mut self, _stage: Stage) -> Result<(), Fault> {
        self.drawn = None;
        Ok(())
    }

    fn start(&mut self, role: Role, set: u32) -> Result<ReplayArm<'a>, Fault> {
        let (number, arms, round) = self.draw(set);
        *self.now_ns.borrow_mut() += 5e6;
        let part = match role {
            Role::Candidate => 0,
            Role::Champion => 1,
            Role::Copy => 2,
            Role::Baseline | Role::FlagControl => 3,
        };
        let lanes = arms
            .get(part)
            .and_then(|arm| self.recording.sets[number].get(*arm));
        Ok(ReplayArm {
            lanes: lanes.ok_or_else(|| Fault::Judge("the recording has too few arms".to_owned()))?,
            factor: if role == Role::Candidate {
                1.0 - self.saved
            } else {
                1.0
            },
            round,
            call: 0,
            now_ns: Rc::clone(&self.now_ns),
        })
    }

    fn quiet(&mut self, _limit: Duration) -> Load {
        Load {
            other_cpus: None,
            waited_s: 0.0,
            quiet: true,
        }
    }

    fn now(&mut self) -> Duration {
        Duration::from_nanos(*self.now_ns.borrow() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_reads_back_as_it_was() {
        let lanes = |base: u64| {
            vec![
                vec![(base + 50, false), (base, false), (base + 3, true)],
                vec![(base, false); 3],
            ]
        };
        let recording = Recording {
            name: "twenty".to_owned(),
            lane_calls: 2,
            sets: (0..10)
                .map(|set| vec![lanes(100 + set), lanes(200), lanes(300)])
                .collect(),
        };
        assert_eq!(Recording::from_text(&recording.to_text()), Ok(recording));
    }

    #[test]
    fn a_damaged_recording_names_its_line() {
        let fail = |text| Recording::from_text(text).unwrap_err().to_string();
        assert_eq!(fail("twenty\n"), "line 1: no header `NAME calls=N`");
        assert_eq!(fail("a calls=2\n0:1 2 x\n"), "line 2: a time is no number");
        assert_eq!(fail("a calls=2\n1:1 2 3\n"), "line 2: sets are not in order");
        assert_eq!(
            fail("a calls=2\n0:1 2 3\n"),
            "at least 10 sets of 3 arms are needed"
        );
    }
}
