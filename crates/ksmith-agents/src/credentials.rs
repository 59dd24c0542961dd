//! What keys look like: the one list for what is taken out of a record and what is refused in a candidate.
//!
//! A net, not a proof: a key of an unknown make, or one that is split or encoded, passes.

/// Beginning of a make of keys, least number of key characters that follow, and what it is. The beginnings are the
/// vendors' own published ones; the first that fits names the key.
const MAKES: [(&str, usize, &str); 17] = [
    ("sk-ant-", 20, "an Anthropic key"),
    ("sk-proj-", 20, "an OpenAI key"),
    ("sk-", 20, "a model key"),
    ("gsk_", 30, "a Groq key"),
    ("xai-", 40, "an xAI key"),
    ("hf_", 30, "a Hugging Face token"),
    ("ghp_", 30, "a GitHub token"),
    ("gho_", 30, "a GitHub token"),
    ("ghs_", 30, "a GitHub token"),
    ("github_pat_", 30, "a GitHub token"),
    ("glpat-", 16, "a GitLab token"),
    ("npm_", 30, "an npm token"),
    ("AKIA", 16, "an AWS key id"),
    ("ASIA", 16, "an AWS key id"),
    ("AIza", 30, "a Google key"),
    ("xoxb-", 16, "a Slack token"),
    ("xoxp-", 16, "a Slack token"),
];

/// A key that begins at some byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    /// What its shape is that of.
    pub(crate) kind: &'static str,
    /// Bytes of it.
    pub(crate) length: usize,
}

/// The key that begins at byte `at`.
pub(crate) fn key_at(bytes: &[u8], at: usize) -> Option<Key> {
    let rest = &bytes[at..];
    // Most bytes begin no key; this keeps a scan at a few nanoseconds a byte.
    if !matches!(rest[0], b's' | b'g' | b'h' | b'A' | b'x' | b'n' | b'-') {
        return None;
    }
    if rest.starts_with(b"-----BEGIN ") {
        return private_key(rest);
    }
    if at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_') {
        return None;
    }
    MAKES.iter().find_map(|(prefix, least, kind)| {
        let tail = rest.strip_prefix(prefix.as_bytes())?;
        let length = tail.iter().take_while(|byte| is_key_byte(**byte)).count();
        // Words joined by dashes are no key: keys hold digits.
        let has_digit = tail[..length].iter().any(u8::is_ascii_digit);
        (length >= *least && has_digit).then_some(Key {
            kind,
            length: prefix.len() + length,
        })
    })
}

/// Whether a byte may stand in a key.
pub(crate) fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// A private key in PEM, also inside a JSON string; to the end of the text where its last line is missing.
fn private_key(rest: &[u8]) -> Option<Key> {
    let head = String::from_utf8_lossy(&rest[..rest.len().min(60)]);
    let line = head.split("-----").nth(1)?;
    if !line.ends_with("PRIVATE KEY") {
        return None;
    }
    let find = |from: usize, what: &[u8]| {
        rest[from..]
            .windows(what.len())
            .position(|window| window == what)
            .map(|at| from + at + what.len())
    };
    let end = find(0, b"-----END ").and_then(|label| find(label, b"-----"));
    Some(Key {
        kind: "a private key",
        length: end.unwrap_or(rest.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_make_is_found_whole_and_only_at_the_start_of_a_word() {
        for (prefix, least, kind) in MAKES {
            let key = format!("{prefix}{}7", "a".repeat(least - 1));
            let found = key_at(format!("({key})").as_bytes(), 1).unwrap();
            assert_eq!((found.kind, found.length), (kind, key.len()), "{prefix}");
            assert_eq!(key_at(format!("x{key}").as_bytes(), 1), None, "{prefix}");
            let short = &key[..key.len() - 1];
            assert_eq!(key_at(short.as_bytes(), 0), None, "{prefix} without a digit");
        }
        let pem = b"-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nmore";
        assert_eq!(key_at(pem, 0).unwrap().length, pem.len() - 5);
    }
}
