//! Clock source and frequency policy.

use serde::{Deserialize, Serialize};

use crate::host::Host;

/// What keeps time here, and what moves the frequency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// The kernel's clock source (`tsc`, `kvm-clock`, `arch_sys_counter`, …), or `unknown`.
    pub source: String,
    /// Whether the time-stamp counter ticks at one rate and does not stop (`constant_tsc`, `nonstop_tsc`).
    pub invariant_tsc: bool,
    /// Frequency governor of CPU 0; `None` where the guest or container does not see one.
    pub governor: Option<String>,
    /// Whether turbo is switched off; `None` where the kernel does not say.
    pub turbo_off: Option<bool>,
}

impl Clock {
    /// Reads the clock of a host.
    pub fn read(host: &dyn Host) -> Self {
        let line = |path: &str| {
            host.read(path.as_ref())
                .map(|text| text.trim().to_owned())
                .filter(|text| !text.is_empty())
        };
        let flags = host
            .read("/proc/cpuinfo".as_ref())
            .and_then(|text| {
                text.lines()
                    .find(|line| line.starts_with("flags"))
                    .map(str::to_owned)
            })
            .unwrap_or_default();
        let has = |flag: &str| flags.split_whitespace().any(|name| name == flag);
        let turbo_off = match line("/sys/devices/system/cpu/intel_pstate/no_turbo") {
            Some(text) => Some(text == "1"),
            None => line("/sys/devices/system/cpu/cpufreq/boost").map(|text| text == "0"),
        };
        Self {
            source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource")
                .unwrap_or_else(|| "unknown".to_owned()),
            invariant_tsc: has("constant_tsc") && has("nonstop_tsc"),
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            turbo_off,
        }
    }

    /// Whether reading the clock is cheap enough to time microseconds (a read of `hpet` or `acpi_pm` costs about one).
    pub fn is_fast(&self) -> bool {
        !matches!(
            self.source.as_str(),
            "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "xen"
        )
    }
}
