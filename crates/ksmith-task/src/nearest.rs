//! The nearest known word to a mistyped one (the one user of `strsim`).

/// The known word closest to `word`, if it is close enough to be what was meant.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(word, candidate);
            let prefix = word.len() >= 3 && (candidate.starts_with(word) || word.starts_with(candidate));
            (if prefix { distance.min(1) } else { distance }, candidate)
        })
        .filter(|(distance, candidate)| *distance <= (word.len().max(candidate.len()) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_swapped_letter_finds_its_word() {
        assert_eq!(nearest("insputs", ["inputs", "outputs"]), Some("inputs"));
        assert_eq!(nearest("tolerence", ["inputs", "outputs"]), None);
    }
}
