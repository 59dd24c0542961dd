//! Control groups, where this process may make them: memory and number of processes of a whole box.
//!
//! Both versions are served. Without them the limits of single processes remain, and the layer is recorded as missing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Limits;

/// The control groups of one box; removed when dropped.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    memory: Option<PathBuf>,
    folders: Vec<PathBuf>,
}

/// Our own group's folder for a controller: (path, whether it is the unified hierarchy).
fn own_folder(controller: &str) -> Option<(PathBuf, bool)> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let root = Path::new("/sys/fs/cgroup");
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (names, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
        if names.split(',').any(|name| name == controller) {
            return Some((root.join(controller).join(path), false)).filter(|(folder, _)| folder.is_dir());
        }
    }
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let folder = root.join(path);
    let offered = fs::read_to_string(folder.join("cgroup.subtree_control")).ok()?;
    offered
        .split_whitespace()
        .any(|name| name == controller)
        .then_some((folder, true))
}

/// Removes what processes of ours left behind that were killed: empty groups whose maker is gone.
fn sweep() {
    for (folder, _) in ["memory", "pids"].into_iter().filter_map(own_folder) {
        sweep_folder(&folder, &|maker| {
            Path::new("/proc").join(maker.to_string()).exists()
        });
    }
}

fn sweep_folder(folder: &Path, is_alive: &dyn Fn(u32) -> bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(maker);
        if maker.is_some_and(|maker| !is_alive(maker)) {
            // The kernel removes a group only while no process is in it.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The process that made a group of this name: `ksmith-<pid>-<n>`.
fn maker(name: &str) -> Option<u32> {
    let (pid, count) = name.strip_prefix("ksmith-")?.split_once('-')?;
    count.parse::<u64>().ok()?;
    pid.parse().ok()
}

impl Groups {
    /// Makes the groups that the limits ask for and this process may make.
    pub(crate) fn create(limits: &Limits) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        static SWEEP: Once = Once::new();
        SWEEP.call_once(sweep);
        let name = format!(
            "ksmith-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let mut groups = Self::default();
        if let Some(bytes) = limits.memory_bytes
            && let Ok(folder) = groups.add(
                "memory",
                &name,
                &[
                    ("memory.limit_in_bytes", "memory.max", bytes),
                    ("memory.memsw.limit_in_bytes", "memory.swap.max", bytes),
                ],
            )
        {
            groups.memory = Some(folder);
        }
        if let Some(count) = limits.processes {
            // Two more for the helper's own processes.
            let _ = groups.add("pids", &name, &[("pids.max", "pids.max", count + 2)]);
        }
        groups
    }

    fn add(&mut self, controller: &str, name: &str, values: &[(&str, &str, u64)]) -> io::Result<PathBuf> {
        let (parent, unified) = own_folder(controller).ok_or(io::ErrorKind::NotFound)?;
        let folder = parent.join(name);
        if !self.folders.contains(&folder) {
            fs::create_dir(&folder)?;
            self.folders.push(folder.clone());
        }
        for (index, (old, new, value)) in values.iter().enumerate() {
            let (file, value) = match (unified, *new) {
                (true, "memory.swap.max") => (new, 0),
                (true, _) => (new, *value),
                (false, _) => (old, *value),
            };
            let result = fs::write(folder.join(file), value.to_string());
            // The first value is the limit itself; swap accounting may be switched off.
            if index == 0 {
                result?;
            }
        }
        Ok(folder)
    }

    /// Whether memory is limited.
    pub(crate) fn limits_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Files to write one's process id to.
    pub(crate) fn entrances(&self) -> Vec<PathBuf> {
        self.folders
            .iter()
            .map(|folder| folder.join("cgroup.procs"))
            .collect()
    }

    /// Whether the kernel killed a process of this box for want of memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let Some(folder) = &self.memory else { return false };
        ["memory.oom_control", "memory.events"].iter().any(|file| {
            fs::read_to_string(folder.join(file)).is_ok_and(|text| {
                text.lines().any(|line| {
                    line.strip_prefix("oom_kill ")
                        .is_some_and(|count| count.trim() != "0")
                })
            })
        })
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for folder in &self.folders {
            // The last process may still be on its way out.
            for _ in 0..50 {
                if fs::remove_dir(folder).is_ok() || !folder.exists() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_empty_groups_of_processes_that_are_gone_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "ksmith-7-0",
            "ksmith-7-12",
            "ksmith-8-0",
            "ksmith-7",
            "ksmith-7-x",
            "other-7-0",
        ] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        // Stands for a group with a process in it: not empty, so it cannot be removed.
        fs::create_dir(folder.path().join("ksmith-7-12/inside")).unwrap();
        sweep_folder(folder.path(), &|pid| pid == 8);
        let mut left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(
            left,
            ["ksmith-7", "ksmith-7-12", "ksmith-7-x", "ksmith-8-0", "other-7-0"]
        );
    }
}
