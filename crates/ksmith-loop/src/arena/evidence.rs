//! Turns a verdict and its measurement into records.

use ksmith_judge::bench::{Comparison, Report, Role, Stage, StageReport};
use ksmith_ledger::{
    Arm, ArmTime, BenchStage, Benched, Checked, Entry, FloorLine, Gate, GateResult, ObjectError, ObjectStore,
    Scope, Speedup, Tested, Verdict, WorkloadGain,
};

use super::Evidence;

/// Records of the steps that one full pass went through.
pub(super) fn of(
    id: &str,
    champion: Option<&str>,
    mut verdict: Verdict,
    report: Option<&Report>,
    workloads: &[(String, f64)],
) -> Evidence {
    verdict.speedup = closed(verdict.speedup);
    verdict.over_baseline = closed(verdict.over_baseline);
    verdict.over_flag_control = closed(verdict.over_flag_control);
    let mut records = Vec::new();
    let gates = |from: Gate, to: Gate| -> Vec<GateResult> {
        verdict
            .gates
            .iter()
            .filter(|gate| gate.name >= from && gate.name <= to)
            .cloned()
            .collect()
    };
    let checked = gates(Gate::Policy, Gate::Static);
    if !checked.is_empty() {
        records.push(Entry::Checked(Checked {
            candidate: id.to_owned(),
            code: failed(&checked),
            command: Vec::new(),
            log: None,
            disassembly: None,
            findings: Vec::new(),
            ms: total(&checked),
            gates: checked,
        }));
    }
    let tested = gates(Gate::Smoke, Gate::Sanitize);
    if !tested.is_empty() {
        records.push(Entry::Tested(Tested {
            candidate: id.to_owned(),
            code: failed(&tested),
            ms: total(&tested),
            gates: tested,
        }));
    }
    let benched = gates(Gate::Bench, Gate::Regression);
    let mut alpha = 0.0;
    if let Some(report) = report.filter(|_| !benched.is_empty()) {
        let stages = [Some(&report.decision), report.confirmation.as_ref()];
        for stage in stages.into_iter().flatten() {
            alpha = stage.alpha;
            records.push(Entry::Benched(bench(
                id,
                champion,
                stage,
                &benched,
                workloads,
                verdict.scope,
            )));
        }
    }
    Evidence {
        verdict,
        records,
        alpha,
    }
}

/// Puts the raw samples of each stage into the store and names them in its record, so that anybody can redo the
/// statistics.
pub(super) fn keep_samples(
    records: &mut [Entry],
    report: Option<&Report>,
    objects: &ObjectStore,
) -> Result<(), ObjectError> {
    let stages = report
        .into_iter()
        .flat_map(|report| std::iter::once(&report.decision).chain(&report.confirmation));
    let benched = records.iter_mut().filter_map(|record| match record {
        Entry::Benched(benched) => Some(benched),
        _ => None,
    });
    for (benched, stage) in benched.zip(stages) {
        let bytes = serde_json::to_vec(&stage.record).unwrap_or_default();
        benched.samples = Some(objects.put(&bytes)?);
    }
    Ok(())
}

/// A measurement of which only the gates are known.
pub(super) fn bench_of_gates(id: &str, stage: BenchStage, verdict: &Verdict) -> Benched {
    Benched {
        candidate: id.to_owned(),
        stage,
        champion: None,
        pairs: 0,
        sets: 0,
        over_champion: verdict.speedup,
        over_baseline: verdict.over_baseline,
        over_flag_control: verdict.over_flag_control,
        control: None,
        confidence: 0.0,
        workloads: Vec::new(),
        times: Vec::new(),
        floor: Vec::new(),
        gates: verdict.gates.clone(),
        code: None,
        samples: None,
        conditions: serde_json::Value::Null,
        ms: total(&verdict.gates),
    }
}

/// What a writer may learn of a failure: the evidence that the judge itself made public.
pub(crate) fn lesson(verdict: &Verdict) -> String {
    let failed = verdict
        .gates
        .iter()
        .find(|gate| gate.code.as_deref() == Some(verdict.code.as_str()));
    match failed.map(|gate| &gate.evidence) {
        None | Some(serde_json::Value::Null) => verdict.code.clone(),
        Some(serde_json::Value::String(text)) => format!("{}: {text}", verdict.code),
        Some(evidence) => format!("{}: {evidence}", verdict.code),
    }
}

fn failed(gates: &[GateResult]) -> Option<String> {
    gates
        .iter()
        .find(|gate| {
            matches!(
                gate.result,
                ksmith_ledger::GateOutcome::Fail | ksmith_ledger::GateOutcome::Error
            )
        })
        .and_then(|gate| gate.code.clone())
}

fn total(gates: &[GateResult]) -> f64 {
    gates.iter().map(|gate| gate.ms).sum()
}

