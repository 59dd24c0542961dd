//! `ksmith report`

use std::path::PathBuf;

use ksmith_report::html::Links;
use ksmith_report::{RunView, html, table};
use ksmith_task::ExitCode;
use serde_json::json;

use super::{Outcome, place};
use crate::failure::Failure;
use crate::ui::Ui;

/// Print a run's summary and write its page anew
///
/// The page is one self-contained file, made from the record alone.
///
/// Example: ksmith report 3f07 --out softmax.html
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A run id, a unique prefix of one, or the path of a run folder
    run: String,
    /// Where to write the page [default: report.html in the run's folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let found = place::find(&args.run)?;
    let view = RunView::load(&found.dir).map_err(|error| Failure::of(ExitCode::Changed, &error))?;
    let out = args.out.clone().unwrap_or_else(|| found.dir.join("report.html"));
    // Links to files of the run only where the page lies beside them.
    let links = match &args.out {
        None => Links::RunFolder,
        Some(_) => Links::Alone,
    };
    std::fs::write(&out, html::report(&view, links)).map_err(|error| {
        Failure::new(
            ExitCode::Environment,
            format!("cannot write `{}`: {error}", out.display()),
        )
    })?;
    let width = ui.width();
    let value = json!({
        "run": view.history.opened.run,
        "headline": view.headline(),
        "scope": view.history.opened.scope,
        "scope_note": view.history.opened.scope_note,
        "page": out,
    });
    ui.result(&value, || {
        format!(
            "{}\n{}\npage: {}",
            table::summary(&view, width),
            view.headline(),
            out.display()
        )
    })?;
    Ok(ExitCode::Done)
}
