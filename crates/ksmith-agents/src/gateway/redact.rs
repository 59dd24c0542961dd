//! Takes secrets out of everything that is recorded.
//!
//! Two kinds are known: the very keys that this process holds, and texts that look like a key of a known make. The
//! second is a net, not a proof.

use std::fmt;

use crate::credentials::key_at;

/// A value that is never shown: `Debug` hides it, and nothing serialises it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value; surrounding white space, which a file or shell may have added, is dropped.
    pub fn new(value: &str) -> Self {
        Self(value.trim().to_owned())
    }

    /// The value itself, for the one place that sends it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Shorter secrets would be found in ordinary text.
const SHORTEST: usize = 8;

/// Finds secrets and takes them out.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    secrets: Vec<Secret>,
}

impl Redactor {
    /// A redactor that knows these values, besides all makes.
    pub fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let mut secrets: Vec<Secret> = secrets
            .into_iter()
            .filter(|secret| secret.reveal().len() >= SHORTEST)
            .collect();
        // A secret that contains another one goes first.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.reveal().len()));
        Self { secrets }
    }

    /// The bytes without secrets, and how many were taken out.
    pub fn redact(&self, bytes: &[u8]) -> (Vec<u8>, u64) {
        let mut out = Vec::with_capacity(bytes.len());
        let mut found = 0;
        let mut at = 0;
        while at < bytes.len() {
            match self.secret_at(bytes, at) {
                Some(length) => {
                    out.extend_from_slice(REDACTED.as_bytes());
                    found += 1;
                    at += length;
                }
                None => {
                    out.push(bytes[at]);
                    at += 1;
                }
            }
        }
        (out, found)
    }

    /// [`redact`](Self::redact) for text.
    pub fn redact_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.redact(text.as_bytes()).0).into_owned()
    }

    /// Whether there is a secret in the bytes.
    pub fn finds(&self, bytes: &[u8]) -> bool {
        (0..bytes.len()).any(|at| self.secret_at(bytes, at).is_some())
    }

    /// Length of the secret that begins at `at`.
    fn secret_at(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let rest = &bytes[at..];
        if let Some(secret) = self
            .secrets
            .iter()
            .find(|secret| rest.starts_with(secret.reveal().as_bytes()))
        {
            return Some(secret.reveal().len());
        }
        key_at(bytes, at).map(|key| key.length)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_that_this_process_holds_are_taken_out_wherever_they_stand() {
        let redactor = Redactor::new([Secret::new("very-secret-value\n"), Secret::new("short")]);
        let (out, found) = redactor.redact(b"xvery-secret-valuex short {\"k\":\"very-secret-value\"}");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "x[redacted]x short {\"k\":\"[redacted]\"}"
        );
        assert_eq!(found, 2);
        assert_eq!(format!("{:?}", Secret::new("very-secret-value")), "Secret(…)");
    }

    #[test]
    fn known_makes_are_taken_out_and_ordinary_words_are_not() {
        let redactor = Redactor::default();
        for secret in [
            format!("sk-proj-{}", "a1".repeat(20)),
            format!("sk-ant-api03-{}", "Z9_".repeat(10)),
            format!("ghp_{}", "a1B2".repeat(9)),
            format!("AKIA{}", "A1B2C3D4E5F6G7H8"),
            "-----BEGIN RSA PRIVATE KEY-----\\nMIIE\\n-----END RSA PRIVATE KEY-----".to_owned(),
            "-----BEGIN PRIVATE KEY-----\nMIIE".to_owned(),
        ] {
            let text = format!("key: \"{secret}\", next");
            let redacted = redactor.redact_text(&text);
            assert!(!redacted.contains(&secret[8..]), "{redacted}");
            assert!(redacted.starts_with("key: \"[redacted]"), "{redacted}");
        }
        for word in [
            "task-oriented-programming-is-a-paradigm-of-ours",
            "disk-0123456789012345678901234567890",
            "sk-learn-has-many-classifiers-and-regressors",
            "-----BEGIN CERTIFICATE-----",
            "hf_hub",
        ] {
            assert_eq!(redactor.redact_text(word), word);
            assert!(!redactor.finds(word.as_bytes()));
        }
    }

    proptest! {
        #[test]
        fn nothing_of_a_known_secret_is_left(
            before in proptest::collection::vec(any::<u8>(), 0..60),
            after in proptest::collection::vec(any::<u8>(), 0..60),
            secret in "[a-zA-Z0-9+/=]{12,40}",
        ) {
            let redactor = Redactor::new([Secret::new(&secret)]);
            let bytes = [before.as_slice(), secret.as_bytes(), &after].concat();
            let (out, found) = redactor.redact(&bytes);
            prop_assert!(found > 0);
            prop_assert!(!out.windows(secret.len()).any(|window| window == secret.as_bytes()));
        }
    }
}
