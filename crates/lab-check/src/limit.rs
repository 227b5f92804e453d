//! A control group with a CPU quota, which this process enters with its children, as in a container.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Mount points for groups with CPU quotas: version 1, then version 2.
const V1: [&str; 2] = ["/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu"];
const V2: &str = "/sys/fs/cgroup";

/// A control group; this process leaves it when the value is dropped.
pub(crate) struct CpuQuotaGroup {
    group: PathBuf,
    /// The original group of this process.
    original_group: PathBuf,
}

impl CpuQuotaGroup {
    /// Limits this process and its children to half a processor. Returns an error if this user may not.
    pub fn half_a_cpu() -> io::Result<Self> {
        let parent = V1.iter().map(Path::new).find(|mount| mount.join("cpu.cfs_quota_us").exists());
        let group = parent.unwrap_or(Path::new(V2)).join(format!("tickpath-check-{}", std::process::id()));
        let home = original_group(parent)
            .ok_or_else(|| io::Error::other("the kernel does not report the group of a process"))?;
        fs::create_dir(&group)?;
        let limit = Self { group, original_group: home };
        match parent {
            Some(_) => fs::write(limit.group.join("cpu.cfs_quota_us"), "50000")?,
            None => fs::write(limit.group.join("cpu.max"), "50000 100000")?,
        }
        enter(&limit.group)?;
        Ok(limit)
    }
}

impl Drop for CpuQuotaGroup {
    fn drop(&mut self) {
        // A group that cannot be removed stays; its name has the process id of its owner.
        let _ = enter(&self.original_group).and_then(|()| fs::remove_dir(&self.group));
    }
}

fn enter(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), std::process::id().to_string())
}

/// Returns the folder of this process's group.
fn original_group(v1: Option<&Path>) -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let paths = groups.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let is_ours = |controllers: &str| match v1 {
        Some(_) => controllers.split(',').any(|name| name == "cpu"),
        None => controllers.is_empty(),
    };
    let path = paths.filter(|(controllers, _)| is_ours(controllers)).map(|(_, path)| path).next()?;
    let mount = v1.unwrap_or(Path::new(V2));
    // Within a container the group's own folder is often mounted at the top.
    let folders = [mount.join(path.trim_start_matches('/')), mount.to_owned()];
    folders.into_iter().find(|folder| folder.join("cgroup.procs").exists())
}
