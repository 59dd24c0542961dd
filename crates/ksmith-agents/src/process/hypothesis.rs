//! One candidate tests one hypothesis: several changes at once teach nothing about any of them.

use super::{Cause, Refusal};

/// Characters of a hypothesis.
const LONGEST: usize = 400;

/// Checks that a text states one idea: one sentence on one line, and no list.
pub fn check_hypothesis(text: &str) -> Option<Refusal> {
    let refuse = |detail: &str| Some(Refusal::new(Cause::Hypothesis, detail));
    // A label in brackets at the end names a configuration of the idea.
    let idea = match text
        .trim_end()
        .strip_suffix(']')
        .and_then(|inner| inner.rfind('['))
    {
        Some(at) => &text[..at],
        None => text,
    }
    .trim();
    if !idea.chars().any(char::is_alphabetic) {
        return refuse("there is none");
    }
    if idea.chars().count() > LONGEST {
        return refuse("it is longer than 400 characters");
    }
    if idea.lines().count() > 1 {
        return refuse("it has more than one line");
    }
    if sentences(idea) > 1 {
        return refuse("it has more than one sentence");
    }
    let lower = format!(" {} ", idea.to_lowercase());
    let is_list = [
        "(1)",
        " 1) ",
        "; also ",
        " and also ",
        ", also ",
        "; and ",
        "; then ",
    ]
    .iter()
    .any(|mark| lower.contains(mark));
    if is_list || idea.matches(';').count() > 1 {
        return refuse("it lists several changes");
    }
    None
}

/// Sentences: a stop followed by white space and a capital begins another.
fn sentences(text: &str) -> usize {
    let mut count = 1;
    let mut rest = text;
    while let Some(at) = rest.find(['.', '!', '?']) {
        rest = &rest[at + 1..];
        let next = rest.trim_start();
        if next.len() < rest.len() && next.chars().next().is_some_and(char::is_uppercase) {
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_idea_passes_with_or_without_its_configuration() {
        for text in [
            "Vector registers over the row with a polynomial exp of 2 ulp replace one libm call per element. [lanes=8]",
            "With float32 sums no lane is spent on conversions; exp is a polynomial.",
            "the baseline's source gains from -O3 -march=native",
            "Tiles of 1.5 KiB, i.e. half of a way, stay in the first-level cache",
        ] {
            assert_eq!(check_hypothesis(text), None, "{text}");
        }
    }

    #[test]
    fn none_and_several_are_refused() {
        for (text, said) in [
            ("", "there is none"),
            (" [lanes=8]", "there is none"),
            ("Vectorise. Then unroll.", "more than one sentence"),
            ("Vectorise\nunroll", "more than one line"),
            ("(1) vectorise (2) unroll", "lists several"),
            ("vectorise; unroll; tile", "lists several"),
        ] {
            let refusal = check_hypothesis(text).unwrap();
            assert!(refusal.detail.contains(said), "{text}: {refusal}");
        }
    }
}
