//! Binds an instance to sizes.

use crate::Instance;
use crate::contract::AxisValues;
use crate::instance::{BindError, Bound};

impl Instance {
    /// Resolves every size, value and tolerance of one workload. Derived axes may be left out.
    pub fn bind(&self, axes: &AxisValues) -> Result<Bound, BindError> {
        Err(BindError::Missing(
            axes.keys().next().cloned().unwrap_or_default(),
        ))
    }
}
