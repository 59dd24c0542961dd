//! A question that only a person can answer: it has a deadline, and silence means stop.
//!
//! No approval is ever assumed. Waiting for an answer is a state of its own and counts neither as work nor as a stall.

use serde::{Deserialize, Serialize};

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Its id within the run.
    pub id: String,
    /// What is asked.
    pub text: String,
    /// The choices; empty means that any text answers.
    pub options: Vec<String>,
    /// When it was asked, in seconds of the Unix clock.
    pub asked_s: f64,
    /// How long an answer is waited for, in seconds.
    pub limit_s: f64,
}

/// Where a question stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// A person answered with one of the choices.
    Answered(String),
    /// Still within the deadline.
    Waiting,
    /// Nobody answered in time: stop.
    Stop,
}

impl Question {
    /// Where it stands at `now_s`, given what lies in its answer's place. What is none of the choices is no answer.
    pub fn standing(&self, answer: Option<&str>, now_s: f64) -> Standing {
        let answer = answer.map(str::trim).filter(|answer| !answer.is_empty());
        let fits =
            |answer: &&str| self.options.is_empty() || self.options.iter().any(|option| option == answer);
        if let Some(answer) = answer.filter(fits) {
            return Standing::Answered(answer.to_owned());
        }
        // A clock that went backwards must not extend the deadline for ever.
        let waited = now_s - self.asked_s;
        if (0.0..self.limit_s).contains(&waited) {
            Standing::Waiting
        } else {
            Standing::Stop
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_and_other_words_end_in_stop() {
        let question = Question {
            id: "bits".into(),
            text: "May two runs differ?".into(),
            options: vec!["yes".into(), "no".into()],
            asked_s: 100.0,
            limit_s: 60.0,
        };
        assert_eq!(question.standing(None, 159.0), Standing::Waiting);
        assert_eq!(question.standing(Some("approved"), 159.0), Standing::Waiting);
        assert_eq!(question.standing(Some("approved"), 160.0), Standing::Stop);
        assert_eq!(question.standing(None, 50.0), Standing::Stop);
        assert_eq!(
            question.standing(Some(" no\n"), 1000.0),
            Standing::Answered("no".into())
        );
        assert_eq!(question.standing(None, f64::NAN), Standing::Stop);
    }
}
