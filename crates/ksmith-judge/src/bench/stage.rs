//! One stage: process sets until the count that the A/A spread asks for, looks at fixed counts, figures.

use super::order::Order;
use super::pairs::{Pairs, pairs, plain_medians, unpreempted_share};
use super::set::{Calibration, SetFault, run_set};
use super::{
    BaselineArm, Comparison, Fault, Finding, FlagControlArm, Host, Limit, Look, OrderSeed, Part, Plan, Role,
    SetRecord, Stage, StageRecord, StageReport,
};
use crate::statistics::{
    CONTROL_ALPHA, Control, Interval, LOOKS, MIN_SETS, OtherMeasures, Power, claim_floor, confirmation_alpha,
    contradiction, control, median_bounds, rejecting_alpha, required_pairs, required_pairs_from, spread,
};

/// Error of each end of the intervals that are shown beside a claim.
const SHOWN_ALPHA: f64 = 0.01;

/// How often the A/A spread may ask for more pairs than planned before.
const EXTENSIONS: u32 = 3;

/// More pairs are taken only when at least this factor is missing.
const EXTENSION_STEP: f64 = 1.15;

/// So much is added to the plan while equal kernels do not read as equal.
const UNSOUND_STEP: f64 = 1.5;

/// How a stage ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StageEnd {
    /// The lower bound cleared the floor at the last look.
    Above,
    /// Neither; why no more pairs were taken.
    Undecided(Limit),
    /// What else it found.
    Found(Finding),
}

/// The arms of a plan.
pub(crate) fn roles(plan: &Plan) -> Vec<Role> {
    let mut roles = vec![Role::Candidate, Role::Champion, Role::Copy];
    match plan.baseline {
        BaselineArm::Own => roles.push(Role::Baseline),
        BaselineArm::IsChampion => {}
    }
    match plan.flag_control {
        FlagControlArm::Own => roles.push(Role::FlagControl),
        FlagControlArm::Absent | FlagControlArm::IsChampion | FlagControlArm::IsBaseline => {}
    }
    roles
}

fn baseline_role(plan: &Plan) -> Role {
    match plan.baseline {
        BaselineArm::IsChampion => Role::Champion,
        BaselineArm::Own => Role::Baseline,
    }
}

fn flag_control_role(plan: &Plan) -> Option<Role> {
    match plan.flag_control {
        FlagControlArm::Absent => None,
        FlagControlArm::IsChampion => Some(Role::Champion),
        FlagControlArm::IsBaseline => Some(baseline_role(plan)),
        FlagControlArm::Own => Some(Role::FlagControl),
    }
}

/// A stage in progress.
struct Running<'a> {
    plan: &'a Plan,
    stage: Stage,
    alpha: f64,
    planned: f64,
    extensions: u32,
    looks: Vec<Look>,
    sets: Vec<SetRecord>,
    calibration: Option<Calibration>,
}

/// Runs one stage. `planned` is the number of pairs to begin with, at least the plan's least number.
pub(crate) fn run_stage<H: Host>(
    host: &mut H,
    plan: &Plan,
    stage: Stage,
    seed: OrderSeed,
    planned: f64,
) -> (StageReport, StageEnd) {
    let settings = &plan.settings;
    let alpha = match stage {
        Stage::Decision => settings.alpha,
        Stage::Confirmation => confirmation_alpha(settings.confirmation),
    };
    let mut running = Running {
        plan,
        stage,
        alpha,
        planned: planned.max(f64::from(settings.min_pairs)),
        extensions: 0,
        looks: Vec::new(),
        sets: Vec::new(),
        calibration: None,
    };
    let began = host.begin(stage);
    let load = host.quiet(std::time::Duration::from_secs_f64(
        settings.quiet_seconds.clamp(0.0, 600.0),
    ));
    let start = host.now();
    let end = match began {
        Ok(()) => running.run(host, &mut Order::new(seed, stage)),
        Err(fault) => StageEnd::Found(finding(SetFault { role: None, fault })),
    };
    let seconds = host.now().saturating_sub(start).as_secs_f64();
    host.end(stage);
    let record = StageRecord {
        stage,
        load,
        seconds,
        lane_calls: running
            .calibration
            .map(|calibration| calibration.calls)
            .unwrap_or_default(),
        sets: running.sets,
    };
    let report = report(plan, record, alpha, running.planned, running.looks);
    let end = check(&report, plan, end);
    (report, end)
}

