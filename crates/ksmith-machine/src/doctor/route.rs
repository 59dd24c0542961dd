//! Which way to work on this machine.

use serde::{Deserialize, Serialize};

use super::{Probes, Rental, Row, State};

/// The five routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RouteKind {
    /// Work on the GPU of this machine.
    ThisGpu,
    /// Work on the CPU tier.
    CpuOnly,
    /// Study profiles and records that others made.
    StudyEvidence,
    /// Rent a GPU by the hour.
    RentByTheHour,
    /// Learn and review the process without measuring.
    ProcessOnly,
}

/// A route, why, and what to check or do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The recommended one.
    pub kind: RouteKind,
    /// Why, in one sentence.
    pub reason: String,
    /// The first command to type.
    pub next: String,
    /// What to check or mind on this route.
    pub checks: Vec<String>,
    /// Other routes that are open here, with their reason.
    pub alternatives: Vec<Alternative>,
}

/// Another open route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alternative {
    /// The route.
    pub kind: RouteKind,
    /// When to take it.
    pub reason: String,
    /// What to check on it.
    pub checks: Vec<String>,
}

pub(super) fn recommend(rows: &[Row], probes: &Probes<'_>) -> Route {
    let state = |name: &str| rows.iter().find(|row| row.name == name).map(|row| row.state);
    let usable = |name: &str| matches!(state(name), Some(State::Ok | State::Limited));
    let gpu = !probes.machine.gpus.is_empty() && usable("nvidia driver");
    let toolkit = usable("cuda toolkit");
    let compiler = usable("compilers");
    // The worker needs Linux; contracts and records can be read anywhere.
    let linux = probes.machine.system.os == "linux";
    let broken_gpu = !gpu && state("nvidia driver").is_some_and(|state| state != State::NotApplicable);
    let kind = match (gpu && linux, compiler && linux, linux || toolkit || compiler) {
        (true, _, _) => RouteKind::ThisGpu,
        (false, true, _) => RouteKind::CpuOnly,
        (false, false, true) => RouteKind::StudyEvidence,
        (false, false, false) => RouteKind::ProcessOnly,
    };
    let (reason, next) = match kind {
        RouteKind::ThisGpu if toolkit => (
            "a GPU answers, and kernels can be compiled for it here",
            "ksmith run tasks/softmax --backend cuda",
        ),
        RouteKind::ThisGpu => (
            "a GPU answers; one command brings the compilers that it lacks",
            "ksmith toolchain cuda --install",
        ),
        RouteKind::CpuOnly if broken_gpu => (
            "the GPU does not answer until its driver is mended; the CPU tier works now",
            "ksmith run tasks/softmax",
        ),
        RouteKind::CpuOnly => (
            "no GPU here; the whole loop works on the CPU tier",
            "ksmith run tasks/softmax",
        ),
        RouteKind::StudyEvidence => (
            "no C compiler here, so nothing can be judged; records and profiles of others can be studied",
            "ksmith profile --import FILE",
        ),
        RouteKind::ProcessOnly | RouteKind::RentByTheHour => (
            "nothing can be built or judged here; contracts can be written and checked",
            "ksmith lint TASK",
        ),
    };
    let alternatives = [
        (
            RouteKind::CpuOnly,
            compiler && linux,
            "to try an idea, a contract or an agent without device time",
        ),
        (
            RouteKind::StudyEvidence,
            true,
            "to learn from verified runs and real profiles without a device",
        ),
        (
            RouteKind::RentByTheHour,
            !gpu,
            "for statements about GPU performance",
        ),
        (
            RouteKind::ProcessOnly,
            true,
            "to write and review contracts before anything is measured",
        ),
    ]
    .into_iter()
    .filter(|(other, open, _)| *open && *other != kind)
    .map(|(other, _, reason)| Alternative {
        kind: other,
        reason: reason.to_owned(),
        checks: checks(other, rows, probes),
    })
    .collect();
    Route {
        kind,
        reason: reason.to_owned(),
        next: next.to_owned(),
        checks: checks(kind, rows, probes),
        alternatives,
    }
}

