//! Whether a candidate was tried before under other names, or is one more shuffle of the same lines.
//!
//! A candidate that *is* an earlier one is refused: its verdict is known. One that is merely near is not, because a
//! fix of one sign is as near as anything; only where three near ones were dropped for the same reason is a fourth
//! refused.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use ksmith_task::Digest;

use super::tokens::normalised;
use super::{Cause, Refusal};

/// Similarity from which two candidates are near: of a kernel of 600 tokens about two lines may differ.
pub const NEAR: f64 = 0.95;
/// Near candidates dropped for one reason, after which another is refused.
const NEAR_DROPS: usize = 3;
/// Tokens of one window.
const WINDOW: usize = 5;

/// What a candidate's files come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    identity: Digest,
    windows: BTreeSet<u64>,
}

impl Fingerprint {
    /// Reads files, given by path and content. Sources count as tokens, the manifest by its values.
    pub fn of(files: &[(String, Vec<u8>)]) -> Self {
        let mut parts: Vec<(String, String)> = Vec::new();
        let mut windows = BTreeSet::new();
        for (path, content) in files {
            let text = String::from_utf8_lossy(content);
            if path.ends_with(".toml") {
                parts.push((path.clone(), values(&text)));
                continue;
            }
            let tokens = normalised(&text);
            for window in tokens.windows(WINDOW) {
                let mut hasher = DefaultHasher::new();
                window.hash(&mut hasher);
                windows.insert(hasher.finish());
            }
            parts.push((path.clone(), tokens.join("\u{1f}")));
        }
        parts.sort();
        Self {
            identity: Digest::of_parts(parts.iter().map(|(path, text)| (path.as_str(), text.as_bytes()))),
            windows,
        }
    }

    /// Whether both are one program under other names.
    pub fn is(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// Share of windows of five tokens that both have (Jaccard), 0 to 1; short texts without a window are never near.
    pub fn similarity(&self, other: &Self) -> f64 {
        let both = self.windows.intersection(&other.windows).count();
        let all = self.windows.union(&other.windows).count();
        if all == 0 { 0.0 } else { both as f64 / all as f64 }
    }
}

/// A manifest without comments and layout.
fn values(text: &str) -> String {
    text.parse::<toml::Table>()
        .map_or_else(|_| text.to_owned(), |table| table.to_string())
}

/// An earlier candidate of the run.
#[derive(Debug, Clone, Copy)]
pub struct Past<'a> {
    /// Its id.
    pub candidate: &'a str,
    /// Its files.
    pub fingerprint: &'a Fingerprint,
    /// The code under which it was dropped; absent for one that was kept or is undecided.
    pub dropped: Option<&'a str>,
}

/// Checks a candidate against all earlier ones.
pub fn check_repeat(new: &Fingerprint, past: &[Past<'_>]) -> Option<Refusal> {
    if let Some(same) = past.iter().find(|past| past.fingerprint.is(new)) {
        return Some(Refusal::new(
            Cause::Identical,
            format!("it is `{}` under other names", same.candidate),
        ));
    }
    let near: Vec<(&str, &str)> = past
        .iter()
        .filter_map(|past| Some((past.candidate, past.dropped?, past.fingerprint)))
        .filter(|(_, _, fingerprint)| fingerprint.similarity(new) >= NEAR)
        .map(|(candidate, code, _)| (candidate, code))
        .collect();
    near.iter().find_map(|(_, code)| {
        let same: Vec<&str> = near
            .iter()
            .filter(|(_, other)| other == code)
            .map(|(candidate, _)| *candidate)
            .collect();
        (same.len() >= NEAR_DROPS).then(|| {
            Refusal::new(
                Cause::NearIdentical,
                format!("it is nearly {}, all dropped with `{code}`", same.join(", ")),
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(body: &str) -> Vec<(String, Vec<u8>)> {
        let text = format!("void f(const float *x, float *y, long n) {{\n{body}\n}}\n");
        let manifest = "schema = 1\nentry = \"f\"\nflags = [\"-O3\"]\n";
        vec![
            ("candidate.toml".into(), manifest.into()),
            ("kernel.c".into(), text.into_bytes()),
        ]
    }

    fn long(last: &str) -> Fingerprint {
        let lines: Vec<String> = (0..60).map(|i| format!("y[{i}] = x[{i}] * {i}.5f;")).collect();
        Fingerprint::of(&kernel(&format!("{}\n{last}", lines.join("\n"))))
    }

    #[test]
    fn renamed_commented_and_re_laid_candidates_are_the_same_and_other_flags_are_not() {
        let one = kernel("float a = x[0]; y[0] = a;");
        let mut renamed = kernel("/* new */ float  b = x[0];\n\n y[0] = b;");
        assert!(Fingerprint::of(&one).is(&Fingerprint::of(&renamed)));
        renamed[0].1 = b"# faster\nschema = 1\nentry = \"f\"\nflags = [ \"-O3\" ]\n".to_vec();
        assert!(Fingerprint::of(&one).is(&Fingerprint::of(&renamed)));
        renamed[0].1 = b"schema = 1\nentry = \"f\"\nflags = [\"-O2\"]\n".to_vec();
        assert!(!Fingerprint::of(&one).is(&Fingerprint::of(&renamed)));
        let other = kernel("float a = x[0]; y[0] = a + 1;");
        assert!(!Fingerprint::of(&one).is(&Fingerprint::of(&other)));
    }

    #[test]
    fn an_earlier_candidate_is_refused_whatever_became_of_it() {
        let past = long("y[60] = 0;");
        let past = [Past {
            candidate: "c0001",
            fingerprint: &past,
            dropped: None,
        }];
        let refusal = check_repeat(&long("y[60] = 0;"), &past).unwrap();
        assert_eq!(refusal.cause, Cause::Identical);
        assert_eq!(check_repeat(&long("y[60] = 1;"), &past), None);
    }

    #[test]
    fn a_near_candidate_is_refused_after_three_drops_for_one_reason_only() {
        let texts: Vec<Fingerprint> = (0..4).map(|i| long(&format!("y[60] = {i};"))).collect();
        let codes = [
            "dev/wrong-value",
            "dev/wrong-value",
            "dev/crash",
            "dev/wrong-value",
        ];
        let past: Vec<Past<'_>> = texts
            .iter()
            .zip(codes)
            .zip(["c1", "c2", "c3", "c4"])
            .map(|((fingerprint, code), candidate)| Past {
                candidate,
                fingerprint,
                dropped: Some(code),
            })
            .collect();
        let new = long("y[60] = 9;");
        assert!(new.similarity(&texts[0]) >= NEAR);
        // A fix of one sign after two failures is welcome.
        assert_eq!(check_repeat(&new, &past[..3]), None);
        let refusal = check_repeat(&new, &past).unwrap();
        assert_eq!(refusal.cause, Cause::NearIdentical);
        assert_eq!(
            refusal.detail,
            "it is nearly c1, c2, c4, all dropped with `dev/wrong-value`"
        );
        assert_eq!(
            check_repeat(&Fingerprint::of(&kernel("y[0] = x[1];")), &past),
            None
        );
    }
}
