//! The task's trusted programs together: generator, reference, checkers. Cases in, expectations out.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use ksmith_box::Level;
use ksmith_task::contract::Compare;
use ksmith_task::{Bound, DType, Fill, Instance, Role, Tensor};

use super::error::ReferenceError;
use super::process::{Live, Scalar};
use super::program::{Argument, Kind, Program, Signature};
use crate::cases::{Case, CaseSpec, Expected, InputFill, Inputs, ScalarDraw, storage};
use crate::device::{Device, Maker};
use crate::judge::JudgeError;
use crate::number::{self, Values};

/// How trusted programs are built and confined.
#[derive(Debug, Clone)]
pub struct OracleOptions {
    /// Where compiled programs are kept.
    pub cache: std::path::PathBuf,
    /// Least isolation.
    pub least: Level,
    /// Whether the user allowed less by name.
    pub unsandboxed: bool,
    /// Time limit of one case.
    pub limit: Duration,
}

/// Drawing and converting use threads of their own: so many of them for each maker of cases.
const THREADS_PER_MAKER: usize = 3;
/// More makers only wait for memory.
const MOST_MAKERS: usize = 5;
/// Storage of all cases together from which makers are worth their start, in bytes.
const WORTH_MAKERS: u64 = 64 << 20;

/// Storage of a case from which it is made on the device, where that is trusted, in bytes.
const WORTH_DEVICE: u64 = 1 << 20;

/// The live trusted programs of one task instance, on the host and, where the task gives one, on the device.
#[derive(Debug)]
pub struct Oracle {
    host: Programs,
    maker: Option<Maker>,
    device: DeviceTrust,
}

/// What is known of the reference on the device.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DeviceTrust {
    /// There is none: the host expects.
    Absent,
    /// It agreed with the host's on so many cases; the largest difference as a share of the tolerance.
    Agrees {
        /// Cases compared.
        cases: usize,
        /// Largest difference over tolerance.
        worst: f64,
    },
    /// It did not, or failed: the host expects.
    Refused(String),
}

impl DeviceTrust {
    /// For the evidence of a gate.
    pub(crate) fn evidence(&self) -> serde_json::Value {
        match self {
            Self::Absent => serde_json::json!({ "by": "host" }),
            Self::Agrees { cases, worst } => serde_json::json!({
                "by": "device", "checked_cases": cases, "worst_difference_over_tolerance": worst,
            }),
            Self::Refused(why) => serde_json::json!({ "by": "host", "device_refused": why }),
        }
    }
}

/// The trusted programs of the host.
#[derive(Debug)]
struct Programs {
    options: OracleOptions,
    reference: Program,
    live: Option<Live>,
    generator: Option<Program>,
    checkers: Arc<Checkers>,
}

/// The task's own checkers; each check runs in a process of its own.
#[derive(Debug)]
pub struct Checkers {
    programs: BTreeMap<String, Program>,
    limit: Duration,
}

fn kind(dtype: DType) -> Kind {
    if dtype.is_float() { Kind::Real } else { Kind::Whole }
}

/// The kind in which the reference takes an input or gives an output: a rounded integer output has a real expectation.
pub(crate) fn output_kind(tensor: &Tensor) -> Kind {
    match &tensor.role {
        Role::Output(rule) if matches!(rule.compare, Compare::Rounded { .. }) => Kind::Real,
        _ => kind(tensor.dtype),
    }
}

/// The sizes of the expectation of an output: one compared at the candidate's own indices has the full axis.
pub(crate) fn expected_shape(bound: &Bound, tensor: &Tensor) -> Vec<usize> {
    let full = || {
        let Role::Output(rule) = &tensor.role else {
            return None;
        };
        let index = bound.tensors.get(rule.along?)?;
        let Role::Output(index_rule) = &index.role else {
            return None;
        };
        let Compare::Index { of, axis, .. } = &index_rule.compare else {
            return None;
        };
        let mut shape = tensor.shape.clone();
        *shape.get_mut(*axis)? = *bound.tensor(of)?.shape.get(*axis)?;
        Some(shape)
    };
    full().unwrap_or_else(|| tensor.shape.clone())
}

fn argument(tensor: &Tensor, kind: Kind, written: bool) -> Argument {
    Argument {
        name: tensor.name.clone(),
        kind,
        rank: tensor.shape.len(),
        written,
    }
}

fn scalar_kinds(bound: &Bound) -> Vec<Kind> {
    bound.scalars.iter().map(|scalar| kind(scalar.dtype)).collect()
}

