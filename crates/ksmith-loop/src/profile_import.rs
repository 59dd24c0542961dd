//! Reads a profile that Nsight Compute made, here or elsewhere. Nothing is run but the profiler's own reader, and that only
//! for its binary reports.

use std::path::Path;
use std::time::Duration;

use ksmith_insight::ncu::{self, Import, KernelProfile};
use ksmith_insight::reading::{self, Context, ProfileReading};
use ksmith_insight::{ProfileDigest, digest};
use ksmith_machine::LocalHost;
use ksmith_machine::host::{Command, Host as _};
use serde::Serialize;

use crate::RunError;

/// A report of a few kernels has no more.
const LARGEST: u64 = 64 << 20;
/// Time that the profiler's reader gets.
const READER_LIMIT: Duration = Duration::from_secs(120);

/// One kernel of a report, read.
#[derive(Debug, Clone, Serialize)]
pub struct ImportedProfile {
    /// Names of the report's kernels, in order.
    pub kernels: Vec<String>,
    /// The kernel that was read.
    pub profile: KernelProfile,
    /// The six dimensions, by rules.
    pub reading: ProfileReading,
    /// At most 2 KiB for a writer, with exactly one next edit.
    pub digest: ProfileDigest,
}

/// Reads one kernel of a report: the raw page as CSV, or an `.ncu-rep` file where `ncu` is installed. Without a name it
/// is the kernel that took longest.
///
/// # Errors
/// When the file is none, or holds no such kernel.
pub fn import_profile(file: &Path, kernel: Option<&str>) -> Result<ImportedProfile, RunError> {
    let report = ncu::import(&text_of(file)?).map_err(|error| RunError::Usage {
        what: format!("`{}` is no profile that can be read: {error}", file.display()),
        fix: format!(
            "Make the raw page: `{}`.",
            ncu::import_command("ncu", "FILE.ncu-rep").join(" ")
        ),
    })?;
    let kernels: Vec<String> = report.kernels.iter().map(|kernel| kernel.name.clone()).collect();
    let profile = choose(report, kernel).ok_or_else(|| RunError::Usage {
        what: format!("the report has no kernel `{}`", kernel.unwrap_or_default()),
        fix: format!("Its kernels: {}.", kernels.join(", ")),
    })?;
    // What the contract says of the work is not known here.
    let reading = reading::read(&profile, Context::default());
    let digest = digest(&profile, &reading);
    Ok(ImportedProfile {
        kernels,
        profile,
        reading,
        digest,
    })
}

fn choose(report: Import, wanted: Option<&str>) -> Option<KernelProfile> {
    let duration = |kernel: &KernelProfile| kernel.metrics.get("duration_ns").unwrap_or(0.0);
    report
        .kernels
        .into_iter()
        .filter(|kernel| wanted.is_none_or(|wanted| kernel.name == wanted))
        .reduce(|longest, other| {
            if duration(&other) > duration(&longest) {
                other
            } else {
                longest
            }
        })
}

fn text_of(file: &Path) -> Result<String, RunError> {
    let size = std::fs::metadata(file)
        .map_err(|error| RunError::Usage {
            what: format!("cannot read `{}`: {error}", file.display()),
            fix: "Name a report: the raw page as CSV, or an `.ncu-rep` file.".to_owned(),
        })?
        .len();
    if size > LARGEST {
        return Err(RunError::Usage {
            what: format!(
                "`{}` has {size} bytes: too many for a report of a few kernels",
                file.display()
            ),
            fix: "Profile one launch: `ncu --set full --launch-count 1 …`.".to_owned(),
        });
    }
    if file.extension().is_some_and(|extension| extension == "ncu-rep") {
        return converted(file);
    }
    let bytes = std::fs::read(file).map_err(RunError::io("read", file))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The raw page of a binary report, by the profiler itself.
fn converted(file: &Path) -> Result<String, RunError> {
    let host = LocalHost::new();
    let name = file.display().to_string();
    let by_hand = ncu::import_command("ncu", &name).join(" ");
    let lacking = |what: String| RunError::Usage {
        what,
        fix: format!(
            "Where `ncu` is installed: `{by_hand} > profile.csv`, then `ksmith profile --import profile.csv`."
        ),
    };
    let Some(program) = host.find("ncu") else {
        return Err(lacking(
            "an `.ncu-rep` file needs `ncu`, which is not on the search path".to_owned(),
        ));
    };
    let line = ncu::import_command(&program.to_string_lossy(), &name);
    let output = host.run(&Command::new(line[0].clone(), line[1..].iter().cloned()).limit(READER_LIMIT));
    match output.success() {
        Some(text) => Ok(text.to_owned()),
        None => Err(lacking(format!(
            "`ncu` could not read `{name}`: {}",
            output.stderr.trim()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../ksmith-insight/testdata/ncu/softmax_h200_raw.csv")
    }

    #[test]
    fn a_real_report_gives_a_digest_of_at_most_2_kib_with_one_next_edit() {
        let imported = import_profile(&report(), None).unwrap();
        assert_eq!(imported.kernels, ["softmax"]);
        let text = &imported.digest.text;
        assert!(text.len() <= 2048, "{}", text.len());
        assert_eq!(text.matches("Next edit: ").count(), 1);
        assert!(text.lines().last().unwrap().starts_with("Next edit: "));
        assert_eq!(imported.reading.dimensions.len(), 6);
    }

    #[test]
    fn a_wrong_file_a_wrong_kernel_and_a_missing_file_say_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("notes.csv");
        std::fs::write(&file, "nothing here").unwrap();
        for (error, what) in [
            (import_profile(&file, None), "no table that begins with `ID`"),
            (import_profile(&report(), Some("gemm")), "no kernel `gemm`"),
            (
                import_profile(&folder.path().join("none.csv"), None),
                "cannot read",
            ),
        ] {
            let error = error.unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
            assert_eq!(error.exit_code(), ksmith_task::ExitCode::Usage);
            assert!(error.hint().is_some());
        }
    }
}
