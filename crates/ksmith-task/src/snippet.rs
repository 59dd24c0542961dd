//! A mistake in a text file, drawn for a terminal: a sentence, the line with its neighbours, a marker, a label.
//!
//! Plain text without colours; columns are characters. One place in one file is all that our errors show.

use std::fmt::Write as _;
use std::ops::Range;

/// Columns after which a sentence wraps.
const WIDTH: usize = 98;
/// Columns of a tab.
const TAB: usize = 4;

/// Writes a sentence, `first` before its first line and `rest` before the others.
pub(crate) fn sentence(out: &mut String, first: &str, rest: &str, text: &str) {
    let mut line = first.to_owned();
    for (number, paragraph) in text.lines().enumerate() {
        if number > 0 {
            out.push_str(&std::mem::replace(&mut line, rest.to_owned()));
            out.push('\n');
        }
        for (index, word) in paragraph.split(' ').enumerate() {
            if index > 0 && columns(&line) + 1 + columns(word) > WIDTH {
                out.push_str(&std::mem::replace(&mut line, rest.to_owned()));
                out.push('\n');
            } else if index > 0 {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    out.push_str(&line);
    out.push('\n');
}

/// Draws the line of `span` (bytes of `text`) between its neighbours, marks the span and writes `label` below.
///
/// `place` names it in the frame. A span of several lines is marked on its first.
pub(crate) fn draw(out: &mut String, place: &str, text: &str, span: &Range<usize>, label: &str) {
    let before = text.get(..span.start).unwrap_or_default();
    let marked = before.matches('\n').count();
    let start = before.len() - before.rfind('\n').map_or(0, |at| at + 1);
    let lines: Vec<&str> = text.lines().collect();
    let line = lines.get(marked).copied().unwrap_or_default();
    let end = (start + span.len()).min(line.len());
    let indent = columns(line.get(..start).unwrap_or_default());
    let wide = columns(line.get(start..end).unwrap_or_default()).max(1);
    let (left, right) = (wide / 2, wide - 1 - wide / 2);
    let last = (marked + 1).min(lines.len().saturating_sub(1)).max(marked);
    let digits = (last + 1).to_string().len();
    let margin = " ".repeat(digits + 2);
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{margin}╭─[{place}]");
    for number in marked.saturating_sub(1)..=last {
        let shown = lines.get(number).copied().unwrap_or_default();
        let shown = shown.replace('\t', &" ".repeat(TAB));
        let _ = writeln!(out, " {:>digits$} │ {shown}", number + 1);
        if number == marked {
            let _ = writeln!(
                out,
                "{margin}· {:indent$}{}┬{}",
                "",
                "─".repeat(left),
                "─".repeat(right)
            );
            let _ = writeln!(out, "{margin}· {:1$}╰── {label}", "", indent + left);
        }
    }
    let _ = writeln!(out, "{margin}╰────");
}

fn columns(text: &str) -> usize {
    text.chars().map(|c| if c == '\t' { TAB } else { 1 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str, span: Range<usize>) -> String {
        let mut out = String::new();
        draw(&mut out, "f:1:1", text, &span, "here");
        out
    }

    #[test]
    fn a_marker_stands_below_its_span_whatever_comes_before_it() {
        assert_eq!(
            drawn("\tä = wrong\nnext\n", 6..11),
            "   ╭─[f:1:1]\n 1 │     ä = wrong\n   ·         ──┬──\n   ·           ╰── here\n 2 │ next\n   ╰────\n"
        );
    }

    #[test]
    fn ends_of_files_and_spans_of_several_lines_are_drawn() {
        for (text, span) in [("", 0..0), ("a", 1..1), ("a\n", 2..2), ("a = [\n1,\n]\n", 4..10)] {
            let drawn = drawn(text, span.clone());
            assert!(drawn.contains("╰── here"), "{text:?} {span:?}: {drawn}");
        }
    }

    #[test]
    fn sentences_wrap_between_words() {
        let mut out = String::new();
        sentence(&mut out, "  × ", "  │ ", &"word ".repeat(30));
        assert!(
            out.lines().count() == 2 && out.lines().all(|line| columns(line) <= WIDTH),
            "{out}"
        );
        assert!(
            out.lines()
                .nth(1)
                .is_some_and(|line| line.starts_with("  │ word")),
            "{out}"
        );
    }
}
