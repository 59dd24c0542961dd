//! Driver and CUDA toolkit. "Driver only" is a finding of its own: the GPU runs kernels, and nothing here makes them.

use std::path::Path;

use crate::gpu::smi_command;
use crate::host::Ended;
use crate::toolchain::Origin;
use crate::{GpuVirtualisation, Toolchain};

use super::{Probes, Row, State};

/// The first driver branch that runs CUDA 13 code (CUDA 13.0 release notes, minimum driver).
const DRIVER_FOR_CUDA_13: u32 = 580;

pub(super) fn rows(probes: &Probes<'_>) -> Vec<Row> {
    let driver = driver(probes);
    let toolkit = toolkit(probes);
    vec![driver, toolkit]
}

/// The driver and the devices it reports.
pub(super) fn driver(probes: &Probes<'_>) -> Row {
    const NAME: &str = "nvidia driver";
    let gpus = &probes.machine.gpus;
    let Some(first) = gpus.first() else {
        return absent_driver(probes);
    };
    let devices: Vec<String> = gpus
        .iter()
        .map(|gpu| {
            let arch = gpu.arch().unwrap_or_else(|| "architecture unknown".to_owned());
            format!("{} ({arch}, {} GiB)", gpu.name, gpu.memory_bytes >> 30)
        })
        .collect();
    let cuda = first
        .cuda
        .as_deref()
        .map(|cuda| format!(", runs CUDA up to {cuda}"))
        .unwrap_or_default();
    let finding = format!("driver {}{cuda}: {}", first.driver, devices.join(", "));
    let major = first
        .driver
        .split('.')
        .next()
        .and_then(|text| text.parse::<u32>().ok());
    if major.is_some_and(|major| major < DRIVER_FOR_CUDA_13) {
        return Row::new(
            NAME,
            State::Limited,
            format!("{finding}; CUDA 13 code needs driver {DRIVER_FOR_CUDA_13}"),
        )
        .fix(format!(
            "install NVIDIA driver {DRIVER_FOR_CUDA_13} or newer and restart the machine"
        ));
    }
    if gpus
        .iter()
        .any(|gpu| gpu.virtualisation == GpuVirtualisation::VGpu)
    {
        return Row::new(
            NAME,
            State::Limited,
            format!(
                "{finding}; the device is a share (vGPU): clocks, counters and neighbours belong to its host"
            ),
        )
        .fix("for timings that others can repeat, use a whole device");
    }
    if gpus.iter().any(|gpu| gpu.mig) {
        return Row::new(
            NAME,
            State::Limited,
            format!("{finding}; the device is cut into instances (MIG): bandwidth and caches are those of the slice"),
        )
        .fix("name the slice in every claim, or use a device without MIG");
    }
    Row::new(NAME, State::Ok, finding)
}

fn absent_driver(probes: &Probes<'_>) -> Row {
    const NAME: &str = "nvidia driver";
    let host = probes.host;
    let kernel_part = host.exists(Path::new("/proc/driver/nvidia/version"));
    let output = host.run(&smi_command());
    let text = output.both();
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("no output")
        .to_owned();
    if output.ended == Ended::TimedOut {
        return Row::new(
            NAME,
            State::Limited,
            "`nvidia-smi` did not answer within 20 s: the driver is stuck",
        )
        .fix("restart the machine; if it comes back, read `dmesg` for lines with `NVRM: Xid`");
    }
    if text.contains("Driver/library version mismatch") {
        return Row::new(
            NAME,
            State::Limited,
            "the loaded kernel module and the driver's library differ in version",
        )
        .fix("restart the machine: the driver was updated while it ran");
    }
    if text.contains("couldn't communicate with the NVIDIA driver") {
        return Row::new(
            NAME,
            State::Missing,
            "the driver's tools are installed, its kernel module is not loaded",
        )
        .fix("as the administrator: modprobe nvidia");
    }
    if text.contains("No devices were found") {
        return Row::new(NAME, State::Missing, "the driver answers and reports no device")
            .fix("check that the device is powered and passed to this system: lspci -d 10de:");
    }
    if output.ended == Ended::NotFound && kernel_part {
        return Row::new(
            NAME,
            State::Missing,
            "the kernel module is loaded, and the driver's libraries are not in this container",
        )
        .fix("start the container with: --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility");
    }
    if let Ended::Exited(status) = output.ended {
        return Row::new(
            NAME,
            State::Missing,
            format!("`nvidia-smi` ended with status {status}: {line}"),
        )
        .fix("reinstall the NVIDIA driver, then: nvidia-smi");
    }
    if pci_gpu(probes) {
        return Row::new(
            NAME,
            State::Missing,
            "an NVIDIA device is on the PCI bus, and no driver is installed",
        )
        .fix(format!(
            "install NVIDIA driver {DRIVER_FOR_CUDA_13} or newer and restart the machine"
        ));
    }
    Row::new(NAME, State::NotApplicable, "no NVIDIA device on this machine")
}

/// Whether a display or 3D controller of NVIDIA (PCI vendor 10de, class 03) is on the bus.
fn pci_gpu(probes: &Probes<'_>) -> bool {
    let folder = Path::new("/sys/bus/pci/devices");
    probes.host.list(folder).iter().any(|name| {
        let read = |file: &str| {
            probes
                .host
                .read(&folder.join(name).join(file))
                .unwrap_or_default()
        };
        read("vendor").trim() == "0x10de" && read("class").trim().starts_with("0x03")
    })
}

/// The toolkit.
pub(super) fn toolkit(probes: &Probes<'_>) -> Row {
    const NAME: &str = "cuda toolkit";
    let Some(toolchain) = Toolchain::find(probes.host, &probes.data_dir) else {
        let finding = if probes.machine.gpus.is_empty() {
            "none; with it kernels can be compiled and disassembled here even without a GPU".to_owned()
        } else {
            "driver only: the GPU runs kernels, and nothing here compiles them".to_owned()
        };
        return Row::new(NAME, State::Missing, finding).fix("ksmith toolchain cuda --install");
    };
    let origin = match toolchain.origin {
        Origin::System => "of the system",
        Origin::Private => "private",
    };
    let finding = format!(
        "nvcc {} ({origin}, `{}`)",
        toolchain.version,
        toolchain.root.display()
    );
    let supported = probes
        .machine
        .gpus
        .first()
        .and_then(|gpu| gpu.cuda.as_deref())
        .and_then(major_of);
    if let (Some(driver), Some(toolkit)) = (supported, major_of(&toolchain.version))
        && toolkit > driver
    {
        let finding =
            format!("{finding}; the driver runs CUDA up to {driver} only, so this code will not start");
        return Row::new(NAME, State::Limited, finding).fix(format!(
            "install NVIDIA driver {DRIVER_FOR_CUDA_13} or newer and restart the machine"
        ));
    }
    let mut lacking: Vec<&str> = Vec::new();
    for (tool, name) in [
        (&toolchain.ptxas, "ptxas"),
        (&toolchain.nvrtc, "libnvrtc"),
        (&toolchain.cuobjdump, "cuobjdump"),
        (&toolchain.nvdisasm, "nvdisasm"),
    ] {
        if tool.is_none() {
            lacking.push(name);
        }
    }
    if lacking.is_empty() {
        Row::new(NAME, State::Ok, finding)
    } else {
        Row::new(
            NAME,
            State::Limited,
            format!("{finding}; it lacks {}", lacking.join(", ")),
        )
        .fix("ksmith toolchain cuda --install")
    }
}

fn major_of(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}
