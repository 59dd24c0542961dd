//! Numbers on the command line, with messages that say what was expected.

/// A seed: any whole number from 0.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        format!(
            "`{text}` is no seed; expected a whole number from 0 to {}",
            u64::MAX
        )
    })
}

/// A number of model tokens; 0 allows none.
pub(crate) fn tokens(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is no number of tokens; expected a whole number from 0"))
}

/// A number of things of which at least one is needed.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("0 allows nothing; expected a whole number from 1".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err(format!("`{text}` is no count; expected a whole number from 1")),
    }
}

/// An amount of money, from 0.
pub(crate) fn money(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|amount: &f64| amount.is_finite() && *amount >= 0.0)
        .ok_or_else(|| format!("`{text}` is no amount; expected US dollars from 0, for example `2.50`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_wrong_ones_say_what_was_expected() {
        assert_eq!((seed("7"), count("60"), money("0")), (Ok(7), Ok(60), Ok(0.0)));
        for text in ["-1", "1.5", "x", ""] {
            assert!(seed(text).unwrap_err().contains("expected a whole number from 0"));
            assert!(
                count(text)
                    .unwrap_err()
                    .contains("expected a whole number from 1")
            );
        }
        assert!(count("0").unwrap_err().starts_with("0 allows nothing"));
        for text in ["-1", "inf", "NaN", "much"] {
            assert!(money(text).unwrap_err().contains("expected US dollars"), "{text}");
        }
    }
}
