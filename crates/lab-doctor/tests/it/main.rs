//! Findings of the doctor on hosts that tests lay out as folders, and on servers that are no brokers.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;

use tempfile::tempdir;
use tickpath_clock::{HostClock, WakeUpCost, cpus};
use tickpath_lab_doctor::{
    CpuNeighbour, Finding, FindingState, HostFiles, broker, check_host, check_neighbours, check_wake_up,
    judge_neighbours, judge_wake_up, script,
};

const CPU0: &str = "sys/devices/system/cpu/cpu0";

#[test]
fn each_finding_follows_from_the_host_files() {
    use FindingState::{CostsLatency, Good, RisksSafety, Unknown};
    let governor = &format!("{CPU0}/cpufreq/scaling_governor");
    let siblings = &format!("{CPU0}/topology/thread_siblings_list");
    let isolated = "sys/devices/system/cpu/isolated";
    let tickless = "sys/devices/system/cpu/nohz_full";
    let source = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    let pages = "sys/kernel/mm/transparent_hugepage/enabled";
    let limits = "proc/self/limits";
    let interrupts = "proc/interrupts";
    for (name, file, text, state) in [
        ("frequency governor", governor.as_str(), "performance\n", Good),
        ("frequency governor", governor, "powersave\n", CostsLatency),
        ("frequency governor", "none", "", Unknown),
        ("hyperthreads", siblings, "0\n", Good),
        ("hyperthreads", siblings, "0,64\n", CostsLatency),
        ("isolated CPUs", isolated, "2-7\n", Good),
        ("isolated CPUs", isolated, "\n", CostsLatency),
        ("isolated CPUs", "none", "", Unknown),
        ("CPUs without a timer tick", tickless, "2-7\n", Good),
        ("CPUs without a timer tick", tickless, "(null)\n", CostsLatency),
        ("clock source", source, "hpet\n", CostsLatency),
        ("clock source", source, "tsc\n", CostsLatency),
        ("transparent huge pages", pages, "always [madvise] never\n", Good),
        ("transparent huge pages", pages, "[always] madvise never\n", CostsLatency),
        ("CPU quota", "none", "", Good),
        ("CPUs of this process", "proc/self/status", "Cpus_allowed_list:\t0-1\n", Good),
        ("CPUs of this process", "none", "", Unknown),
        ("swap", "proc/meminfo", "SwapTotal: 0 kB\nSwapFree: 0 kB\n", Good),
        ("swap", "proc/meminfo", "SwapTotal: 2048 kB\nSwapFree: 1024 kB\n", CostsLatency),
        ("memory that may be locked", limits, "Max locked memory  unlimited unlimited bytes\n", Good),
        ("memory that may be locked", limits, "Max locked memory  65536 65536 bytes\n", CostsLatency),
        ("open files", limits, "Max open files  1024 4096 files\n", RisksSafety),
        ("open files", limits, "Max open files  65536 65536 files\n", Good),
        ("/dev/shm", "proc/self/mounts", "tmpfs /dev/shm tmpfs rw,size=65536k 0 0\n", RisksSafety),
        ("/dev/shm", "proc/self/mounts", "tmpfs /dev/shm tmpfs rw,size=2097152k 0 0\n", Good),
        ("/dev/shm", "none", "", RisksSafety),
        ("/dev/shm at logout", "proc/self/status", "Uid:\t1000\t1000\t1000\t1000\n", Good),
        ("/dev/shm at logout", "none", "", Unknown),
        ("irqbalance", "proc/17/comm", "irqbalance\n", CostsLatency),
        ("irqbalance", "proc/17/comm", "redis-server\n", Good),
        ("CPUs that take device interrupts", interrupts, " CPU0 CPU1\n 24: 7 0 PCI eth0\nLOC: 9 9 x\n", Good),
        ("CPUs that take device interrupts", interrupts, " CPU0 CPU1\n 24: 7 1 PCI eth0\n", CostsLatency),
        ("real-time priority", "proc/self/status", "Uid:\t0\t0\t0\t0\n", Good),
        ("real-time priority", "proc/self/status", "Uid:\t1000\t1000\t1000\t1000\n", CostsLatency),
        ("hypervisor", "proc/cpuinfo", "flags : fpu hypervisor nonstop_tsc\n", CostsLatency),
        // The host's only idle state reports an exit latency of a microsecond.
        ("deepest idle state", "sys/devices/system/cpu/cpuidle/current_driver", "haltpoll\n", Unknown),
    ] {
        check(name, file, text, state);
    }
}

