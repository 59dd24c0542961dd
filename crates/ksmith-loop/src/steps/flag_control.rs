//! The flag control: the baseline's source under the best of six flag sets.
//!
//! The honest yardstick: a gain that better flags give as well is no gain of an idea (JUDGE, "Flag control").

use std::path::Path;

use ksmith_ledger::Role;
use ksmith_task::{Backend, Proposal};

use crate::RunError;
use crate::session::Session;

/// The direction under which flag controls stand in the records.
pub(crate) const DIRECTION: &str = "flags";

/// Six flag sets that a sensible person would try. Those that change results meet the same gates as any candidate.
const FLAG_SETS: [&[&str]; 6] = [
    &["-O2", "-march=native"],
    &["-O3", "-march=native"],
    &["-O3", "-march=native", "-funroll-loops"],
    &[
        "-O3",
        "-march=native",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-mprefer-vector-width=512",
    ],
    &["-O3", "-march=native", "-ffast-math"],
    &[
        "-O3",
        "-march=native",
        "-ffast-math",
        "-funroll-loops",
        "-mprefer-vector-width=512",
    ],
];

/// The same for device code, where the compiler has fewer switches and always optimises.
const DEVICE_FLAG_SETS: [&[&str]; 2] = [&["--use_fast_math", "--restrict"], &["--restrict"]];

impl Session<'_> {
    pub(crate) fn propose_flag_control(&mut self) -> Result<(), RunError> {
        let round = self.memory.last_round() + 1;
        let workspace = self.workspace(round)?;
        let sets: &[&[&str]] = match self.backend {
            Backend::Cpu => &FLAG_SETS,
            Backend::Cuda => &DEVICE_FLAG_SETS,
        };
        for (index, flags) in sets.iter().enumerate() {
            let folder = workspace.join(format!("flags-{index}"));
            copy_with_flags(&self.baseline, &folder, flags)?;
            let proposal = Proposal {
                folder,
                hypothesis: format!("the baseline's source gains from {}", flags.join(" ")),
                predicted_gain: None,
                direction: DIRECTION.into(),
                parent: None,
            };
            self.record_proposal(&proposal, round, Role::FlagControl)?;
        }
        super::propose::remove(&workspace)?;
        self.build_ahead(round)
    }
}

/// Copies a candidate folder with other flags in its manifest.
fn copy_with_flags(from: &Path, to: &Path, flags: &[&str]) -> Result<(), RunError> {
    copy(from, to)?;
    let manifest = to.join("candidate.toml");
    let text = std::fs::read_to_string(&manifest).map_err(RunError::io("read", &manifest))?;
    let mut table: toml::Table = text
        .parse()
        .map_err(|error| RunError::Internal(format!("the baseline's manifest: {error}")))?;
    table.insert(
        "flags".into(),
        toml::Value::Array(flags.iter().map(|flag| (*flag).into()).collect()),
    );
    std::fs::write(&manifest, table.to_string()).map_err(RunError::io("write", &manifest))
}

fn copy(from: &Path, to: &Path) -> Result<(), RunError> {
    std::fs::create_dir_all(to).map_err(RunError::io("create", to))?;
    for entry in std::fs::read_dir(from).map_err(RunError::io("read folder", from))? {
        let path = entry.map_err(RunError::io("read folder", from))?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &target)?;
        } else {
            std::fs::copy(&path, &target).map_err(RunError::io("copy", &path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_flags_of_the_manifest_change() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("from");
        std::fs::create_dir_all(&from).unwrap();
        std::fs::write(from.join("kernel.c"), "void f(void) {}\n").unwrap();
        let manifest =
            "schema = 1\nbackend = \"cpu\"\nsources = [\"kernel.c\"]\nentry = \"f\"\nflags = [\"-O3\"]\n";
        std::fs::write(from.join("candidate.toml"), manifest).unwrap();
        let to = folder.path().join("to");
        copy_with_flags(&from, &to, &["-O2", "-march=native"]).unwrap();
        let mut wanted: toml::Table = manifest.parse().unwrap();
        wanted["flags"] = toml::Value::Array(vec!["-O2".into(), "-march=native".into()]);
        let found: toml::Table = std::fs::read_to_string(to.join("candidate.toml"))
            .unwrap()
            .parse()
            .unwrap();
        assert_eq!(found, wanted);
        assert_eq!(
            std::fs::read_to_string(to.join("kernel.c")).unwrap(),
            "void f(void) {}\n"
        );
    }

    #[test]
    fn every_flag_of_the_control_is_on_the_allow_list() {
        for flag in FLAG_SETS.into_iter().flatten() {
            assert!(ksmith_task::candidate::check_cpu_flag(flag).is_ok(), "{flag}");
        }
        for flag in DEVICE_FLAG_SETS.into_iter().flatten() {
            assert!(ksmith_task::candidate::check_cuda_flag(flag).is_ok(), "{flag}");
        }
    }
}
