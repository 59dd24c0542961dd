//! The processor: model, instruction sets, topology, caches, from `/proc/cpuinfo` and sysfs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::host::Host;

/// The processor as programs see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Vendor string (`AuthenticAMD`, `GenuineIntel`, an Arm implementer), or `unknown`.
    pub vendor: String,
    /// Model name, or the Arm part, or `unknown`.
    pub model: String,
    /// Family, model and stepping (x86) or part, variant and revision (Arm), as the kernel prints them.
    pub signature: String,
    /// Instruction-set features that matter to kernels, in kernel spelling, sorted.
    pub features: Vec<String>,
    /// Logical CPUs that the kernel runs on.
    pub logical: u32,
    /// Physical cores; equal to `logical` where the topology is unknown.
    pub cores: u32,
    /// Sockets.
    pub sockets: u32,
    /// NUMA nodes.
    pub nodes: u32,
    /// Caches of CPU 0.
    pub caches: Vec<Cache>,
}

/// One cache of CPU 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// 1, 2, 3.
    pub level: u32,
    /// What it holds.
    pub kind: CacheKind,
    /// Size in bytes.
    pub bytes: u64,
    /// Line size in bytes.
    pub line_bytes: u32,
    /// How many logical CPUs share it.
    pub shared_by: u32,
}

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum CacheKind {
    Data,
    Instruction,
    Unified,
}

/// Flags of `/proc/cpuinfo` that decide which code a kernel may use. Others are left out: mitigations and virtual
/// machine flags change with kernel updates and would change the digest.
const FEATURES: &[&str] = &[
    "aes",
    "amx_bf16",
    "amx_complex",
    "amx_fp16",
    "amx_int8",
    "amx_tile",
    "asimd",
    "asimddp",
    "asimdfhm",
    "asimdhp",
    "avx",
    "avx2",
    "avx512_4fmaps",
    "avx512_4vnniw",
    "avx512_bf16",
    "avx512_bitalg",
    "avx512_fp16",
    "avx512_vbmi2",
    "avx512_vnni",
    "avx512_vp2intersect",
    "avx512_vpopcntdq",
    "avx512bw",
    "avx512cd",
    "avx512dq",
    "avx512er",
    "avx512f",
    "avx512ifma",
    "avx512pf",
    "avx512vbmi",
    "avx512vl",
    "avx_ifma",
    "avx_ne_convert",
    "avx_vnni",
    "avx_vnni_int8",
    "avx10",
    "bf16",
    "bmi1",
    "bmi2",
    "clflushopt",
    "clwb",
    "f16c",
    "fma",
    "fphp",
    "gfni",
    "i8mm",
    "movbe",
    "popcnt",
    "sme",
    "sme2",
    "sse4_1",
    "sse4_2",
    "ssse3",
    "sve",
    "sve2",
    "svebf16",
    "svei8mm",
    "vaes",
    "vpclmulqdq",
];

impl Cpu {
    /// Reads the processor of a host.
    pub fn read(host: &dyn Host) -> Self {
        let text = host.read("/proc/cpuinfo".as_ref()).unwrap_or_default();
        let field = |names: &[&str]| -> Option<String> {
            text.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let value = value.trim();
                (names.contains(&name.trim()) && !value.is_empty()).then(|| value.to_owned())
            })
        };
        let flags: BTreeSet<String> = field(&["flags", "Features"])
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        let signature = [
            ["cpu family", "CPU architecture"],
            ["model", "CPU part"],
            ["stepping", "CPU revision"],
        ]
        .iter()
        .map(|names| field(names).unwrap_or_else(|| "?".to_owned()))
        .collect::<Vec<_>>()
        .join("/");
        let topology = Topology::read(host, &text);
        Self {
            vendor: field(&["vendor_id"])
                .or_else(|| field(&["CPU implementer"]).map(|code| implementer(&code)))
                .unwrap_or_else(|| "unknown".to_owned()),
            model: field(&["model name", "Processor"])
                .or_else(|| field(&["CPU part"]).map(|part| format!("part {part}")))
                .unwrap_or_else(|| "unknown".to_owned()),
            signature,
            features: FEATURES
                .iter()
                .filter(|name| flags.contains(**name))
                .map(|name| (*name).to_owned())
                .collect(),
            logical: topology.logical,
            cores: topology.cores,
            sockets: topology.sockets,
            nodes: topology.nodes,
            caches: caches(host),
        }
    }

    /// Whether a feature is present, in kernel spelling (`avx512_bf16`).
    pub fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|name| name == feature)
    }

    /// The widest vector instruction set, with what it adds for narrow types: `AVX-512 (VNNI, BF16)`.
    pub fn vector_isa(&self) -> Option<String> {
        let base = [
            ("avx512f", "AVX-512"),
            ("avx2", "AVX2"),
            ("avx", "AVX"),
            ("sse4_2", "SSE4.2"),
            ("sve2", "SVE2"),
            ("sve", "SVE"),
            ("asimd", "NEON"),
        ];
        let (_, name) = base.iter().find(|(flag, _)| self.has(flag))?;
        let narrow = [
            ("avx512_vnni", "VNNI"),
            ("avx_vnni", "VNNI"),
            ("avx512_bf16", "BF16"),
            ("bf16", "BF16"),
            ("avx512_fp16", "FP16"),
            ("i8mm", "I8MM"),
            ("amx_tile", "AMX"),
        ];
        let mut extras: Vec<&str> = Vec::new();
        for (flag, name) in narrow {
            if self.has(flag) && !extras.contains(&name) {
                extras.push(name);
            }
        }
        if extras.is_empty() {
            Some((*name).to_owned())
        } else {
            Some(format!("{name} ({})", extras.join(", ")))
        }
    }

    /// Size in bytes of the largest cache that holds data, 0 if unknown.
    pub fn last_level_bytes(&self) -> u64 {
        let data = self
            .caches
            .iter()
            .filter(|cache| cache.kind != CacheKind::Instruction);
        data.max_by_key(|cache| cache.level)
            .map_or(0, |cache| cache.bytes)
    }
}