/// A user that systemd knows, without lingering.
#[test]
fn files_that_a_logout_removes_are_at_risk() {
    let root = tempdir().expect("a folder");
    for (file, text) in [
        ("proc/self/status", "Uid:\t1000\t1000\t1000\t1000\n"),
        ("run/systemd/system/units", ""),
        ("etc/systemd/logind.conf", "[Login]\n#RemoveIPC=no\n"),
    ] {
        let file = root.path().join(file);
        fs::create_dir_all(file.parent().expect("it has one")).expect("made");
        fs::write(file, text).expect("written");
    }
    let finding = || {
        let found = check_host(&HostFiles::under(root.path()));
        found.into_iter().find(|finding| finding.name == "/dev/shm at logout").expect("it is looked at")
    };
    assert_eq!(finding().state, FindingState::RisksSafety);
    assert!(finding().remedy.contains("RemoveIPC=no"));
    fs::write(root.path().join("etc/systemd/logind.conf"), "[Login]\nRemoveIPC=no\n").expect("written");
    assert_eq!(finding().state, FindingState::Good);
}

#[test]
fn a_running_oms_with_a_low_limit_of_open_files_is_found() {
    for (name, limit, room, state) in [
        ("tickpath", "40 4096", "64", FindingState::RisksSafety),
        ("tickpath", "2048 4096", "2048", FindingState::RisksSafety),
        ("tickpath", "65536 65536", "256", FindingState::Good),
        ("tickpath", "unlimited unlimited", "256", FindingState::Good),
        ("another", "40 4096", "64", FindingState::Good),
    ] {
        let root = tempdir().unwrap();
        let folder = root.path().join("proc/17");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("comm"), format!("{name}\n")).unwrap();
        fs::write(folder.join("limits"), format!("Max open files  {limit} files\n")).unwrap();
        fs::write(folder.join("status"), format!("Name:\t{name}\nFDSize:\t{room}\n")).unwrap();
        let all = check_host(&HostFiles::under(root.path()));
        let is_meant = |finding: &&Finding| finding.name == "open files of running processes";
        let found = all.iter().find(is_meant).expect("it is looked at");
        assert_eq!(found.state, state, "{limit}, {room}: {found:?}");
        assert_eq!(found.value.contains("17"), state == FindingState::RisksSafety, "{found:?}");
    }
}

/// Checks that a single file leads to this state.
fn check(name: &str, file: &str, text: &str, state: FindingState) {
    let root = tempdir().unwrap();
    let path = root.path().join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    let all = check_host(&HostFiles::under(root.path()));
    let found = all.iter().find(|finding| finding.name == name).unwrap_or_else(|| panic!("no finding '{name}'"));
    assert_eq!(found.state, state, "{file} {text:?}: {found:?}");
    assert_eq!(found.remedy.is_empty(), matches!(state, FindingState::Good | FindingState::Unknown), "{found:?}");
}

#[test]
fn an_empty_host_is_reported_without_a_panic() {
    let root = tempdir().unwrap();
    for finding in check_host(&HostFiles::under(root.path())) {
        assert!(!finding.value.is_empty(), "{finding:?}");
    }
}

#[test]
fn processors_are_judged_by_their_mutual_slowdown() {
    let one = |cpu, transfer_ns, slowdown| CpuNeighbour { cpu, transfer_ns, slowdown };
    for (others, state, words) in [
        (vec![], FindingState::Unknown, "not reported here"),
        (
            vec![one(1, 27.0, 1.9)],
            FindingState::CostsLatency,
            "a thread of the same core: CPU 1 (27 ns, busy together 1.9",
        ),
        // Some cores are as close to each other as the threads of one core are on other hosts.
        (vec![one(1, 27.0, 1.02)], FindingState::Good, "near: CPU 1 (27 ns)"),
        (vec![one(1, 52.0, 1.0), one(2, 205.0, 1.0)], FindingState::Good, "near: CPU 1 (52 ns); far: CPU 2 (205 ns)"),
        (
            (1..=9).map(|cpu| one(cpu, 50.0 + cpu as f64, 1.0)).collect(),
            FindingState::Good,
            "near: CPU 1, 2, 3, 4, 5, 6, 7, 8, 9 (51 to 59 ns)",
        ),
        (vec![one(8, 205.0, 1.1)], FindingState::CostsLatency, "far: CPU 8 (205 ns)"),
        (
            vec![one(1, 30.0, 1.0), one(2, 9.0, 1.5)],
            FindingState::CostsLatency,
            "a thread of the same core: CPU 2 (9 ns",
        ),
    ] {
        let found = judge_neighbours(0, &others);
        assert_eq!(found.state, state, "{found:?}");
        assert!(found.value.contains(words), "'{words}' is not in {found:?}");
        assert_eq!(found.remedy.is_empty(), matches!(state, FindingState::Good | FindingState::Unknown), "{found:?}");
    }
}

