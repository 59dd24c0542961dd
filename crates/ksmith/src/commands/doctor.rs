//! `ksmith doctor`

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use ksmith_machine::{
    AgentFacts, Diagnosis, IsolationFacts, LocalHost, Machine, Measure, MeasureState, Probes, SafetyProbes,
    State, doctor, noise, quiet, safety,
};
use ksmith_task::ExitCode;
use serde_json::json;

use super::{Outcome, place};
use crate::ui::Ui;

/// Show what this machine is, what it lacks, and which way to work on it
///
/// One row per tool, device and property, each with its state and the fix, and the recommended route. Works where
/// nothing is installed. Exit 3 if kernels can be neither compiled nor run here.
///
/// Example: ksmith doctor --json
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show the five measures against an agent that does harm instead; exit 3 if one does not hold
    #[arg(long)]
    safety: bool,
    /// Leave the noise measurement out (about a second)
    #[arg(long)]
    no_noise: bool,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    if args.safety {
        return measures(ui);
    }
    let host = LocalHost::new();
    let machine = Machine::read_from(&host);
    let diagnosis = doctor(&Probes {
        host: &host,
        machine: &machine,
        isolation: isolation(),
        noise: (!args.no_noise).then(noise),
        load: Some(quiet::wait(Duration::ZERO)),
        data_dir: place::data_dir(),
        kernel_program: kernel_program(),
        rental: None,
    });
    ui.result(&json!({ "diagnosis": diagnosis, "machine": machine }), || {
        text(&diagnosis)
    })?;
    Ok(if diagnosis.is_ok("compilers") {
        ExitCode::Done
    } else {
        ExitCode::Environment
    })
}

/// This program as the one that launches the kernel to be profiled.
fn kernel_program() -> Option<Vec<String>> {
    let program = std::env::current_exe().ok()?;
    Some(vec![program.to_str()?.to_owned(), "probe-kernel".to_owned()])
}

/// What the sandbox says of itself, for crates that do not know it.
pub(crate) fn isolation() -> IsolationFacts {
    let probed = ksmith_box::probe();
    IsolationFacts {
        level: probed.name().to_owned(),
        layers: probed
            .layers
            .iter()
            .map(|layer| ksmith_machine::doctor::IsolationLayer {
                name: serde_json::to_value(layer.layer)
                    .ok()
                    .and_then(|name| Some(name.as_str()?.to_owned()))
                    .unwrap_or_default(),
                works: layer.available,
                detail: layer.reason.clone(),
            })
            .collect(),
    }
}

fn text(diagnosis: &Diagnosis) -> String {
    let mut text = format!("{}\n\n", diagnosis.machine);
    let width = diagnosis.rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    for row in &diagnosis.rows {
        let state = match row.state {
            State::Ok => "ok",
            State::Missing => "missing",
            State::Limited => "limited",
            State::NotApplicable => "n/a",
        };
        let _ = writeln!(
            text,
            "{:<width$}  {state:<8} {}",
            row.name,
            ksmith_report::clean_line(&row.finding)
        );
        if let Some(fix) = &row.fix {
            let _ = writeln!(text, "{:<width$}           fix: {fix}", "");
        }
    }
    let route = &diagnosis.route;
    let _ = writeln!(text, "\nroute: {} ({})", kind(route.kind), route.reason);
    let _ = writeln!(text, "next:  {}", route.next);
    for check in &route.checks {
        let _ = writeln!(text, "  check: {check}");
    }
    for other in &route.alternatives {
        let _ = writeln!(text, "also open: {} ({})", kind(other.kind), other.reason);
        for check in &other.checks {
            let _ = writeln!(text, "  check: {check}");
        }
    }
    text
}

fn kind(kind: ksmith_machine::RouteKind) -> &'static str {
    use ksmith_machine::RouteKind;
    match kind {
        RouteKind::ThisGpu => "this GPU",
        RouteKind::CpuOnly => "CPU only",
        RouteKind::StudyEvidence => "study the evidence of others",
        RouteKind::RentByTheHour => "rent a GPU by the hour",
        RouteKind::ProcessOnly => "process only",
    }
}

/// What an agent's box shows and allows, tried in one; where none can be made, nothing holds.
fn agents() -> AgentFacts {
    let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/root"), PathBuf::from);
    let scratch = std::env::temp_dir().join(format!("ksmith-look-{}", std::process::id()));
    let facts = ksmith_agents::writers::facts(&home, &scratch).unwrap_or_default();
    // It lies in the system's own folder for such things; a rest does no harm.
    let _ = std::fs::remove_dir_all(&scratch);
    facts
}

fn measures(ui: &mut Ui) -> Outcome {
    let host = LocalHost::new();
    let measures = safety(&SafetyProbes {
        host: &host,
        isolation: isolation(),
        agents: agents(),
        folder: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
    });
    let holds = |measure: &Measure| match measure.state {
        MeasureState::Ok => true,
        MeasureState::NotOk => false,
    };
    let all = measures.iter().all(holds);
    ui.result(&json!({ "ok": all, "measures": measures }), || {
        let mut text = String::new();
        for measure in &measures {
            let word = if holds(measure) { "ok" } else { "NOT OK" };
            let _ = writeln!(text, "{word:<7} {}: {}", measure.name, measure.asks);
            let _ = writeln!(text, "        {}", ksmith_report::clean_line(&measure.reason));
            if let Some(fix) = &measure.fix {
                let _ = writeln!(text, "        fix: {fix}");
            }
        }
        text
    })?;
    Ok(if all {
        ExitCode::Done
    } else {
        ExitCode::Environment
    })
}
