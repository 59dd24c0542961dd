//! The checks of the static lint.

use std::fs;
use std::path::Path;

use super::{Finding, ScoringCost};
use crate::contract::{Backend, Compare, Domain, Output, ScalarSource};
use crate::instance::{BindError, Role};
use crate::shapes::ShapeLimits;
use crate::{Candidate, Fill, Instance, Task};

pub(super) fn all(task: &Task, scoring: &[ScoringCost]) -> Vec<Finding> {
    let mut findings = Vec::new();
    files(task, &mut findings);
    baselines(task, &mut findings);
    backends(task, &mut findings);
    scalars(task, &mut findings);
    for instance in task.instances() {
        workloads(&instance, &mut findings);
        corners(&instance, &mut findings);
        hidden(&instance, &mut findings);
        for output in &task.contract().outputs {
            tolerance(&instance, output, &mut findings);
        }
    }
    let limit = task.contract().hidden.scoring_limit_s;
    for cost in scoring.iter().filter(|cost| cost.seconds > limit) {
        findings.push(
            Finding::error(
                "hidden.scoring_limit",
                format!(
                    "one scoring of `{}` is predicted to take {:.0} s; the limit is {limit:.0} s",
                    cost.instance, cost.seconds
                ),
            )
            .help(
                "lower `hidden.max_bytes` or `hidden.max_flops`, use smaller workloads, or raise the limit",
            ),
        );
    }
    findings
}

/// Reads a plain file of the task; a finding where that fails.
fn read(task: &Task, relative: &Path, key: &str, findings: &mut Vec<Finding>) -> Option<String> {
    let path = task.dir().join(relative);
    match fs::symlink_metadata(&path) {
        Err(error) => {
            findings.push(Finding::error(
                key,
                format!("cannot read `{}`: {error}", relative.display()),
            ));
            None
        }
        Ok(metadata) if !metadata.is_file() => {
            findings.push(Finding::error(
                key,
                format!("`{}` is not a plain file", relative.display()),
            ));
            None
        }
        Ok(_) => match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) => {
                findings.push(Finding::error(
                    key,
                    format!("cannot read `{}`: {error}", relative.display()),
                ));
                None
            }
        },
    }
}

/// Whether `word` stands in `text` by itself.
fn mentions(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .any(|found| found == word)
}

fn files(task: &Task, findings: &mut Vec<Finding>) {
    let contract = task.contract();
    let reference = &contract.reference;
    if let Some(text) = read(task, &reference.source, "reference.source", findings) {
        if reference
            .source
            .extension()
            .is_none_or(|extension| extension != "py")
        {
            written("reference.source", &reference.source, &text, findings);
        }
        if !mentions(&text, &reference.entry) {
            findings.push(
                Finding::error(
                    "reference.entry",
                    format!(
                        "`{}` defines no `{}`",
                        reference.source.display(),
                        reference.entry
                    ),
                )
                .help("`ksmith abi --reference` prints the prototype"),
            );
        }
        for output in contract.outputs.iter().filter(|output| output.scale) {
            let name = format!("{}_scale", output.name);
            if !mentions(&text, &name) {
                findings.push(Finding::error(
                    format!("outputs.{}.scale", output.name),
                    format!("the reference has no parameter `{name}`"),
                ));
            }
        }
    }
    if let Some(folder) = &reference.cuda {
        let wrong = |what: String| Finding::error("reference.cuda", what);
        match Candidate::load(task.dir().join(folder)) {
            Ok(candidate) if candidate.cuda().is_some() => {}
            Ok(_) => findings.push(wrong(format!("`{}` holds no device code", folder.display()))),
            Err(error) => findings.push(wrong(format!("`{}`: {error}", folder.display()))),
        }
    }
    if let Some(generator) = &contract.generator
        && let Some(text) = read(task, &generator.source, "generator.source", findings)
        && !mentions(&text, &generator.entry)
    {
        let message = format!(
            "`{}` defines no `{}`",
            generator.source.display(),
            generator.entry
        );
        findings.push(Finding::error("generator.entry", message));
    }
    for output in &contract.outputs {
        if let Compare::Checker { source } = &output.compare {
            read(
                task,
                source,
                &format!("outputs.{}.compare", output.name),
                findings,
            );
        }
    }
    for trace in &contract.hidden.traces {
        if !task.dir().join(&trace.file).is_file() {
            findings.push(Finding::error(
                "hidden.traces",
                format!("there is no `{}`", trace.file.display()),
            ));
        }
    }
    for seed in &contract.seeds {
        if let Err(error) = Candidate::load(task.dir().join(seed)) {
            findings.push(Finding::error("seeds", format!("`{}`: {error}", seed.display())));
        }
    }
}

