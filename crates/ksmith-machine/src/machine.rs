//! The whole record of a machine, and its digest.

use ksmith_task::Digest;
use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::{Clock, Compiler, Cpu, Gpu, LocalHost, System, compiler, gpu};

/// What a verdict has to know about the machine it was made on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Processor, instruction sets, topology, caches.
    pub cpu: Cpu,
    /// Usable memory in bytes, 0 if unknown.
    pub memory_bytes: u64,
    /// Clock source and frequency policy.
    pub clock: Clock,
    /// Operating system, kernel, hypervisor.
    pub system: System,
    /// C and C++ compilers found on the search path.
    pub compilers: Vec<Compiler>,
    /// NVIDIA GPUs that the driver reports.
    pub gpus: Vec<Gpu>,
}

impl Machine {
    /// Reads this machine. Takes some tens of milliseconds: keep the result rather than reading again.
    pub fn read() -> Self {
        Self::read_from(&LocalHost::new())
    }

    /// Reads any [`Host`].
    pub fn read_from(host: &dyn Host) -> Self {
        Self {
            cpu: Cpu::read(host),
            memory_bytes: memory_bytes(host),
            clock: Clock::read(host),
            system: System::read(host),
            compilers: compiler::read(host),
            gpus: gpu::read(host),
        }
    }

    /// A digest of what decides about times: processor, instruction sets, topology, caches, memory (in GiB), clock
    /// source, governor, hypervisor, and each GPU with its driver. Kernel release and compilers are left out: a
    /// security update of the kernel does not make another machine; compilers have [`Machine::tools_digest`].
    pub fn digest(&self) -> Digest {
        let gibibytes = self.memory_bytes.div_ceil(1 << 30);
        let gpus: Vec<_> = self.gpus.iter().map(Gpu::identity).collect();
        let body = serde_json::json!({
            "cpu": self.cpu,
            "memory_gib": gibibytes,
            "clock_source": self.clock.source,
            "governor": self.clock.governor,
            "arch": self.system.arch,
            "os": self.system.os,
            "hypervisor": self.system.hypervisor,
            "gpus": gpus,
        });
        Digest::of_parts([("machine-v1", body.to_string().as_bytes())])
    }

    /// A digest of the compilers (kind and version, not their place on disk).
    pub fn tools_digest(&self) -> Digest {
        let tools: Vec<String> = self
            .compilers
            .iter()
            .map(|compiler| format!("{:?} {}", compiler.kind, compiler.version))
            .collect();
        Digest::of_parts([("tools-v1", tools.join("\n").as_bytes())])
    }

    /// One line for tables and certificates.
    pub fn summary(&self) -> String {
        let mut line = format!("{}, {} CPUs", self.cpu.model, self.cpu.logical);
        if let Some(vector) = self.cpu.vector_isa() {
            line.push_str(&format!(", {vector}"));
        }
        if let Some(hypervisor) = &self.system.hypervisor {
            line.push_str(&format!(", under {hypervisor}"));
        }
        for gpu in &self.gpus {
            line.push_str(&format!(", {}", gpu.name));
        }
        line
    }
}

fn memory_bytes(host: &dyn Host) -> u64 {
    host.read("/proc/meminfo".as_ref())
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        })
        .map_or(0, |kibibytes| kibibytes.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::ScriptedHost;

    #[test]
    fn reading_this_machine_twice_gives_one_digest() {
        let first = Machine::read();
        assert!(first.cpu.logical >= 1);
        assert!(first.memory_bytes > 0);
        assert_eq!(first.digest(), Machine::read().digest());
        let text = serde_json::to_string(&first).unwrap();
        let again: Machine = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (again.digest(), again.tools_digest()),
            (first.digest(), first.tools_digest())
        );
    }

    #[test]
    fn an_empty_machine_is_read_without_an_error() {
        let machine = Machine::read_from(&ScriptedHost::default());
        assert_eq!(machine.memory_bytes, 0);
        assert!(machine.compilers.is_empty() && machine.gpus.is_empty());
        assert!(machine.cpu.logical >= 1);
    }

    #[test]
    fn the_digest_follows_hardware_and_ignores_kernel_and_compilers() {
        let machine = Machine::read();
        let mut other = machine.clone();
        other.system.kernel = "99.1".to_owned();
        other.compilers.clear();
        assert_eq!(other.digest(), machine.digest());
        other.cpu.features.push("avx1024".to_owned());
        assert_ne!(other.digest(), machine.digest());
    }
}
