//! Text differences for people and agents; the only file here that knows the crate `similar`.

use similar::TextDiff;

/// Longest text that is compared; beyond it only sizes are named.
const MOST: usize = 256 << 10;

/// A unified difference of one file with three lines around each change; empty if nothing differs.
pub fn unified(name: &str, before: &[u8], after: &[u8]) -> String {
    if before == after {
        return String::new();
    }
    let (Ok(old), Ok(new)) = (std::str::from_utf8(before), std::str::from_utf8(after)) else {
        return sizes(name, before, after);
    };
    if old.len().max(new.len()) > MOST {
        return sizes(name, before, after);
    }
    TextDiff::from_lines(old, new)
        .unified_diff()
        .context_radius(3)
        .header(&format!("a/{name}"), &format!("b/{name}"))
        .to_string()
}

fn sizes(name: &str, before: &[u8], after: &[u8]) -> String {
    format!(
        "{name}: {} bytes before, {} bytes after; not shown as text\n",
        before.len(),
        after.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_the_file_and_the_lines() {
        let text = unified("kernel.c", b"a\nb\n", b"a\nc\n");
        assert!(
            text.contains("--- a/kernel.c") && text.contains("-b") && text.contains("+c"),
            "{text}"
        );
        assert_eq!(unified("kernel.c", b"a", b"a"), "");
        assert!(unified("x", b"\xff", b"a").contains("not shown"));
    }
}
