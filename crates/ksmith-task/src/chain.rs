//! Errors as text: one line for a record, with every cause behind the last.

use std::error::Error;

/// An error and its causes, outermost first, joined by `: `.
pub fn chain(error: &dyn Error) -> String {
    std::iter::successors(Some(error), |error| (**error).source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read `x`")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn causes_follow_the_error_that_they_explain() {
        let error = Outer(std::io::Error::other("no such file"));
        assert_eq!(chain(&error), "cannot read `x`: no such file");
    }
}
