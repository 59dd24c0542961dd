//! NVIDIA's management library, loaded at run time: device facts, clocks, temperature, throttle reasons.
//!
//! It creates no CUDA context and starts no work on the device, so it may be asked beside a timing. Works with nothing
//! installed: [`Nvml::open`] then says that the library is missing.
#![expect(unsafe_code, reason = "functions of a C library that is loaded at run time")]

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use libloading::Library;
use serde::{Deserialize, Serialize};

use crate::{Gpu, GpuVirtualisation};

/// Why the library gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum NvmlError {
    /// It is not installed, or not for this system.
    #[error("the NVIDIA management library could not be loaded: {0}")]
    Load(String),
    /// It lacks a function that every supported driver has.
    #[error("the NVIDIA management library has no `{0}`: the driver is too old")]
    Symbol(&'static str),
    /// A call failed.
    #[error("`{call}` failed with NVML status {status}")]
    Call {
        /// The function.
        call: &'static str,
        /// Its status.
        status: c_int,
    },
}

/// The loaded and initialised library.
#[derive(Debug)]
pub struct Nvml {
    library: Library,
}

/// What a device does at one moment; a value is `None` where the device or driver does not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSample {
    /// SM clock in MHz.
    pub sm_mhz: Option<u32>,
    /// Memory clock in MHz.
    pub memory_mhz: Option<u32>,
    /// Temperature in degrees Celsius.
    pub celsius: Option<u32>,
    /// Power in milliwatts.
    pub milliwatts: Option<u32>,
    /// Why the clock is below its limit, in words; `idle` is not listed. `None` if unknown.
    pub throttle: Option<Vec<String>>,
}

type Device = *mut c_void;
type Status = c_int;

/// Bits of `nvmlClocksEventReasons` (nvml.h); `GpuIdle` (bit 0) is left out on purpose.
const THROTTLE_REASONS: [(u64, &str); 8] = [
    (0x002, "application-clocks"),
    (0x004, "power-cap"),
    (0x008, "hardware-slowdown"),
    (0x010, "sync-boost"),
    (0x020, "thermal-software"),
    (0x040, "thermal-hardware"),
    (0x080, "power-brake"),
    (0x100, "display-clock"),
];

#[repr(C)]
#[derive(Default)]
struct Memory {
    total: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

impl Nvml {
    /// Loads and initialises the library.
    ///
    /// # Errors
    /// If it is not installed or does not initialise.
    pub fn open() -> Result<Self, NvmlError> {
        let names = [
            "libnvidia-ml.so.1",
            "/usr/lib/wsl/lib/libnvidia-ml.so.1",
            "libnvidia-ml.so",
        ];
        let mut last = String::new();
        for name in names {
            // SAFETY: loading runs the library's initialisers. The names are those of the installed driver's own
            // library, which this program trusts as it trusts the driver.
            match unsafe { Library::new(name) } {
                Ok(library) => {
                    let nvml = Self { library };
                    nvml.call0("nvmlInit_v2")?;
                    return Ok(nvml);
                }
                Err(error) => last = error.to_string(),
            }
        }
        Err(NvmlError::Load(last))
    }

    /// All devices.
    ///
    /// # Errors
    /// If the driver does not answer.
    pub fn gpus(&self) -> Result<Vec<Gpu>, NvmlError> {
        let mut count: c_uint = 0;
        self.call1("nvmlDeviceGetCount_v2", &raw mut count)?;
        let driver = self
            .system_text("nvmlSystemGetDriverVersion")
            .unwrap_or_else(|| "unknown".to_owned());
        let mut version: c_int = 0;
        let cuda = self
            .call1("nvmlSystemGetCudaDriverVersion_v2", &raw mut version)
            .ok()
            .map(|()| format!("{}.{}", version / 1000, version % 1000 / 10));
        (0..count)
            .map(|index| self.gpu(index, &driver, cuda.as_deref()))
            .collect()
    }

