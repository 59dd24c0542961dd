//! Credentials in a change: recognised by shape, reported by kind and line, never repeated.
//!
//! Guards against a key that ends up in the record, which is published and cannot be edited.

use super::{Cause, Refusal};

/// One thing that looks like a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// What kind of credential its shape is that of.
    pub kind: &'static str,
    /// Line, from 1.
    pub line: usize,
}

/// Prefix, least length of what follows, kind. The prefixes are the vendors' own published ones.
const PREFIXES: [(&str, usize, &str); 16] = [
    ("sk-ant-", 20, "an Anthropic key"),
    ("sk-proj-", 20, "an OpenAI key"),
    ("sk-", 32, "a model key"),
    ("ghp_", 30, "a GitHub token"),
    ("gho_", 30, "a GitHub token"),
    ("ghs_", 30, "a GitHub token"),
    ("github_pat_", 30, "a GitHub token"),
    ("glpat-", 18, "a GitLab token"),
    ("xoxb-", 20, "a Slack token"),
    ("xoxp-", 20, "a Slack token"),
    ("AKIA", 16, "an AWS key id"),
    ("ASIA", 16, "an AWS key id"),
    ("AIza", 30, "a Google key"),
    ("hf_", 30, "a Hugging Face token"),
    ("npm_", 30, "an npm token"),
    ("xai-", 40, "an xAI key"),
];

/// Names of which an assigned literal is taken for a credential.
const NAMES: [&str; 6] = [
    "api_key",
    "apikey",
    "secret_key",
    "access_token",
    "auth_token",
    "password",
];

/// Everything in a text that looks like a credential.
pub fn secrets_in(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(kind) = kind_of(line) {
            found.push(Secret {
                kind,
                line: index + 1,
            });
        }
    }
    found
}

/// Checks files, given by path and content.
pub fn check_secrets(files: &[(String, Vec<u8>)]) -> Option<Refusal> {
    files.iter().find_map(|(path, content)| {
        let text = String::from_utf8_lossy(content);
        let first = secrets_in(&text).into_iter().next()?;
        Some(Refusal::new(
            Cause::Secret,
            format!("line {} of `{path}` looks like {}", first.line, first.kind),
        ))
    })
}

fn kind_of(line: &str) -> Option<&'static str> {
    if line.contains("-----BEGIN ") && line.contains("PRIVATE KEY-----") {
        return Some("a private key");
    }
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    for (prefix, least, kind) in PREFIXES {
        for (at, _) in line.match_indices(prefix) {
            let starts = line[..at].chars().next_back().is_none_or(|before| !word(before));
            let rest = &line[at + prefix.len()..];
            let length = rest.find(|c| !word(c)).unwrap_or(rest.len());
            if starts && length >= least && rest[..length].bytes().any(|byte| byte.is_ascii_digit()) {
                return Some(kind);
            }
        }
    }
    // Three parts of base64 with the usual header of a signed web token.
    if let Some(at) = line.find("eyJ") {
        let parts: Vec<&str> = line[at..]
            .split(|c: char| !(word(c) || c == '.'))
            .next()
            .unwrap_or_default()
            .split('.')
            .collect();
        if parts.len() == 3 && parts.iter().all(|part| part.len() >= 10) {
            return Some("a web token");
        }
    }
    let lower = line.to_ascii_lowercase();
    let named = NAMES.iter().any(|name| {
        lower.find(name).is_some_and(|at| {
            let rest = line[at + name.len()..].trim_start_matches(['"', '\'', ' ']);
            rest.strip_prefix(['=', ':'])
                .map(|rest| rest.trim_start().trim_start_matches(['"', '\'']))
                .is_some_and(|value| {
                    let length = value.find(|c| !word(c)).unwrap_or(value.len());
                    length >= 16 && value[..length].bytes().any(|byte| byte.is_ascii_digit())
                })
        })
    });
    named.then_some("a named credential")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_found_and_not_repeated() {
        // Made here, so that no scanner takes this file for a leak.
        let filler = "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8s9t0";
        for (text, kind) in [
            (format!("// sk-ant-{filler}"), "an Anthropic key"),
            (format!("key = \"ghp_{filler}\""), "a GitHub token"),
            (
                format!("const char *k = \"AKIA{}\";", &filler[..20].to_uppercase()),
                "an AWS key id",
            ),
            (format!("API_KEY = '{}'", &filler[..20]), "a named credential"),
            (format!("eyJ{0}.eyJ{0}.{0}", &filler[..16]), "a web token"),
            ("-----BEGIN RSA PRIVATE KEY-----".to_owned(), "a private key"),
        ] {
            let found = secrets_in(&format!("int x;\n{text}\n"));
            assert_eq!(found, [Secret { kind, line: 2 }], "{text}");
            let refusal = check_secrets(&[("k.c".into(), text.into_bytes())]).unwrap();
            assert!(!refusal.detail.contains(&filler[..8]), "{refusal}");
        }
    }

    #[test]
    fn kernels_hold_nothing_that_looks_like_one() {
        for text in [
            "float mask_k = 0.0f; // task-specific: risk-free",
            "#define HF_ROWS 16384",
            "static const char *const name = \"sk-softmax\";",
            "double password = 1.0;",
        ] {
            assert_eq!(secrets_in(text), [], "{text}");
        }
    }
}
