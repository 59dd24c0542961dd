//! Ctrl-C and SIGTERM: the first asks the run to leave off within the step in flight, the second stops at once.
//!
//! Stopping at once is as safe as a crash: every finished step is synced.

use std::io::Write as _;

use ksmith_loop::Interrupt;
use ksmith_task::ExitCode;

use crate::failure::Failure;

/// An interrupt that signals set.
pub(crate) fn interrupt() -> Result<Interrupt, Failure> {
    let interrupt = Interrupt::default();
    let shared = interrupt.clone();
    ctrlc::set_handler(move || {
        if shared.request() {
            #[expect(
                clippy::exit,
                reason = "the second signal asks to stop at once, from a thread of its own"
            )]
            std::process::exit(ExitCode::Interrupted as i32);
        }
        let _ = writeln!(
            std::io::stderr(),
            "stopping: the step in flight is thrown away, nothing finished is lost; once more stops at once"
        );
    })
    .map_err(Failure::internal)?;
    Ok(interrupt)
}
