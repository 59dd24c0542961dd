//! From lanes to pair values: the log-ratio of two arms' lanes of the same round and workload, on the same cases.

use std::collections::BTreeMap;

use super::{LaneRecord, Plan, Role, SetRecord};
use crate::statistics::{LaneValue, lane_value};

/// The pair values of one comparison, grouped by process set.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Pairs {
    /// Lower quartiles, all workloads weighted: one value for each complete round.
    pub(crate) all: Vec<Vec<f64>>,
    /// Lane medians, likewise.
    pub(crate) medians: Vec<Vec<f64>>,
    /// Log-ratio of plain sums of unpreempted calls, one value for each set; workloads weighted.
    pub(crate) sums: Vec<f64>,
    /// Lower quartiles by workload.
    pub(crate) workloads: Vec<Vec<Vec<f64>>>,
    /// Lower quartiles by workload and distribution.
    pub(crate) distributions: Vec<Vec<Vec<Vec<f64>>>>,
}

/// The lanes of one arm in one set, by round and workload.
type Lanes<'a> = BTreeMap<(u32, u32), &'a LaneRecord>;

fn lanes_of(set: &SetRecord, role: Role) -> Lanes<'_> {
    set.lanes
        .iter()
        .filter(|lane| lane.role == role)
        .map(|lane| ((lane.round, lane.workload), lane))
        .collect()
}

fn value(lane: &LaneRecord) -> Option<LaneValue> {
    lane_value(lane.ns.len(), lane.unpreempted())
}

/// Pairs `first` with `second`: log-ratios second over first, so that above zero `first` is faster.
pub(crate) fn pairs(plan: &Plan, sets: &[SetRecord], first: Role, second: Role) -> Pairs {
    let weights = weights(plan);
    let mut pairs = Pairs {
        workloads: vec![Vec::new(); weights.len()],
        distributions: plan
            .workloads
            .iter()
            .map(|w| vec![Vec::new(); w.distributions.len()])
            .collect(),
        ..Pairs::default()
    };
    for set in sets {
        pairs.add(set, &weights, first, second);
    }
    pairs
}

/// The workloads' weights, of sum 1.
fn weights(plan: &Plan) -> Vec<f64> {
    let total: f64 = plan.workloads.iter().map(|workload| workload.weight).sum();
    plan.workloads
        .iter()
        .map(|workload| workload.weight / total)
        .collect()
}

impl Pairs {
    fn add(&mut self, set: &SetRecord, weights: &[f64], first: Role, second: Role) {
        let (left, right) = (lanes_of(set, first), lanes_of(set, second));
        let mut rounds: BTreeMap<u32, (usize, f64, f64)> = BTreeMap::new();
        let mut sums = vec![(0.0_f64, 0.0_f64); weights.len()];
        for list in &mut self.workloads {
            list.push(Vec::new());
        }
        for list in self.distributions.iter_mut().flatten() {
            list.push(Vec::new());
        }
        for (key, left) in &left {
            let Some(right) = right.get(key) else { continue };
            let workload = left.workload as usize;
            if let Some(sum) = sums.get_mut(workload) {
                sum.0 += left.unpreempted().map(|ns| ns as f64).sum::<f64>()
                    / left.unpreempted().count().max(1) as f64;
                sum.1 += right.unpreempted().map(|ns| ns as f64).sum::<f64>()
                    / right.unpreempted().count().max(1) as f64;
            }
            let (Some(fast), Some(slow)) = (value(left), value(right)) else {
                continue;
            };
            let gain = slow.quartile - fast.quartile;
            if let Some(pairs) = self.workloads.get_mut(workload).and_then(|list| list.last_mut()) {
                pairs.push(gain);
            }
            let distribution = left.distribution as usize;
            let list = self
                .distributions
                .get_mut(workload)
                .and_then(|kinds| kinds.get_mut(distribution));
            if let Some(pairs) = list.and_then(|list| list.last_mut()) {
                pairs.push(gain);
            }
            let weight = weights.get(workload).copied().unwrap_or(0.0);
            let round = rounds.entry(left.round).or_default();
            round.0 += 1;
            round.1 += weight * gain;
            round.2 += weight * (slow.median - fast.median);
        }
        // A round counts when every workload has its pair: a part of the weights would be another quantity.
        let complete = || rounds.values().filter(|(count, ..)| *count == weights.len());
        self.all.push(complete().map(|(_, gain, _)| *gain).collect());
        self.medians.push(complete().map(|(.., gain)| *gain).collect());
        let sum: f64 = sums
            .iter()
            .zip(weights)
            .map(|((left, right), weight)| weight * (right / left).ln())
            .sum();
        if sum.is_finite() {
            self.sums.push(sum);
        }
    }

    /// Number of complete rounds.
    pub(crate) fn count(&self) -> usize {
        self.all.iter().map(Vec::len).sum()
    }
}

/// Share of all timed calls that ran unpreempted; of one arm, or of all.
pub(crate) fn unpreempted_share<'a>(
    sets: impl IntoIterator<Item = &'a SetRecord>,
    role: Option<Role>,
) -> f64 {
    let (mut all, mut clean) = (0_usize, 0_usize);
    let lanes = sets.into_iter().flat_map(|set| &set.lanes);
    for lane in lanes.filter(|lane| role.is_none_or(|role| role == lane.role)) {
        all += lane.ns.len();
        clean += lane.unpreempted().count();
    }
    if all == 0 { 0.0 } else { clean as f64 / all as f64 }
}

/// Plain medians of one arm's unpreempted calls in nanoseconds, by workload.
pub(crate) fn plain_medians(plan: &Plan, sets: &[SetRecord], role: Role) -> Vec<f64> {
    let of = |workload: usize| {
        let lanes = sets.iter().flat_map(|set| &set.lanes);
        let times: Vec<f64> = lanes
            .filter(|lane| lane.role == role && lane.workload as usize == workload)
            .flat_map(|lane| lane.unpreempted().map(|ns| ns as f64))
            .collect();
        crate::statistics::median(&times).unwrap_or(0.0)
    };
    (0..plan.workloads.len()).map(of).collect()
}
