//! One assignment of the dtype variables, and its binding to sizes.

use std::sync::Arc;

use crate::contract::{Backend, Compare, Domain, Overflow, Workload};
use crate::expr::{Env, Value};
use crate::{DType, Fill, Task};

/// A task under one assignment of its dtype variables. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Instance {
    pub(crate) task: Arc<Task>,
    /// In the task's order of variables.
    pub(crate) types: Vec<(String, DType)>,
}

impl Instance {
    /// The task.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The assignment, in the task's order of variables.
    pub fn types(&self) -> &[(String, DType)] {
        &self.types
    }

    /// Task name and assignment, such as `softmax[T=bf16]`.
    pub fn id(&self) -> String {
        let name = &self.task.contract().name;
        if self.types.is_empty() {
            return name.clone();
        }
        let pairs: Vec<_> = self
            .types
            .iter()
            .map(|(name, dtype)| format!("{name}={dtype}"))
            .collect();
        format!("{name}[{}]", pairs.join(","))
    }

    /// Compiler flags that tell a source its dtypes: `-DT_bf16=1` where the variable `T` is bf16. Every build of a
    /// candidate or baseline gets them, so that one source can serve all instances.
    pub fn defines(&self) -> Vec<String> {
        self.types
            .iter()
            .map(|(name, dtype)| format!("-D{name}_{dtype}=1"))
            .collect()
    }

    /// Whether the task lets this assignment run on `backend`.
    pub fn applies_to(&self, backend: Backend) -> bool {
        let variables = &self.task.contract().types;
        self.types.iter().all(|(name, dtype)| {
            variables
                .iter()
                .any(|variable| variable.name == *name && variable.on(backend).contains(dtype))
        })
    }

    /// The dev workloads that apply to `backend`, in the task's order; none where the assignment does not apply.
    pub fn workloads(&self, backend: Backend) -> impl Iterator<Item = &Workload> {
        let applies = self.applies_to(backend);
        self.task
            .contract()
            .workloads
            .iter()
            .filter(move |workload| applies && workload.applies_to(backend))
    }
}

/// One workload with every size, value and tolerance resolved.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Bound {
    /// Sizes, in the task's order; the candidate's `int64_t` arguments.
    pub axes: Vec<(String, i64)>,
    /// Inputs, then outputs, in the task's order.
    pub tensors: Vec<Tensor>,
    /// Scalars, in the task's order.
    pub scalars: Vec<ScalarArg>,
    /// Bytes that must move.
    pub cost_bytes: f64,
    /// Floating-point operations that must happen; 0 if the task does not say.
    pub cost_flops: f64,
    /// Axes and dtype variables, for expressions of candidates.
    pub env: Env,
}

impl Bound {
    /// The input tensors.
    pub fn inputs(&self) -> impl Iterator<Item = &Tensor> {
        self.tensors
            .iter()
            .filter(|tensor| matches!(tensor.role, Role::Input(_)))
    }

    /// The output tensors.
    pub fn outputs(&self) -> impl Iterator<Item = &Tensor> {
        self.tensors
            .iter()
            .filter(|tensor| matches!(tensor.role, Role::Output(_)))
    }

    /// The tensor called `name`.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// Bytes of all storage; an in-place output adds none.
    pub fn storage_bytes(&self) -> u64 {
        self.tensors
            .iter()
            .filter(|tensor| tensor.inplace.is_none())
            .map(|tensor| tensor.extent_bytes as u64)
            .sum()
    }
}

/// A tensor of one workload.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Tensor {
    /// Name.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub shape: Vec<usize>,
    /// Strides in elements; positive.
    pub strides: Vec<usize>,
    /// Alignment of the base pointer in bytes (CPU default 64; CUDA code raises it to 256).
    pub align: usize,
    /// Bytes from the base pointer to the end of the last element.
    pub extent_bytes: usize,
    /// What it is for.
    pub role: Role,
    /// For an output: index in `tensors` of the input whose memory it shares.
    pub inplace: Option<usize>,
}

impl Tensor {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the elements lie row-major without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.strides == row_major(&self.shape)
    }
}

/// Strides of a row-major tensor without gaps.
pub fn row_major(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for dimension in (1..shape.len()).rev() {
        strides[dimension - 1] = strides[dimension] * shape[dimension].max(1);
    }
    strides
}

/// What a tensor is for.
#[derive(Debug, Clone, PartialEq)]
pub enum Role {
    /// Filled by the judge, read-only for the candidate unless an output shares its memory.
    Input(InputRule),
    /// Written by the candidate.
    Output(OutputRule),
}

/// How an input is drawn.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct InputRule {
    /// Fill of dev cases.
    pub fill: Fill,
    /// Fills of hidden cases, beside `fill`.
    pub hidden: Vec<Fill>,
    /// Values outside are never drawn.
    pub domain: Option<Domain>,
    /// Unchanged between calls.
    pub is_static: bool,
}

/// How an output is judged.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct OutputRule {
    /// The comparison.
    pub compare: Compare,
    /// The tolerance at this dtype.
    pub tolerance: Tolerance,
    /// What values beyond the range become.
    pub overflow: Overflow,
    /// Index in `tensors` of the input of which this is the final state.
    pub state_of: Option<usize>,
    /// The axis at which a sequence may be cut.
    pub cut: Option<String>,
    /// Index in `tensors` of the index output at whose indices this one is compared.
    pub along: Option<usize>,
}

/// `|out − ref| <= atol + rtol·|ref| + ctol·scale`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Absolute part.
    pub atol: f64,
    /// Part relative to the reference.
    pub rtol: f64,
    /// Part relative to the sum of absolute terms.
    pub ctol: f64,
    /// Whether the reference has the extra output `<name>_scale`.
    pub has_scale: bool,
}

/// A scalar of one workload.
#[derive(Debug, Clone, PartialEq)]
pub struct ScalarArg {
    /// Name.
    pub name: String,
    /// Type of the argument.
    pub dtype: DType,
    /// Its value, or how to draw it.
    pub value: ScalarValue,
}

/// The value of a scalar, or how to draw it.
#[derive(Debug, Clone, PartialEq)]
pub enum ScalarValue {
    /// The same in every case.
    Fixed(Value),
    /// Drawn per case.
    Drawn(Fill),
}

/// Sizes that the contract does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// An axis without a size.
    #[error("axis `{0}` has no size")]
    Missing(String),
    /// A name that is no axis.
    #[error("`{name}` is no axis of the task{}", did_you_mean(.near))]
    Unknown {
        /// The name.
        name: String,
        /// The nearest axis.
        near: Option<String>,
    },
    /// A size outside the axis's range.
    #[error("axis `{axis}` = {value}: expected {expected}")]
    Size {
        /// The axis.
        axis: String,
        /// The size given.
        value: i64,
        /// What the contract allows.
        expected: String,
    },
    /// A constraint that does not hold.
    #[error("the constraint `{0}` does not hold")]
    Constraint(String),
    /// An expression that fails at these sizes.
    #[error("`{key}`: {error}")]
    Expression {
        /// Key path of the expression.
        key: String,
        /// What went wrong.
        error: crate::expr::ExprError,
    },
    /// A tensor too large to address.
    #[error("tensor `{0}` is too large to address")]
    TooLarge(String),
    /// Anything else that the sizes make impossible.
    #[error("`{key}`: {message}")]
    Invalid {
        /// Key path.
        key: String,
        /// What is wrong.
        message: String,
    },
}

fn did_you_mean(near: &Option<String>) -> String {
    near.as_ref()
        .map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}