impl Running<'_> {
    fn run<H: Host>(&mut self, host: &mut H, order: &mut Order) -> StageEnd {
        let roles = roles(self.plan);
        let start = host.now();
        loop {
            let set = u32::try_from(self.sets.len()).unwrap_or(u32::MAX);
            let mut record = SetRecord {
                set,
                started: Vec::new(),
                lanes: Vec::new(),
                clocks: Vec::new(),
                device: Vec::new(),
            };
            let ended = run_set(host, self.plan, &roles, order, &mut self.calibration, &mut record);
            self.sets.push(record);
            if let Err(fault) = ended {
                return StageEnd::Found(finding(fault));
            }
            let elapsed = host.now().saturating_sub(start).as_secs_f64();
            let per_set = elapsed / self.sets.len() as f64;
            let out_of_time = elapsed + per_set > self.plan.settings.stage_seconds;
            if let Some(end) = self.after_set(out_of_time) {
                return end;
            }
        }
    }

    /// Looks where a look is due. Whether one is due never depends on the candidate's times.
    fn after_set(&mut self, out_of_time: bool) -> Option<StageEnd> {
        let settings = &self.plan.settings;
        let sets = self.sets.len();
        let due = match self.looks.len() {
            0 if self.stage == Stage::Decision => sets >= MIN_SETS,
            1 if self.stage == Stage::Decision => self.share() >= 0.6,
            _ => false,
        };
        let full = self.share() >= 1.0 && sets >= settings.min_sets.max(MIN_SETS as u32) as usize;
        // Without pairs the count never fills: busy machines end here.
        let starved = sets >= MIN_SETS && unpreempted_share(&self.sets, None) < settings.unpreempted;
        if out_of_time || starved {
            return Some(self.last_look(Limit::Time));
        }
        if !due && !full {
            return None;
        }
        let control = pairs(self.plan, &self.sets, Role::Champion, Role::Copy);
        let wanted = self.wanted(&control);
        if self.looks.is_empty() && self.stage == Stage::Decision {
            self.planned = self.planned.max(wanted);
        } else if full && self.extensions < EXTENSIONS {
            let wanted = match control_state(self.plan, &control) {
                Control::Sound(_) | Control::Empty => wanted,
                // Off by chance in one of a hundred stages: more pairs tell chance from noise.
                Control::OffZero(_) | Control::TooWide(_) => wanted.max(self.planned * UNSOUND_STEP),
            };
            if wanted > self.planned * EXTENSION_STEP {
                self.extensions += 1;
                self.planned = wanted;
                return None;
            }
        }
        if full && self.share() >= 1.0 {
            return Some(self.last_look(Limit::Pairs));
        }
        let look = self.look(rejecting_alpha(self.alpha, self.looks.len()))?;
        let below = look.gain.upper < settings.floor.ln_1p();
        let off = matches!(control_state(self.plan, &control), Control::OffZero(_));
        (below && !off).then_some(StageEnd::Found(Finding::BelowFloor))
    }

    /// Pairs taken, as a share of those planned. Counted by rounds, so that no arm's times can stretch a stage.
    fn share(&self) -> f64 {
        pairs(self.plan, &self.sets, Role::Champion, Role::Copy).count() as f64 / self.planned
    }

    fn wanted(&self, control: &Pairs) -> f64 {
        let settings = &self.plan.settings;
        let (gain, floor) = (settings.target_gain.ln_1p(), settings.floor.ln_1p());
        let power = Power {
            gain,
            floor,
            alpha: self.alpha,
            miss: settings.miss,
        };
        let pooled: Vec<f64> = control.all.iter().flatten().copied().collect();
        let by_spread = spread(&pooled).map_or(0.0, |spread| required_pairs(spread, power));
        // Five set medians say too little about their own scatter.
        let sets = settings.min_sets.max(MIN_SETS as u32) as usize;
        if control.all.len() < sets {
            by_spread
        } else {
            by_spread.max(required_pairs_from(&control.all, power))
        }
    }

    fn look(&mut self, alpha: f64) -> Option<Look> {
        let candidate = pairs(self.plan, &self.sets, Role::Candidate, Role::Champion);
        let control = pairs(self.plan, &self.sets, Role::Champion, Role::Copy);
        let pooled: Vec<f64> = control.all.iter().flatten().copied().collect();
        let look = Look {
            pairs: u32::try_from(candidate.count()).unwrap_or(u32::MAX),
            sets: u32::try_from(self.sets.len()).unwrap_or(u32::MAX),
            control_spread: spread(&pooled).unwrap_or(0.0),
            gain: median_bounds(&candidate.all, alpha)?,
        };
        self.looks.push(look);
        Some(look)
    }

    fn last_look(&mut self, limit: Limit) -> StageEnd {
        let rejecting = match self.stage {
            Stage::Decision => rejecting_alpha(self.alpha, LOOKS - 1),
            Stage::Confirmation => self.alpha,
        };
        let candidate = pairs(self.plan, &self.sets, Role::Candidate, Role::Champion);
        let upper = median_bounds(&candidate.all, rejecting).map_or(f64::INFINITY, |bounds| bounds.upper);
        let Some(look) = self.look(self.alpha) else {
            return StageEnd::Undecided(limit);
        };
        let control = pairs(self.plan, &self.sets, Role::Champion, Role::Copy);
        let floor = claim_floor(
            self.plan.settings.floor,
            median_bounds(&control.all, CONTROL_ALPHA),
        );
        if look.gain.lower > floor {
            StageEnd::Above
        // A floor raised by noise is no reason to reject: that noise might hide the gain.
        } else if upper < self.plan.settings.floor.ln_1p() {
            StageEnd::Found(Finding::BelowFloor)
        } else {
            StageEnd::Undecided(limit)
        }
    }
}

