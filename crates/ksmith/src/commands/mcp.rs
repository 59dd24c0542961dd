//! `ksmith mcp`

use std::path::PathBuf;

use super::Outcome;
use crate::ui::Ui;

/// Offer the probes of a run to its agent by the Model Context Protocol
///
/// Speaks the protocol on standard input and output, inside an agent's box, where KSMITH_TOOLS names the socket. The
/// same verbs as `ksmith tool`. Builds without the feature `mcp` say so (exit 3).
///
/// Example: ksmith mcp
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The socket of the tools [default: KSMITH_TOOLS]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

#[cfg(feature = "mcp")]
pub(crate) fn run(args: &Args, _: &mut Ui) -> Outcome {
    let socket = super::tool::socket(args.socket.as_ref())?;
    ksmith_agents::tools::serve_mcp(&socket)
        .map_err(|error| crate::failure::Failure::of(ksmith_task::ExitCode::Environment, &error))?;
    Ok(ksmith_task::ExitCode::Done)
}

#[cfg(not(feature = "mcp"))]
pub(crate) fn run(args: &Args, _: &mut Ui) -> Outcome {
    super::tool::socket(args.socket.as_ref())?;
    Err(
        crate::failure::Failure::new(ksmith_task::ExitCode::Environment, "this build has no MCP server")
            .hint("Build with `--features mcp`, or use `ksmith tool VERB`, which offers the same."),
    )
}
