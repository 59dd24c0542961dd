//! `ksmith know`

use std::fmt::Write as _;
use std::path::PathBuf;

use ksmith_lore::{Answer, AnswerKind, Lore, Query, Scope, recall};
use ksmith_report::clean_line;
use ksmith_task::{Backend, ExitCode};

use super::{Outcome, place};
use crate::failure::Failure;
use crate::ui::Ui;

/// Look something up in the experience library
///
/// Finds entries under `.ksmith/lore` by their words (BM25), within the scope that task and backend give. An entry for
/// another backend is never shown; one whose run is at hand and does not show it any more is struck. Always names a dead
/// end where one fits.
///
/// Example: ksmith know "softmax rows exp" --task tasks/softmax
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Words: an operator, a symptom, an idea, the name of an instruction
    text: String,
    /// A task that gives family and operator
    #[arg(long, value_name = "TASK")]
    task: Option<PathBuf>,
    /// Which tier it is asked for
    #[arg(long, value_parser = super::run::parse_backend, default_value = "cpu", value_name = "cpu|cuda")]
    backend: Backend,
    /// Most entries
    #[arg(long, default_value_t = 5, value_name = "NUMBER")]
    limit: usize,
    /// Most bytes of their texts
    #[arg(long, default_value_t = 6144, value_name = "NUMBER")]
    max_bytes: usize,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let mut scope = Scope {
        backends: vec![args.backend.name().to_owned()],
        ..Scope::default()
    };
    if let Some(task) = &args.task {
        let task = ksmith_loop::load(task)?;
        scope.families = vec![task.contract().family.clone()];
        scope.operators = vec![task.contract().name.clone()];
    }
    let lore = Lore::open(&place::home()).map_err(|error| Failure::of(ExitCode::Usage, &error))?;
    let query = Query {
        text: args.text.clone(),
        scope,
        limit: args.limit.max(1),
        bytes: args.max_bytes.max(1),
    };
    let answer = recall(&lore, &query);
    let is_empty = lore.entries().is_empty();
    ui.result(&answer, || text(&answer, is_empty))?;
    Ok(ExitCode::Done)
}

fn text(answer: &Answer, is_empty: bool) -> String {
    if is_empty {
        return "The library under `.ksmith/lore` is empty. `ksmith lore add RUN` adds what a closed run taught."
            .to_owned();
    }
    let mut text = String::new();
    for hit in &answer.hits {
        let effect = hit.effect.map_or_else(String::new, |effect| {
            format!(
                ", {:.2}x ({:.2} to {:.2})",
                effect.point, effect.lower, effect.upper
            )
        });
        let _ = writeln!(
            text,
            "{} ({}, {} runs{effect}): {}",
            hit.id,
            hit.kind.name(),
            hit.runs,
            clean_line(&hit.title)
        );
        for (name, words) in [
            ("problem", &hit.problem),
            ("action", &hit.action),
            ("why", &hit.mechanism),
            ("retry if", &hit.would_retry_if),
        ] {
            if !words.is_empty() {
                let _ = writeln!(text, "  {name}: {}", clean_line(words));
            }
        }
    }
    let found = match answer.kind {
        AnswerKind::Matches => format!("{} entries", answer.hits.len()),
        AnswerKind::Empty => "nothing fits these words".to_owned(),
        AnswerKind::OutOfScope => "what fits these words is for another backend or dtype".to_owned(),
    };
    let _ = write!(
        text,
        "{found}; {} out of scope, {} struck or retired, {} without room.",
        answer.out_of_scope, answer.not_served, answer.left_out
    );
    text
}
