//! From a model's name to its server: a table kept as data (`providers.toml`), and what the user says instead.

use serde::{Deserialize, Serialize};

use super::{Secret, Upstream, UpstreamError, Wire};

/// What the user said about the server; stands in the first record, and holds no secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Endpoint {
    /// The base address; the format's endpoint is appended.
    pub url: Option<String>,
    /// The format.
    pub wire: Option<Wire>,
    /// The environment variable that holds the key.
    pub key_env: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    schema: u32,
    provider: Vec<Provider>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Provider {
    name: String,
    models: Vec<String>,
    url: String,
    wires: Vec<Wire>,
    key_env: String,
}

/// Why no server is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// No row fits, and the user named no server.
    #[error("no server is known for model `{model}` in the format `{wire}`; name one with `--model-url`")]
    Unknown {
        /// The model.
        model: String,
        /// The format.
        wire: String,
    },
    /// The key is not there.
    #[error("the environment variable `{0}` holds no key")]
    NoKey(String),
    /// The address is not used.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
}

fn table() -> Vec<Provider> {
    let document: Document =
        toml::from_str(include_str!("providers.toml")).expect("the built-in table is read by a test");
    debug_assert_eq!(document.schema, 1);
    document.provider
}

/// Who makes a model, as far as the table knows: reviewers are of another vendor than writers.
pub fn vendor(model: &str) -> Option<String> {
    table()
        .into_iter()
        .find(|provider| provider.models.iter().any(|start| model.starts_with(start)))
        .map(|provider| provider.name)
}

/// Finds the server of a model. `wanted` is the format that an agent speaks, if it speaks one only; `variable` reads the
/// environment. A server on this machine needs no key.
///
/// # Errors
/// When no server is known, its key is missing, or its address is not used.
pub fn find(
    model: &str,
    wanted: Option<Wire>,
    endpoint: &Endpoint,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Upstream, ProviderError> {
    let wire = wanted.or(endpoint.wire);
    let row = table().into_iter().find(|provider| {
        provider.models.iter().any(|start| model.starts_with(start))
            && wire.is_none_or(|wire| provider.wires.contains(&wire))
    });
    let unknown = || ProviderError::Unknown {
        model: model.to_owned(),
        wire: wire.map_or_else(|| "any".to_owned(), |wire| wire.to_string()),
    };
    let (url, wire, key_env) = match (&endpoint.url, row) {
        // The key of a known provider is never sent to another server.
        (Some(url), _) => (url.clone(), wire.unwrap_or(Wire::Chat), endpoint.key_env.clone()),
        (None, Some(row)) => {
            let first = row.wires.first().copied().ok_or_else(unknown)?;
            let key_env = endpoint.key_env.clone().unwrap_or(row.key_env);
            (row.url, wire.unwrap_or(first), Some(key_env))
        }
        (None, None) => return Err(unknown()),
    };
    let key = match key_env {
        None => None,
        Some(name) => match variable(&name).filter(|value| !value.trim().is_empty()) {
            Some(value) => Some(Secret::new(&value)),
            None => return Err(ProviderError::NoKey(name)),
        },
    };
    let upstream = Upstream { url, wire, key };
    upstream.check()?;
    Ok(upstream)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str) -> Option<String> {
        matches!(name, "OPENAI_API_KEY" | "OTHER_KEY").then(|| format!("key of {name}"))
    }

    #[test]
    fn known_models_have_their_vendors_server() {
        let found = find("gpt-6-sol", None, &Endpoint::default(), variable).unwrap();
        assert_eq!(
            (found.url.as_str(), found.wire),
            ("https://api.openai.com/v1", Wire::Responses)
        );
        assert_eq!(found.key, Some(Secret::new("key of OPENAI_API_KEY")));
        let chat = find("gpt-6-sol", Some(Wire::Chat), &Endpoint::default(), variable).unwrap();
        assert_eq!(chat.wire, Wire::Chat);
        assert_eq!(
            find("claude-opus-5-5", None, &Endpoint::default(), variable),
            Err(ProviderError::NoKey("ANTHROPIC_API_KEY".into()))
        );
        for (model, wire) in [("qwen3", None), ("claude-opus-5-5", Some(Wire::Responses))] {
            let error = find(model, wire, &Endpoint::default(), variable).unwrap_err();
            assert!(matches!(error, ProviderError::Unknown { .. }), "{error}");
        }
        assert_eq!(vendor("claude-opus-5-5").as_deref(), Some("anthropic"));
        assert_eq!(vendor("qwen3"), None);
    }

    #[test]
    fn a_server_of_the_users_own_never_gets_a_vendors_key() {
        let mut own = Endpoint {
            url: Some("http://127.0.0.1:8080/v1".into()),
            ..Endpoint::default()
        };
        let found = find("gpt-6-sol", None, &own, variable).unwrap();
        assert_eq!((found.wire, found.key), (Wire::Chat, None));
        own.key_env = Some("OTHER_KEY".into());
        let found = find("qwen3", Some(Wire::Messages), &own, variable).unwrap();
        assert_eq!(
            (found.wire, found.key),
            (Wire::Messages, Some(Secret::new("key of OTHER_KEY")))
        );
        own.url = Some("http://example.org/v1".into());
        assert!(matches!(
            find("qwen3", None, &own, variable),
            Err(ProviderError::Upstream(_))
        ));
    }
}