fn bench(
    id: &str,
    champion: Option<&str>,
    stage: &StageReport,
    gates: &[GateResult],
    workloads: &[(String, f64)],
    scope: Scope,
) -> Benched {
    let look = stage.looks.last();
    let name = |index: usize| {
        workloads
            .get(index)
            .map_or_else(|| format!("hidden-{index}"), |(name, _)| name.clone())
    };
    let part = |comparison: Option<&Comparison>, index: usize| {
        comparison
            .and_then(|comparison| {
                comparison
                    .workloads
                    .iter()
                    .find(|part| part.workload as usize == index)
            })
            .and_then(|part| speedup(part.interval.point, part.interval.lower, part.interval.upper))
    };
    let times = times(stage, champion.is_none(), scope, &name);
    let count = stage
        .over_champion
        .as_ref()
        .map_or(0, |comparison| comparison.workloads.len());
    Benched {
        candidate: id.to_owned(),
        stage: match stage.stage {
            Stage::Decision => BenchStage::Decision,
            Stage::Confirmation => BenchStage::Confirmation,
        },
        champion: champion.map(str::to_owned),
        pairs: look.map_or(0, |look| u64::from(look.pairs)),
        sets: look.map_or(0, |look| u64::from(look.sets)),
        over_champion: closed(stage.over_champion.as_ref().map(Comparison::speedup)),
        over_baseline: closed(stage.over_baseline.as_ref().map(Comparison::speedup)),
        over_flag_control: closed(stage.over_flag_control.as_ref().map(Comparison::speedup)),
        control: stage
            .control
            .as_ref()
            .and_then(|control| speedup(control.point, control.lower, control.upper)),
        confidence: 1.0 - stage.alpha,
        workloads: (0..count)
            .map(|index| WorkloadGain {
                workload: name(index),
                weight: workloads.get(index).map_or(0.0, |(_, weight)| *weight),
                over_champion: part(stage.over_champion.as_ref(), index),
                over_baseline: part(stage.over_baseline.as_ref(), index),
                over_flag_control: part(stage.over_flag_control.as_ref(), index),
            })
            .collect(),
        floor: floor(gates, &times),
        times,
        code: failed(gates),
        ms: stage.record.seconds * 1e3,
        gates: gates.to_vec(),
        samples: None,
        conditions: serde_json::json!({
            "load": stage.record.load,
            "unpreempted": stage.unpreempted,
            "floor": stage.floor,
            "planned_pairs": stage.planned_pairs,
            // Clocks, temperature, power and throttle reasons around each process set; empty on a CPU.
            "device": stage.record.sets.iter().map(|set| &set.device).collect::<Vec<_>>(),
        }),
    }
}

/// What physics allows, as gate `floor` measured it, beside the candidate's median of this stage. A workload whose
/// shape is secret has no line: its bytes would tell the size.
fn floor(gates: &[GateResult], times: &[ArmTime]) -> Vec<FloorLine> {
    let lines = gates
        .iter()
        .find(|gate| gate.name == Gate::Floor)
        .and_then(|gate| gate.evidence.get("workloads")?.as_array());
    let line = |line: &serde_json::Value| {
        let workload = line.get("workload")?.as_str()?;
        let time = times
            .iter()
            .find(|time| time.workload == workload && time.arm == Arm::Candidate)?;
        Some(FloorLine {
            workload: workload.to_owned(),
            bytes: line.get("bytes")?.as_f64()?,
            flops: line.get("flops")?.as_f64()?,
            probe: line.get("probe")?.as_str()?.to_owned(),
            floor_us: line.get("floor_ns")?.as_f64()? / 1e3,
            candidate_us: time.median_us,
        })
    };
    lines.into_iter().flatten().filter_map(line).collect()
}

/// A gain with both bounds; an open bound is no figure that a record could hold.
pub(super) fn closed(gain: Option<Speedup>) -> Option<Speedup> {
    gain.filter(|gain| gain.lower > 0.0 && gain.upper < 1e6 && gain.point.is_finite())
}

/// The ratio over the champion that the quick pass saw.
pub(super) fn quick_ratio(verdict: &Verdict) -> Option<f64> {
    let slow = verdict.gates.iter().find(|gate| gate.name == Gate::Slow)?;
    let ratios = slow.evidence.get("time_over_champion")?.as_array()?;
    let least = ratios
        .iter()
        .filter_map(serde_json::Value::as_f64)
        .min_by(f64::total_cmp)?;
    (least > 0.0).then(|| 1.0 / least)
}

/// From log-ratios to ratios.
fn speedup(point: f64, lower: f64, upper: f64) -> Option<Speedup> {
    closed(Some(ratios(point, lower, upper)))
}

fn ratios(point: f64, lower: f64, upper: f64) -> Speedup {
    Speedup {
        point: point.exp(),
        lower: lower.exp(),
        upper: upper.exp(),
    }
}

