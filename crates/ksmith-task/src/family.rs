//! The families of tasks, embedded from `families/`: the defaults that their contracts leave out, and the example that a
//! new task begins from.

/// A family.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// Name.
    pub name: &'static str,
    /// What the example computes.
    pub about: &'static str,
    /// Text of `family.toml`.
    pub(crate) defaults: &'static str,
    pub(crate) task: &'static str,
    pub(crate) reference: &'static str,
    pub(crate) kernel: &'static str,
}

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        [$(Family {
            name: $name,
            about: include_str!(concat!("../families/", $name, "/scaffold/about.txt")),
            defaults: include_str!(concat!("../families/", $name, "/family.toml")),
            task: include_str!(concat!("../families/", $name, "/scaffold/task.toml.in")),
            reference: include_str!(concat!("../families/", $name, "/scaffold/reference.c")),
            kernel: include_str!(concat!("../families/", $name, "/scaffold/kernel.c.in")),
        }),*]
    };
}

/// All families.
pub const FAMILIES: [Family; 14] = embedded![
    "row-reduction",
    "elementwise",
    "reduction",
    "scan",
    "gemm",
    "gemv",
    "quantise",
    "rope",
    "gate",
    "attention",
    "recurrence",
    "histogram",
    "scatter",
    "custom",
];

impl Family {
    /// The family of this name.
    pub(crate) fn find(name: &str) -> Option<Self> {
        FAMILIES.into_iter().find(|family| family.name == name)
    }

    /// What the family is, in one sentence.
    pub fn summary(&self) -> String {
        let table: toml::Table = self.defaults.parse().unwrap_or_default();
        table
            .get("summary")
            .and_then(toml::Value::as_str)
            .unwrap_or_default()
            .to_owned()
    }
}