fn baselines(task: &Task, findings: &mut Vec<Finding>) {
    for (backend, folder) in &task.contract().baseline {
        let key = format!("baseline.{}", backend.name());
        match Candidate::load(task.dir().join(folder)) {
            Err(error) => findings.push(
                Finding::error(&key, format!("`{}`: {error}", folder.display()))
                    .help("the baseline is a candidate folder: what the user runs today"),
            ),
            Ok(candidate) if candidate.backend() != *backend => {
                findings.push(Finding::error(
                    &key,
                    format!(
                        "`{}` is a {} candidate",
                        folder.display(),
                        candidate.backend().name()
                    ),
                ));
            }
            Ok(candidate) => {
                for source in &candidate.sources {
                    written(&key, &folder.join(&source.path), &source.text, findings);
                }
                if let Some(program) = candidate.cpu()
                    && !candidate
                        .sources
                        .iter()
                        .any(|source| mentions(&source.text, &program.entry))
                {
                    findings.push(Finding::error(
                        &key,
                        format!("no source defines `{}`", program.entry),
                    ));
                }
                for instance in task
                    .instances()
                    .into_iter()
                    .filter(|instance| instance.applies_to(*backend))
                {
                    if let Err(error) = candidate.check_policy(&instance) {
                        findings.push(Finding::error(&key, error.to_string()));
                    }
                }
            }
        }
    }
}

/// A scalar that never varies proves nothing of the argument.
fn scalars(task: &Task, findings: &mut Vec<Finding>) {
    for scalar in &task.contract().scalars {
        if let ScalarSource::Value(value) = &scalar.source
            && value.names().is_empty()
        {
            findings.push(
                Finding::warning(
                    format!("scalars.{}", scalar.name),
                    format!("it is always {value}: a candidate may compile this value in"),
                )
                .help("give it a `fill`, for example `uniform(0.5, 2)`, if the kernel must take any value"),
            );
        }
    }
}

/// An `#error` that no condition guards: the file is still to be written, and never compiles.
fn unwritten(text: &str) -> Option<usize> {
    let (mut depth, mut in_comment) = (0usize, false);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let starts_inside = in_comment;
        for at in 0..line.len() {
            match line.as_bytes().get(at..at + 2) {
                Some(b"/*") if !in_comment => in_comment = true,
                Some(b"*/") => in_comment = false,
                _ => {}
            }
        }
        let Some(directive) = line.strip_prefix('#').filter(|_| !starts_inside) else {
            continue;
        };
        let directive = directive.trim_start();
        if directive.starts_with("if") {
            depth += 1;
        } else if directive.starts_with("endif") {
            depth = depth.saturating_sub(1);
        } else if directive.starts_with("error") && depth == 0 {
            return Some(index + 1);
        }
    }
    None
}

fn written(key: &str, file: &Path, text: &str, findings: &mut Vec<Finding>) {
    if let Some(line) = unwritten(text) {
        findings.push(
            Finding::error(
                key,
                format!(
                    "`{}` is still to be written: line {line} is an `#error`",
                    file.display()
                ),
            )
            .help("write what the kernel computes in its place"),
        );
    }
}

fn backends(task: &Task, findings: &mut Vec<Finding>) {
    let contract = task.contract();
    for backend in [Backend::Cpu, Backend::Cuda] {
        let has_baseline = contract.baseline.contains_key(&backend);
        let has_workload = contract
            .workloads
            .iter()
            .any(|workload| workload.applies_to(backend));
        if has_baseline && !has_workload {
            findings.push(Finding::error(
                "workloads",
                format!(
                    "no workload applies to the baseline's backend `{}`",
                    backend.name()
                ),
            ));
        }
        let named = contract
            .workloads
            .iter()
            .find(|workload| workload.backends.contains(&backend));
        if let Some(workload) = named.filter(|_| !has_baseline) {
            findings.push(Finding::error(
                format!("workloads.{}", workload.name),
                format!("there is no baseline for backend `{}`", backend.name()),
            ));
        }
    }
}

fn bind_finding(key: &str, instance: &Instance, error: &BindError) -> Finding {
    let finding = Finding::error(key, format!("{}: {error}", instance.id()));
    match error {
        BindError::Expression { error, .. } => match &error.help {
            Some(help) => finding.help(help.clone()),
            None => finding,
        },
        _ => finding,
    }
}

fn workloads(instance: &Instance, findings: &mut Vec<Finding>) {
    for workload in &instance.task().contract().workloads {
        if let Err(error) = instance.bind(&workload.axes) {
            findings.push(bind_finding(
                &format!("workloads.{}", workload.name),
                instance,
                &error,
            ));
        }
    }
}

fn corners(instance: &Instance, findings: &mut Vec<Finding>) {
    let shapes = instance.corner_shapes();
    let mut bound_once = false;
    for shape in &shapes {
        match instance.bind(shape) {
            Ok(_) => bound_once = true,
            // Corners of huge axes together need not be addressable; hidden shapes are bounded anyway.
            Err(BindError::TooLarge(_)) => bound_once = true,
            Err(error) => {
                let sizes: Vec<_> = shape
                    .iter()
                    .map(|(name, size)| format!("{name} = {size}"))
                    .collect();
                let mut finding = bind_finding(&key_of(&error), instance, &error);
                finding.message = format!("{} (at {})", finding.message, sizes.join(", "));
                findings.push(finding);
                return;
            }
        }
    }
    if !bound_once && instance.odd_shapes().is_empty() {
        findings.push(
            Finding::warning(
                "constraints",
                format!(
                    "{}: no corner and no odd shape satisfies the constraints",
                    instance.id()
                ),
            )
            .help("hidden shapes are drawn at random and may not be found either"),
        );
    }
}