/// Plain times of each arm on each workload, from the unpreempted calls.
fn times(
    stage: &StageReport,
    champion_is_baseline: bool,
    scope: Scope,
    name: &dyn Fn(usize) -> String,
) -> Vec<ArmTime> {
    let mut times = Vec::new();
    let mut keys: Vec<(u32, Role)> = Vec::new();
    for lane in stage.record.sets.iter().flat_map(|set| &set.lanes) {
        if !keys.contains(&(lane.workload, lane.role)) {
            keys.push((lane.workload, lane.role));
        }
    }
    keys.sort();
    for (workload, role) in keys {
        let mut microseconds: Vec<f64> = stage
            .record
            .sets
            .iter()
            .flat_map(|set| &set.lanes)
            .filter(|lane| lane.workload == workload && lane.role == role)
            .flat_map(|lane| lane.unpreempted())
            .map(|ns| ns as f64 / 1e3)
            .collect();
        microseconds.sort_by(f64::total_cmp);
        let arm = match role {
            Role::Candidate => Arm::Candidate,
            Role::Champion if champion_is_baseline => Arm::Baseline,
            Role::Champion => Arm::Champion,
            Role::Copy => Arm::Control,
            Role::Baseline => Arm::Baseline,
            Role::FlagControl => Arm::FlagControl,
        };
        if let Some(time) = summary(&microseconds, name(workload as usize), arm, scope) {
            times.push(time);
        }
    }
    times
}

fn summary(sorted: &[f64], workload: String, arm: Arm, scope: Scope) -> Option<ArmTime> {
    let quantile = |q: f64| {
        sorted
            .get(((sorted.len().saturating_sub(1)) as f64 * q).round() as usize)
            .copied()
    };
    let (clock, lane) = match scope {
        Scope::Cpu => ("wall", "challenge"),
        Scope::Cuda => ("event", "cold-l2"),
    };
    let calls = sorted.len() as f64;
    let mean = sorted.iter().sum::<f64>() / calls.max(1.0);
    let variance = sorted.iter().map(|us| (us - mean).powi(2)).sum::<f64>() / (calls - 1.0).max(1.0);
    Some(ArmTime {
        workload,
        arm,
        name: None,
        clock: clock.into(),
        lane: lane.into(),
        calls: sorted.len() as u64,
        median_us: quantile(0.5)?,
        mean_us: mean,
        std_us: variance.sqrt(),
        min_us: quantile(0.0)?,
        p10_us: quantile(0.1)?,
        p90_us: quantile(0.9)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_of_the_record_is_the_gates_own_and_leaves_hidden_shapes_out() {
        let gate = GateResult {
            name: Gate::Floor,
            result: ksmith_ledger::GateOutcome::Pass,
            code: None,
            ms: 1.0,
            evidence: serde_json::json!({ "workloads": [
                { "workload": "host", "probe": "copy", "least_ns": 2000, "probe_ns": 1500, "floor_ns": 1200.0,
                  "bytes": 524288, "flops": 1e6 },
                { "workload": "hidden neighbour", "over_floor": 1.7 },
            ] }),
        };
        let time = summary(&[2.0, 3.0, 4.0], "host".into(), Arm::Candidate, Scope::Cpu).unwrap();
        let lines = floor(&[gate], &[time]);
        assert_eq!(lines.len(), 1);
        assert_eq!(
            (
                lines[0].workload.as_str(),
                lines[0].probe.as_str(),
                lines[0].bytes
            ),
            ("host", "copy", 524_288.0)
        );
        assert_eq!((lines[0].floor_us, lines[0].candidate_us), (1.2, 3.0));
        assert!(floor(&[], &[]).is_empty());
    }

    #[test]
    fn an_open_bound_is_no_figure() {
        let gain = Speedup {
            point: 1.2,
            lower: 1.1,
            upper: 1.3,
        };
        assert_eq!(closed(Some(gain)), Some(gain));
        assert_eq!(
            closed(Some(Speedup {
                upper: f64::MAX,
                ..gain
            })),
            None
        );
        assert_eq!(speedup(0.1, f64::NEG_INFINITY, f64::INFINITY), None);
    }

    #[test]
    fn a_summary_is_of_the_sorted_calls() {
        let time = summary(
            &[1.0, 2.0, 3.0, 4.0, 100.0],
            "host".into(),
            Arm::Candidate,
            Scope::Cpu,
        )
        .unwrap();
        assert_eq!(
            (time.calls, time.min_us, time.median_us, time.p90_us),
            (5, 1.0, 3.0, 100.0)
        );
        assert_eq!(time.mean_us, 22.0);
        assert_eq!(summary(&[], "host".into(), Arm::Candidate, Scope::Cpu), None);
    }
}
