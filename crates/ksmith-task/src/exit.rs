//! Exit codes: different outcomes, different codes (DESIGN §5).

/// What the process tells its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ExitCode {
    /// Done, or judged and accepted.
    Done = 0,
    /// Judged and not accepted, or the goal was not met.
    NotAccepted = 1,
    /// Bad usage, contract or candidate manifest.
    Usage = 2,
    /// The environment lacks something; the message names it and the fix.
    Environment = 3,
    /// A contract, record or protected file changed.
    Changed = 4,
    /// An internal fault.
    Internal = 5,
    /// Interrupted; the run can be resumed.
    Interrupted = 130,
}

impl ExitCode {
    /// All codes, for the documentation and its test.
    pub const ALL: [Self; 7] = [
        Self::Done,
        Self::NotAccepted,
        Self::Usage,
        Self::Environment,
        Self::Changed,
        Self::Internal,
        Self::Interrupted,
    ];
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}
