//! Rewrites of the baseline's own source, for operators without a structure.
//!
//! A rewrite changes text and flags; what it may change is decided on the syntax tree and only where independence can
//! be shown ([`loops`], [`alias`]). Rewrites that change rounding are proposed too: the judge says whether they keep the tolerance.

mod alias;
mod borders;
mod counts;
mod edit;
mod interchange;
mod loops;
mod math;
mod source;
mod ways;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ksmith_task::{Candidate, Contract};

use crate::folder::write_manifest;
use crate::{Direction, SearchError};
use edit::Edits;
use source::Source;

/// A rewritten baseline, ready to be written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rewrite {
    pub(crate) label: String,
    pub(crate) idea: String,
    /// Predicted gain over the baseline.
    pub(crate) predicted: f64,
    entry: String,
    flags: Vec<String>,
    libraries: Vec<String>,
    sources: Vec<(PathBuf, String)>,
}

impl Rewrite {
    pub(crate) fn write(&self, folder: &Path) -> Result<(), SearchError> {
        let names: Vec<String> = self
            .sources
            .iter()
            .map(|(path, _)| path.to_string_lossy().into_owned())
            .collect();
        write_manifest(folder, &names, &self.entry, &self.flags, &self.libraries)?;
        for (path, text) in &self.sources {
            let path = folder.join(path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(SearchError::io("create", parent))?;
            }
            fs::write(&path, text).map_err(SearchError::io("write", &path))?;
        }
        Ok(())
    }
}

/// What a rewrite does to each source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Recipe {
    restrict: bool,
    simd: bool,
    polynomial_exp: bool,
    narrow_sums: bool,
    interchange: bool,
    several_tables: bool,
    borders: bool,
    narrow_counts: bool,
}

struct Plan {
    label: &'static str,
    idea: &'static str,
    predicted: f64,
    recipe: Recipe,
    flags: &'static [&'static str],
}

const NOTHING: Recipe = Recipe {
    restrict: false,
    simd: false,
    polynomial_exp: false,
    narrow_sums: false,
    interchange: false,
    several_tables: false,
    borders: false,
    narrow_counts: false,
};
const SIMD: Recipe = Recipe {
    restrict: true,
    simd: true,
    ..NOTHING
};
const VECTOR_FLAGS: &[&str] = &[
    "-fopenmp-simd",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-signed-zeros",
];
const WIDE_FLAGS: &[&str] = &[
    "-fopenmp-simd",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-signed-zeros",
    "-mprefer-vector-width=512",
    "-funroll-loops",
];

