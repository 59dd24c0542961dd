//! What a session holds for reviews and process gates, and where reviewers come from.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use ksmith_agents::gateway::{Options, REVIEWER};
use ksmith_agents::process::{Fingerprint, Refusal, Statement};
use ksmith_agents::review::{
    CommandError, CommandReviewer, Foreign, Independence, ModelReviewer, Reviewer, RulesReviewer, Vendor,
    independent,
};

use crate::models::{ModelError, Wanted, options_of_run, start, unfinished_texts};
use crate::workshop::{Setting, Workshop};
use crate::{Mechanism, Mechanisms, ReviewOptions, ReviewerChoice, WriterChoice};

/// Why a reviewer cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReviewerError {
    /// Its command cannot be used.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// Its model cannot be had.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// It may not review this writer.
    #[error("{0}")]
    Refused(Refusal),
}

/// Makes the reviewer of a run.
pub(crate) fn of_run(
    options: &ReviewOptions,
    setting: &Setting<'_>,
) -> Result<Option<Box<dyn Reviewer>>, ReviewerError> {
    let prices = setting.agents.prices.as_deref();
    let texts = || unfinished_texts(REVIEWER, setting);
    reviewer(options, prices, |wanted| {
        Ok((options_of_run(wanted, setting)?, texts()))
    })
}

/// Makes the reviewer that was asked for; none where nobody is to review. `reach` gives the way to a model, and the
/// texts that it was sent in a step that a kill cut short.
///
/// # Errors
/// When it cannot be had.
pub(crate) fn reviewer<'a>(
    options: &'a ReviewOptions,
    prices: Option<&'a Path>,
    reach: impl FnOnce(Wanted<'a>) -> Result<(Options, Vec<String>), ModelError>,
) -> Result<Option<Box<dyn Reviewer>>, ReviewerError> {
    let limit = Duration::try_from_secs_f64(options.limit_s).unwrap_or(Duration::from_secs(300));
    let vendor = options
        .vendor
        .as_ref()
        .map(|name| Vendor::Named(name.trim().to_ascii_lowercase()));
    Ok(match &options.reviewer {
        ReviewerChoice::None => None,
        ReviewerChoice::Lint => Some(Box::new(RulesReviewer::default())),
        ReviewerChoice::Command(command) => {
            Some(Box::new(Foreign(CommandReviewer::new(command, vendor, limit)?)))
        }
        ReviewerChoice::Api(model) => {
            let (reached, texts) = reach(Wanted {
                model,
                wire: None,
                endpoint: &options.endpoint,
                prices,
                named_by: "`--reviewer api:MODEL`, `--reviewer-url` and `--reviewer-key-env`",
            })?;
            let gateway = start(Options {
                timeout: limit,
                ..reached
            })?;
            let voice = ModelReviewer::new(gateway, vendor, limit).going_on(texts);
            Some(Box::new(Foreign(voice)))
        }
    })
}

/// What a session holds for reviews and process gates.
pub(crate) struct Judgement {
    /// Who reviews, if anyone.
    pub(crate) reviewer: Option<Box<dyn Reviewer>>,
    independence: Option<Independence>,
    /// What earlier candidates come to, by id; read from the object store on first use.
    pub(crate) fingerprints: BTreeMap<String, Fingerprint>,
    /// What the writer said beside its last proposals.
    pub(crate) statement: Statement,
    /// Seconds for which a person's answer is waited for.
    pub(crate) answer_limit_s: f64,
}

impl Judgement {
    /// Makes the reviewer and checks that it may review this writer, which is pinned to a model if one is named.
    pub(crate) fn begin(
        workshop: &dyn Workshop,
        on: &Mechanisms,
        options: &ReviewOptions,
        writer: &WriterChoice,
        setting: &Setting<'_>,
    ) -> Result<Self, ReviewerError> {
        let reviewer = if on.has(Mechanism::Review) {
            workshop.reviewer(options, setting)?
        } else {
            None
        };
        let model = setting.agents.model.as_deref();
        let independence = reviewer
            .as_ref()
            .map(|reviewer| {
                let writer = match (Vendor::of_writer(&writer.to_string()), model) {
                    // A pinned model says more than the program that calls it.
                    (Vendor::Named(_) | Vendor::Unknown, Some(model)) => Vendor::of_model(model),
                    (vendor, _) => vendor,
                };
                independent(&writer, &reviewer.identity().vendor, options.same_vendor)
            })
            .transpose()
            .map_err(ReviewerError::Refused)?;
        Ok(Self {
            reviewer,
            independence,
            fingerprints: BTreeMap::new(),
            statement: Statement::default(),
            answer_limit_s: options.answer_limit_s,
        })
    }

    /// The reviewer's name, for the first record.
    pub(crate) fn reviewer_name(&self) -> Option<String> {
        self.reviewer
            .as_ref()
            .map(|reviewer| reviewer.identity().name.clone())
    }

    /// How independent the reviewer is, for the records.
    pub(crate) fn independence_name(&self) -> String {
        self.independence
            .and_then(|independence| serde_json::to_value(independence).ok())
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or_default()
    }
}