    /// Clocks, temperature, power and throttle reasons of one device now.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn sample(&self, index: u32) -> Result<DeviceSample, NvmlError> {
        let device = self.device(index)?;
        let mut reasons: c_ulonglong = 0;
        let throttle = [
            "nvmlDeviceGetCurrentClocksEventReasons",
            "nvmlDeviceGetCurrentClocksThrottleReasons",
        ]
        .iter()
        .any(|name| self.call2(name, device, &raw mut reasons).is_ok())
        .then(|| throttle_words(reasons));
        Ok(DeviceSample {
            sm_mhz: self.clock("nvmlDeviceGetClockInfo", device, 1),
            memory_mhz: self.clock("nvmlDeviceGetClockInfo", device, 2),
            celsius: self.temperature(device),
            milliwatts: self.number("nvmlDeviceGetPowerUsage", device),
            throttle,
        })
    }

    fn gpu(&self, index: u32, driver: &str, cuda: Option<&str>) -> Result<Gpu, NvmlError> {
        let device = self.device(index)?;
        let mut memory = Memory::default();
        self.call2("nvmlDeviceGetMemoryInfo", device, &raw mut memory)?;
        let (mut major, mut minor): (c_int, c_int) = (0, 0);
        let capability = self
            .call3(
                "nvmlDeviceGetCudaComputeCapability",
                device,
                &raw mut major,
                &raw mut minor,
            )
            .ok()
            .and_then(|()| Some((u32::try_from(major).ok()?, u32::try_from(minor).ok()?)));
        let virtualisation = match self.number("nvmlDeviceGetVirtualizationMode", device) {
            Some(0) => GpuVirtualisation::None,
            Some(1) => GpuVirtualisation::PassThrough,
            Some(2) => GpuVirtualisation::VGpu,
            // 3 and 4 are hosts of virtual GPUs: the device itself is at hand.
            Some(3 | 4) => GpuVirtualisation::None,
            Some(_) | None => GpuVirtualisation::Unknown,
        };
        Ok(Gpu {
            index,
            name: self.text("nvmlDeviceGetName", device)?,
            uuid: self.text("nvmlDeviceGetUUID", device)?,
            compute_capability: capability,
            memory_bytes: memory.total,
            driver: driver.to_owned(),
            cuda: cuda.map(str::to_owned),
            mig: self.switch("nvmlDeviceGetMigMode", device) == Some(true),
            virtualisation,
            max_sm_mhz: self.clock("nvmlDeviceGetMaxClockInfo", device, 1),
            ecc: self.switch("nvmlDeviceGetEccMode", device),
            persistence: self
                .number("nvmlDeviceGetPersistenceMode", device)
                .map(|state| state == 1),
        })
    }

    fn device(&self, index: u32) -> Result<Device, NvmlError> {
        let name = "nvmlDeviceGetHandleByIndex_v2";
        let mut device: Device = std::ptr::null_mut();
        let function = self.symbol::<unsafe extern "C" fn(c_uint, *mut Device) -> Status>(name)?;
        // SAFETY: signature of nvml.h; `device` outlives the call.
        check(name, unsafe { function(index, &raw mut device) })?;
        Ok(device)
    }

    fn clock(&self, name: &'static str, device: Device, domain: c_uint) -> Option<u32> {
        type Function = unsafe extern "C" fn(Device, c_uint, *mut c_uint) -> Status;
        let mut value: c_uint = 0;
        let function = self.symbol::<Function>(name).ok()?;
        // SAFETY: signature of nvml.h; `value` outlives the call; the handle came from this library.
        check(name, unsafe { function(device, domain, &raw mut value) }).ok()?;
        Some(value)
    }

    fn temperature(&self, device: Device) -> Option<u32> {
        self.clock("nvmlDeviceGetTemperature", device, 0)
    }

    fn number(&self, name: &'static str, device: Device) -> Option<u32> {
        let mut value: c_uint = 0;
        self.call2(name, device, &raw mut value).ok().map(|()| value)
    }

    /// The first of the two states (current, pending) that such calls return.
    fn switch(&self, name: &'static str, device: Device) -> Option<bool> {
        let (mut current, mut pending): (c_uint, c_uint) = (0, 0);
        self.call3(name, device, &raw mut current, &raw mut pending)
            .ok()
            .map(|()| current == 1)
    }