fn key_of(error: &BindError) -> String {
    match error {
        BindError::Expression { key, .. } | BindError::Invalid { key, .. } => key.clone(),
        BindError::TooLarge(tensor) => tensor.clone(),
        BindError::Missing(axis) | BindError::Unknown { name: axis, .. } | BindError::Size { axis, .. } => {
            format!("axes.{axis}")
        }
        BindError::Constraint(_) => "constraints".to_owned(),
    }
}

fn hidden(instance: &Instance, findings: &mut Vec<Finding>) {
    let contract = instance.task().contract();
    let hidden = &contract.hidden;
    if hidden.shapes > 0 {
        let share = f64::from(hidden.shapes);
        let limits = ShapeLimits {
            max_bytes: (hidden.max_bytes as f64 / share) as u64,
            max_flops: hidden.max_flops / share,
        };
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut bits = || {
            // SplitMix64 (Steele, Lea, Flood 2014); a fixed seed, because lint only asks whether shapes exist.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ mixed >> 31
        };
        if instance.sample_shape(&mut bits, limits).is_none() {
            findings.push(
                Finding::error(
                    "hidden.max_bytes",
                    format!("{}: no random shape satisfies the constraints within the limits", instance.id()),
                )
                .help("raise `hidden.max_bytes` and `hidden.max_flops`, widen the axes, or set `hidden.shapes = 0`"),
            );
        }
    }
    let Some(Ok(bound)) = contract
        .workloads
        .first()
        .map(|workload| instance.bind(&workload.axes))
    else {
        return;
    };
    for tensor in &bound.tensors {
        let Role::Input(rule) = &tensor.role else { continue };
        let Some(domain) = rule.domain else { continue };
        for fill in std::iter::once(&rule.fill).chain(&rule.hidden) {
            if !can_meet(fill, domain) {
                findings.push(Finding::error(
                    format!("inputs.{}.fill", tensor.name),
                    format!("`{fill}` never draws a value inside the domain"),
                ));
            }
        }
    }
}

/// Whether some value of the fill may lie in the domain, where that is plain to see.
fn can_meet(fill: &Fill, domain: Domain) -> bool {
    let (low, high) = match fill {
        Fill::Uniform { low, high } | Fill::LogUniform { low, high } | Fill::Integers { low, high } => {
            (*low, *high)
        }
        Fill::Constant { value } => (*value, *value),
        Fill::Sorted(inner) => return can_meet(inner, domain),
        _ => return true,
    };
    domain.low.is_none_or(|least| high >= least) && domain.high.is_none_or(|most| low <= most)
}

/// Half an ulp is unavoidable: an output is rounded once, however good the kernel.
fn tolerance(instance: &Instance, output: &Output, findings: &mut Vec<Finding>) {
    let dtype = instance.dtype(&output.dtype);
    let Some(half_ulp) = dtype.unit_roundoff() else {
        return;
    };
    if !matches!(output.compare, Compare::Elementwise) {
        return;
    }
    let key = format!("outputs.{}.rtol", output.name);
    let Some(workload) = instance.task().contract().workloads.first() else {
        return;
    };
    let Ok(bound) = instance.bind(&workload.axes) else {
        return;
    };
    let Some(Role::Output(rule)) = bound.tensor(&output.name).map(|tensor| &tensor.role) else {
        return;
    };
    let rtol = rule.tolerance.rtol;
    if output.rtol.contains_key(&dtype) && rtol < half_ulp {
        findings.push(
            Finding::error(
                key,
                format!("rtol = {rtol:e} is below half an ulp of {dtype} ({half_ulp:.3e})"),
            )
            .help("no kernel can meet it: the output itself is rounded; use at least twice that"),
        );
    } else if rtol < half_ulp && rule.tolerance.ctol == 0.0 {
        findings.push(
            Finding::warning(
                key,
                format!(
                    "no rtol: outputs of {dtype} above {:.3e} cannot pass",
                    rule.tolerance.atol / half_ulp
                ),
            )
            .help(format!("add `rtol = {:.1e}` or more", 2.0 * half_ulp)),
        );
    } else if rtol > 0.25 {
        findings.push(Finding::warning(
            key,
            format!("rtol = {rtol} accepts nearly anything"),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::unwritten;

    #[test]
    fn an_error_directive_counts_only_where_no_condition_and_no_comment_holds_it() {
        assert_eq!(unwritten("void f(void) {\n#error \"write it\"\n}\n"), Some(2));
        assert_eq!(unwritten("  # error x\n"), Some(1));
        assert_eq!(
            unwritten("#ifndef T\n#if 0\n#endif\n#error T\n#endif\nvoid f(void) {}\n"),
            None
        );
        assert_eq!(unwritten("/* one\n#error no\n*/\n#error yes\n"), Some(4));
        assert_eq!(unwritten("int x; // #error\n"), None);
    }
}
