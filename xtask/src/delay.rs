//! Tasks and candidates of known length, made from `bench/delay`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Failure;

/// Steps of a kernel of 16 elements that takes about one microsecond: 7 ns a step on the machines seen so far.
const STEPS_PER_MICROSECOND: u32 = 9;

/// Steps of a kernel of about `microseconds`, a multiple of 100 so that whole percents are whole steps.
pub(crate) fn steps(microseconds: u32) -> u32 {
    (microseconds * STEPS_PER_MICROSECOND).next_multiple_of(100)
}

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Writes the task of a delay kernel of `steps` steps to `folder`.
pub(crate) fn write_task(folder: &Path, steps: u32) -> Result<(), Failure> {
    let from = root().join("bench/delay");
    fs::create_dir_all(folder)?;
    for name in ["task.toml", "reference.c"] {
        fs::copy(from.join(name), folder.join(name))?;
    }
    write_candidate(&folder.join("kernel"), steps)
}

/// Writes a candidate of `steps` steps to `folder`. Equal steps are equal bytes.
pub(crate) fn write_candidate(folder: &Path, steps: u32) -> Result<(), Failure> {
    fs::create_dir_all(folder)?;
    fs::copy(
        root().join("bench/delay/kernel/kernel.c"),
        folder.join("kernel.c"),
    )?;
    let manifest = format!(
        "schema = 1\nbackend = \"cpu\"\nsources = [\"kernel.c\"]\nentry = \"delay\"\nflags = [\"-O2\", \"-DSTEPS={steps}\"]\n"
    );
    fs::write(folder.join("candidate.toml"), manifest)?;
    Ok(())
}

/// Copies a candidate's folder, one level deep, byte for byte.
pub(crate) fn copy_candidate(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