#[test]
fn this_machine_s_processors_are_measured() {
    let found = check_neighbours(&HostClock::get().expect("a host has a clock"));
    assert_eq!(found.state == FindingState::Unknown, cpus().len() < 2, "{found:?}");
    for cpu in cpus().iter().skip(1).take(3) {
        let named = found.value.split(|c: char| !c.is_ascii_digit()).any(|word| word == cpu.to_string());
        assert!(named, "CPU {cpu} is not in {found:?}");
    }
}

#[test]
fn a_wake_up_that_is_mostly_idle_state_has_the_remedy_of_its_host() {
    use FindingState::{CostsLatency, Good, Unknown};
    const GUEST: (&str, &str) = ("proc/cpuinfo", "flags : fpu hypervisor\n");
    const HALTPOLL: (&str, &str) = ("sys/devices/system/cpu/cpuidle/current_governor", "haltpoll\n");
    const POLL_NS: (&str, &str) = ("sys/module/haltpoll/parameters/guest_halt_poll_ns", "0\n");
    for (files, awake_ns, asleep_ns, state, words) in [
        (vec![GUEST, HALTPOLL, POLL_NS], Some(15_000), 53_000, CostsLatency, "guest_halt_poll_ns (now 0)"),
        (vec![GUEST, POLL_NS], Some(15_000), 53_000, CostsLatency, "cpuidle.governor=haltpoll"),
        (vec![], Some(15_000), 53_000, CostsLatency, "/dev/cpu_dma_latency"),
        (vec![GUEST], Some(30_000), 53_000, Good, "23.0 to leave the idle state"),
        (vec![], Some(2_000), 6_000, Good, "4.0 to leave the idle state"),
        (vec![GUEST], None, 53_000, Unknown, "could not be taken apart"),
    ] {
        let root = tempdir().unwrap();
        for (file, text) in files {
            fs::create_dir_all(root.path().join(file).parent().unwrap()).unwrap();
            fs::write(root.path().join(file), text).unwrap();
        }
        let found = judge_wake_up(&HostFiles::under(root.path()), &WakeUpCost { call_ns: 1_000, asleep_ns, awake_ns });
        assert_eq!(found.state, state, "{found:?}");
        assert!(format!("{found:?}").contains(words), "'{words}' is not in {found:?}");
        assert_eq!(found.remedy.contains("--wait adaptive"), state == CostsLatency, "{found:?}");
    }
}

#[test]
fn this_machine_s_wake_up_is_measured() {
    let found = check_wake_up(&HostFiles::here());
    assert_eq!(format!("{found:?}").contains("in the call that wakes"), cpus().len() > 1, "{found:?}");
}

#[test]
fn the_script_is_valid_shell() {
    for processors in [0, 1, 2, 8] {
        let root = tempdir().unwrap();
        for cpu in 0..processors {
            fs::create_dir_all(root.path().join(format!("sys/devices/system/cpu/cpu{cpu}"))).unwrap();
        }
        let text = script(&HostFiles::under(root.path()));
        let file = root.path().join("script");
        fs::write(&file, &text).unwrap();
        let read = Command::new("sh").arg("-n").arg(&file).output().expect("every host has a shell");
        assert!(read.status.success(), "{}\n{text}", String::from_utf8_lossy(&read.stderr));
        assert_eq!(text.contains("isolcpus=1-7"), processors == 8, "{text}");
        assert!(text.contains("LimitMEMLOCK=infinity"), "{text}");
    }
}

#[test]
fn an_unreachable_broker_is_a_finding_with_the_reason() {
    let other = answering(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    for scheme in ["redis", "nats", "amqp"] {
        unknown(&broker(&format!("{scheme}://{other}")), &other);
        unknown(&broker(&format!("{scheme}://127.0.0.1:1")), "refused the connection");
    }
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    unknown(&broker(&format!("redis://{}", silent.local_addr().unwrap())), "did not answer");
    unknown(&broker("kafka://127.0.0.1:1"), "127.0.0.1:1");
    unknown(&broker("http://127.0.0.1:1"), "is no broker's URL");
    unknown(&broker("redis://:secret@127.0.0.1:1"), "refused the connection");
    assert!(!format!("{:?}", broker("redis://:secret@127.0.0.1:1")).contains("secret"));
}

/// Starts a server that answers every request with these bytes, until the test ends.
fn answering(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(8) {
            let Ok(mut stream) = stream else { return };
            let _ = stream.write_all(bytes);
            let _ = stream.read(&mut [0; 64]);
        }
    });
    address
}

fn unknown(found: &[Finding], word: &str) {
    assert!(found.len() == 1 && found[0].state == FindingState::Unknown, "{found:?}");
    assert!(found[0].why.contains(word), "'{word}' is not in: {}", found[0].why);
}
