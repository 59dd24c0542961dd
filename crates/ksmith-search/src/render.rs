//! Templates to sources and launch plans.

use std::collections::BTreeMap;

use ksmith_task::Backend;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value};

use crate::manifest::WORKERS;
use crate::signature::{c_type, cuda_type};
use crate::{Binding, Config, Facts, Library, SearchError, Structure};

/// Bytes of the widest access of one thread of a GPU.
const VECTOR_BYTES: usize = 16;

/// A rendered structure.
pub(crate) struct Rendered {
    /// The source.
    pub(crate) source: String,
    /// The launch plan, for CUDA.
    pub(crate) plan: Option<String>,
}

/// Renders a structure. The text depends on nothing but the arguments.
pub(crate) fn render(
    library: &Library,
    structure: &Structure,
    binding: &Binding,
    config: &Config,
    facts: &Facts,
) -> Result<Rendered, SearchError> {
    let fail = |source| SearchError::Template {
        structure: structure.folder.clone(),
        config: config.to_string(),
        source,
    };
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build()
        .map_err(fail)?;
    environment.set_syntax(syntax);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    for (name, text) in library.preludes() {
        environment.add_template(name, text).map_err(fail)?;
    }
    environment
        .add_template("kernel", &structure.template)
        .map_err(fail)?;
    if let Some(plan) = &structure.plan {
        environment.add_template("plan", plan).map_err(fail)?;
    }
    let known = Value::from(context(structure, binding, config, facts));
    let rendered = |name: &str| {
        environment
            .get_template(name)
            .and_then(|template| template.render(&known))
            .map_err(fail)
    };
    let title = format!("/* {}: {} */\n", structure.manifest.name, config);
    Ok(Rendered {
        source: title + &rendered("kernel")?,
        plan: structure.plan.as_ref().map(|_| rendered("plan")).transpose()?,
    })
}

/// The names that templates see.
fn context(
    structure: &Structure,
    binding: &Binding,
    config: &Config,
    facts: &Facts,
) -> BTreeMap<String, Value> {
    let uses = |name: &str| binding.dtypes.values().any(|dtype| dtype.name() == name);
    let machine = BTreeMap::from([
        ("l1", facts.l1_bytes),
        ("l2", facts.l2_bytes),
        ("l3", facts.l3_bytes),
    ]);
    let mut known = BTreeMap::from([
        (WORKERS.to_owned(), Value::from(1)),
        ("machine".to_owned(), Value::from(machine)),
    ]);
    known.extend(
        config
            .0
            .iter()
            .map(|(name, value)| (name.clone(), Value::from(*value))),
    );
    for (name, dtype) in &binding.dtypes {
        known.insert(name.clone(), Value::from(dtype.name()));
        known.insert(format!("size_{name}"), Value::from(dtype.bytes()));
    }
    let per_type = |show: &dyn Fn(ksmith_task::DType) -> Value| -> Value {
        let shown = binding
            .dtypes
            .iter()
            .map(|(name, dtype)| (name.clone(), show(*dtype)));
        Value::from(shown.collect::<BTreeMap<String, Value>>())
    };
    let mut set = |name: &str, value: Value| known.insert(name.to_owned(), value);
    set("uses_bf16", Value::from(uses("bf16")));
    set("uses_f16", Value::from(uses("f16")));
    match structure.manifest.backend {
        Backend::Cpu => {
            set("entry", Value::from(binding.entry.as_str()));
            set("signature", Value::from(binding.signature.as_str()));
            set("prologue", Value::from(binding.prologue.trim_end_matches('\n')));
            set("c", per_type(&|dtype| Value::from(c_type(dtype))));
        }
        Backend::Cuda => {
            set("c", per_type(&|dtype| Value::from(cuda_type(dtype))));
            set("n", per_type(&|dtype| Value::from(VECTOR_BYTES / dtype.bytes())));
            set("t", Value::from(binding.names.clone()));
            set("d", Value::from(binding.dimensions()));
        }
    }
    known
}
