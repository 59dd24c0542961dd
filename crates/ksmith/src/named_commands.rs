//! Every command that our texts name exists: docs, README, hints and fixes in the sources, against the grammar itself.

use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};

use crate::cli::Cli;

/// A place where a text names a command.
#[derive(Debug)]
struct Named {
    file: PathBuf,
    line: usize,
    words: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn files(folder: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" && name != "testdata" {
                files(&path, extensions, found);
            }
        } else if path
            .extension()
            .is_some_and(|extension| extensions.iter().any(|known| extension == *known))
        {
            found.push(path);
        }
    }
}

/// What follows `ksmith ` up to the end of the command: a quote, a line's end, or what prose puts behind a command.
fn command_at(rest: &str) -> Vec<String> {
    let end = rest.find([
        '`', '"', '\'', ';', ',', '#', '(', ')', '[', '|', '>', '&', '\\', '…',
    ]);
    let text = &rest[..end.unwrap_or(rest.len())];
    text.split_whitespace()
        .map(|word| word.trim_end_matches(['.', ':']).to_owned())
        .filter(|word| !word.is_empty())
        .collect()
}

/// Every command that a file names: behind a quote or a backtick always, in prose where the next word is a command of
/// ours.
fn named(path: &Path, known: &[String], found: &mut Vec<Named>) {
    let text = std::fs::read_to_string(path).unwrap();
    let is_page = path.extension().is_some_and(|extension| extension == "md");
    let mut in_block = false;
    for (number, line) in text.lines().enumerate() {
        if is_page && line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        // Placeholders in angle brackets and braces are words as any other.
        let line = line
            .replace("> ", "; ")
            .replace(['<', '{'], "X")
            .replace(['>', '}'], "");
        for (at, _) in line.match_indices("ksmith ") {
            let before = line[..at].chars().next_back();
            let rest = &line[at + "ksmith ".len()..];
            let words = command_at(rest);
            let Some(first) = words.first() else { continue };
            // A second space begins a column; the first line of what is signed is no command.
            if rest.starts_with(' ') || first == "certificate" {
                continue;
            }
            let is_word = first.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            let quoted = matches!(before, Some('`' | '"')) || (in_block && before.is_none());
            let prose = matches!(before, Some(' ' | '/')) && known.contains(first);
            let literal_in_rust = !is_page && before == Some('"') && !known.contains(first);
            if is_word && (quoted || prose) && !literal_in_rust {
                found.push(Named {
                    file: path.to_owned(),
                    line: number + 1,
                    words,
                });
            }
        }
    }
}

/// Values that a text cannot spell out.
fn with_values(words: &[String]) -> Vec<String> {
    let mut line = vec!["ksmith".to_owned()];
    let mut option = String::new();
    for word in words {
        let stands_for = word.chars().any(|c| c.is_ascii_uppercase()) || word.ends_with("..") || word == "X";
        line.push(match option.as_str() {
            "--head" | "--key" => "0".repeat(64),
            "tool" if stands_for => "check".to_owned(),
            "--wall" if stands_for => "60s".to_owned(),
            "--candidates" | "--seed" | "--cost-usd" if stands_for => "1".to_owned(),
            "--type" if stands_for && !word.contains('=') => "T=f32".to_owned(),
            _ => word.clone(),
        });
        option = word.clone();
    }
    line
}

/// Why a named command does not exist, if it does not. A bare mention may leave out what the command needs.
fn wrong(words: &[String]) -> Option<String> {
    // Prose may go on behind a command; what follows it is no argument then.
    let prose = |word: &String| {
        ["is", "and", "or", "with", "on", "at", "to", "in", "of", "for"].contains(&word.as_str())
    };
    let end = words.iter().position(prose).unwrap_or(words.len());
    match Cli::try_parse_from(with_values(&words[..end])) {
        Ok(_) => None,
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::MissingRequiredArgument
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => None,
            // `--head` alone: its value is left out.
            ErrorKind::InvalidValue if words[..end].last().is_some_and(|word| word.starts_with("--")) => None,
            _ => Some(error.to_string()),
        },
    }
}

#[test]
fn every_command_that_a_text_names_exists() {
    let root = root();
    let mut paths = vec![
        root.join("README.md"),
        root.join("CONTRIBUTING.md"),
        root.join("CHANGELOG.md"),
    ];
    files(&root.join("docs"), &["md"], &mut paths);
    files(&root.join("tasks"), &["md"], &mut paths);
    files(&root.join("crates"), &["rs", "md"], &mut paths);
    let known: Vec<String> = Cli::command()
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .collect();
    let mut found = Vec::new();
    for path in paths
        .iter()
        .filter(|path| !path.ends_with("src/named_commands.rs"))
    {
        named(path, &known, &mut found);
    }
    assert!(found.len() > 80, "only {} commands are named", found.len());
    let wrong: Vec<String> = found
        .iter()
        .filter_map(|named| {
            let error = wrong(&named.words)?;
            let place = named.file.strip_prefix(&root).unwrap_or(&named.file).display();
            Some(format!(
                "{place}:{}: ksmith {}\n    {}",
                named.line,
                named.words.join(" "),
                error.lines().next().unwrap_or_default()
            ))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn a_fix_that_fetches_says_so() {
    let machine = root().join("crates/ksmith-machine/src");
    let mut paths = Vec::new();
    files(&machine, &["rs"], &mut paths);
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        for (at, _) in text.match_indices("ksmith toolchain cuda") {
            let rest = &text[at + "ksmith toolchain cuda".len()..];
            assert!(rest.starts_with(" --install"), "{}", path.display());
        }
    }
}

#[test]
fn a_command_that_does_not_exist_is_found() {
    let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
    for missing in [
        "profile --impart FILE",
        "doctor --safely",
        "ablate",
        "toolchain rocm",
    ] {
        assert!(wrong(&words(missing)).is_some(), "{missing}");
    }
    for there in [
        "profile --import FILE",
        "verify RUN --head HASH",
        "lint TASK and",
        "run TASK --wall DURATION",
        "toolchain cuda --install",
    ] {
        assert_eq!(wrong(&words(there)), None, "{there}");
    }
}