/// What to mind on a route.
fn checks(kind: RouteKind, rows: &[Row], probes: &Probes<'_>) -> Vec<String> {
    match kind {
        RouteKind::ThisGpu => limits(
            rows,
            &[
                "nvidia driver",
                "cuda toolkit",
                "ncu",
                "ncu counters",
                "ncu pm sampling",
            ],
        ),
        RouteKind::CpuOnly => {
            let mut checks =
                vec!["results carry `scope: \"cpu\"` and say nothing about GPU performance".to_owned()];
            checks.extend(limits(
                rows,
                &["compilers", "isolation", "clock", "governor", "noise", "load"],
            ));
            checks
        }
        RouteKind::StudyEvidence => vec![
            "check a record before you trust it: ksmith verify PATH --head HASH".to_owned(),
            "a profile speaks of the device and driver it names, not of yours".to_owned(),
        ],
        RouteKind::RentByTheHour => rental(probes.rental),
        RouteKind::ProcessOnly => {
            vec!["numbers in a document are claims until a record backs them".to_owned()]
        }
    }
}

fn limits(rows: &[Row], names: &[&str]) -> Vec<String> {
    rows.iter()
        .filter(|row| names.contains(&row.name.as_str()))
        .filter(|row| matches!(row.state, State::Limited | State::Missing))
        .map(|row| match &row.fix {
            Some(fix) => format!("{}: {}; {fix}", row.name, row.finding),
            None => format!("{}: {}", row.name, row.finding),
        })
        .collect()
}

/// What to check before and while renting.
fn rental(rental: Option<Rental>) -> Vec<String> {
    let mut checks = vec![
        "CUDA 13: `nvidia-smi` shows driver 580 or newer and CUDA 13.0 or newer".to_owned(),
        "own kernel: `uname -r` is not 4.4.0 (gVisor), where counters cannot be read".to_owned(),
        "counters: `grep RmProfilingAdminOnly /proc/driver/nvidia/params` shows 0, or the provider will set it".to_owned(),
        "PM sampling: a whole device, neither vGPU nor MIG".to_owned(),
        "billing: by the second or the hour, from boot or from login, and whether a stopped machine still costs"
            .to_owned(),
        "shut-down: set the provider's own time limit before the first command, and end the machine after the run"
            .to_owned(),
    ];
    checks.push(match rental {
        Some(rental) => upper_cost(rental),
        None => "upper cost: price per hour times the budget's hours, rounded up, plus one hour for set-up; \
                 set `budget.device` and `budget.device_usd_per_hour` and the run stops there"
            .to_owned(),
    });
    checks
}

/// Whole hours for the budget, and one for set-up, since most providers round up.
fn upper_cost(rental: Rental) -> String {
    let hours = (rental.wall_seconds / 3600.0).ceil().max(1.0) + 1.0;
    format!(
        "upper cost: {hours:.0} h (budget rounded up, and one for set-up) x {:.2} USD = {:.2} USD",
        rental.usd_per_hour,
        hours * rental.usd_per_hour
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_cost_rounds_the_budget_up_and_adds_set_up() {
        let text = upper_cost(Rental {
            usd_per_hour: 3.5,
            wall_seconds: 1200.0,
        });
        assert_eq!(
            text,
            "upper cost: 2 h (budget rounded up, and one for set-up) x 3.50 USD = 7.00 USD"
        );
    }

    #[test]
    fn rental_checks_name_the_six_things_and_the_cost() {
        let checks = rental(None).join("\n");
        for word in [
            "CUDA 13",
            "counters",
            "PM sampling",
            "billing",
            "shut-down",
            "upper cost",
        ] {
            assert!(checks.contains(word), "{word}");
        }
    }
}
