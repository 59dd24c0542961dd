//! NVIDIA GPUs: facts from the management library, else from `nvidia-smi`.

use serde::{Deserialize, Serialize};

use crate::host::{Command, Host};

/// One GPU as the driver reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// Index in the driver's order.
    pub index: u32,
    /// Product name.
    pub name: String,
    /// UUID, the name under which timings are locked and recorded.
    pub uuid: String,
    /// Compute capability, `(9, 0)`; `None` if the driver does not say.
    pub compute_capability: Option<(u32, u32)>,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Driver version (`580.95.05`).
    pub driver: String,
    /// Highest CUDA version the driver supports (`13.0`), if known.
    pub cuda: Option<String>,
    /// Whether the device is cut into instances (MIG).
    pub mig: bool,
    /// How the device reaches this system.
    pub virtualisation: GpuVirtualisation,
    /// Largest SM clock in MHz, if known.
    pub max_sm_mhz: Option<u32>,
    /// Whether memory errors are corrected, if known.
    pub ecc: Option<bool>,
    /// Whether the driver stays loaded without a client, if known.
    pub persistence: Option<bool>,
}

/// How a GPU reaches this system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GpuVirtualisation {
    /// Directly.
    None,
    /// The whole device, passed through to a guest.
    PassThrough,
    /// A share of a device (vGPU): counters and clocks belong to the host.
    VGpu,
    /// The driver does not say.
    Unknown,
}

impl Gpu {
    /// The parts that decide about times and generated code.
    pub(crate) fn identity(&self) -> serde_json::Value {
        serde_json::json!({
            "name": self.name,
            "uuid": self.uuid,
            "compute_capability": self.compute_capability,
            "memory_bytes": self.memory_bytes,
            "driver": self.driver,
            "mig": self.mig,
            "virtualisation": self.virtualisation,
        })
    }

    /// The architecture with its own features, as compilers name it: `sm_90a`, `sm_89`.
    ///
    /// Architecture-specific features (`a`) exist from compute capability 9.0 on.
    pub fn arch(&self) -> Option<String> {
        let (major, minor) = self.compute_capability?;
        let suffix = if major >= 9 { "a" } else { "" };
        Some(format!("sm_{major}{minor}{suffix}"))
    }
}

/// The columns asked of `nvidia-smi`, in this order. All exist since driver 470 but `compute_cap` (510).
pub(crate) const SMI_QUERY: &str = "index,name,uuid,compute_cap,memory.total,driver_version,mig.mode.current,\
                                    clocks.max.sm,ecc.mode.current,persistence_mode";

/// The command that lists GPUs.
pub(crate) fn smi_command() -> Command {
    let query = format!("--query-gpu={SMI_QUERY}");
    Command::new("nvidia-smi", [query, "--format=csv,noheader,nounits".to_owned()])
        .limit(std::time::Duration::from_secs(20))
}

/// GPUs of a host; empty if there are none or the driver does not answer.
pub(crate) fn read(host: &dyn Host) -> Vec<Gpu> {
    if let Some(gpus) = host.nvml_gpus() {
        return gpus;
    }
    if host.find("nvidia-smi").is_none() {
        return Vec::new();
    }
    let Some(text) = host.run(&smi_command()).success().map(str::to_owned) else {
        return Vec::new();
    };
    let mut gpus = parse_smi(&text);
    if gpus.is_empty() {
        return gpus;
    }
    let banner = host.run(&Command::new("nvidia-smi", Vec::<String>::new()));
    let cuda = banner.success().and_then(cuda_in_banner);
    let details = host.run(&Command::new("nvidia-smi", ["-q"]));
    let virtualisation = details
        .success()
        .map_or(GpuVirtualisation::Unknown, virtualisation_in);
    for gpu in &mut gpus {
        gpu.cuda.clone_from(&cuda);
        gpu.virtualisation = virtualisation;
    }
    gpus
}

/// Parses the answer to [`smi_command`]; lines that do not fit are skipped.
pub(crate) fn parse_smi(text: &str) -> Vec<Gpu> {
    text.lines().filter_map(parse_smi_line).collect()
}

fn parse_smi_line(line: &str) -> Option<Gpu> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [
        index,
        name,
        uuid,
        capability,
        memory,
        driver,
        mig,
        clock,
        ecc,
        persistence,
    ] = fields[..]
    else {
        return None;
    };
    let switch = |text: &str| match text {
        "Enabled" => Some(true),
        "Disabled" => Some(false),
        _ => None,
    };
    let capability = capability
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    Some(Gpu {
        index: index.parse().ok()?,
        name: name.to_owned(),
        uuid: uuid.to_owned(),
        compute_capability: capability,
        memory_bytes: memory.parse::<u64>().ok()?.saturating_mul(1 << 20),
        driver: driver.to_owned(),
        cuda: None,
        mig: switch(mig) == Some(true),
        virtualisation: GpuVirtualisation::Unknown,
        max_sm_mhz: clock.parse().ok(),
        ecc: switch(ecc),
        persistence: switch(persistence),
    })
}

/// Finds `CUDA Version: 13.0` in the table that `nvidia-smi` prints.
fn cuda_in_banner(text: &str) -> Option<String> {
    let rest = text.split_once("CUDA Version:")?.1;
    let word = rest.split_whitespace().next()?;
    word.starts_with(|c: char| c.is_ascii_digit())
        .then(|| word.to_owned())
}

fn virtualisation_in(text: &str) -> GpuVirtualisation {
    let value = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("Virtualization Mode"))
        .and_then(|rest| rest.split_once(':'))
        .map(|(_, value)| value.trim());
    match value {
        Some("None") => GpuVirtualisation::None,
        Some("Pass-Through") => GpuVirtualisation::PassThrough,
        Some("VGPU") => GpuVirtualisation::VGpu,
        Some(_) | None => GpuVirtualisation::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nvidia_smi_lines_become_devices() {
        let text = "0, NVIDIA H200, GPU-5b1e7d1c-0000-1111-2222-333344445555, 9.0, 143771, 580.95.05, Disabled, \
                    1980, Enabled, Enabled\n\
                    1, NVIDIA GeForce RTX 4090, GPU-aa, 8.9, 24564, 580.95.05, [N/A], 3105, [N/A], Disabled\n\
                    not a device\n";
        let gpus = parse_smi(text);
        assert_eq!(gpus.len(), 2);
        assert_eq!(gpus[0].arch().as_deref(), Some("sm_90a"));
        assert_eq!(gpus[0].memory_bytes, 143_771 << 20);
        assert_eq!(
            (gpus[0].ecc, gpus[0].persistence, gpus[0].mig),
            (Some(true), Some(true), false)
        );
        assert_eq!(gpus[1].arch().as_deref(), Some("sm_89"));
        assert_eq!((gpus[1].ecc, gpus[1].max_sm_mhz), (None, Some(3105)));
    }

    #[test]
    fn cuda_version_and_virtualisation_are_read_from_the_long_forms() {
        let banner = "| NVIDIA-SMI 580.95.05    Driver Version: 580.95.05    CUDA Version: 13.0     |";
        assert_eq!(cuda_in_banner(banner).as_deref(), Some("13.0"));
        assert_eq!(
            cuda_in_banner("| Driver Version: 470.1 CUDA Version: N/A |"),
            None
        );
        let details = "    GPU Virtualization Mode\n        Virtualization Mode               : VGPU\n";
        assert_eq!(virtualisation_in(details), GpuVirtualisation::VGpu);
        assert_eq!(virtualisation_in(""), GpuVirtualisation::Unknown);
    }
}
