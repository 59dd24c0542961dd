//! Credentials in a change: recognised by shape, reported by kind and line, never repeated.
//!
//! Guards against a key that ends up in the record, which is published and cannot be edited.

use super::{Cause, Refusal};
use crate::credentials::{is_key_byte, key_at};

/// Names of which an assigned literal is taken for a credential.
const NAMES: [&str; 6] = [
    "api_key",
    "apikey",
    "secret_key",
    "access_token",
    "auth_token",
    "password",
];

/// Checks files, given by path and content.
pub fn check_secrets(files: &[(String, Vec<u8>)]) -> Option<Refusal> {
    files.iter().find_map(|(path, content)| {
        let text = String::from_utf8_lossy(content);
        let (line, kind) = first_in(&text)?;
        Some(Refusal::new(
            Cause::Secret,
            format!("line {line} of `{path}` looks like {kind}"),
        ))
    })
}

/// Line, from 1, and kind of the first thing that looks like a credential.
fn first_in(text: &str) -> Option<(usize, &'static str)> {
    let mut lines = (1..).zip(text.lines());
    lines.find_map(|(number, line)| Some((number, kind_of(line)?)))
}

fn kind_of(line: &str) -> Option<&'static str> {
    if let Some(key) = (0..line.len()).find_map(|at| key_at(line.as_bytes(), at)) {
        return Some(key.kind);
    }
    let word = |c: char| u8::try_from(c).is_ok_and(is_key_byte);
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
            let found = first_in(&format!("int x;\n{text}\n"));
            assert_eq!(found, Some((2, kind)), "{text}");
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
            assert_eq!(first_in(text), None, "{text}");
        }
    }
}
