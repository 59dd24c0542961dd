//! One process set: one worker for each arm, rounds of interleaved lanes.

use std::time::Duration;

use super::order::Order;
use super::plan::CALIBRATION_CALLS;
use super::{Arm, ArmClocks, CaseId, Fault, Host, LaneRecord, Plan, Role, SetRecord, TimedCall};

/// An arm that is so much slower than the champion runs in every second or third round only.
const SLOW_ARM: u64 = 2;
const MOST_STRIDE: u64 = 3;

/// What the first set found out about the lengths of calls; later sets of the stage keep to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Calibration {
    /// Calls of a lane, by workload.
    pub(crate) calls: Vec<u32>,
    /// Every how many rounds an arm runs, by workload and arm.
    strides: Vec<Vec<u64>>,
}

/// A fault and whose it is; `None` means the judge's own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SetFault {
    pub(crate) role: Option<Role>,
    pub(crate) fault: Fault,
}

fn blame(role: Role) -> impl Fn(Fault) -> SetFault {
    move |fault| SetFault {
        role: matches!(fault, Fault::Arm { .. }).then_some(role),
        fault,
    }
}

struct Running<A> {
    role: Role,
    arm: A,
    clocks: ArmClocks,
    cpu_before: Option<Duration>,
}

impl<A: Arm> Running<A> {
    /// Runs `work` between wake and park and keeps the clocks.
    fn awake<H: Host<Arm = A>, T>(
        &mut self,
        host: &mut H,
        work: impl FnOnce(&mut A, &mut ArmClocks) -> Result<T, Fault>,
    ) -> Result<T, SetFault> {
        let blame = blame(self.role);
        let from = host.now();
        self.arm.wake().map_err(&blame)?;
        let done = work(&mut self.arm, &mut self.clocks);
        let parked = self.arm.park();
        self.clocks.awake_ns += nanos(host.now().saturating_sub(from));
        let done = done.map_err(&blame)?;
        parked.map_err(&blame)?;
        Ok(done)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn timed(arm: &mut impl Arm, clocks: &mut ArmClocks, case: CaseId) -> Result<TimedCall, Fault> {
    let call = arm.call(case)?;
    clocks.timed_ns = clocks.timed_ns.saturating_add(call.ns);
    Ok(call)
}

/// Which cases of one distribution the workers of this set have seen: a window that starts anywhere and wraps once.
struct Window {
    start: u32,
    used: u32,
    cases: u32,
}

impl Window {
    fn left(&self) -> u32 {
        self.cases - self.used
    }

    fn take(&mut self, count: u32) -> Option<u32> {
        let first = (self.start + self.used) % self.cases.max(1);
        (count <= self.left()).then(|| {
            self.used += count;
            first
        })
    }
}

/// Runs one set of at most `rounds` rounds into `record`, which keeps what was measured when a fault ends it early.
pub(crate) fn run_set<H: Host>(
    host: &mut H,
    plan: &Plan,
    roles: &[Role],
    order: &mut Order,
    calibration: &mut Option<Calibration>,
    record: &mut SetRecord,
) -> Result<(), SetFault> {
    let mut starts = roles.to_vec();
    order.shuffle(&mut starts);
    record.started.clone_from(&starts);
    host.prepare(starts.len());
    let mut arms = Vec::with_capacity(starts.len());
    for role in starts {
        let mut arm = host.start(role, record.set).map_err(blame(role))?;
        let cpu_before = arm.cpu_time();
        let clocks = ArmClocks {
            role,
            timed_ns: 0,
            awake_ns: 0,
            cpu_ns: None,
        };
        arms.push(Running {
            role,
            arm,
            clocks,
            cpu_before,
        });
    }
    arms.sort_by_key(|running| running.role);
    let mut windows: Vec<Vec<Window>> = plan
        .workloads
        .iter()
        .map(|workload| {
            let mut window = |cases: u32| Window {
                start: order.below(cases as usize) as u32,
                used: 0,
                cases,
            };
            workload
                .distributions
                .iter()
                .map(|distribution| window(distribution.cases))
                .collect()
        })
        .collect();
    let measured = first_calls(host, plan, &mut arms, &mut windows, calibration.is_none())?;
    let calibration = calibration.get_or_insert_with(|| calibrate(plan, roles, &measured));
    record.device.extend(host.sample());
    let ended = rounds(host, plan, &mut arms, order, &mut windows, calibration, record);
    record.device.extend(host.sample());
    let ended = ended.and_then(|()| {
        // Only the candidate is asked: it is the one that is judged.
        let mut candidates = arms.iter_mut().filter(|running| running.role == Role::Candidate);
        candidates.try_for_each(|running| running.awake(host, |arm, _| arm.late()))
    });
    for mut running in arms {
        let cpu = running.arm.cpu_time();
        running.clocks.cpu_ns = cpu
            .zip(running.cpu_before)
            .map(|(after, before)| nanos(after.saturating_sub(before)));
        record.clocks.push(running.clocks);
    }
    ended
}

/// Calls every arm once for each workload, so that its pages are there; more often where lengths are unknown.
/// Returns the least time by workload and arm.
fn first_calls<H: Host>(
    host: &mut H,
    plan: &Plan,
    arms: &mut [Running<H::Arm>],
    windows: &mut [Vec<Window>],
    unknown_lengths: bool,
) -> Result<Vec<Vec<u64>>, SetFault> {
    let calls = if unknown_lengths { CALIBRATION_CALLS } else { 1 };
    let mut least = Vec::with_capacity(plan.workloads.len());
    for (workload, windows) in windows.iter_mut().enumerate() {
        let Some((window, first)) = windows.first_mut().and_then(|window| {
            let first = window.take(calls)?;
            Some((window, first))
        }) else {
            let fault = Fault::Judge(format!(
                "workload {workload} has too few cases for the first calls"
            ));
            return Err(SetFault { role: None, fault });
        };
        let cases = window.cases;
        let mut times = Vec::with_capacity(arms.len());
        for running in arms.iter_mut() {
            times.push(running.awake(host, |arm, clocks| {
                (0..calls).try_fold(u64::MAX, |least, at| {
                    let case = CaseId {
                        workload: workload as u32,
                        distribution: 0,
                        index: (first + at) % cases,
                    };
                    Ok(timed(arm, clocks, case)?.ns.min(least))
                })
            })?);
        }
        least.push(times);
    }
    Ok(least)
}

fn calibrate(plan: &Plan, roles: &[Role], least: &[Vec<u64>]) -> Calibration {
    // The champion and its copy run the same bytes: the least of both is less likely to have met another process.
    let lengths = |times: &Vec<u64>| {
        let same = roles
            .iter()
            .zip(times)
            .filter(|(role, _)| matches!(role, Role::Champion | Role::Copy));
        same.map(|(_, ns)| *ns).min().unwrap_or(1).max(1)
    };
    Calibration {
        calls: least
            .iter()
            .map(|times| plan.settings.calls(lengths(times)))
            .collect(),
        strides: least
            .iter()
            .map(|times| {
                let length = lengths(times);
                let stride = |(role, time): (&Role, &u64)| match role {
                    Role::Candidate | Role::Champion | Role::Copy => 1,
                    Role::Baseline | Role::FlagControl => (time / (SLOW_ARM * length)).clamp(1, MOST_STRIDE),
                };
                roles.iter().zip(times).map(stride).collect()
            })
            .collect(),
    }
}

fn rounds<H: Host>(
    host: &mut H,
    plan: &Plan,
    arms: &mut [Running<H::Arm>],
    order: &mut Order,
    windows: &mut [Vec<Window>],
    calibration: &Calibration,
    record: &mut SetRecord,
) -> Result<(), SetFault> {
    let set = record.set;
    for round in 0..plan.settings.rounds_per_set {
        let turn = u64::from(set) * u64::from(plan.settings.rounds_per_set) + u64::from(round);
        let needed = |workload: usize| calibration.calls.get(workload).copied().unwrap_or(1) + 1;
        let enough =
            |(at, windows): (usize, &Vec<Window>)| windows.iter().any(|window| window.left() >= needed(at));
        if !windows.iter().enumerate().all(enough) {
            return Ok(());
        }
        let mut workloads: Vec<usize> = (0..plan.workloads.len()).collect();
        order.shuffle(&mut workloads);
        for workload in workloads {
            let calls = calibration.calls.get(workload).copied().unwrap_or(1);
            let Some((distribution, first_case, cases)) = draw(&mut windows[workload], turn, calls + 1)
            else {
                return Ok(());
            };
            let mut turns: Vec<usize> = (0..arms.len())
                .filter(|arm| {
                    turn.is_multiple_of(calibration.strides[workload].get(*arm).copied().unwrap_or(1))
                })
                .collect();
            order.shuffle(&mut turns);
            for arm in turns {
                let running = &mut arms[arm];
                let mut lane = LaneRecord {
                    role: running.role,
                    workload: workload as u32,
                    distribution,
                    round,
                    first_case,
                    warmup_ns: 0,
                    ns: Vec::with_capacity(calls as usize),
                    preempted: 0,
                };
                let ended = running.awake(host, |arm, clocks| run_lane(arm, clocks, &mut lane, calls, cases));
                record.lanes.push(lane);
                ended?;
            }
        }
    }
    Ok(())
}

/// The next distribution in turn that has `count` cases left: its index, the first case, and how many there are.
fn draw(windows: &mut [Window], turn: u64, count: u32) -> Option<(u32, u32, u32)> {
    let kinds = windows.len();
    (0..kinds).find_map(|step| {
        let at = usize::try_from(turn % kinds as u64).unwrap_or(0);
        let kind = (at + step) % kinds;
        let window = &mut windows[kind];
        window.take(count).map(|first| (kind as u32, first, window.cases))
    })
}

fn run_lane(
    arm: &mut impl Arm,
    clocks: &mut ArmClocks,
    lane: &mut LaneRecord,
    calls: u32,
    cases: u32,
) -> Result<(), Fault> {
    for at in 0..=calls {
        let index = (lane.first_case + at) % cases.max(1);
        let case = CaseId {
            workload: lane.workload,
            distribution: lane.distribution,
            index,
        };
        let call = timed(arm, clocks, case)?;
        if at == 0 {
            lane.warmup_ns = call.ns;
        } else {
            lane.preempted |= u32::from(call.preempted()) << (at - 1);
            lane.ns.push(call.ns);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_never_gives_a_case_twice() {
        let mut window = Window {
            start: 7,
            used: 0,
            cases: 10,
        };
        let mut seen = Vec::new();
        while let Some(first) = window.take(3) {
            seen.extend((0..3).map(|at| (first + at) % 10));
        }
        let given = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!((given, seen.len()), (9, 9));
    }
}
