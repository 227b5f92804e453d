//! The CPU quota of a control group, as containers have it: a process that has used it up is throttled until the next
//! period.
//!
//! ```text
//!   v2   /sys/fs/cgroup/GROUP/cpu.max "50000 100000"             cpu.stat nr_periods, nr_throttled, throttled_usec
//!   v1   /sys/fs/cgroup/cpu/GROUP/cpu.cfs_quota_us, _period_us   cpu.stat nr_periods, nr_throttled, throttled_time
//! ```
//! The quotas of a group's parents apply too: the tightest counts. Within a container the group's own folder is often
//! mounted at the top.

use std::fs;

/// Mount points of the version 1 controller.
const V1: [&str; 2] = ["/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu"];

/// Mount points of version 2: alone, or beside version 1.
const V2: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Function that returns a file's text by its path; none if it cannot be read.
pub type ReadFile<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The quota of this process, and the throttling of its group so far.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuQuota {
    /// Folder of the group that sets the quota.
    pub group: String,
    /// Quota in processors.
    pub cpus: f64,
    /// Number of periods so far in which the group ran.
    pub periods: u64,
    /// Number of periods in which the group was throttled.
    pub throttled: u64,
    /// Throttled time in nanoseconds, summed over the group's processors.
    pub throttled_ns: u64,
}

impl CpuQuota {
    /// Returns the quota of this process; none if it has none, or the kernel does not report it.
    pub fn here() -> Option<Self> {
        Self::read(&|path| fs::read_to_string(path).ok())
    }

    /// Returns the quota according to these files.
    pub fn read(file: ReadFile<'_>) -> Option<Self> {
        let groups = file("/proc/self/cgroup")?;
        let path = |is_wanted: &dyn Fn(&str) -> bool| {
            groups.lines().find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                is_wanted(controllers).then(|| path.to_owned())
            })
        };
        let v1 = path(&|controllers| controllers.split(',').any(|name| name == "cpu"));
        let v2 = path(&str::is_empty);
        let of = |mounts: [&str; 2], path: Option<String>, quota: fn(ReadFile<'_>, &str) -> Option<f64>| {
            let path = path?;
            let folders = mounts.iter().flat_map(|mount| ancestors(mount, &path));
            let found = folders.filter_map(|group| Some((quota(file, &group)?, group)));
            found.min_by(|(one, _), (other, _)| one.total_cmp(other))
        };
        let (cpus, group) = of(V1, v1, quota_v1).or_else(|| of(V2, v2, quota_v2))?;
        let stat = file(&format!("{group}/cpu.stat")).unwrap_or_default();
        let count = |name: &str| {
            let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|digits| digits.trim().parse::<u64>().ok())
        };
        Some(Self {
            group,
            cpus,
            periods: count("nr_periods").unwrap_or(0),
            throttled: count("nr_throttled").unwrap_or(0),
            throttled_ns: count("throttled_time").or(count("throttled_usec").map(|us| us * 1_000)).unwrap_or(0),
        })
    }

    /// Returns the throttling since `before`; all of it if the group has changed.
    pub fn since(&self, before: Option<&Self>) -> Self {
        let same = before.filter(|before| before.group == self.group);
        let less = |now: u64, of: fn(&Self) -> u64| now.saturating_sub(same.map_or(0, of));
        Self {
            periods: less(self.periods, |quota| quota.periods),
            throttled: less(self.throttled, |quota| quota.throttled),
            throttled_ns: less(self.throttled_ns, |quota| quota.throttled_ns),
            ..self.clone()
        }
    }
}

/// Returns the folder of a group and those of its parents, up to the mount.
fn ancestors<'a>(mount: &'a str, path: &'a str) -> impl Iterator<Item = String> + 'a {
    let path = path.trim_matches('/');
    let ends = path.match_indices('/').map(|(index, _)| index).chain([0, path.len()]);
    ends.map(move |end| if end == 0 { mount.to_owned() } else { format!("{mount}/{}", &path[..end]) })
}

fn quota_v1(file: ReadFile<'_>, group: &str) -> Option<f64> {
    let number = |name: &str| file(&format!("{group}/{name}"))?.trim().parse::<f64>().ok();
    ratio(number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
}

fn quota_v2(file: ReadFile<'_>, group: &str) -> Option<f64> {
    let text = file(&format!("{group}/cpu.max"))?;
    let (quota, period) = text.trim().split_once(' ')?;
    ratio(quota.parse().ok()?, period.parse().ok()?)
}

fn ratio(quota: f64, period: f64) -> Option<f64> {
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, &str)]) -> Option<CpuQuota> {
        CpuQuota::read(&|path| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned()))
    }

    #[test]
    fn the_tightest_quota_of_either_version_counts() {
        let v1 = [
            ("/proc/self/cgroup", "7:memory:/a\n3:cpu,cpuacct:/kube/pod/c\n0::/\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/kube/pod/c/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/kube/pod/c/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/kube/pod/cpu.cfs_quota_us", "150000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/kube/pod/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/kube/pod/cpu.stat", "nr_periods 58\nnr_throttled 28\nthrottled_time 1200\n"),
        ];
        let found = read(&v1).unwrap();
        assert_eq!((found.group.as_str(), found.cpus), ("/sys/fs/cgroup/cpu,cpuacct/kube/pod", 1.5));
        assert_eq!((found.periods, found.throttled, found.throttled_ns), (58, 28, 1_200));
        let v2 = [
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/a/cpu.max", "50000 100000\n"),
            ("/sys/fs/cgroup/a/cpu.stat", "usage_usec 9\nnr_periods 5\nnr_throttled 2\nthrottled_usec 7\n"),
            ("/sys/fs/cgroup/cpu.max", "200000 100000\n"),
        ];
        let found = read(&v2).unwrap();
        assert_eq!((found.group.as_str(), found.cpus, found.throttled_ns), ("/sys/fs/cgroup/a", 0.5, 7_000));
        assert_eq!(found.since(Some(&found)), CpuQuota { periods: 0, throttled: 0, throttled_ns: 0, ..found.clone() });
        assert_eq!(found.since(None), found);
        for none in [&v1[..1], &v1[..3], &v2[..2], &[]] {
            assert_eq!(read(none), None, "{none:?}");
        }
    }
}
