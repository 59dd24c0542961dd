//! Questions to a person: asked in the record, answered through a file, given up at the deadline.
//!
//! `ksmith answer RUN ID CHOICE` writes the file; the run that waits takes it up and records it. No answer is ever
//! assumed: at the deadline the run stops.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ksmith_agents::process::{Cause, Question, Standing};
use ksmith_ledger::{Answered, Asked, ProcessGate, Waited};

use crate::session::Session;
use crate::{Event, RunError, Stage, course};

/// How often an answer is looked for.
const LOOK: Duration = Duration::from_millis(200);

/// Where the answer to a question lies.
fn answer_path(run: &Path, id: &str) -> PathBuf {
    run.join("answers").join(id)
}

/// Leaves a person's answer where the run that waits looks for it.
///
/// # Errors
/// When it cannot be written.
pub fn answer(run: &Path, id: &str, choice: &str) -> Result<(), RunError> {
    let path = answer_path(run, id);
    let folder = run.join("answers");
    std::fs::create_dir_all(&folder).map_err(RunError::io("create", &folder))?;
    // In one step, so that no half of a choice is read.
    let part = folder.join(format!(".{id}.{}.part", std::process::id()));
    std::fs::write(&part, choice).map_err(RunError::io("write", &part))?;
    std::fs::rename(&part, &path).map_err(RunError::io("write", &path))
}

impl Session<'_> {
    /// Puts a question into the record.
    pub(crate) fn put_question(
        &mut self,
        id: &str,
        text: &str,
        options: Vec<String>,
    ) -> Result<(), RunError> {
        let run = self
            .memory
            .opened
            .as_ref()
            .map(|opened| opened.run.clone())
            .unwrap_or_default();
        let limit_s = self.judgement.answer_limit_s;
        self.progress.event(&Event::Note(&format!(
            "a person must decide within {limit_s:.0} s: {text} (`ksmith answer {run} {id} CHOICE`; choices: {})",
            options.join(", ")
        )));
        self.append(Asked {
            id: id.to_owned(),
            text: text.to_owned(),
            options,
            limit_s,
        })?;
        Ok(())
    }

    /// Waits for the answer, the deadline or an interrupt.
    pub(crate) fn ask(&mut self, id: &str) -> Result<(), RunError> {
        self.stage(Stage::Ask, None);
        let Some((asked_s, asked)) = course::open_question(&self.memory).cloned() else {
            return Err(RunError::Internal(format!("question `{id}` is not open")));
        };
        let question = Question {
            id: asked.id.clone(),
            text: asked.text,
            options: asked.options,
            asked_s,
            limit_s: asked.limit_s,
        };
        let path = answer_path(self.dir(), &question.id);
        let began = Instant::now();
        let standing = loop {
            let said = std::fs::read_to_string(&path).ok();
            match question.standing(said.as_deref(), now_s()) {
                Standing::Waiting if self.interrupt.is_requested() => break None,
                Standing::Waiting => std::thread::sleep(LOOK),
                standing @ (Standing::Answered(_) | Standing::Stop) => break Some(standing),
            }
        };
        self.append(Waited {
            what: "person".into(),
            seconds: began.elapsed().as_secs_f64(),
        })?;
        let answer = match standing {
            // The interrupt is dealt with before the next step; the question stays open.
            None => return Ok(()),
            Some(Standing::Answered(answer)) => Some(answer),
            Some(Standing::Stop | Standing::Waiting) => None,
        };
        if answer.is_none() {
            let detail = format!(
                "question `{}` was not answered within {:.0} s",
                question.id, question.limit_s
            );
            self.progress.event(&Event::Note(&detail));
            self.append(ProcessGate {
                code: Cause::NeedsHuman.code().to_owned(),
                candidate: None,
                refused: false,
                detail,
                data: serde_json::Value::Null,
            })?;
        }
        self.append(Answered {
            id: question.id,
            answer,
        })?;
        Ok(())
    }
}

/// Seconds of the Unix clock, in which records are timed.
fn now_s() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(f64::NAN, |since| since.as_secs_f64())
}
