//! `ksmith new`

use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;

use ksmith_task::abi::{Parameter, Prototype, prototype_parse};
use ksmith_task::scaffold::{self, ScaffoldError, Start};
use ksmith_task::{ExitCode, FAMILIES};
use serde_json::json;

use super::Outcome;
use crate::failure::Failure;
use crate::ui::Ui;

/// Make a task from a family or a C prototype
///
/// Writes a contract of at most 20 lines, a float64 reference, a plain C baseline and a README. Asks for what is
/// missing if this is a terminal.
///
/// Example: ksmith new tasks/my-softmax --family row-reduction
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder to make; its name is the task's name
    folder: Option<PathBuf>,
    /// A family; `ksmith new --families` lists them
    #[arg(long, conflicts_with = "from_prototype")]
    family: Option<String>,
    /// A C prototype, for example "void f(const float* x, float* y, int64_t n)"
    #[arg(long, value_name = "PROTOTYPE")]
    from_prototype: Option<String>,
    /// List the families
    #[arg(long)]
    families: bool,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    if args.families {
        return families(ui);
    }
    let folder = match &args.folder {
        Some(folder) => folder.clone(),
        None => PathBuf::from(ask(
            ui,
            "folder of the new task",
            "a folder, for example `ksmith new tasks/mine`",
        )?),
    };
    let start = match (&args.family, &args.from_prototype) {
        (Some(family), _) => Start::Family(family.clone()),
        (None, Some(text)) => {
            Start::Prototype(prototype_parse(text).map_err(|error| Failure::of(ExitCode::Usage, &error))?)
        }
        (None, None) => {
            let names = FAMILIES.map(|family| family.name);
            ui.note(&format!("families: {}", names.join(", ")));
            Start::Family(ask(ui, "family", "`--family` or `--from-prototype`")?)
        }
    };
    let name = folder
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let written = scaffold::write(&folder, &name, &start).map_err(|error| {
        let code = match error {
            ScaffoldError::Write { .. } => ExitCode::Environment,
            _ => ExitCode::Usage,
        };
        Failure::of(code, &error)
    })?;
    let guesses = match &start {
        Start::Prototype(prototype) => guesses(prototype),
        Start::Family(_) => Vec::new(),
    };
    ui.result(
        &json!({ "task": folder, "files": written, "guesses": guesses }),
        || {
            let mut text = String::new();
            for file in &written {
                text.push_str(&format!("{}\n", file.display()));
            }
            for guess in &guesses {
                text.push_str(&format!("guess: {guess}\n"));
            }
            if !guesses.is_empty() {
                text.push_str("Next: correct the guesses in task.toml, write the two C files, then\n      ");
            } else {
                text.push_str("Next: ");
            }
            text.push_str(&format!("ksmith lint {}", folder.display()));
            text
        },
    )?;
    Ok(ExitCode::Done)
}

/// What a prototype does not say and the contract had to.
fn guesses(prototype: &Prototype) -> Vec<String> {
    let axes: Vec<&str> = prototype
        .parameters
        .iter()
        .filter_map(|parameter| match parameter {
            Parameter::Axis(name) => Some(name.as_str()),
            _ => None,
        })
        .collect();
    let shape = axes.join(", ");
    let mut guesses = Vec::new();
    for parameter in &prototype.parameters {
        match parameter {
            Parameter::Input(name, dtype) => guesses.push(format!("input `{name}` is {dtype} [{shape}]")),
            Parameter::Output(name, dtype) => {
                guesses.push(format!("output `{name}` is {dtype} [{shape}], and its tolerance"));
            }
            Parameter::Scalar(name, dtype) => {
                guesses.push(format!(
                    "scalar `{name}` is drawn from {}",
                    scaffold::scalar_fill(*dtype)
                ));
            }
            Parameter::Axis(name) => {
                guesses.push(format!("axis `{name}`: its largest size, and the workload's"))
            }
        }
    }
    let names = |parameters: &[&Parameter]| {
        let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name()).collect();
        names.join(", ")
    };
    let given = names(&prototype.parameters.iter().collect::<Vec<_>>());
    let ordered = names(&prototype.in_order());
    if given != ordered {
        guesses.push(format!(
            "the order of the arguments: a task's kernel takes inputs, outputs, scalars, axes, so yours, ({given}), \
             become ({ordered})"
        ));
    }
    guesses
}

fn families(ui: &mut Ui) -> Outcome {
    let rows: Vec<_> = FAMILIES
        .iter()
        .map(|family| json!({ "name": family.name, "summary": family.summary() }))
        .collect();
    ui.result(&json!({ "families": rows }), || {
        FAMILIES
            .iter()
            .map(|family| format!("{:<14} {}\n", family.name, family.summary()))
            .collect()
    })?;
    Ok(ExitCode::Done)
}

/// Asks a person; elsewhere what is missing is an error.
fn ask(ui: &Ui, what: &str, missing: &str) -> Result<String, Failure> {
    if !ui.can_ask() {
        return Err(
            Failure::usage(format!("missing: {missing}")).hint("This is no terminal, so nothing is asked.")
        );
    }
    let mut err = std::io::stderr().lock();
    let _ = write!(err, "{what}: ");
    let _ = err.flush();
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(Failure::internal)?;
    Ok(line.trim().to_owned())
}
