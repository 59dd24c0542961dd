//! Shows an agent's request in the terminal as a difference and reads the answer.

use std::io::{BufRead as _, Write as _};

use ksmith_agents::writers::{Answer, Approver, Request};

/// Longest difference that is shown, in lines.
const LINES: usize = 120;

/// A person at the terminal.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Terminal;

impl Approver for Terminal {
    fn answer(&self, request: &Request) -> Answer {
        let mut err = std::io::stderr().lock();
        let _ = writeln!(err, "\n{}", ksmith_report::clean(&shown(request)));
        let _ = write!(err, "Grant it? [y/N] ");
        let _ = err.flush();
        let mut line = String::new();
        match std::io::stdin().lock().read_line(&mut line) {
            Ok(_) if matches!(line.trim(), "y" | "Y" | "yes") => Answer::Granted,
            Ok(_) | Err(_) => Answer::Denied,
        }
    }
}

fn shown(request: &Request) -> String {
    let count = request.diff.lines().count();
    let mut text = format!("{}:\n", request.what);
    for line in request.diff.lines().take(LINES) {
        text.push_str(line);
        text.push('\n');
    }
    if count > LINES {
        text.push_str(&format!("({} further lines)\n", count - LINES));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_difference_says_how_much_is_left_out() {
        let request = Request {
            what: "agent `x` left `y`".into(),
            diff: "+line\n".repeat(LINES + 5),
        };
        assert!(shown(&request).ends_with("(5 further lines)\n"));
    }
}
