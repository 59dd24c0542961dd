//! The examples of the families, embedded.

use crate::document::Families;

/// A family with the example a new task begins from.
#[derive(Debug, Clone, Copy)]
pub struct FamilyInfo {
    /// Name.
    pub name: &'static str,
    /// What the example computes.
    pub about: &'static str,
    pub(super) task: &'static str,
    pub(super) reference: &'static str,
    pub(super) kernel: &'static str,
}

impl FamilyInfo {
    /// What the family is, in one sentence.
    pub fn summary(&self) -> String {
        let table: toml::Table = Families::text(self.name)
            .and_then(|text| text.parse().ok())
            .unwrap_or_default();
        table
            .get("summary")
            .and_then(toml::Value::as_str)
            .unwrap_or_default()
            .to_owned()
    }
}

macro_rules! examples {
    ($($name:literal),* $(,)?) => {
        vec![$(FamilyInfo {
            name: $name,
            about: include_str!(concat!("../../families/", $name, "/scaffold/about.txt")),
            task: include_str!(concat!("../../families/", $name, "/scaffold/task.toml.in")),
            reference: include_str!(concat!("../../families/", $name, "/scaffold/reference.c")),
            kernel: include_str!(concat!("../../families/", $name, "/scaffold/kernel.c.in")),
        }),*]
    };
}

/// All families.
pub fn families() -> Vec<FamilyInfo> {
    examples![
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
    ]
}