    fn text(&self, name: &'static str, device: Device) -> Result<String, NvmlError> {
        let mut buffer = [0u8; 128];
        let function = self.symbol::<unsafe extern "C" fn(Device, *mut c_char, c_uint) -> Status>(name)?;
        // SAFETY: signature of nvml.h; the length passed is that of the buffer.
        check(name, unsafe { function(device, buffer.as_mut_ptr().cast(), 128) })?;
        Ok(text_of(&buffer))
    }

    fn system_text(&self, name: &'static str) -> Option<String> {
        let mut buffer = [0u8; 128];
        let function = self
            .symbol::<unsafe extern "C" fn(*mut c_char, c_uint) -> Status>(name)
            .ok()?;
        // SAFETY: signature of nvml.h; the length passed is that of the buffer.
        check(name, unsafe { function(buffer.as_mut_ptr().cast(), 128) }).ok()?;
        Some(text_of(&buffer))
    }

    fn call0(&self, name: &'static str) -> Result<(), NvmlError> {
        let function = self.symbol::<unsafe extern "C" fn() -> Status>(name)?;
        // SAFETY: signature of nvml.h.
        check(name, unsafe { function() })
    }

    fn call1<T>(&self, name: &'static str, out: *mut T) -> Result<(), NvmlError> {
        let function = self.symbol::<unsafe extern "C" fn(*mut T) -> Status>(name)?;
        // SAFETY: signature of nvml.h; `out` points to a live variable of the caller.
        check(name, unsafe { function(out) })
    }

    fn call2<T>(&self, name: &'static str, device: Device, out: *mut T) -> Result<(), NvmlError> {
        let function = self.symbol::<unsafe extern "C" fn(Device, *mut T) -> Status>(name)?;
        // SAFETY: signature of nvml.h; `out` points to a live variable of the caller; the handle came from this library.
        check(name, unsafe { function(device, out) })
    }

    fn call3<T>(
        &self,
        name: &'static str,
        device: Device,
        one: *mut T,
        two: *mut T,
    ) -> Result<(), NvmlError> {
        let function = self.symbol::<unsafe extern "C" fn(Device, *mut T, *mut T) -> Status>(name)?;
        // SAFETY: as for `call2`, with two results.
        check(name, unsafe { function(device, one, two) })
    }

    fn symbol<T: Copy>(&self, name: &'static str) -> Result<T, NvmlError> {
        // SAFETY: each caller names the type that nvml.h declares for the symbol; the pointer is used only while
        // `self.library` is loaded, since every use is a call within a method of `self`.
        unsafe { self.library.get::<T>(name.as_bytes()) }
            .map(|symbol| *symbol)
            .map_err(|_| NvmlError::Symbol(name))
    }
}

fn check(call: &'static str, status: Status) -> Result<(), NvmlError> {
    if status == 0 {
        Ok(())
    } else {
        Err(NvmlError::Call { call, status })
    }
}

fn text_of(buffer: &[u8]) -> String {
    let end = buffer.iter().position(|byte| *byte == 0).unwrap_or(buffer.len());
    String::from_utf8_lossy(&buffer[..end]).into_owned()
}

fn throttle_words(reasons: u64) -> Vec<String> {
    THROTTLE_REASONS
        .iter()
        .filter(|(bit, _)| reasons & bit != 0)
        .map(|(_, word)| (*word).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttle_bits_become_words_and_idle_is_not_one() {
        assert_eq!(throttle_words(0x1), Vec::<String>::new());
        assert_eq!(
            throttle_words(0x1 | 0x4 | 0x40),
            ["power-cap", "thermal-hardware"]
        );
    }

    #[test]
    fn without_the_library_the_error_says_so() {
        match Nvml::open() {
            Ok(nvml) => assert!(nvml.gpus().is_ok()),
            Err(error) => assert!(error.to_string().contains("NVML") || error.to_string().contains("loaded")),
        }
    }
}
