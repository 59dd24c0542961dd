//! What a C compiler says about vectorisation: gcc's `-fopt-info-vec-all`, clang's `-Rpass*=loop-vectorize`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Finding, Report};

/// Kind of a remark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Kind {
    Optimized,
    Missed,
    Note,
}

/// One remark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// Source file.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
    /// Kind.
    pub kind: Kind,
    /// The compiler's text.
    pub text: String,
}

/// What became of the loop at one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopRemark {
    /// Source file.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Vector width in bytes, if the loop was vectorised and the compiler says it.
    pub vector_bytes: Option<u32>,
    /// Lanes and interleaved copies, as clang counts.
    pub lanes: Option<(u32, u32)>,
    /// Whether any version of the loop was vectorised.
    pub vectorised: bool,
    /// Why not, in the compiler's words, without repetition.
    pub reasons: Vec<String>,
}

/// All loops that a compiler spoke of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remarks {
    /// Loops by file and line.
    pub loops: Vec<LoopRemark>,
    /// Findings.
    pub report: Report,
}

/// Parses the standard error of a compilation with remarks switched on. Other lines are skipped.
pub fn parse(text: &str) -> Remarks {
    let remarks: Vec<Remark> = text.lines().filter_map(remark).collect();
    let mut loops: BTreeMap<(String, u32), LoopRemark> = BTreeMap::new();
    for remark in &remarks {
        let about_loop = remark.text.contains("loop")
            || remark.text.starts_with("not vectorized")
            || remark.text.starts_with("statement clobbers memory");
        if !about_loop || remark.text.contains("analyzing loop") {
            continue;
        }
        let entry = loops
            .entry((remark.file.clone(), remark.line))
            .or_insert_with(|| LoopRemark {
                file: remark.file.clone(),
                line: remark.line,
                vector_bytes: None,
                lanes: None,
                vectorised: false,
                reasons: Vec::new(),
            });
        absorb(entry, remark);
    }
    // gcc names the reason at the statement, the loop above it: reasons of lines without a loop stay with the remark.
    let loops: Vec<LoopRemark> = loops
        .into_values()
        .filter(|entry| entry.vectorised || !entry.reasons.is_empty())
        .collect();
    let mut report = Report::default();
    for entry in loops.iter().filter(|entry| !entry.vectorised) {
        let place = format!("{}:{}", entry.file, entry.line);
        let evidence = format!("loop not vectorised: {}", entry.reasons.join("; "));
        report.push(
            Finding::review("compiler/not-vectorised", "", evidence)
                .at(place)
                .advise(advice(&entry.reasons)),
        );
    }
    if remarks.is_empty() {
        report.missing("the compiler made no remark (was `-fopt-info-vec-all` given?)");
    }
    Remarks { loops, report }
}

fn absorb(entry: &mut LoopRemark, remark: &Remark) {
    let text = remark.text.as_str();
    match remark.kind {
        Kind::Optimized if text.contains("vectorized") => {
            entry.vectorised = true;
            let bytes = text
                .split_once("using ")
                .and_then(|(_, rest)| rest.split_once(" byte vectors"))
                .and_then(|(number, _)| number.parse::<u32>().ok());
            entry.vector_bytes = entry.vector_bytes.max(bytes);
            let number = |word: &str| {
                let rest = text.split_once(word)?.1;
                rest.trim_start()
                    .split([',', ')'])
                    .next()?
                    .trim()
                    .parse::<u32>()
                    .ok()
            };
            if let (Some(width), Some(count)) = (number("vectorization width:"), number("interleaved count:"))
            {
                entry.lanes = Some((width, count));
            }
        }
        Kind::Missed | Kind::Note => {
            let reason = text
                .strip_prefix("not vectorized: ")
                .or_else(|| text.strip_prefix("loop not vectorized: "))
                .or_else(|| text.starts_with("statement clobbers memory").then_some(text))
                .or_else(|| text.strip_prefix("couldn't vectorize loop"));
            if let Some(reason) = reason {
                let reason = reason.trim().trim_end_matches('.').to_owned();
                if !reason.is_empty() && !entry.reasons.contains(&reason) {
                    entry.reasons.push(reason);
                }
                if entry.reasons.is_empty() && remark.kind == Kind::Missed {
                    entry.reasons.push("no reason given at this line".to_owned());
                }
            }
        }
        Kind::Optimized => {}
    }
    if entry.reasons.len() > 1 {
        entry
            .reasons
            .retain(|reason| reason != "no reason given at this line");
    }
}

