//! New tasks: a folder that lints, judges and reads well, from a family or a C prototype.

mod from_prototype;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use from_prototype::scalar_fill;

use crate::abi::Prototype;
use crate::family::{FAMILIES, Family};
use crate::nearest::nearest;

/// What a new task begins from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// A family's example.
    Family(String),
    /// A C prototype; the reference is left to the user.
    Prototype(Prototype),
}

/// A task that could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScaffoldError {
    /// No such family.
    #[error("there is no family `{name}`{}; the families are {}", hint(.near), .known.join(", "))]
    Family {
        /// The name given.
        name: String,
        /// The families.
        known: Vec<String>,
        /// The nearest of them.
        near: Option<String>,
    },
    /// Not a task name.
    #[error("`{}` is not a task name: up to 64 letters, digits, `-` and `_`, a letter first", .0.escape_debug())]
    Name(String),
    /// Something is there already.
    #[error("`{}` exists and is not empty", .0.display())]
    Exists(PathBuf),
    /// The disk refused.
    #[error("cannot write `{}`", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

fn hint(near: &Option<String>) -> String {
    near.as_ref()
        .map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// Files of a new task by relative path, in the order they are written.
pub type Files = Vec<(PathBuf, String)>;

/// The files of a new task called `name`.
pub fn files(name: &str, start: &Start) -> Result<Files, ScaffoldError> {
    let valid = name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if !valid {
        return Err(ScaffoldError::Name(name.to_owned()));
    }
    match start {
        Start::Family(family) => {
            let Some(found) = Family::find(family) else {
                let known = FAMILIES.map(|family| family.name);
                return Err(ScaffoldError::Family {
                    name: family.clone(),
                    near: nearest(family, known).map(str::to_owned),
                    known: known.map(str::to_owned).into(),
                });
            };
            let entry = entry(name);
            let kernel = found.kernel.trim_start().replace("@ENTRY@", &entry);
            Ok(folder(
                name,
                found.about.trim(),
                found.task.replace("@NAME@", name),
                found.reference.to_owned(),
                kernel,
                &entry,
            ))
        }
        Start::Prototype(prototype) => Ok(from_prototype::files(name, prototype)),
    }
}

/// Writes a new task into `dir`, which must not exist or be empty; returns the files written.
pub fn write(dir: &Path, name: &str, start: &Start) -> Result<Vec<PathBuf>, ScaffoldError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ScaffoldError::Write { path, source }
    };
    let files = files(name, start)?;
    if dir.exists() && fs::read_dir(dir).map_err(failed(dir))?.next().is_some() {
        return Err(ScaffoldError::Exists(dir.to_owned()));
    }
    let mut written = Vec::new();
    for (relative, text) in files {
        let path = dir.join(relative);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed(parent))?;
        }
        fs::write(&path, text).map_err(failed(&path))?;
        written.push(path);
    }
    Ok(written)
}

/// The exported symbol of a task's baseline.
fn entry(name: &str) -> String {
    let symbol = name.replace('-', "_");
    // A task may be called like a C keyword or a library function; its kernel may not.
    format!("{symbol}_kernel")
}

fn folder(name: &str, about: &str, task: String, reference: String, kernel: String, entry: &str) -> Files {
    let manifest = format!(
        "schema = 1\nbackend = \"cpu\"\nsources = [\"kernel.c\"]\nentry = \"{entry}\"\nflags = [\"-O3\", \"-march=native\"]\nlibraries = [\"m\"]\n"
    );
    let readme = format!(
        "# {name}\n\n{about}\n\n- `task.toml`: the contract\n- `reference.c`: the float64 oracle\n- `baseline/cpu`: what is to be beaten\n\n\
         ```\nksmith lint {name}\nksmith run {name}\n```\n"
    );
    vec![
        ("task.toml".into(), task),
        ("reference.c".into(), reference.trim_start().to_owned()),
        ("baseline/cpu/candidate.toml".into(), manifest),
        ("baseline/cpu/kernel.c".into(), kernel),
        ("README.md".into(), readme),
    ]
}