/// Rewrites of loops, the most promising first. One that changes nothing is left out.
const LOOP_PLANS: [Plan; 15] = [
    Plan {
        label: "tables",
        idea: "A table of counts is kept once per turn of an unrolled loop, so that no turn waits for another's store.",
        predicted: 1.6,
        recipe: Recipe {
            restrict: true,
            several_tables: true,
            ..NOTHING
        },
        flags: &[],
    },
    Plan {
        label: "tables-unroll",
        idea: "A table of counts per turn, in a loop that the compiler unrolls further.",
        predicted: 1.55,
        recipe: Recipe {
            restrict: true,
            several_tables: true,
            ..NOTHING
        },
        flags: &["-funroll-loops"],
    },
    Plan {
        label: "counts",
        idea: "Counters are kept in 16 bits within blocks, so that narrow elements are not widened to the counter's type.",
        predicted: 3.0,
        recipe: Recipe {
            narrow_counts: true,
            ..SIMD
        },
        flags: VECTOR_FLAGS,
    },
    Plan {
        label: "counts-wide",
        idea: "Counters of 16 bits within blocks, on the widest registers.",
        predicted: 3.5,
        recipe: Recipe {
            narrow_counts: true,
            ..SIMD
        },
        flags: WIDE_FLAGS,
    },
    Plan {
        label: "borders",
        idea: "What one loop writes and the next overwrites is not written.",
        predicted: 1.8,
        recipe: Recipe {
            borders: true,
            ..SIMD
        },
        flags: VECTOR_FLAGS,
    },
    Plan {
        label: "borders-wide",
        idea: "What one loop writes and the next overwrites is not written; widest registers.",
        predicted: 2.0,
        recipe: Recipe {
            borders: true,
            ..SIMD
        },
        flags: WIDE_FLAGS,
    },
    Plan {
        label: "interchange",
        idea: "Columns are summed in strips, so that memory is read along its rows.",
        predicted: 4.0,
        recipe: Recipe {
            interchange: true,
            ..SIMD
        },
        flags: WIDE_FLAGS,
    },
    Plan {
        label: "simd-exp",
        idea: "A branch-free polynomial exp lets the compiler vectorise the loops that call it.",
        predicted: 4.0,
        recipe: Recipe {
            polynomial_exp: true,
            ..SIMD
        },
        flags: VECTOR_FLAGS,
    },
    Plan {
        label: "simd-exp-wide",
        idea: "A branch-free polynomial exp on the widest registers, unrolled.",
        predicted: 4.5,
        recipe: Recipe {
            polynomial_exp: true,
            ..SIMD
        },
        flags: WIDE_FLAGS,
    },
    Plan {
        label: "simd-exp-narrow",
        idea: "With float32 sums no lane is spent on conversions; exp is a polynomial.",
        predicted: 5.0,
        recipe: Recipe {
            polynomial_exp: true,
            narrow_sums: true,
            ..SIMD
        },
        flags: WIDE_FLAGS,
    },
    Plan {
        label: "simd",
        idea: "Innermost loops that are provably independent, or plain reductions, are marked for vectorisation.",
        predicted: 1.8,
        recipe: SIMD,
        flags: VECTOR_FLAGS,
    },
    Plan {
        label: "simd-wide",
        idea: "Independent innermost loops on the widest registers, unrolled.",
        predicted: 2.0,
        recipe: SIMD,
        flags: WIDE_FLAGS,
    },
    Plan {
        label: "simd-narrow",
        idea: "With float32 sums no lane is spent on conversions.",
        predicted: 2.2,
        recipe: Recipe {
            narrow_sums: true,
            ..SIMD
        },
        flags: WIDE_FLAGS,
    },
    Plan {
        label: "restrict",
        idea: "Parameters that never overlap are declared so, which removes checks and reloads.",
        predicted: 1.1,
        recipe: Recipe {
            restrict: true,
            ..NOTHING
        },
        flags: &[],
    },
    Plan {
        label: "restrict-unroll",
        idea: "Parameters that never overlap, and unrolled loops.",
        predicted: 1.15,
        recipe: Recipe {
            restrict: true,
            ..NOTHING
        },
        flags: &["-funroll-loops"],
    },
];

/// Flags that a compiler does not use on its own, one idea each.
const FLAG_PLANS: [Plan; 6] = [
    Plan {
        label: "fast-math-wide",
        idea: "All of fast-math on the widest registers, unrolled.",
        predicted: 1.6,
        recipe: NOTHING,
        flags: &["-ffast-math", "-funroll-loops", "-mprefer-vector-width=512"],
    },
    Plan {
        label: "reassociate",
        idea: "Sums may be split over lanes once they may be reordered.",
        predicted: 1.4,
        recipe: NOTHING,
        flags: &[
            "-fno-math-errno",
            "-fno-trapping-math",
            "-fno-signed-zeros",
            "-fassociative-math",
            "-freciprocal-math",
        ],
    },
    Plan {
        label: "finite",
        idea: "Without NaN a maximum is one instruction.",
        predicted: 1.2,
        recipe: NOTHING,
        flags: &[
            "-fno-math-errno",
            "-fno-trapping-math",
            "-fno-signed-zeros",
            "-ffinite-math-only",
        ],
    },
    Plan {
        label: "no-errno",
        idea: "Without errno and traps the compiler may use vector forms of sqrt and selection.",
        predicted: 1.1,
        recipe: NOTHING,
        flags: &["-fno-math-errno", "-fno-trapping-math"],
    },
    Plan {
        label: "wide",
        idea: "The widest registers, although the compiler thinks that they do not pay.",
        predicted: 1.05,
        recipe: NOTHING,
        flags: &["-mprefer-vector-width=512", "-fvect-cost-model=unlimited"],
    },
    Plan {
        label: "interchange-by-compiler",
        idea: "The compiler's own loop interchange and distribution.",
        predicted: 1.05,
        recipe: NOTHING,
        flags: &[
            "-floop-interchange",
            "-ftree-loop-distribution",
            "-fprefetch-loop-arrays",
        ],
    },
];

