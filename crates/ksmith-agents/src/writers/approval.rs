//! Requests that leave the policy: denied, unless a person at the terminal says yes to what is shown.

/// Something that an agent wants and the policy does not give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// One sentence: who wants what.
    pub what: String,
    /// The change as a difference, for the terminal.
    pub diff: String,
}

/// What a person says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Not this time.
    Denied,
    /// This once.
    Granted,
}

/// Whoever answers requests.
pub trait Approver: Send + Sync {
    /// Answers one request; nothing else of the session goes on meanwhile.
    fn answer(&self, request: &Request) -> Answer;
}

/// Denies everything: the default, and the only answer where nobody can be asked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Deny;

impl Approver for Deny {
    fn answer(&self, _: &Request) -> Answer {
        Answer::Denied
    }
}
