//! File rules by Landlock; the only file that knows the crate `landlock`.

use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, NetPort, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};

/// The newest rights that we ask for; older kernels give what they have.
const ABI_WANTED: ABI = ABI::V6;

/// What TCP a box may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Network {
    /// None.
    None,
    /// One port, in a network that others share.
    Port(u16),
    /// Any: its network namespace holds nothing but its own loopback.
    Own,
}

/// What a process may do with files.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Read, list, execute.
    pub(crate) read_only: Vec<PathBuf>,
    /// Everything.
    pub(crate) read_write: Vec<PathBuf>,
    /// Read, write, control calls.
    pub(crate) devices: Vec<PathBuf>,
    /// Read, and write or truncate files that exist already.
    pub(crate) writable: Vec<PathBuf>,
}

/// Restricts this process and all it starts: files as listed, TCP as given, no signals or abstract sockets to the
/// outside.
pub(crate) fn restrict(files: &Files, network: Network) -> io::Result<()> {
    let device_rights = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let writing = AccessFs::from_read(ABI_WANTED) | AccessFs::WriteFile | AccessFs::Truncate;
    let tcp = AccessNet::from_all(ABI_WANTED);
    let ports: Vec<Result<NetPort, RulesetError>> = match network {
        Network::Port(port) => vec![Ok(NetPort::new(port, tcp))],
        Network::None | Network::Own => Vec::new(),
    };
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI_WANTED))
        .and_then(|rules| match network {
            Network::None | Network::Port(_) => rules.handle_access(tcp),
            Network::Own => Ok(rules),
        })
        .and_then(|rules| rules.scope(Scope::from_all(ABI_WANTED)))
        .and_then(Ruleset::create)
        .and_then(|rules| {
            rules.add_rules(path_beneath_rules(
                &files.read_only,
                AccessFs::from_read(ABI_WANTED),
            ))
        })
        .and_then(|rules| {
            rules.add_rules(path_beneath_rules(
                &files.read_write,
                AccessFs::from_all(ABI_WANTED),
            ))
        })
        .and_then(|rules| rules.add_rules(path_beneath_rules(&files.devices, device_rights)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(&files.writable, writing)))
        .and_then(|rules| rules.add_rules(ports))
        .and_then(|rules| rules.restrict_self())
        .map_err(io::Error::other)?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(io::Error::other("the kernel has no Landlock")),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
    }
}
