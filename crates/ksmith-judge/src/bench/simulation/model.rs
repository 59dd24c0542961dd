//! Synthetic machines and kernels: bimodal host speed, slices, biased processes, kernels that misbehave.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::random::Random;
use crate::bench::{Arm, CaseId, Fault, Host, Load, Role, Stage, TimedCall};

/// A machine's noise. Times in nanoseconds.
///
/// The constants of the presets are those measured on shared virtual CPUs: a host whose speed is 1 or about 1.45 for
/// 0.1 to 20 ms at a time, 4 to 40 % of the time in all; a bias of 0.1 to 0.2 % for each process; a scheduler slice
/// of some milliseconds where another process wants the CPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Share of the time in which the host is slow.
    pub slow_share: f64,
    /// Factor of a call in the slow state.
    pub slow_factor: f64,
    /// Shortest and longest slow phase.
    pub slow_ns: (f64, f64),
    /// Standard deviation of a call's logarithm.
    pub jitter: f64,
    /// Standard deviation of a process's own constant bias (logarithm).
    pub process_bias: f64,
    /// Time after which a running process loses its CPU, on average; infinite on an idle machine.
    pub slice_ns: f64,
    /// How long it then waits.
    pub wait_ns: f64,
    /// Mean time between stalls that the guest cannot see.
    pub stall_every_ns: f64,
    /// Judge's work between two calls.
    pub between_ns: f64,
}

impl Machine {
    /// An idle guest on a quiet host.
    pub const QUIET: Self = Self {
        slow_share: 0.04,
        slow_factor: 1.45,
        slow_ns: (1e5, 2e7),
        jitter: 0.008,
        process_bias: 0.002,
        slice_ns: f64::INFINITY,
        wait_ns: 0.0,
        stall_every_ns: 1e9,
        between_ns: 1.2e4,
    };

    /// An idle guest on a host that is slow for a quarter of the time.
    pub const BIMODAL: Self = Self {
        slow_share: 0.25,
        jitter: 0.012,
        ..Self::QUIET
    };

    /// The bimodal host, and another process at half a CPU.
    pub const LOADED: Self = Self {
        slice_ns: 6e6,
        wait_ns: 3e6,
        ..Self::BIMODAL
    };

    /// Another process on each CPU all the time.
    pub const CROWDED: Self = Self {
        slice_ns: 3e5,
        wait_ns: 4e6,
        ..Self::BIMODAL
    };
}

/// A kernel and how the candidate differs from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// The champion's call on an undisturbed machine, in nanoseconds.
    pub call_ns: f64,
    /// Share of the champion's time that the candidate saves (0.03 = 3 %).
    pub saved: f64,
    /// Share of its calls in which the candidate is fast at all; 1 for an honest kernel.
    pub fast_share: f64,
    /// Factor of its other calls.
    pub otherwise: f64,
    /// Share of its slow calls in which the candidate gives up the CPU, so that they look preempted.
    pub yields: f64,
    /// The A/A copy's constant factor: 1 for a sound control.
    pub copy_factor: f64,
    /// Which distribution the candidate's savings are limited to, if one.
    pub only_distribution: Option<u32>,
}

impl Model {
    /// A kernel of `call_ns` and an honest candidate that saves `saved` of it.
    pub fn honest(call_ns: f64, saved: f64) -> Self {
        Self {
            call_ns,
            saved,
            fast_share: 1.0,
            otherwise: 1.0,
            yields: 0.0,
            copy_factor: 1.0,
            only_distribution: None,
        }
    }
}

struct World {
    machine: Machine,
    random: Random,
    now_ns: f64,
    slow: bool,
    phase_ends_ns: f64,
    slice_ends_ns: f64,
}

impl World {
    fn step(&mut self, ns: f64) {
        self.now_ns += ns;
        while self.phase_ends_ns < self.now_ns {
            self.slow = !self.slow && self.machine.slow_share > 0.0;
            let (low, high) = self.machine.slow_ns;
            let slow = self.random.log_uniform(low, high);
            // Mean of the log-uniform distribution, so that the slow share comes out right.
            let mean = (high - low) / (high / low).ln();
            let odds = (1.0 - self.machine.slow_share) / self.machine.slow_share.max(1e-9);
            self.phase_ends_ns += if self.slow {
                slow
            } else {
                self.random.exponential(mean * odds)
            };
        }
    }

