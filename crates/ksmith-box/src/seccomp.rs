//! System-call filters; the only file that knows the crate `seccompiler`'s builder.
//!
//! Forbidden calls stop their thread and appear on a listener that the box's first process reads: it names the call and
//! kills the box. Nothing inside the box can intercept that, as it could a `SIGSYS` handler.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

use crate::Profile;
use crate::calls::{self, Otherwise, Rule};
use crate::sys::confine::{Listener, install_filter};

/// `SECCOMP_RET_USER_NOTIF`, which the crate does not offer; it replaces `SECCOMP_RET_TRAP`.
const NOTIFY: u32 = 0x7fc0_0000;
const TRAP: u32 = 0x0003_0000;
const RETURN: u16 = 0x06;

/// The programs of one profile, ready to install.
pub(crate) struct Filters {
    refuse: Vec<BpfProgram>,
    /// None where all that is not refused is allowed; then no call ends the box.
    allow: Option<BpfProgram>,
    listener: Listener,
}

fn condition(argument: u8, operation: SeccompCmpOp, value: u64) -> io::Result<SeccompRule> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, operation, value)
        .and_then(|condition| SeccompRule::new(vec![condition]))
        .map_err(io::Error::other)
}

/// Holds where the argument equals none of the values.
fn unequal(argument: u8, values: &[u64]) -> io::Result<SeccompRule> {
    values
        .iter()
        .map(|&value| {
            SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
                .map_err(io::Error::other)
        })
        .collect::<io::Result<_>>()
        .and_then(|conditions| SeccompRule::new(conditions).map_err(io::Error::other))
}

/// The list of a profile that forbids what it does not allow.
fn allow_list(
    mut allowed: BTreeMap<i64, Vec<SeccompRule>>,
    listener: Listener,
    report_over: i32,
) -> io::Result<BpfProgram> {
    // Handing over the listener comes after the filter; the descriptor is closed before foreign code runs.
    let hand_over = condition(0, SeccompCmpOp::Eq, u64::try_from(report_over).unwrap_or(0))?;
    allowed.entry(libc::SYS_sendmsg).or_default().push(hand_over);
    allowed.entry(libc::SYS_close_range).or_default();
    allowed.entry(libc::SYS_close).or_default();
    let otherwise = match listener {
        Listener::New => SeccompAction::Trap,
        Listener::None => SeccompAction::KillProcess,
    };
    let mut program = compile(allowed, otherwise, SeccompAction::Allow)?;
    for step in &mut program {
        if step.code == RETURN && step.k == TRAP {
            step.k = NOTIFY;
        }
    }
    Ok(program)
}

fn compile(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    mismatch: SeccompAction,
    matched: SeccompAction,
) -> io::Result<BpfProgram> {
    let architecture: TargetArch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    SeccompFilter::new(rules, mismatch, matched, architecture)
        .and_then(BpfProgram::try_from)
        .map_err(io::Error::other)
}

impl Filters {
    /// Compiles the filters; `report_over` is the descriptor on which the listener is handed over afterwards.
    pub(crate) fn new(profile: Profile, listener: Listener, report_over: i32) -> io::Result<Self> {
        let mut allowed: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
        let mut refused: BTreeMap<u32, BTreeMap<i64, Vec<SeccompRule>>> = BTreeMap::new();
        for entry in calls::rules(profile) {
            let rules = match entry.rule {
                Rule::Allow => Vec::new(),
                Rule::AllowIf { argument, values } => values
                    .iter()
                    .map(|&value| condition(argument, SeccompCmpOp::Eq, value))
                    .collect::<io::Result<_>>()?,
                Rule::AllowBits {
                    argument,
                    mask,
                    value,
                } => {
                    vec![condition(argument, SeccompCmpOp::MaskedEq(mask), value)?]
                }
                Rule::Refuse(errno) => {
                    refused.entry(errno).or_default().insert(entry.number, Vec::new());
                    Vec::new()
                }
                Rule::RefuseBits {
                    argument,
                    mask,
                    errno,
                } => {
                    let bits = (0..u64::BITS)
                        .map(|bit| 1u64 << bit)
                        .filter(|bit| mask & bit != 0);
                    let rules = bits
                        .map(|bit| condition(argument, SeccompCmpOp::MaskedEq(bit), bit))
                        .collect::<io::Result<_>>()?;
                    refused.entry(errno).or_default().insert(entry.number, rules);
                    Vec::new()
                }
                Rule::RefuseUnless {
                    argument,
                    values,
                    errno,
                } => {
                    let rule = unequal(argument, values)?;
                    refused.entry(errno).or_default().insert(entry.number, vec![rule]);
                    Vec::new()
                }
            };
            allowed.insert(entry.number, rules);
        }
        let refuse = refused
            .into_iter()
            .map(|(errno, rules)| compile(rules, SeccompAction::Allow, SeccompAction::Errno(errno)))
            .collect::<io::Result<_>>()?;
        let allow = match calls::otherwise(profile) {
            Otherwise::Allowed => None,
            Otherwise::Forbidden => Some(allow_list(allowed, listener, report_over)?),
        };
        Ok(Self {
            refuse,
            allow,
            listener,
        })
    }

    /// Installs all filters of this process; returns the listener, if it has one.
    pub(crate) fn install(&self) -> io::Result<Option<OwnedFd>> {
        // The list goes first: it does not allow `seccomp` itself. Refusals win over allowances whatever the order.
        for program in &self.refuse {
            install_filter(program, Listener::None)?;
        }
        match &self.allow {
            Some(program) => install_filter(program, self.listener),
            None => Ok(None),
        }
    }
}
