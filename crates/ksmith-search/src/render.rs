//! Templates to C.

use std::collections::BTreeMap;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value};

use crate::manifest::WORKERS;
use crate::signature::c_type;
use crate::{Binding, Config, Facts, Library, SearchError, Structure};

/// Renders a structure. The text depends on nothing but the arguments.
pub(crate) fn render(
    library: &Library,
    structure: &Structure,
    binding: &Binding,
    config: &Config,
    facts: &Facts,
) -> Result<String, SearchError> {
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
    let c_types: BTreeMap<&str, &str> = binding
        .dtypes
        .iter()
        .map(|(name, dtype)| (name.as_str(), c_type(*dtype)))
        .collect();
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
    known.extend(
        binding
            .dtypes
            .iter()
            .map(|(name, dtype)| (name.clone(), Value::from(dtype.name()))),
    );
    known.insert("entry".to_owned(), Value::from(binding.entry.as_str()));
    known.insert("signature".to_owned(), Value::from(binding.signature.as_str()));
    known.insert(
        "prologue".to_owned(),
        Value::from(binding.prologue.trim_end_matches('\n')),
    );
    known.insert("c".to_owned(), Value::from(c_types));
    known.insert("uses_bf16".to_owned(), Value::from(uses("bf16")));
    known.insert("uses_f16".to_owned(), Value::from(uses("f16")));
    let text = environment
        .get_template("kernel")
        .and_then(|template| template.render(Value::from(known)))
        .map_err(fail)?;
    let title = format!("/* {}: {} */\n", structure.manifest.name, config);
    Ok(title + &text)
}
