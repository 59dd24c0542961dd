//! Makes foreign text harmless for a terminal.

/// Removes control characters (C0, DEL and C1, so every escape sequence loses its start) and characters that reorder
/// or hide text, and keeps line feeds and tabs.
pub fn clean(text: &str) -> String {
    text.chars()
        .filter(|c| matches!(c, '\n' | '\t') || !(c.is_control() || is_invisible(*c)))
        .collect()
}

/// As [`clean`], on one line: line feeds and tabs become spaces.
pub fn clean_line(text: &str) -> String {
    clean(text).replace(['\n', '\t'], " ")
}

/// Bidirectional controls, zero-width characters, byte order mark, tags: with them a line shows something else than
/// it says.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_reordering_characters_are_removed() {
        assert_eq!(clean("a\u{1b}[31mb\u{9b}2Jc\u{7}\r\n\td"), "a[31mb2Jc\n\td");
        assert_eq!(clean_line("x\u{202e}y\u{200b}z\nw"), "xyz w");
        assert_eq!(clean("µs, 4 × faster"), "µs, 4 × faster");
    }
}
