//! What a reviewer of a candidate, or of a run's course, is shown.

use super::attempt::Subject;
use super::occasion::Occasion;
use super::prompt::Section;

/// A request for a verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Why it is asked.
    pub occasion: Occasion,
    /// What an answer must be bound to.
    pub subject: Subject,
    /// The candidate, if one is under review.
    pub candidate: Option<String>,
    /// The expanded contract, without its hidden part.
    pub contract: String,
    /// What changed against the candidate's parent: a unified diff without comments.
    pub change: String,
    /// The files under review without comments, by path.
    pub source: Vec<(String, String)>,
    /// Gates with codes, gains with bounds: the judge's record.
    pub evidence: serde_json::Value,
    /// What compiler and profiler say.
    pub profile: String,
    /// The course of the run in figures.
    pub course: String,
    /// Keys of findings raised before on this line of candidates.
    pub known: Vec<String>,
    /// Number of this review of the line, from 1.
    pub round: usize,
    /// What the writer says; always shown last.
    pub prose: String,
}

impl Request {
    /// What is asked, in our words.
    pub(super) fn ask(&self) -> String {
        let question = match self.occasion {
            Occasion::Crown => {
                "The judge accepted this candidate, and it is about to become champion. Look for what its gates cannot \
                 see: reads or writes out of bounds on shapes that were not drawn, undefined behaviour, dependence on \
                 values or on earlier calls, work left out, a gain that does not come from the stated idea."
            }
            Occasion::SameReason => {
                "Several candidates in a row were dropped for the same reason. Say what causes it and what to try instead."
            }
            Occasion::Plateau => {
                "Nothing has gained for several rounds. Say what to try instead, or that nothing is left."
            }
            Occasion::HalfBudget | Occasion::NineTenths => {
                "Part of the budget is spent. Say whether the course is right, and what to try with the rest."
            }
            Occasion::Done => "The writer says that it is done. Say from the evidence whether that is so.",
            Occasion::Plan | Occasion::Contract => "Say what stands against it.",
        };
        let known = if self.known.is_empty() {
            "none".to_owned()
        } else {
            self.known.join(", ")
        };
        format!(
            "You review work on a compute kernel. You have not written it, you cannot change anything, and you decide \
             nothing alone: measurements do. You may object (`veto`), give a direction (`direct`), or let it pass \
             (`pass`). {question}\n\n\
             Give every finding that you have at once; this is review {} of at most {}. A finding has a short key; use \
             a known key again for the same thing. Known keys: {known}. A `veto` needs a finding of weight `blocking` \
             that names its place and the evidence by which others can see it. `next` names exactly one edit, or is \
             null.",
            self.round,
            super::docket::ROUNDS
        )
    }

    /// The quoted parts, facts before prose.
    pub(super) fn sections(&self) -> Vec<Section> {
        let source = self
            .source
            .iter()
            .map(|(path, text)| format!("== {path}\n{text}"))
            .collect::<Vec<_>>()
            .join("\n");
        let evidence = serde_json::to_string_pretty(&self.evidence).unwrap_or_default();
        vec![
            Section::new("Contract", "contract.toml", self.contract.clone()),
            Section::new(
                "Change against its parent, without comments",
                "change.diff",
                self.change.clone(),
            ),
            Section::new("Files under review, without comments", "source.txt", source),
            Section::new("The judge's evidence", "evidence.json", evidence),
            Section::new("Compiler and profiler", "profile.txt", self.profile.clone()),
            Section::new("Course of the run", "course.txt", self.course.clone()),
            Section::new(
                "What the writer says; no evidence",
                "writer.txt",
                self.prose.clone(),
            ),
        ]
    }
}
