//! The grammar of the command line.

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};

use crate::commands;

/// Write fast kernels and prove them
///
/// A task states a contract; a writer proposes candidates; the judge decides; the ledger remembers.
///
/// Exit codes: 0 done or accepted; 1 judged and not accepted, or goal not met; 2 bad usage or contract; 3 the
/// environment lacks something; 4 a contract, record or protected file changed; 5 internal fault; 130 interrupted,
/// resumable.
///
/// Example: ksmith run tasks/softmax
#[derive(Debug, Parser)]
#[command(name = "ksmith", version, max_term_width = 100, styles = styles(), help_expected = true)]
pub(crate) struct Cli {
    /// Print one JSON object on standard output; logs go to standard error
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print no progress and no remarks
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

fn styles() -> Styles {
    Styles::styled()
        .header(AnsiColor::Green.on_default().bold())
        .usage(AnsiColor::Green.on_default().bold())
        .literal(AnsiColor::Cyan.on_default())
        .placeholder(AnsiColor::Cyan.on_default())
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Doctor(commands::doctor::Args),
    New(commands::new::Args),
    Lint(commands::lint::Args),
    Abi(commands::abi::Args),
    Review(commands::review::Args),
    Run(Box<commands::run::Args>),
    Resume(commands::resume::Args),
    Answer(commands::answer::Args),
    Check(commands::check::Args),
    Test(commands::test::Args),
    Bench(commands::bench::Args),
    Profile(commands::profile::Args),
    Judge(commands::judge::Args),
    Log(commands::log::Args),
    Show(commands::show::Args),
    Diff(commands::diff::Args),
    Report(commands::report::Args),
    Postmortem(commands::postmortem::Args),
    Verify(commands::verify::Args),
    Export(commands::export::Args),
    Tool(commands::tool::Args),
    Mcp(commands::mcp::Args),
    Kda(commands::kda::Args),
    Know(commands::know::Args),
    Lore(commands::lore::Args),
    Toolchain(commands::toolchain::Args),
    Completions(commands::completions::Args),
    #[command(hide = true)]
    ProbeKernel(commands::probe_kernel::Args),
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use clap::CommandFactory as _;

    use super::*;

    /// The reference as it stands in `docs/commands.md`.
    fn reference() -> String {
        let mut text = String::from(
            "# Commands\n\nWritten by `KSMITH_WRITE_DOCS=1 cargo test -p ksmith reference`, and checked by the same test.\n",
        );
        let mut root = Cli::command().term_width(100);
        let _ = write!(
            text,
            "\n## ksmith\n\n```text\n{}\n```\n",
            plain(&root.render_long_help().to_string())
        );
        root.build();
        for command in root
            .get_subcommands_mut()
            .filter(|command| command.get_name() != "help" && !command.is_hide_set())
        {
            let name = command.get_name().to_owned();
            let help = command.clone().term_width(100).render_long_help().to_string();
            let _ = write!(text, "\n## ksmith {name}\n\n```text\n{}\n```\n", plain(&help));
        }
        text
    }

    fn plain(help: &str) -> String {
        help.lines()
            .map(str::trim_end)
            .collect::<Vec<_>>()
            .join("\n")
            .trim()
            .to_owned()
    }

    #[test]
    fn the_command_reference_is_the_help_text() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
        if std::env::var_os("KSMITH_WRITE_DOCS").is_some() {
            std::fs::write(&path, reference()).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == reference(),
            "docs/commands.md is stale: KSMITH_WRITE_DOCS=1 cargo test -p ksmith reference"
        );
    }

    #[test]
    fn the_grammar_is_sound_and_every_command_has_an_example() {
        Cli::command().debug_assert();
        for command in Cli::command()
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
        {
            let help = command
                .get_long_about()
                .map(ToString::to_string)
                .unwrap_or_default();
            let example = format!("Example: ksmith {}", command.get_name());
            assert!(help.contains(&example), "`{}` has no example", command.get_name());
        }
    }

    #[test]
    fn the_glossary_names_every_mechanism_and_exit_code() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/glossary.md");
        let text = std::fs::read_to_string(path).unwrap();
        for name in ksmith_loop::Mechanisms::all().names() {
            assert!(text.contains(&format!("| `{name}` |")), "{name}");
        }
        for code in ksmith_task::ExitCode::ALL {
            assert!(text.contains(&format!("| {} |", code as u8)), "{}", code as u8);
        }
    }
}