/// Inputs, then outputs, each followed by its scale if it has one (`ksmith_task::abi::reference_header`).
pub(crate) fn reference_signature(bound: &Bound) -> Signature {
    let mut tensors: Vec<Argument> = bound
        .inputs()
        .map(|tensor| argument(tensor, kind(tensor.dtype), false))
        .collect();
    for tensor in bound.outputs() {
        tensors.push(argument(tensor, output_kind(tensor), true));
        if has_scale(tensor) {
            tensors.push(Argument {
                name: format!("{}_scale", tensor.name),
                ..argument(tensor, Kind::Real, true)
            });
        }
    }
    Signature {
        tensors,
        scalars: scalar_kinds(bound),
        axes: bound.axes.len(),
    }
}

fn has_scale(tensor: &Tensor) -> bool {
    matches!(&tensor.role, Role::Output(rule) if rule.tolerance.has_scale)
}

impl Oracle {
    /// Builds every trusted program of the task; `bound` is any workload (sizes do not matter).
    ///
    /// # Errors
    /// When one does not compile or needs what is not installed.
    pub fn open(instance: &Instance, bound: &Bound, options: OracleOptions) -> Result<Self, ReferenceError> {
        let contract = instance.task().contract();
        let folder = instance.task().dir();
        let build = |source: &Path, entry: &str, signature, threads| {
            Program::build(
                &folder.join(source),
                entry,
                signature,
                &options.cache,
                (options.least, options.unsandboxed, threads),
            )
        };
        let reference = build(
            &contract.reference.source,
            &contract.reference.entry,
            reference_signature(bound),
            contract.reference.threads,
        )?;
        let generator = contract
            .generator
            .as_ref()
            .map(|generator| {
                build(
                    &generator.source,
                    &generator.entry,
                    generator_signature(instance, bound),
                    1,
                )
            })
            .transpose()?;
        let mut checkers = BTreeMap::new();
        for tensor in bound.outputs() {
            let Role::Output(rule) = &tensor.role else {
                continue;
            };
            if let Compare::Checker { source } = &rule.compare {
                let program = build(source, "check", checker_signature(bound, tensor), 1)?;
                checkers.insert(tensor.name.clone(), program);
            }
        }
        let checkers = Arc::new(Checkers {
            programs: checkers,
            limit: options.limit,
        });
        Ok(Self {
            host: Programs {
                options,
                reference,
                live: None,
                generator,
                checkers,
            },
            maker: None,
            device: DeviceTrust::Absent,
        })
    }

    /// Takes the task's reference for the device into use, if there is one and it agrees with the host's on `specs`.
    pub(crate) fn use_device(
        &mut self,
        device: &Arc<Device>,
        instance: &Instance,
        specs: &[CaseSpec],
    ) -> Result<(), ReferenceError> {
        let Some(some) = specs.first() else { return Ok(()) };
        let mut maker = match Maker::open(device, instance, &some.bound) {
            Ok(Some(maker)) => maker,
            Ok(None) => return Ok(()),
            Err(why) => {
                self.device = DeviceTrust::Refused(why);
                return Ok(());
            }
        };
        let mut worst = 0.0f64;
        for spec in specs {
            match maker.differs(&self.host.case(spec)?) {
                Ok(apart) => worst = worst.max(apart),
                Err(why) => {
                    self.device = DeviceTrust::Refused(why);
                    return Ok(());
                }
            }
        }
        self.maker = Some(maker);
        self.device = DeviceTrust::Agrees {
            cases: specs.len(),
            worst,
        };
        Ok(())
    }

    /// What is known of the reference on the device.
    pub(crate) fn device_trust(&self) -> &DeviceTrust {
        &self.device
    }

    /// Draws a case and asks the host's reference for its expectations.
    ///
    /// # Errors
    /// When a trusted program fails.
    pub fn case(&mut self, spec: &CaseSpec) -> Result<Case, ReferenceError> {
        self.host.case(spec)
    }

    /// Draws a case; a large one lies on the device, inputs and expectations, and nowhere else.
    ///
    /// # Errors
    /// When a trusted program fails.
    pub(crate) fn large_case(&mut self, spec: &CaseSpec) -> Result<Case, ReferenceError> {
        match self.on_device(spec) {
            Some(case) => Ok(case),
            None => self.host.case(spec),
        }
    }

    /// The case where it is made on the device. A failure there ends that for the rest of the run.
    fn on_device(&mut self, spec: &CaseSpec) -> Option<Case> {
        if spec.bound.storage_bytes() <= WORTH_DEVICE {
            return None;
        }
        match self.maker.as_mut()?.case(spec) {
            Ok(case) => Some(case),
            Err(why) => {
                self.maker = None;
                self.device = DeviceTrust::Refused(why);
                None
            }
        }
    }

    /// Draws many cases and hands them over in order; large ones on the device where that is trusted, else side by side,
    /// each by a reference of its own.
    ///
    /// # Errors
    /// When a trusted program fails, or `take` does.
    pub(crate) fn cases(
        &mut self,
        specs: &[CaseSpec],
        take: &mut dyn FnMut(Case) -> Result<(), JudgeError>,
    ) -> Result<(), JudgeError> {
        if self.maker.is_none() {
            return self.host.cases(specs, take);
        }
        for spec in specs {
            take(self.large_case(spec)?)?;
        }
        Ok(())
    }

