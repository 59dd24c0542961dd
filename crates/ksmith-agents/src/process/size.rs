//! How large a candidate may be: a kernel that nobody can read is not reviewed, and generated tables hide things.

use super::{Cause, Refusal};

/// The limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeLimits {
    /// Lines of one file. Humanize's gate refuses at the same length.
    pub lines: usize,
    /// Bytes of all files.
    pub bytes: usize,
    /// Number of files.
    pub files: usize,
}

impl Default for SizeLimits {
    fn default() -> Self {
        Self {
            lines: 2000,
            bytes: 256 << 10,
            files: 32,
        }
    }
}

/// Checks the bytes of a candidate's files together; with more of them nothing of it is kept.
pub fn check_bytes(files: &[(String, Vec<u8>)], limits: SizeLimits) -> Option<Refusal> {
    let bytes: usize = files.iter().map(|(_, content)| content.len()).sum();
    (bytes > limits.bytes).then(|| {
        Refusal::new(
            Cause::TooLarge,
            format!("{bytes} bytes; at most {} are allowed", limits.bytes),
        )
    })
}

/// Checks number, bytes and lines of a candidate's files, given by path and content.
pub fn check_size(files: &[(String, Vec<u8>)], limits: SizeLimits) -> Option<Refusal> {
    let refuse = |detail| Refusal::new(Cause::TooLarge, detail);
    if files.len() > limits.files {
        let detail = format!("{} files; at most {} are allowed", files.len(), limits.files);
        return Some(refuse(detail));
    }
    check_bytes(files, limits).or_else(|| {
        files.iter().find_map(|(path, content)| {
            let lines = content.iter().filter(|byte| **byte == b'\n').count();
            (lines > limits.lines).then(|| {
                refuse(format!(
                    "`{path}` has {lines} lines; at most {} are allowed",
                    limits.lines
                ))
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_kept_and_named() {
        let limits = SizeLimits {
            lines: 2,
            bytes: 20,
            files: 2,
        };
        let file = |text: &str| ("k.c".to_owned(), text.as_bytes().to_vec());
        assert_eq!(check_size(&[file("a\nb\n")], limits), None);
        for (files, said) in [
            (vec![file("a\nb\nc\n")], "`k.c` has 3 lines"),
            (vec![file("twenty-one characters")], "21 bytes"),
            (vec![file(""), file(""), file("")], "3 files"),
        ] {
            let refusal = check_size(&files, limits).unwrap();
            assert_eq!(refusal.cause, Cause::TooLarge);
            assert!(refusal.detail.contains(said), "{refusal}");
        }
    }
}