/// All rewrites of a baseline, by direction.
pub(crate) fn directions(baseline: &Candidate, contract: &Contract) -> Vec<(Direction, Vec<Rewrite>)> {
    let Some(program) = baseline.cpu() else {
        return Vec::new();
    };
    let overlapping = contract.outputs.iter().any(|output| output.inplace.is_some());
    let original: Vec<(PathBuf, String)> = baseline
        .sources
        .iter()
        .map(|source| (source.path.clone(), source.text.clone()))
        .collect();
    let build = |plan: &Plan, sources: Vec<(PathBuf, String)>| Rewrite {
        label: plan.label.to_owned(),
        idea: plan.idea.to_owned(),
        predicted: plan.predicted,
        entry: program.entry.clone(),
        flags: ["-O3", "-march=native"]
            .iter()
            .chain(plan.flags)
            .map(|flag| (*flag).to_owned())
            .collect(),
        libraries: program.libraries.clone(),
        sources,
    };
    let tables = tables(contract);
    let mut loops: Vec<Rewrite> = Vec::new();
    for plan in &LOOP_PLANS {
        // What is shown of loops rests on parameters that do not overlap.
        let recipe = if overlapping {
            Recipe {
                polynomial_exp: plan.recipe.polynomial_exp,
                narrow_sums: plan.recipe.narrow_sums,
                ..NOTHING
            }
        } else {
            plan.recipe
        };
        let sources: Option<Vec<_>> = original
            .iter()
            .map(|(path, text)| Some((path.clone(), apply(text, &program.entry, recipe, &tables)?)))
            .collect();
        let Some(sources) = sources else { continue };
        let rewrite = build(plan, sources);
        let known = |other: &Rewrite| other.sources == rewrite.sources && other.flags == rewrite.flags;
        if rewrite.sources != original && !loops.iter().any(known) {
            loops.push(rewrite);
        }
    }
    let flags: Vec<Rewrite> = FLAG_PLANS
        .iter()
        .map(|plan| build(plan, original.clone()))
        .collect();
    let value = |rewrites: &[Rewrite]| {
        rewrites
            .iter()
            .map(|rewrite| rewrite.predicted)
            .fold(1.0, f64::max)
    };
    let mut directions = Vec::new();
    if !loops.is_empty() {
        directions.push((
            Direction {
                name: "source-loops".to_owned(),
                idea: "The baseline's loops, vectorised, reordered or fed with cheaper mathematics where that is provably allowed."
                    .to_owned(),
                value: value(&loops),
                risk: "Reordered or narrower sums can leave the tolerance.".to_owned(),
            },
            loops,
        ));
    }
    directions.push((
        Direction {
            name: "source-flags".to_owned(),
            idea: "The baseline's source under flags that change what the compiler may assume.".to_owned(),
            value: value(&flags),
            risk: "Reordered sums and missing NaN handling can leave the tolerance.".to_owned(),
        },
        flags,
    ));
    directions
}

/// Outputs of fixed size by their position among the entry's parameters, with their numbers of elements.
fn tables(contract: &Contract) -> BTreeMap<usize, usize> {
    let fixed = |output: &ksmith_task::contract::Output| {
        output
            .shape
            .iter()
            .map(|size| size.text().trim().parse::<usize>().ok())
            .product::<Option<usize>>()
    };
    contract
        .outputs
        .iter()
        .filter(|output| output.inplace.is_none())
        .enumerate()
        .filter_map(|(at, output)| Some((contract.inputs.len() + at, fixed(output)?)))
        .filter(|(_, size)| *size <= ways::MOST)
        .collect()
}

/// The rewritten text; `None` where the recipe's main idea finds nothing to do in a file that defines the entry.
fn apply(text: &str, entry: &str, recipe: Recipe, tables: &BTreeMap<usize, usize>) -> Option<String> {
    let mut text = text.to_owned();
    if recipe.several_tables {
        text = ways::several(&Source::parse(&text)?, entry, tables)?;
    }
    if recipe.borders {
        text = borders::only(&Source::parse(&text)?, entry)?;
    }
    if recipe.narrow_counts {
        text = counts::narrowed(&Source::parse(&text)?, entry)?;
    }
    if recipe.interchange {
        text = interchange::strips(&Source::parse(&text)?, entry)?;
    }
    if recipe.polynomial_exp {
        text = math::polynomial_exp(&Source::parse(&text)?)?;
    }
    if recipe.narrow_sums {
        text = math::narrow_sums(&Source::parse(&text)?)?;
    }
    let source = Source::parse(&text)?;
    let mut edits = Edits::default();
    if recipe.restrict {
        source.restrict_parameters(entry, &mut edits);
    }
    if recipe.simd {
        let marked = loops::mark(&source, entry, &mut edits);
        if marked == 0 && !recipe.polynomial_exp && !recipe.interchange && !recipe.borders {
            return None;
        }
    }
    Some(edits.apply(&text))
}

#[cfg(test)]
mod tests;
