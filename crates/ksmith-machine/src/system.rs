//! Operating system, kernel, hypervisor, container.

use serde::{Deserialize, Serialize};

use crate::host::Host;

/// What runs beneath the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct System {
    /// `linux`, `macos`, …
    pub os: String,
    /// `x86_64`, `aarch64`, …
    pub arch: String,
    /// Kernel release, or `unknown`.
    pub kernel: String,
    /// The distribution's own name, if it says one.
    pub distribution: Option<String>,
    /// The hypervisor this machine runs under (`kvm`, `firecracker`, `gvisor`, `wsl`, …); `None` on bare metal.
    pub hypervisor: Option<String>,
    /// The container runtime this program runs in, if it is visible.
    pub container: Option<String>,
}

impl System {
    /// Reads the system of a host.
    pub fn read(host: &dyn Host) -> Self {
        let kernel = host
            .read("/proc/sys/kernel/osrelease".as_ref())
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty());
        let distribution = host.read("/etc/os-release".as_ref()).and_then(|text| {
            let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
            Some(value.trim_matches('"').to_owned())
        });
        Self {
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            hypervisor: hypervisor(host, kernel.as_deref().unwrap_or_default()),
            kernel: kernel.unwrap_or_else(|| "unknown".to_owned()),
            distribution,
            container: container(host),
        }
    }

    /// Whether times may be disturbed by other guests of the same host.
    pub fn is_virtual(&self) -> bool {
        self.hypervisor.is_some()
    }
}

fn hypervisor(host: &dyn Host, kernel: &str) -> Option<String> {
    // gVisor reports the constant release 4.4.0 and its own log lines as the kernel's.
    let version = host.read("/proc/version".as_ref()).unwrap_or_default();
    if kernel == "4.4.0" && version.contains("Sun Jan 10 15:06:54 PST 2016") {
        return Some("gvisor".to_owned());
    }
    if kernel.to_ascii_lowercase().contains("microsoft") {
        return Some("wsl".to_owned());
    }
    let cpuinfo = host.read("/proc/cpuinfo".as_ref()).unwrap_or_default();
    let flagged = cpuinfo
        .lines()
        .find(|line| line.starts_with("flags"))
        .is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"));
    let product = ["sys_vendor", "product_name"]
        .iter()
        .filter_map(|name| host.read(format!("/sys/class/dmi/id/{name}").as_ref()))
        .collect::<String>()
        .to_ascii_lowercase();
    let known = [
        ("amazon ec2", "kvm (ec2)"),
        ("google", "kvm (gce)"),
        ("qemu", "kvm (qemu)"),
        ("kvm", "kvm"),
        ("vmware", "vmware"),
        ("virtualbox", "virtualbox"),
        ("xen", "xen"),
        ("microsoft corporation\nvirtual", "hyper-v"),
    ];
    if let Some((_, name)) = known.iter().find(|(needle, _)| product.contains(needle))
        // Metal instances carry the vendor's name and no hypervisor flag.
        && flagged
    {
        return Some((*name).to_owned());
    }
    if let Some(kind) = host
        .read("/sys/hypervisor/type".as_ref())
        .filter(|text| !text.trim().is_empty())
    {
        return Some(kind.trim().to_owned());
    }
    // A Firecracker guest has no DMI table; its kernels are often named so.
    if flagged && kernel.contains("-fc") {
        return Some("kvm (firecracker)".to_owned());
    }
    flagged.then(|| "unnamed hypervisor".to_owned())
}

fn container(host: &dyn Host) -> Option<String> {
    if host.exists("/.dockerenv".as_ref()) {
        return Some("docker".to_owned());
    }
    if host.exists("/run/.containerenv".as_ref()) {
        return Some("podman".to_owned());
    }
    if host.has_env("KUBERNETES_SERVICE_HOST") {
        return Some("kubernetes".to_owned());
    }
    let groups = host.read("/proc/1/cgroup".as_ref()).unwrap_or_default();
    [
        ("kubepods", "kubernetes"),
        ("docker", "docker"),
        ("lxc", "lxc"),
        ("containerd", "containerd"),
    ]
    .iter()
    .find(|(needle, _)| groups.contains(needle))
    .map(|(_, name)| (*name).to_owned())
}