fn control_state(plan: &Plan, found: &Pairs) -> Control {
    control(&found.all, plan.settings.noise_limit)
}

fn finding(fault: SetFault) -> Finding {
    match (fault.role, fault.fault) {
        (Some(role), Fault::Arm { code, evidence }) => Finding::Fault { role, code, evidence },
        (_, fault) => Finding::Broken {
            what: fault.to_string(),
        },
    }
}

/// What overrides an end: a busy machine, an unsound control, a contradiction.
fn check(report: &StageReport, plan: &Plan, end: StageEnd) -> StageEnd {
    let settings = &plan.settings;
    match end {
        StageEnd::Found(Finding::Fault { .. } | Finding::Broken { .. }) => return end,
        StageEnd::Above | StageEnd::Undecided(_) | StageEnd::Found(_) => {}
    }
    if report.unpreempted < settings.unpreempted {
        return StageEnd::Found(Finding::MachineBusy {
            unpreempted: report.unpreempted,
        });
    }
    let sets = &report.record.sets;
    let state = control_state(plan, &pairs(plan, sets, Role::Champion, Role::Copy));
    let unsound = match state {
        Control::Sound(_) => None,
        _ if end == StageEnd::Above && dwarfs(report, state) => None,
        Control::OffZero(interval) => Some(format!(
            "equal kernels differ by {:.2} % ({:.2} to {:.2} %)",
            percent(interval.point),
            percent(interval.lower),
            percent(interval.upper)
        )),
        // The candidate's own bound counts that noise already, and still lies below the floor.
        Control::TooWide(_) if end == StageEnd::Found(Finding::BelowFloor) => None,
        Control::TooWide(interval) if !interval.half_width().is_finite() => {
            Some("too few pairs of equal kernels were left to bound the noise".to_owned())
        }
        Control::TooWide(interval) => Some(format!(
            "equal kernels may differ by {:.2} % either way",
            percent(interval.half_width())
        )),
        Control::Empty => Some("no pair of equal kernels was left".to_owned()),
    };
    match (end, unsound) {
        (_, Some(what)) => StageEnd::Found(Finding::Noisy { what }),
        (StageEnd::Above, None) => match contradicted(report, plan) {
            Some(what) => StageEnd::Found(Finding::Contradiction { what }),
            None => StageEnd::Above,
        },
        (end, None) => end,
    }
}

