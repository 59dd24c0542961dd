//! Leaving off within a step: the user wants to stop, or the time is spent.

use std::fmt;
use std::sync::Arc;

/// Asked between gates, cases and process sets, never while a call is timed. Clones share it; the default never halts.
#[derive(Clone, Default)]
pub struct Halt(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Halt {
    /// Halts as soon as `wanted` says so.
    pub fn when(wanted: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(wanted)))
    }

    /// Whether to leave off.
    pub fn is_wanted(&self) -> bool {
        self.0.as_ref().is_some_and(|wanted| wanted())
    }
}

impl fmt::Debug for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Halt").field("wanted", &self.is_wanted()).finish()
    }
}
