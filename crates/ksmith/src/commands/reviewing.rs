//! Options about reviewers, shared by the commands that call one.

use ksmith_agents::gateway::{Endpoint, Wire};
use ksmith_agents::review::SameVendor;
use ksmith_loop::{ReviewOptions, ReviewerChoice};

use super::run::parse_wire;
use crate::duration;

/// Who reviews, and under which conditions.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ReviewArgs {
    /// Who reviews: `lint` (rules, no model), `none`, `api:MODEL`, or a command, which runs in a box without network
    #[arg(long, default_value = "lint", value_name = "REVIEWER")]
    reviewer: ReviewerChoice,
    /// The maker of the reviewer's model, where its name or the command does not tell it
    #[arg(long, value_name = "NAME")]
    reviewer_vendor: Option<String>,
    /// Base address of the server of the reviewer's model [default: its vendor's]
    #[arg(long, value_name = "URL")]
    reviewer_url: Option<String>,
    /// Format that this server speaks: chat, responses or messages [default: its vendor's]
    #[arg(long, value_parser = parse_wire, value_name = "WIRE")]
    reviewer_wire: Option<Wire>,
    /// Environment variable that holds the key of this server [default: its vendor's]
    #[arg(long, value_name = "NAME")]
    reviewer_key_env: Option<String>,
    /// Allow writer and reviewer of one vendor; every review's record shows it
    #[arg(long)]
    same_vendor: bool,
    /// How long one attempt of the reviewer may take; after two it has not passed
    #[arg(long, default_value = "5m", value_parser = duration::parse, value_name = "DURATION")]
    review_limit: f64,
    /// How long a person's answer is waited for; then the run stops
    #[arg(long, default_value = "10m", value_parser = duration::parse, value_name = "DURATION")]
    answer_limit: f64,
}

impl ReviewArgs {
    /// The resolved options.
    pub(crate) fn options(&self) -> ReviewOptions {
        ReviewOptions {
            reviewer: self.reviewer.clone(),
            vendor: self.reviewer_vendor.clone(),
            endpoint: Endpoint {
                url: self.reviewer_url.clone(),
                wire: self.reviewer_wire,
                key_env: self.reviewer_key_env.clone(),
            },
            same_vendor: if self.same_vendor {
                SameVendor::Allowed
            } else {
                SameVendor::Refused
            },
            limit_s: self.review_limit,
            answer_limit_s: self.answer_limit,
        }
    }
}
