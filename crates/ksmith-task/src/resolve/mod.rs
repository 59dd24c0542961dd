//! Document to contract: every key is checked, every name known, every default filled in.

mod axes;
mod context;
mod hidden;
mod outputs;
mod run;
mod tensors;

use std::collections::BTreeMap;
use std::path::Path;

pub(crate) use context::print_duration;

use context::Context;

use crate::ContractError;
use crate::contract::{Backend, Contract, Cost, Generator, Reference};
use crate::document::{At, ParsedTask, TaskDocument, TextOr};

/// Checks `parsed` and turns it into a contract. No file is read.
pub(crate) fn resolve(path: &Path, text: &str, parsed: &ParsedTask) -> Result<Contract, ContractError> {
    let document = &parsed.document;
    let mut context = Context::new(path, text, document.family_name());
    if document.schema.value != 1 {
        return Err(context
            .error(
                &document.schema.span,
                format!("schema {} is not known", document.schema.value),
            )
            .expected("expected 1"));
    }
    check_name(&context, &document.name)?;
    let types = context.types(&document.types)?;
    let axes = context.axes(&document.axes)?;
    let constraints = document
        .constraints
        .iter()
        .map(|text| context.condition(text))
        .collect::<Result<Vec<_>, _>>()?;
    let inputs = context.inputs(&document.inputs, &parsed.family)?;
    let scalars = context.scalars(&document.scalars)?;
    let outputs = context.outputs(&document.outputs, &inputs)?;
    let generator = generator(&context, document)?;
    context.check_generator(&document.inputs, generator.is_some())?;
    let hidden = context.hidden(&document.hidden, &inputs, &axes)?;
    let workloads = context.workloads(&document.workloads, &axes)?;
    let baselines = baseline(&context, document)?;
    Ok(Contract {
        schema: 1,
        name: document.name.value.clone(),
        family: document.family_name().to_owned(),
        reference: reference(&context, &document.reference)?,
        generator,
        cost: Cost {
            bytes: document
                .cost
                .bytes
                .as_ref()
                .map(|value| context.expr(value))
                .transpose()?,
            flops: document
                .cost
                .flops
                .as_ref()
                .map(|value| context.expr(value))
                .transpose()?,
        },
        baseline: baselines.clone(),
        peers: context.peers(&document.peers)?,
        seeds: document
            .seeds
            .iter()
            .map(|seed| context.folder(seed))
            .collect::<Result<Vec<_>, _>>()?,
        performance: context.performance(&document.performance, &baselines)?,
        correctness: context.correctness(&document.correctness),
        budget: context.budget(&document.budget)?,
        policy: context.policy(&document.policy)?,
        environment: context.environment(&document.environment)?,
        types,
        axes,
        constraints,
        inputs,
        scalars,
        outputs,
        hidden,
        workloads,
    })
}

fn check_name(context: &Context<'_>, name: &At<String>) -> Result<(), ContractError> {
    let valid = !name.is_empty()
        && name.len() <= 64
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        && name.starts_with(|c: char| c.is_ascii_alphabetic());
    if valid {
        return Ok(());
    }
    Err(context
        .error(
            &name.span,
            format!("`{}` is not a task name", name.value.escape_debug()),
        )
        .expected("expected up to 64 letters, digits, `-` and `_`, a letter first"))
}

fn reference(
    context: &Context<'_>,
    document: &At<TextOr<crate::document::ReferenceDocument>>,
) -> Result<Reference, ContractError> {
    let (source, entry, threads, cuda) = match &document.value {
        TextOr::Text(text) => (
            At {
                span: document.span.clone(),
                value: text.clone(),
            },
            None,
            None,
            None,
        ),
        TextOr::Table(table) => (
            table.source.clone(),
            table.entry.as_ref(),
            table.threads.as_ref(),
            table.cuda.as_ref(),
        ),
    };
    if let Some(threads) = threads.filter(|threads| threads.value == 0) {
        return Err(context
            .error(&threads.span, "a reference needs a thread")
            .expected("expected 1 or more"));
    }
    Ok(Reference {
        source: context.source(&source, &["c", "py", "cu"])?,
        entry: context.symbol(entry, "reference")?,
        threads: threads.map_or(1, |threads| threads.value),
        cuda: cuda.map(|folder| context.folder(folder)).transpose()?,
    })
}

fn generator(context: &Context<'_>, document: &TaskDocument) -> Result<Option<Generator>, ContractError> {
    let Some(generator) = &document.generator else {
        return Ok(None);
    };
    let (source, entry) = match &generator.value {
        TextOr::Text(text) => (
            At {
                span: generator.span.clone(),
                value: text.clone(),
            },
            None,
        ),
        TextOr::Table(table) => (table.source.clone(), table.entry.as_ref()),
    };
    Ok(Some(Generator {
        source: context.source(&source, &["c", "py"])?,
        entry: context.symbol(entry, "generate")?,
    }))
}

fn baseline(
    context: &Context<'_>,
    document: &TaskDocument,
) -> Result<BTreeMap<Backend, std::path::PathBuf>, ContractError> {
    let mut folders = BTreeMap::new();
    let given = [
        (Backend::Cpu, &document.baseline.cpu),
        (Backend::Cuda, &document.baseline.cuda),
    ];
    for (backend, folder) in given {
        if let Some(folder) = folder {
            folders.insert(backend, context.folder(folder)?);
        }
    }
    if folders.is_empty() {
        return Err(context
            .error(&document.baseline.span, "there is no baseline")
            .expected("expected `cpu`, `cuda` or both")
            .help("name the folder with what the user runs today: `baseline = { cpu = \"baseline/cpu\" }`"));
    }
    Ok(folders)
}
