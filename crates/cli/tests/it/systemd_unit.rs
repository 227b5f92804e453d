//! The systemd unit of an OMS: systemd accepts it, and the OMS notifies systemd as a unit of its type must.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::desk::Desk;

const UNIT: &str = "../../docs/systemd/tickpath-oms.service";

#[test]
fn systemd_understands_the_unit() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(UNIT)).expect("it is in docs");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let unit = folder.path().join("tickpath-oms.service");
    let here = text.replace("/usr/local/bin/tickpath", env!("CARGO_BIN_EXE_tickpath"));
    fs::write(&unit, here).expect("the folder is ours");
    let verified = Command::new("systemd-analyze").arg("verify").arg(&unit).stdin(Stdio::null()).output();
    match verified {
        Err(e) if e.kind() == ErrorKind::NotFound => eprintln!("left out: systemd-analyze (no systemd here)"),
        verified => {
            let verified = verified.expect("it starts");
            let printed = String::from_utf8_lossy(&verified.stderr);
            assert!(verified.status.success() && !printed.contains("tickpath-oms.service"), "{printed}");
        }
    }
}

#[test]
fn systemd_is_notified_when_the_oms_accepts_orders() {
    let desk = Desk::new();
    let path = desk.path().join("notify.sock");
    let systemd = UnixDatagram::bind(&path).expect("the folder is ours");
    systemd.set_read_timeout(Some(Duration::from_secs(300))).expect("a timeout can be set");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
    command.args(desk.line("oms --config @/oms.toml").split(' ')).env("NOTIFY_SOCKET", &path);
    let mut oms = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary starts");
    let mut text = [0; 64];
    let length = systemd.recv(&mut text).expect("it tells");
    assert_eq!(std::str::from_utf8(&text[..length]).map(str::trim_end), Ok("READY=1"));
    let status = desk.tickpath("oms status --config @/oms.toml --user admin");
    assert_eq!(status.code, Some(0), "it takes what clients ask: {}", status.err);
    let stopped = Command::new("kill").args(["-TERM", &oms.id().to_string()]).status();
    assert!(stopped.is_ok_and(|status| status.success()), "the process was there");
    let length = systemd.recv(&mut text).expect("it tells");
    assert_eq!(std::str::from_utf8(&text[..length]).map(str::trim_end), Ok("STOPPING=1"));
    assert!(oms.wait().expect("the child is ours").success(), "it stops in good order");
}
