//! Detection of whether a user's files in shared memory outlive its sessions.
//!
//! With `RemoveIPC=yes`, which is the default, systemd removes all of a user's files in `/dev/shm` when the last
//! session of that user ends: the logs in use, and the calibration of the clock. Exempt are system users, and users
//! with lingering enabled.

/// Files with the setting, later ones first in precedence. Beside each there may be a folder of this name and `.d`,
/// whose files systemd reads by their names.
const FILES: [&str; 4] = [
    "/usr/lib/systemd/logind.conf",
    "/usr/local/lib/systemd/logind.conf",
    "/run/systemd/logind.conf",
    "/etc/systemd/logind.conf",
];

/// Values that systemd reads as no.
const NO: [&str; 6] = ["no", "false", "off", "0", "n", "f"];

/// Lowest id of a user that is no system user.
const FIRST_USER: u32 = 1000;

/// The fate of a user's files in `/dev/shm` at its logout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogoutCleanup {
    /// The files stay, with the reason.
    Kept(&'static str),
    /// systemd removes them.
    Removed,
}

impl LogoutCleanup {
    /// Damage to running programs.
    pub const DAMAGE: &str = "systemd removes what this user has in /dev/shm when its last session ends: logs that are \
                              in use lose their names, and no other program finds them";

    /// Ways to keep the files.
    pub const REMEDY: &str = "RemoveIPC=no in /etc/systemd/logind.conf and a restart of systemd-logind, or `loginctl \
                              enable-linger` for this user, or run as a system user";

    /// Reads the setting from the files of a host: `read` returns a file's text, and `names` the names in a folder.
    pub fn read(user: u32, read: &dyn Fn(&str) -> Option<String>, names: &dyn Fn(&str) -> Vec<String>) -> Self {
        if !names("/run/systemd").contains(&"system".to_owned()) {
            return Self::Kept("systemd does not run here");
        }
        if user < FIRST_USER {
            return Self::Kept("systemd spares system users");
        }
        if settings(read, names).last().is_some_and(|last| NO.contains(&last.as_str())) {
            return Self::Kept("RemoveIPC=no");
        }
        let passwd = read("/etc/passwd").unwrap_or_default();
        let name = passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)?.parse() == Ok(user)).then(|| name.to_owned())
        });
        match name {
            Some(name) if names("/var/lib/systemd/linger").contains(&name) => Self::Kept("this user lingers"),
            _ => Self::Removed,
        }
    }

    /// Reads the setting of this host for this process's user.
    pub fn here() -> Self {
        let names = |folder: &str| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
            names.sort();
            names
        };
        // SAFETY: geteuid has no preconditions.
        let user = unsafe { libc::geteuid() };
        Self::read(user, &|path| std::fs::read_to_string(path).ok(), &names)
    }
}

/// Returns all values of `RemoveIPC`, the effective one last.
fn settings(read: &dyn Fn(&str) -> Option<String>, names: &dyn Fn(&str) -> Vec<String>) -> Vec<String> {
    let mut dropped: Vec<(String, String)> = Vec::new();
    for folder in FILES.map(|file| format!("{file}.d")) {
        for name in names(&folder).into_iter().filter(|name| name.ends_with(".conf")) {
            // A file of a later folder replaces a file of the same name.
            dropped.retain(|(known, _)| *known != name);
            dropped.push((name.clone(), format!("{folder}/{name}")));
        }
    }
    dropped.sort();
    let main = FILES.iter().rev().find_map(|file| read(file));
    let texts = main.into_iter().chain(dropped.into_iter().filter_map(|(_, path)| read(&path)));
    let values = texts.flat_map(|text| {
        let lines =
            text.lines().filter_map(|line| line.trim().strip_prefix("RemoveIPC")?.trim_start().strip_prefix('='));
        lines.map(|value| value.trim().to_lowercase()).collect::<Vec<_>>()
    });
    values.filter(|value| !value.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn of(user: u32, files: &[(&str, &str)]) -> LogoutCleanup {
        let files: BTreeMap<&str, &str> = files.iter().copied().collect();
        let names = |folder: &str| {
            let inside = files.keys().filter_map(|path| path.strip_prefix(folder)?.strip_prefix('/'));
            inside.filter_map(|rest| rest.split('/').next()).map(str::to_owned).collect()
        };
        LogoutCleanup::read(user, &|path| files.get(path).map(|&text| text.to_owned()), &names)
    }

    #[test]
    fn systemd_removes_the_files_unless_a_setting_keeps_them() {
        const RUNS: (&str, &str) = ("/run/systemd/system/x", "");
        const ETC: &str = "/etc/systemd/logind.conf";
        const PASSWD: (&str, &str) = ("/etc/passwd", "root:x:0:0::/:/bin/sh\nann:x:1000:1000::/:/bin/sh\n");
        for (user, files, kept) in [
            (1000, &[][..], Some("systemd does not run here")),
            (999, &[RUNS], Some("systemd spares system users")),
            (1000, &[RUNS], None),
            (1000, &[RUNS, (ETC, "[Login]\n#RemoveIPC=no\n")], None),
            (1000, &[RUNS, (ETC, "[Login]\nRemoveIPC = no\n")], Some("RemoveIPC=no")),
            (1000, &[RUNS, (ETC, "RemoveIPC=no"), ("/etc/systemd/logind.conf.d/a.conf", "RemoveIPC=yes")], None),
            (
                1000,
                &[
                    RUNS,
                    ("/usr/lib/systemd/logind.conf.d/a.conf", "RemoveIPC=yes"),
                    ("/etc/systemd/logind.conf.d/a.conf", "RemoveIPC=off"),
                ],
                Some("RemoveIPC=no"),
            ),
            (1000, &[RUNS, PASSWD, ("/var/lib/systemd/linger/ann", "")], Some("this user lingers")),
            (1001, &[RUNS, PASSWD, ("/var/lib/systemd/linger/ann", "")], None),
        ] {
            let expected = kept.map_or(LogoutCleanup::Removed, LogoutCleanup::Kept);
            assert_eq!(of(user, files), expected, "user {user}, {files:?}");
        }
    }
}