/// Reports whether the gain on every workload, over champion and baseline, is far beyond what the control shows.
fn dwarfs(report: &StageReport, control: Control) -> bool {
    let far = |comparison: &Comparison| {
        !comparison.workloads.is_empty()
            && comparison
                .workloads
                .iter()
                .all(|part| control.dwarfed_by(part.interval.lower))
    };
    report.over_champion.as_ref().is_some_and(far) && report.over_baseline.as_ref().is_none_or(far)
}

fn percent(log_ratio: f64) -> f64 {
    log_ratio.exp_m1() * 100.0
}

fn contradicted(report: &StageReport, plan: &Plan) -> Option<String> {
    let sets = &report.record.sets;
    let found = pairs(plan, sets, Role::Candidate, Role::Champion);
    let share = |set: &SetRecord, role| unpreempted_share([set], Some(role));
    let dropped: Vec<f64> = sets
        .iter()
        .map(|set| share(set, Role::Champion) - share(set, Role::Candidate))
        .collect();
    let claimed = report.looks.last()?.gain.lower;
    let other = OtherMeasures {
        medians: &found.medians,
        sums: &found.sums,
        dropped: &dropped,
    };
    contradiction(claimed, report.floor?, &other)
}

fn report(plan: &Plan, record: StageRecord, alpha: f64, planned: f64, looks: Vec<Look>) -> StageReport {
    let sets = &record.sets;
    let copies = pairs(plan, sets, Role::Champion, Role::Copy);
    let control = median_bounds(&copies.all, CONTROL_ALPHA);
    let reach = control_state(plan, &copies).reach().unwrap_or(0.0);
    let over = |against: Role, lower_alpha: f64| {
        let mut found = comparison(plan, sets, against, lower_alpha)?;
        found.all = found.all.widened(reach);
        Some(found)
    };
    StageReport {
        stage: record.stage,
        alpha,
        planned_pairs: planned.ceil().min(f64::from(u32::MAX)) as u32,
        looks,
        unpreempted: unpreempted_share(sets, None),
        control,
        floor: control
            .map(|interval| claim_floor(plan.settings.floor, Some(interval)))
            .filter(|floor| floor.is_finite()),
        over_champion: over(Role::Champion, alpha.min(SHOWN_ALPHA)),
        over_baseline: over(baseline_role(plan), SHOWN_ALPHA),
        over_flag_control: flag_control_role(plan).and_then(|role| over(role, SHOWN_ALPHA)),
        record,
    }
}

fn comparison(plan: &Plan, sets: &[SetRecord], against: Role, alpha: f64) -> Option<Comparison> {
    let found = pairs(plan, sets, Role::Candidate, against);
    let part = |workload: usize, distribution: Option<usize>, sets: &Vec<Vec<f64>>| {
        Some(Part {
            workload: workload as u32,
            distribution: distribution.map(|index| index as u32),
            pairs: sets.iter().map(Vec::len).sum::<usize>() as u32,
            interval: median_bounds(sets, SHOWN_ALPHA)?,
            sets: sets.clone(),
        })
    };
    let all: Interval = median_bounds(&found.all, alpha)?;
    Some(Comparison {
        against,
        all,
        workloads: found
            .workloads
            .iter()
            .enumerate()
            .filter_map(|(at, sets)| part(at, None, sets))
            .collect(),
        distributions: found
            .distributions
            .iter()
            .enumerate()
            .flat_map(|(at, kinds)| kinds.iter().enumerate().map(move |(kind, sets)| (at, kind, sets)))
            .filter_map(|(at, kind, sets)| part(at, Some(kind), sets))
            .collect(),
        candidate_median_ns: plain_medians(plan, sets, Role::Candidate),
        other_median_ns: plain_medians(plan, sets, against),
    })
}

/// Pairs that a confirmation needs, from the spread that the decision's control saw.
pub(crate) fn confirmation_pairs(plan: &Plan, decision: &StageReport) -> f64 {
    let settings = &plan.settings;
    let spread = decision.looks.last().map_or(0.0, |look| look.control_spread);
    let power = Power {
        gain: settings.target_gain.ln_1p(),
        floor: settings.floor.ln_1p(),
        alpha: confirmation_alpha(settings.confirmation),
        miss: settings.miss,
    };
    required_pairs(spread, power)
}