    /// One call of `work` nanoseconds of undisturbed time: what the clock says, and whether it was preempted.
    fn call(&mut self, work: f64) -> (f64, bool) {
        let machine = self.machine;
        let state = if self.slow { machine.slow_factor } else { 1.0 };
        let mut ns = work * state * (machine.jitter * self.random.normal()).exp();
        if self.random.chance(ns / machine.stall_every_ns) {
            ns += self.random.log_uniform(2e4, 2e6);
        }
        let preempted = self.now_ns + ns > self.slice_ends_ns;
        if preempted {
            ns += self.random.exponential(machine.wait_ns);
            self.slice_ends_ns = self.now_ns + ns + self.random.exponential(machine.slice_ns);
        }
        self.step(ns);
        self.step(machine.between_ns);
        if self.now_ns > self.slice_ends_ns {
            let wait = self.random.exponential(machine.wait_ns);
            self.step(wait);
            self.slice_ends_ns = self.now_ns + self.random.exponential(machine.slice_ns);
        }
        (ns, preempted)
    }
}

/// A host whose workers are models.
pub struct ModelHost {
    world: Rc<RefCell<World>>,
    model: Model,
    /// What the first call of this role does instead of answering.
    fault: Option<(Role, Fault)>,
}

impl ModelHost {
    /// A machine with a kernel; the same seed gives the same times.
    pub fn new(machine: Machine, model: Model, seed: u64) -> Self {
        let mut random = Random::new(seed, 11);
        let slow = random.chance(machine.slow_share);
        let slice_ends_ns = if machine.slice_ns.is_finite() {
            random.exponential(machine.slice_ns)
        } else {
            f64::INFINITY
        };
        let world = World {
            machine,
            random,
            now_ns: 0.0,
            slow,
            phase_ends_ns: 0.0,
            slice_ends_ns,
        };
        Self {
            world: Rc::new(RefCell::new(world)),
            model,
            fault: None,
        }
    }

    /// Lets the first call of `role` fail with `fault`.
    #[must_use]
    pub fn failing(mut self, role: Role, fault: Fault) -> Self {
        self.fault = Some((role, fault));
        self
    }
}

/// One modelled worker.
pub struct ModelArm {
    world: Rc<RefCell<World>>,
    role: Role,
    model: Model,
    bias: f64,
    fault: Option<Fault>,
}

impl Arm for ModelArm {
    fn call(&mut self, case: CaseId) -> Result<TimedCall, Fault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let mut world = self.world.borrow_mut();
        let model = self.model;
        let mut yields = false;
        let factor = match self.role {
            Role::Candidate => {
                let known = model
                    .only_distribution
                    .is_none_or(|only| only == case.distribution);
                if known && world.random.chance(model.fast_share) {
                    1.0 - model.saved
                } else {
                    yields = world.random.chance(model.yields);
                    model.otherwise
                }
            }
            Role::Copy => model.copy_factor,
            Role::Champion | Role::Baseline | Role::FlagControl => 1.0,
        };
        let (ns, preempted) = world.call(model.call_ns * factor * self.bias.exp());
        Ok(TimedCall {
            ns: ns as u64,
            judge_preempted: false,
            worker_preempted: preempted || yields,
        })
    }
}

impl Host for ModelHost {
    type Arm = ModelArm;

    fn begin(&mut self, _stage: Stage) -> Result<(), Fault> {
        Ok(())
    }

    fn start(&mut self, role: Role, _set: u32) -> Result<ModelArm, Fault> {
        let mut world = self.world.borrow_mut();
        // Measured: 3 ms from exec to the first answer with every layer of the box.
        world.step(3e6);
        let bias = world.machine.process_bias * world.random.normal();
        let fault = self
            .fault
            .as_ref()
            .filter(|(failing, _)| *failing == role)
            .map(|(_, fault)| fault.clone());
        Ok(ModelArm {
            world: Rc::clone(&self.world),
            role,
            model: self.model,
            bias,
            fault,
        })
    }

    fn quiet(&mut self, _limit: Duration) -> Load {
        Load {
            other_cpus: None,
            waited_s: 0.0,
            quiet: self.world.borrow().machine.slice_ns.is_infinite(),
        }
    }

    fn now(&mut self) -> Duration {
        Duration::from_nanos(self.world.borrow().now_ns as u64)
    }
}
