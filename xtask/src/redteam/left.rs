//! Whether a candidate left a process behind.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Processes that belong to us: descendants, and orphans that run our own program.
pub(crate) fn ours() -> BTreeSet<u32> {
    let me = std::process::id();
    let own = fs::read_link("/proc/self/exe").ok();
    let mut known: Vec<(u32, u32, Option<PathBuf>)> = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        let Some((_, rest)) = stat.rsplit_once(')') else {
            continue;
        };
        let mut words = rest.split_whitespace();
        let state = words.next().unwrap_or("Z");
        let parent = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        if state != "Z" {
            known.push((pid, parent, fs::read_link(entry.path().join("exe")).ok()));
        }
    }
    let mut found: BTreeSet<u32> = BTreeSet::from([me]);
    loop {
        let before = found.len();
        for (pid, parent, program) in &known {
            let orphan = *parent == 1 && own.is_some() && *program == own && *pid != me;
            if found.contains(parent) || orphan {
                found.insert(*pid);
            }
        }
        if found.len() == before {
            break;
        }
    }
    found.remove(&me);
    found
}

/// Waits until nothing but `before` is left; what remains after the limit was left behind.
pub(crate) fn behind(before: &BTreeSet<u32>, limit: Duration) -> Vec<u32> {
    let from = Instant::now();
    loop {
        let left: Vec<u32> = ours().difference(before).copied().collect();
        if left.is_empty() || from.elapsed() > limit {
            return left;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