fn advice(reasons: &[String]) -> &'static str {
    let any = |needle: &str| reasons.iter().any(|reason| reason.contains(needle));
    if any("control flow") {
        "replace the branch by a select or a mask"
    } else if any("alias") || any("dependence") {
        "add restrict, or copy what is read before it is written"
    } else if any("no vectype") || any("not suitable for") || any("call") || any("clobbers memory") {
        "replace the call by arithmetic that has a vector form, or write the function as a polynomial"
    } else if any("reduction")
        || any("reassociate")
        || any("unsupported use in stmt")
        || any("floating-point")
    {
        "allow reassociation (-ffast-math or its part -fassociative-math), or keep several accumulators"
    } else if any("number of iterations") {
        "give the loop a countable bound"
    } else {
        "read the compiler's reason, and try intrinsics for this loop"
    }
}

/// `file:line:column: kind: text` of gcc, `file:line:column: remark: text [-Rpass…]` of clang.
fn remark(line: &str) -> Option<Remark> {
    let (kind, marker) = [
        (Kind::Optimized, ": optimized: "),
        (Kind::Missed, ": missed: "),
        (Kind::Note, ": note: "),
        (Kind::Note, ": remark: "),
    ]
    .into_iter()
    .find(|(_, marker)| line.contains(marker))?;
    let (place, text) = line.split_once(marker)?;
    let mut parts = place.rsplitn(3, ':');
    let column = parts.next()?.trim().parse().ok()?;
    let line_number = parts.next()?.trim().parse().ok()?;
    let file = parts.next()?.trim();
    let kind = if text.contains("[-Rpass=") {
        Kind::Optimized
    } else if text.contains("[-Rpass-missed=") {
        Kind::Missed
    } else {
        kind
    };
    let text = text.split_once(" [-R").map_or(text, |(head, _)| head).trim();
    Some(Remark {
        file: file.rsplit('/').next()?.to_owned(),
        line: line_number,
        column,
        kind,
        text: text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;

    #[test]
    fn gcc_remarks_name_width_and_reason_by_loop() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/x86/kernels.remarks.txt");
        let remarks = parse(&std::fs::read_to_string(path).unwrap());
        let at = |line: u32| remarks.loops.iter().find(|entry| entry.line == line);
        let scale = at(4).unwrap();
        assert_eq!(
            (scale.vectorised, scale.vector_bytes),
            (true, Some(64)),
            "{scale:?}"
        );
        let call = at(13).unwrap();
        assert!(!call.vectorised, "{call:?}");
        assert!(
            call.reasons.iter().any(|reason| reason.contains("expf")),
            "{call:?}"
        );
        let first = at(16).unwrap();
        assert!(
            first.reasons.iter().any(|reason| reason.contains("control flow")),
            "{first:?}"
        );
        assert_eq!(remarks.report.scale(), Scale::Review);
    }

    #[test]
    fn clang_remarks_are_read_too() {
        let text = "k.c:4:5: remark: vectorized loop (vectorization width: 8, interleaved count: 4) [-Rpass=loop-vectorize]\n\
                    k.c:9:5: remark: loop not vectorized: cannot prove it is safe to reorder floating-point operations [-Rpass-analysis=loop-vectorize]\n";
        let remarks = parse(text);
        assert_eq!(remarks.loops[0].lanes, Some((8, 4)));
        assert!(
            remarks.report.findings[0]
                .advice
                .as_deref()
                .unwrap()
                .contains("reassociation")
        );
    }

    #[test]
    fn silence_is_incomplete() {
        assert_eq!(parse("k.c: In function 'f':\n").report.scale(), Scale::Incomplete);
    }
}
