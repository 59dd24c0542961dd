//! Templates to C.

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value, context};

use crate::signature::c_type;
use crate::{Binding, Config, Library, SearchError, Structure};

/// Renders a structure. The text depends on nothing but the arguments.
pub(crate) fn render(
    library: &Library,
    structure: &Structure,
    binding: &Binding,
    config: &Config,
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
    let dtypes = binding
        .dtypes
        .iter()
        .map(|(name, dtype)| (name.as_str(), Value::from(dtype.name())));
    let c_types: Value = binding
        .dtypes
        .iter()
        .map(|(name, dtype)| (name.as_str(), c_type(*dtype)))
        .collect();
    let uses = |name: &str| binding.dtypes.values().any(|dtype| dtype.name() == name);
    let known: Value = config
        .0
        .iter()
        .map(|(name, value)| (name.as_str(), Value::from(*value)))
        .chain(dtypes)
        .collect();
    let text = environment
        .get_template("kernel")
        .and_then(|template| {
            template.render(context! {
                entry => &binding.entry,
                signature => &binding.signature,
                prologue => binding.prologue.trim_end_matches('\n'),
                c => c_types,
                uses_bf16 => uses("bf16"),
                uses_f16 => uses("f16"),
                ..known
            })
        })
        .map_err(fail)?;
    let title = format!("/* {}: {} */\n", structure.manifest.name, config);
    Ok(title + &text)
}
