//! The systemd unit of an OMS: its restrictions, and the exceptions for shared memory, priorities and sockets.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const UNIT: &str = "../../docs/systemd/tickpath-oms.service";

/// Directives of the service with their values; several lines of a directive are joined.
const DIRECTIVES: [(&str, &str); 32] = [
    // Restrictions.
    ("ProtectSystem", "strict"),
    ("ProtectHome", "yes"),
    ("PrivateTmp", "yes"),
    ("PrivateMounts", "yes"),
    ("PrivateDevices", "yes"),
    ("DevicePolicy", "closed"),
    ("LimitCORE", "0"),
    ("CapabilityBoundingSet", ""),
    ("AmbientCapabilities", ""),
    ("NoNewPrivileges", "yes"),
    ("RestrictSUIDSGID", "yes"),
    ("RestrictNamespaces", "yes"),
    ("LockPersonality", "yes"),
    ("MemoryDenyWriteExecute", "yes"),
    ("ProtectClock", "yes"),
    ("ProtectHostname", "yes"),
    ("ProtectKernelLogs", "yes"),
    ("ProtectKernelModules", "yes"),
    ("ProtectKernelTunables", "yes"),
    ("ProtectControlGroups", "yes"),
    ("SystemCallArchitectures", "native"),
    ("UMask", "0077"),
    // Exceptions for a journal, sockets and shared memory, which is the host's and outlives a restart.
    ("ReadWritePaths", "/var/lib/tickpath /run/tickpath -/dev/shm"),
    ("PrivateIPC", "no"),
    ("RemoveIPC", "no"),
    ("RestrictAddressFamilies", "AF_UNIX AF_INET AF_INET6"),
    // Exceptions for pinned threads with a priority, locked memory, and sessions.
    ("SystemCallFilter", "@system-service ~@privileged @resources sched_setaffinity sched_setscheduler"),
    ("SystemCallErrorNumber", "EPERM"),
    ("LimitRTPRIO", "90"),
    ("LimitMEMLOCK", "infinity"),
    ("LimitNOFILE", "65536"),
    ("User", "tickpath"),
];

/// Directives that would block shared memory, priorities, the network, or the id of this boot.
const ABSENT: [&str; 6] =
    ["PrivateNetwork", "RestrictRealtime", "ProcSubset", "PrivateUsers", "RootDirectory", "InaccessiblePaths"];

/// Max exposure reported by `systemd-analyze security`, in tenths.
const MAX_EXPOSURE: &str = "19";

#[test]
fn the_unit_denies_what_an_oms_does_not_need() {
    let text = fs::read_to_string(unit()).expect("it is in docs");
    let service = text.split("[Service]").nth(1).and_then(|rest| rest.split("[Install]").next()).expect("it has both");
    let mut directives: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in service.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (name, value) = line.split_once('=').unwrap_or_else(|| panic!("'{line}' is no directive"));
        directives.entry(name).or_default().push(value);
    }
    for (name, value) in DIRECTIVES {
        let found = directives.get(name).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(found.join(" "), value, "{name}");
    }
    for name in ABSENT {
        assert!(!directives.contains_key(name), "{name}");
    }
}

#[test]
fn systemd_finds_the_unit_hardened() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let copy = folder.path().join("tickpath-oms.service");
    fs::copy(unit(), &copy).expect("the folder is ours");
    let mut command = Command::new("systemd-analyze");
    command.args(["security", "--offline=true", "--no-pager", "--threshold", MAX_EXPOSURE]).arg(&copy);
    match command.stdin(Stdio::null()).output() {
        Err(e) if e.kind() == ErrorKind::NotFound => eprintln!("left out: systemd-analyze (no systemd here)"),
        judged => {
            let judged = judged.expect("it starts");
            let text = String::from_utf8_lossy(&judged.stdout) + String::from_utf8_lossy(&judged.stderr);
            let open: Vec<&str> = text.lines().filter(|line| !line.starts_with('✓')).collect();
            assert!(judged.status.success(), "{}", open.join("\n"));
        }
    }
}

fn unit() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(UNIT)
}
