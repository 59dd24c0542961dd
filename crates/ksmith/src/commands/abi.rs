//! `ksmith abi`

use std::path::PathBuf;

use ksmith_task::{ExitCode, abi};
use serde_json::json;

use super::Outcome;
use crate::ui::Ui;
use ksmith_loop::TypePick;

/// Print the C header that a candidate's entry symbol must match
///
/// Example: ksmith abi tasks/softmax --type T=f32 > softmax.h
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The task's folder or its task.toml
    task: PathBuf,
    /// Fix a dtype variable, for example T=f32; the default is the first instance
    #[arg(long = "type", value_name = "VARIABLE=DTYPE")]
    types: Vec<TypePick>,
    /// Print the header of the float64 reference instead
    #[arg(long)]
    reference: bool,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let task = ksmith_loop::load(&args.task)?;
    let instance = ksmith_loop::first_instance(&task, &args.types)?;
    let header = if args.reference {
        abi::reference_header(&instance)
    } else {
        abi::header(&instance)
    };
    ui.result(&json!({ "instance": instance.id(), "header": header }), || {
        header.clone()
    })?;
    Ok(ExitCode::Done)
}
