//! A desk whose files in shared memory are removed while it trades, as systemd does for a user that logs out.

use std::fs;

use crate::desk::{ASK, Desk};
use crate::logs::until;

#[test]
fn an_oms_reports_removed_lanes_and_a_restart_restores_all() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let oms = desk.oms();
    exchange.await_words("serving the OMS");
    assert_eq!(desk.order(&format!("new BTCUSDT buy 1 {ASK} --session 2 --id 1")).code, Some(0));
    let of_this = format!("tickpath.{}.", desk.ticks().trim_end_matches(".ticks"));
    let mut removed = 0;
    for found in fs::read_dir("/dev/shm").expect("it is there").flatten() {
        let name = found.file_name().to_string_lossy().into_owned();
        if name.starts_with(&of_this) {
            fs::remove_dir_all(found.path()).or_else(|_| fs::remove_file(found.path())).expect("it is ours");
            removed += 1;
        }
    }
    assert!(removed > 5, "only {removed} files of {of_this}");
    oms.await_words("were removed from /dev/shm");
    oms.await_words("unless RemoveIPC=no");
    oms.await_words("Restart the OMS");
    exchange.await_words("were removed or replaced");
    // Clients of the OMS's socket are still served: the request waits for the venue.
    let ran = desk.order("new BTCUSDT buy 1 60000 --session 2 --id 2 --wait 1");
    assert_eq!(ran.code, Some(5), "{}{}", ran.out, ran.err);
    drop(oms);
    let oms = desk.oms();
    exchange.await_words("serving the OMS");
    let text = || desk.tickpath("orders --config @/oms.toml").out;
    until(|| text().contains("1 open (0 waiting, 0 in flight, 0 unknown), 1 done"), text);
    // The market is back, too: an order is checked against its price.
    let ran = desk.order(&format!("new BTCUSDT buy 1 {ASK} --session 2 --id 3"));
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let ran = oms.interrupt();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}
