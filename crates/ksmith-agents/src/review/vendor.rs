//! Who reviews, and who makes a model: writer and reviewer may not share a maker, since models of one maker share blind spots.

use serde::{Deserialize, Serialize};

use crate::process::{Cause, Refusal};

/// The maker of whoever writes or reviews.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Vendor {
    /// This company.
    Named(String),
    /// No model: rules of this program, or files that lay there already.
    NoModel,
    /// It cannot be told; treated as possibly the same.
    Unknown,
}

/// Who reviews.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name that stands in records.
    pub name: String,
    /// Whose model it is.
    pub vendor: Vendor,
}

/// Whether the user allowed one vendor for both parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SameVendor {
    /// Refused.
    #[default]
    Refused,
    /// Allowed by `--same-vendor`; every review's record says so.
    Allowed,
}

/// How independent a review is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Independence {
    /// Two vendors.
    OtherVendor,
    /// One of the two is no model.
    NoModel,
    /// One vendor, or unknown; the user allowed it.
    SameVendorAllowed,
}

/// Parts of model names and programs, and whose they are.
const MAKERS: [(&str, &str); 29] = [
    ("claude", "anthropic"),
    ("anthropic", "anthropic"),
    ("gpt", "openai"),
    ("chatgpt", "openai"),
    ("codex", "openai"),
    ("openai", "openai"),
    ("davinci", "openai"),
    ("gemini", "google"),
    ("gemma", "google"),
    ("google", "google"),
    ("qwen", "alibaba"),
    ("qwq", "alibaba"),
    ("deepseek", "deepseek"),
    ("kimi", "moonshot"),
    ("moonshot", "moonshot"),
    ("glm", "zhipu"),
    ("zhipu", "zhipu"),
    ("llama", "meta"),
    ("mistral", "mistral"),
    ("mixtral", "mistral"),
    ("codestral", "mistral"),
    ("devstral", "mistral"),
    ("grok", "xai"),
    ("xai", "xai"),
    ("minimax", "minimax"),
    ("command-r", "cohere"),
    ("cohere", "cohere"),
    ("phi-", "microsoft"),
    ("nemotron", "nvidia"),
];

impl Vendor {
    /// The maker of a model, by its name. Names of several makers (a distilled model, say) are unknown.
    pub fn of_model(name: &str) -> Self {
        let lower = name.to_ascii_lowercase();
        let mut found: Option<&str> = None;
        for (part, maker) in MAKERS {
            if lower.contains(part) {
                match found {
                    Some(other) if other != maker => return Self::Unknown,
                    Some(_) | None => found = Some(maker),
                }
            }
        }
        // `o1`, `o3-mini`, `o4`: a letter and a digit at the start of a path's last part.
        let last = lower.rsplit('/').next().unwrap_or_default();
        let is_o = last.starts_with('o') && last[1..].starts_with(|c: char| c.is_ascii_digit());
        match (found, is_o) {
            (None | Some("openai"), true) => Self::Named("openai".into()),
            (Some(maker), false) => Self::Named(maker.into()),
            (None, false) | (Some(_), true) => Self::Unknown,
        }
    }

    /// The maker behind a writer, by the text of `--writer`.
    pub fn of_writer(writer: &str) -> Self {
        match writer.split_once(':') {
            None if writer == "search" => Self::NoModel,
            Some(("folder", _)) => Self::NoModel,
            Some(("cli" | "api", model)) => Self::of_model(model),
            Some(_) | None => Self::Unknown,
        }
    }

    /// The name that stands in records.
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::NoModel => "no-model",
            Self::Unknown => "unknown",
        }
    }
}

/// Whether a reviewer may review a writer.
///
/// # Errors
/// When both are of one vendor, or that cannot be ruled out, and the user did not allow it.
pub fn independent(writer: &Vendor, reviewer: &Vendor, same: SameVendor) -> Result<Independence, Refusal> {
    let differ = match (writer, reviewer) {
        (Vendor::NoModel, _) | (_, Vendor::NoModel) => return Ok(Independence::NoModel),
        (Vendor::Named(a), Vendor::Named(b)) => a != b,
        (Vendor::Unknown, _) | (_, Vendor::Unknown) => false,
    };
    match same {
        _ if differ => Ok(Independence::OtherVendor),
        SameVendor::Allowed => Ok(Independence::SameVendorAllowed),
        SameVendor::Refused => Err(Refusal {
            cause: Cause::ReviewSameVendor,
            detail: format!(
                "the writer's vendor is {}, the reviewer's {}",
                writer.name(),
                reviewer.name()
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Vendor {
        Vendor::Named(name.into())
    }

    #[test]
    fn makers_are_told_by_name_and_mixtures_are_unknown() {
        for (model, maker) in [
            ("claude-opus-4-8", named("anthropic")),
            ("gpt-5.5", named("openai")),
            ("openai/o3-mini", named("openai")),
            ("qwen3-coder", named("alibaba")),
            ("deepseek-r1-distill-qwen-32b", Vendor::Unknown),
            ("mock", Vendor::Unknown),
            ("o", Vendor::Unknown),
            ("", Vendor::Unknown),
        ] {
            assert_eq!(Vendor::of_model(model), maker, "{model}");
        }
        assert_eq!(Vendor::of_writer("cli:codex"), named("openai"));
        assert_eq!(Vendor::of_writer("search"), Vendor::NoModel);
        assert_eq!(Vendor::of_writer("replay:calls.jsonl"), Vendor::Unknown);
    }

    #[test]
    fn one_vendor_and_an_unknown_one_are_refused_unless_allowed() {
        let (a, b) = (named("anthropic"), named("openai"));
        let refused = SameVendor::Refused;
        assert_eq!(independent(&a, &b, refused), Ok(Independence::OtherVendor));
        assert_eq!(
            independent(&Vendor::NoModel, &a, refused),
            Ok(Independence::NoModel)
        );
        for (writer, reviewer) in [(&a, &a), (&a, &Vendor::Unknown), (&Vendor::Unknown, &b)] {
            let refusal = independent(writer, reviewer, refused).unwrap_err();
            assert_eq!(refusal.cause, Cause::ReviewSameVendor);
            assert_eq!(
                independent(writer, reviewer, SameVendor::Allowed),
                Ok(Independence::SameVendorAllowed)
            );
        }
    }
}
