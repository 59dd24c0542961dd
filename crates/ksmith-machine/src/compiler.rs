//! C and C++ compilers on the search path.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::host::{Command, Host};

/// One compiler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compiler {
    /// Family and language.
    pub kind: CompilerKind,
    /// Where it lies.
    pub path: PathBuf,
    /// The version number alone (`12.2.0`).
    pub version: String,
    /// The first line it prints of itself.
    pub banner: String,
}

/// Family and language of a compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum CompilerKind {
    Gcc,
    Gxx,
    Clang,
    Clangxx,
}

const CANDIDATES: [(CompilerKind, &str); 4] = [
    (CompilerKind::Gcc, "gcc"),
    (CompilerKind::Gxx, "g++"),
    (CompilerKind::Clang, "clang"),
    (CompilerKind::Clangxx, "clang++"),
];

/// Asks each known compiler for its version. One that does not answer is left out.
pub(crate) fn read(host: &dyn Host) -> Vec<Compiler> {
    let mut compilers = Vec::new();
    for (kind, program) in CANDIDATES {
        let Some(path) = host.find(program) else { continue };
        let output = host.run(&Command::new(program, ["--version"]));
        let Some(banner) = output.success().and_then(|text| text.lines().next()) else {
            continue;
        };
        let Some(version) = version_in(banner) else {
            continue;
        };
        // On macOS `gcc` is clang under another name.
        if banner.contains("clang") != matches!(kind, CompilerKind::Clang | CompilerKind::Clangxx) {
            continue;
        }
        compilers.push(Compiler {
            kind,
            path,
            version,
            banner: banner.to_owned(),
        });
    }
    compilers
}

/// The last dotted number of a banner: `gcc (Debian 12.2.0-14) 12.2.0` gives `12.2.0`.
pub(crate) fn version_in(banner: &str) -> Option<String> {
    let number = |word: &str| {
        let word = word.trim_start_matches(['v', 'V', '(']);
        let end = word
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(word.len());
        let number = word[..end].trim_end_matches('.');
        (number.contains('.') && number.starts_with(|c: char| c.is_ascii_digit())).then(|| number.to_owned())
    };
    banner.split_whitespace().rev().find_map(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_real_banners() {
        let cases = [
            ("gcc (Debian 12.2.0-14+deb12u1) 12.2.0", Some("12.2.0")),
            ("Debian clang version 14.0.6", Some("14.0.6")),
            ("Apple clang version 15.0.0 (clang-1500.3.9.4)", Some("15.0.0")),
            ("gcc (Ubuntu 13.2.0-23ubuntu4) 13.2.0", Some("13.2.0")),
            ("Cuda compilation tools, release 13.0, V13.0.88", Some("13.0.88")),
            ("Python 3.11.7", Some("3.11.7")),
            ("2.1.197 (Claude Code)", Some("2.1.197")),
            ("codex-cli 0.171.0", Some("0.171.0")),
            ("no number here", None),
        ];
        for (banner, version) in cases {
            assert_eq!(version_in(banner).as_deref(), version, "{banner}");
        }
    }
}