    /// Asks the reference what it expects of these inputs.
    ///
    /// # Errors
    /// When the reference fails; it is started anew for the next case.
    pub fn expect(&mut self, bound: &Bound, inputs: &Inputs) -> Result<Vec<Expected>, ReferenceError> {
        self.host.expect(bound, inputs)
    }

    pub(crate) fn checkers_ref(&self) -> &Checkers {
        &self.host.checkers
    }

    /// The task's own checkers.
    pub fn checkers(&self) -> Arc<Checkers> {
        Arc::clone(&self.host.checkers)
    }
}

impl Programs {
    fn case(&mut self, spec: &CaseSpec) -> Result<Case, ReferenceError> {
        let mut inputs = spec.draw();
        if self.generator.is_some() {
            self.generate(spec, &mut inputs)?;
        }
        let expected = self.expect(&spec.bound, &inputs)?;
        Ok(Case {
            storage: spec
                .bound
                .inputs()
                .zip(&inputs.values)
                .map(|(tensor, values)| storage(tensor, values))
                .collect(),
            spec: spec.clone(),
            inputs,
            expected,
            resident: None,
        })
    }

    /// In order; large ones are made side by side, each by a reference of its own.
    fn cases(
        &mut self,
        specs: &[CaseSpec],
        take: &mut dyn FnMut(Case) -> Result<(), JudgeError>,
    ) -> Result<(), JudgeError> {
        let bytes: u64 = specs.iter().map(|spec| spec.bound.storage_bytes()).sum();
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let makers = (threads / THREADS_PER_MAKER).min(MOST_MAKERS).min(specs.len());
        if makers < 2 || bytes < WORTH_MAKERS {
            for spec in specs {
                take(self.case(spec)?)?;
            }
            return Ok(());
        }
        let twins: Vec<Self> = (0..makers).map(|_| self.twin()).collect();
        std::thread::scope(|scope| {
            // The bound keeps finished cases from piling up where `take` is the slower side.
            let (sender, receiver) = mpsc::sync_channel(2);
            for (first, mut twin) in twins.into_iter().enumerate() {
                let sender = sender.clone();
                scope.spawn(move || {
                    for (index, spec) in specs.iter().enumerate().skip(first).step_by(makers) {
                        if sender.send((index, twin.case(spec))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let mut early = BTreeMap::new();
            let mut next = 0;
            for (index, case) in receiver {
                early.insert(index, case?);
                while let Some(case) = early.remove(&next) {
                    take(case)?;
                    next += 1;
                }
            }
            if next == specs.len() {
                Ok(())
            } else {
                Err(JudgeError::Worker("a maker of cases ended early".to_owned()))
            }
        })
    }

    /// The same programs with processes of their own.
    fn twin(&self) -> Self {
        Self {
            options: self.options.clone(),
            reference: self.reference.clone(),
            live: None,
            generator: self.generator.clone(),
            checkers: Arc::clone(&self.checkers),
        }
    }

    fn expect(&mut self, bound: &Bound, inputs: &Inputs) -> Result<Vec<Expected>, ReferenceError> {
        let mut live = match self.live.take() {
            Some(live) => live,
            None => Live::start(&self.reference, self.options.limit)?,
        };
        let shapes: Vec<Vec<usize>> = bound
            .outputs()
            .map(|tensor| expected_shape(bound, tensor))
            .collect();
        let scaled: Vec<bool> = bound.outputs().map(has_scale).collect();
        let mut written: Vec<&[usize]> = Vec::new();
        for (shape, scaled) in shapes.iter().zip(&scaled) {
            written.push(shape);
            if *scaled {
                written.push(shape);
            }
        }
        let read: Vec<(&Values, &[usize])> = inputs
            .values
            .iter()
            .zip(bound.inputs())
            .map(|(values, tensor)| (values, tensor.shape.as_slice()))
            .collect();
        let results = live.call(&read, &written, &scalars(inputs), &axes(bound))?;
        self.live = Some(live);
        let mut results = results.into_iter();
        let mut expected = Vec::new();
        for scaled in scaled {
            let Some(want) = results.next() else { break };
            let scale = match scaled.then(|| results.next()).flatten() {
                // The sum of absolute terms; a sign would turn the tolerance around.
                Some(Values::Real(scale)) => Some(scale.into_iter().map(f64::abs).collect()),
                Some(Values::Whole(_)) | None => None,
            };
            expected.push(Expected { want, scale });
        }
        Ok(expected)
    }

    fn generate(&mut self, spec: &CaseSpec, inputs: &mut Inputs) -> Result<(), ReferenceError> {
        let Some(program) = &self.generator else {
            return Ok(());
        };
        let generated: Vec<bool> = spec
            .fills
            .iter()
            .map(|fill| matches!(fill, InputFill::One(Fill::Generator)))
            .collect();
        if !generated.contains(&true) {
            return Ok(());
        }
        let bound = &spec.bound;
        let read: Vec<(&Values, &[usize])> = bound
            .inputs()
            .zip(&inputs.values)
            .zip(&generated)
            .filter(|(_, generated)| !**generated)
            .map(|((tensor, values), _)| (values, tensor.shape.as_slice()))
            .collect();
        let written: Vec<&[usize]> = bound
            .inputs()
            .zip(&generated)
            .filter(|(_, generated)| **generated)
            .map(|(tensor, _)| tensor.shape.as_slice())
            .collect();
        let mut arguments = vec![Scalar::Whole((crate::cases::seed_of(spec) >> 1) as i64)];
        arguments.extend(scalars(inputs));
        let mut live = Live::start(program, self.options.limit)?;
        let results = live.call(&read, &written, &arguments, &axes(bound))?;
        let slots = bound
            .inputs()
            .zip(&mut inputs.values)
            .zip(&generated)
            .filter(|(_, generated)| **generated);
        for (((tensor, slot), _), values) in slots.zip(results) {
            let mut bytes = vec![0; values.len() * tensor.dtype.bytes()];
            number::encode(tensor.dtype, &values, &mut bytes);
            *slot = number::decode(tensor.dtype, &bytes);
        }
        Ok(())
    }
}

impl Checkers {
    /// Asks an output's checker for the error ratio of each element.
    ///
    /// # Errors
    /// When the checker fails.
    pub fn check(&self, case: &Case, output: usize, outputs: &[Values]) -> Result<Vec<f64>, ReferenceError> {
        let bound = &case.spec.bound;
        let Some(tensor) = bound.outputs().nth(output) else {
            return Ok(Vec::new());
        };
        let Some(program) = self.programs.get(&tensor.name) else {
            return Ok(Vec::new());
        };
        let mut read: Vec<(&Values, &[usize])> = case
            .inputs
            .values
            .iter()
            .zip(bound.inputs())
            .map(|(values, tensor)| (values, tensor.shape.as_slice()))
            .collect();
        read.extend(
            outputs
                .iter()
                .zip(bound.outputs())
                .map(|(values, tensor)| (values, tensor.shape.as_slice())),
        );
        let mut live = Live::start(program, self.limit)?;
        let mut ratios = live.call(&read, &[&tensor.shape], &scalars(&case.inputs), &axes(bound))?;
        match ratios.pop() {
            Some(Values::Real(ratios)) => Ok(ratios),
            _ => Ok(Vec::new()),
        }
    }
}

/// Inputs that are drawn, then those it writes; a seed before the scalars.
fn generator_signature(instance: &Instance, bound: &Bound) -> Signature {
    let contract = instance.task().contract();
    let written = |tensor: &Tensor| {
        contract
            .inputs
            .iter()
            .any(|input| input.name == tensor.name && matches!(input.fill, Fill::Generator))
    };
    let mut tensors: Vec<Argument> = bound
        .inputs()
        .filter(|tensor| !written(tensor))
        .map(|tensor| argument(tensor, kind(tensor.dtype), false))
        .collect();
    tensors.extend(
        bound
            .inputs()
            .filter(|tensor| written(tensor))
            .map(|tensor| argument(tensor, kind(tensor.dtype), true)),
    );
    let scalars = std::iter::once(Kind::Whole).chain(scalar_kinds(bound)).collect();
    Signature {
        tensors,
        scalars,
        axes: bound.axes.len(),
    }
}

/// Inputs, the candidate's outputs, then one ratio per element of the checked output.
fn checker_signature(bound: &Bound, checked: &Tensor) -> Signature {
    let mut tensors: Vec<Argument> = bound
        .tensors
        .iter()
        .map(|tensor| argument(tensor, kind(tensor.dtype), false))
        .collect();
    tensors.push(Argument {
        name: "ratio".to_owned(),
        ..argument(checked, Kind::Real, true)
    });
    Signature {
        tensors,
        scalars: scalar_kinds(bound),
        axes: bound.axes.len(),
    }
}

fn scalars(inputs: &Inputs) -> Vec<Scalar> {
    inputs
        .scalars
        .iter()
        .map(|scalar| match scalar {
            ScalarDraw::Real(_, value) => Scalar::Real(*value),
            ScalarDraw::Whole(_, value) => Scalar::Whole(*value),
        })
        .collect()
}

fn axes(bound: &Bound) -> Vec<i64> {
    bound.axes.iter().map(|(_, size)| *size).collect()
}
