use super::{Probes, Row};

pub(super) fn rows(_probes: &Probes<'_>) -> Vec<Row> {
    Vec::new()
}