struct Topology {
    logical: u32,
    cores: u32,
    sockets: u32,
    nodes: u32,
}

impl Topology {
    fn read(host: &dyn Host, cpuinfo: &str) -> Self {
        let online = host
            .read("/sys/devices/system/cpu/online".as_ref())
            .map(|text| parse_list(&text))
            .filter(|list| !list.is_empty())
            .unwrap_or_else(|| {
                (0..count(
                    cpuinfo
                        .lines()
                        .filter(|line| line.starts_with("processor"))
                        .count(),
                ))
                    .collect()
            });
        let mut cores = BTreeSet::new();
        let mut sockets = BTreeSet::new();
        for cpu in &online {
            let read = |name: &str| {
                let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}");
                host.read(path.as_ref()).map(|text| text.trim().to_owned())
            };
            let socket = read("physical_package_id").unwrap_or_default();
            cores.insert((socket.clone(), read("core_id").unwrap_or_else(|| cpu.to_string())));
            sockets.insert(socket);
        }
        let nodes = host.list("/sys/devices/system/node".as_ref());
        let nodes = nodes.iter().filter(|name| {
            name.strip_prefix("node")
                .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
        });
        Self {
            logical: count(online.len()).max(1),
            cores: count(cores.len()).max(1),
            sockets: count(sockets.len()).max(1),
            nodes: count(nodes.count()).max(1),
        }
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Reads a kernel CPU list such as `0-3,8`. Malformed parts and absurd ranges are skipped.
fn parse_list(text: &str) -> Vec<u32> {
    let mut list = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>())
            && last < 1 << 16
        {
            list.extend(first..=last);
        }
    }
    list
}

fn caches(host: &dyn Host) -> Vec<Cache> {
    let folder = PathBuf::from("/sys/devices/system/cpu/cpu0/cache");
    let mut caches = Vec::new();
    for name in host.list(&folder).iter().filter(|name| name.starts_with("index")) {
        let read = |file: &str| {
            host.read(&folder.join(name).join(file))
                .map(|text| text.trim().to_owned())
        };
        let kind = match read("type").as_deref() {
            Some("Data") => CacheKind::Data,
            Some("Instruction") => CacheKind::Instruction,
            Some("Unified") => CacheKind::Unified,
            Some(_) | None => continue,
        };
        let number = |file: &str| read(file).and_then(|text| text.parse().ok()).unwrap_or(0);
        caches.push(Cache {
            level: number("level"),
            kind,
            bytes: read("size").map_or(0, |text| parse_size(&text)),
            line_bytes: number("coherency_line_size"),
            shared_by: read("shared_cpu_list").map_or(1, |text| count(parse_list(&text).len()).max(1)),
        });
    }
    caches
}

/// Reads a size such as `32K` or `8M` in bytes, 0 if it is not one.
fn parse_size(text: &str) -> u64 {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M') => (&text[..text.len() - 1], 1 << 20),
        Some(b'G') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits
        .parse::<u64>()
        .map_or(0, |number| number.saturating_mul(factor))
}

/// Names of implementer codes (Arm Architecture Reference Manual, MIDR_EL1).
fn implementer(code: &str) -> String {
    match code {
        "0x41" => "Arm".to_owned(),
        "0x42" => "Broadcom".to_owned(),
        "0x46" => "Fujitsu".to_owned(),
        "0x48" => "HiSilicon".to_owned(),
        "0x4e" => "NVIDIA".to_owned(),
        "0x51" => "Qualcomm".to_owned(),
        "0x61" => "Apple".to_owned(),
        "0xc0" => "Ampere".to_owned(),
        other => format!("implementer {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::ScriptedHost;

    #[test]
    fn an_arm_server_is_read_from_its_own_field_names() {
        let host = ScriptedHost::load("arm-server");
        let cpu = Cpu::read(&host);
        assert_eq!((cpu.vendor.as_str(), cpu.model.as_str()), ("Arm", "part 0xd4f"));
        assert_eq!(cpu.vector_isa().as_deref(), Some("SVE2 (BF16, I8MM)"));
        assert_eq!((cpu.logical, cpu.cores, cpu.sockets), (2, 2, 1));
    }

    #[test]
    fn threads_of_one_core_and_shared_caches_are_counted() {
        let host = ScriptedHost::load("two-threads");
        let cpu = Cpu::read(&host);
        assert_eq!((cpu.logical, cpu.cores, cpu.sockets, cpu.nodes), (4, 2, 1, 1));
        assert!(cpu.has("avx512_bf16") && cpu.has("amx_tile") && !cpu.has("avx512_fp16"));
        assert_eq!(cpu.vector_isa().as_deref(), Some("AVX-512 (VNNI, BF16, AMX)"));
        let last = Cache {
            level: 3,
            kind: CacheKind::Unified,
            bytes: 105 << 20,
            line_bytes: 64,
            shared_by: 4,
        };
        assert_eq!(cpu.caches.last(), Some(&last));
        assert_eq!(cpu.last_level_bytes(), 105 << 20);
    }

    #[test]
    fn cpu_lists_and_sizes_tolerate_nonsense() {
        assert_eq!(parse_list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(parse_list("x,3-1,0-4294967295"), Vec::<u32>::new());
        assert_eq!(
            (
                parse_size("48K"),
                parse_size("2M"),
                parse_size("K"),
                parse_size("")
            ),
            (49152, 2 << 20, 0, 0)
        );
    }
}
