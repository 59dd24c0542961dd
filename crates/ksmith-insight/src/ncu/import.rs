//! Kernels of a report.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Metrics, table};

/// Why a report could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// No table in the text.
    #[error("no table that begins with `ID` (was it made with `--csv --page raw`?)")]
    NoTable,
    /// Another page of the profiler.
    #[error("this is the details page: make the raw page with `ncu --import FILE --csv --page raw`")]
    WrongPage,
    /// A header and nothing else.
    #[error("the table holds no kernel")]
    NoRows,
    /// A row that does not fit.
    #[error("a row has {got} fields of {wanted}: the file is cut or edited")]
    Cut {
        /// Fields of the row.
        got: usize,
        /// Fields of the header.
        wanted: usize,
    },
    /// Not CSV.
    #[error("malformed CSV: {0}")]
    Malformed(String),
    /// Too large.
    #[error("{0} bytes are more than a report of a few kernels has")]
    TooLarge(usize),
}

/// A report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Import {
    /// Its kernels, in order.
    pub kernels: Vec<KernelProfile>,
}

/// One profiled launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelProfile {
    /// Kernel name.
    pub name: String,
    /// Block shape as printed.
    pub block: String,
    /// Grid shape as printed.
    pub grid: String,
    /// Compute capability as printed (`9.0`).
    pub capability: String,
    /// Typed metrics under our names.
    pub metrics: Metrics,
    /// Columns of the report that held a number.
    pub columns: usize,
}

/// Reads the raw page of a report.
///
/// # Errors
/// If the text is no raw page, or is cut.
pub fn import(text: &str) -> Result<Import, ImportError> {
    let table = table::read(text)?;
    let column = |name: &str| table.header.iter().position(|header| header == name);
    let places = ["Kernel Name", "Block Size", "Grid Size", "CC"].map(column);
    let kernels = table
        .rows
        .iter()
        .map(|row| {
            let cell = |place: Option<usize>| {
                place
                    .and_then(|place| row.get(place))
                    .cloned()
                    .unwrap_or_default()
            };
            let mut numbers = BTreeMap::new();
            for ((name, unit), value) in table.header.iter().zip(&table.units).zip(row) {
                if let Some(number) = number(value) {
                    numbers.insert(name.as_str(), normalise(number, unit));
                }
            }
            KernelProfile {
                name: cell(places[0]),
                block: cell(places[1]),
                grid: cell(places[2]),
                capability: cell(places[3]),
                columns: numbers.len(),
                metrics: Metrics::of(&numbers),
            }
        })
        .collect();
    Ok(Import { kernels })
}

/// A number with thousands separators; `n/a`, `nan`, infinities and shapes are none.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') {
        return None;
    }
    text.replace(',', "")
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite())
}

/// Brings times to nanoseconds and sizes to bytes; the profiler picks the unit by magnitude.
fn normalise(number: f64, unit: &str) -> f64 {
    let unit = unit.split('/').next().unwrap_or(unit).trim();
    number
        * match unit {
            "us" | "usecond" => 1e3,
            "ms" | "msecond" => 1e6,
            "s" | "second" => 1e9,
            "Kbyte" => 1e3,
            "Mbyte" => 1e6,
            "Gbyte" => 1e9,
            "Tbyte" => 1e12,
            _ => 1.0,
        }
}

/// The command that turns an `.ncu-rep` file into the raw page: program, then arguments.
pub fn import_command(ncu: &str, file: &str) -> Vec<String> {
    [ncu, "--import", file, "--csv", "--page", "raw"]
        .map(str::to_owned)
        .to_vec()
}

/// The command that profiles one launch of a program; `skip` launches of warm-up are passed over.
pub fn profile_command(ncu: &str, skip: u32, program: &[String]) -> Vec<String> {
    let skip = skip.to_string();
    let fixed = [
        ncu,
        "--set",
        "full",
        "--csv",
        "--page",
        "raw",
        "--launch-skip",
        skip.as_str(),
        "--launch-count",
        "1",
    ];
    fixed
        .iter()
        .map(|arg| (*arg).to_owned())
        .chain(program.iter().cloned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn real() -> String {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/ncu/softmax_h200_raw.csv");
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn the_real_report_is_read_with_units_and_separators() {
        let report = import(&real()).unwrap();
        assert_eq!(report.kernels.len(), 1);
        let kernel = &report.kernels[0];
        assert_eq!(
            (kernel.name.as_str(), kernel.capability.as_str()),
            ("softmax", "9.0")
        );
        assert_eq!(
            (kernel.grid.as_str(), kernel.block.as_str()),
            ("(16384, 1, 1)", "(256, 1, 1)")
        );
        assert!(kernel.columns > 2000);
        assert_eq!(kernel.metrics.get("duration_ns"), Some(129_056.0));
        assert_eq!(kernel.metrics.get("dram_read_bytes"), Some(268_457_984.0));
        assert_eq!(kernel.metrics.get("waves"), Some(15.52));
        // Present as a column, without a value: missing, not zero.
        assert_eq!(kernel.metrics.missing(), ["sampled_dram_percent"]);
    }

    #[test]
    fn profiler_lines_around_the_table_are_passed_over() {
        let text = format!(
            "==PROF== Connected to process 1\nhello\n{}\n==PROF== Disconnected\n",
            real().trim_end()
        );
        assert_eq!(import(&text).unwrap(), import(&real()).unwrap());
    }

    #[test]
    fn units_that_the_profiler_picks_by_magnitude_are_brought_to_one() {
        let table = |unit: &str, value: &str| {
            format!(
                "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\"\",\"\",\"{unit}\"\n\"0\",\"k\",\"{value}\"\n"
            )
        };
        for (unit, value) in [
            ("ns", "129,056"),
            ("us", "129.056"),
            ("ms", "0.129056"),
            ("usecond", "129.056"),
        ] {
            let report = import(&table(unit, value)).unwrap();
            let ns = report.kernels[0].metrics.get("duration_ns").unwrap();
            assert!((ns - 129_056.0).abs() < 1e-6, "{unit}: {ns}");
        }
        let none = import(&table("ns", "n/a")).unwrap();
        assert_eq!(none.kernels[0].metrics.get("duration_ns"), None);
    }

    #[test]
    fn wrong_pages_and_cut_files_are_named() {
        assert_eq!(import("nothing here").unwrap_err(), ImportError::NoTable);
        let details = "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n\"0\",\"k\",\"a\",\"b\",\"1\"\n";
        assert_eq!(import(details).unwrap_err(), ImportError::WrongPage);
        let text = real();
        let cut = &text[..text.len() - 400];
        assert!(matches!(
            import(cut).unwrap_err(),
            ImportError::Cut { .. } | ImportError::Malformed(_)
        ));
        let header: String = text.lines().take(2).map(|line| format!("{line}\n")).collect();
        assert_eq!(import(&header).unwrap_err(), ImportError::NoRows);
    }

    #[test]
    fn any_prefix_of_a_report_is_read_or_refused_without_a_panic() {
        let text = real();
        for end in (0..text.len()).step_by(9973) {
            let _ = import(&text[..end]);
        }
    }

    #[test]
    fn commands_are_as_the_profiler_wants_them() {
        let line = profile_command("ncu", 5, &["./k".to_owned()]).join(" ");
        assert_eq!(
            line,
            "ncu --set full --csv --page raw --launch-skip 5 --launch-count 1 ./k"
        );
        assert_eq!(
            import_command("ncu", "a.ncu-rep").join(" "),
            "ncu --import a.ncu-rep --csv --page raw"
        );
    }
}
