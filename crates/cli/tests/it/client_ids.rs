//! An order's own text id and its end time from the command line: given, kept over a restart, looked up, used to
//! cancel, and reported.

use tickpath_clock::{rfc3339, utc_ns};

use crate::desk::Desk;
use crate::logs::until;

#[test]
fn a_good_till_date_order_expires_at_its_time() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    let check = |line: &str, code: i32, word: &str| {
        let ran = desk.order(line);
        let text = format!("{}{}", ran.out, ran.err);
        assert!(ran.code == Some(code) && text.contains(word), "{line}: {:?} {text}", ran.code);
    };
    check("new BTCUSDT buy 1 60000 --tif gtd --until 2026-01-01T00:00:00Z", 1, "end time of the order has passed");
    check("new BTCUSDT buy 1 60000 --tif gtd", 2, "an end time belongs to a gtd order");
    check("new BTCUSDT buy 1 60000 --until 2026-01-01T00:00:00Z", 2, "an end time belongs to a gtd order");
    check("new BTCUSDT buy 1 60000 --tif gtd --until tomorrow", 2, "'tomorrow' is no time");
    let end = rfc3339(utc_ns() + 2_000_000_000);
    check(
        &format!("new BTCUSDT buy 1 60000 --tif gtd --until {end} --client-id dated"),
        0,
        "new new side=buy leaves=1",
    );
    assert!(desk.tickpath("orders @/journal").out.contains(&end), "the table of open orders has the end time");
    until(|| desk.order("status --client-id dated").out.contains(" expired "), || "the order has expired".to_owned());
    let journal = desk.tickpath("log cat @/journal").out;
    assert!(journal.contains("time_in_force=good_till_date") && journal.contains("expiry_timer"), "{journal}");
}

#[test]
fn an_order_is_found_and_canceled_by_its_client_id_also_after_a_restart() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let oms = desk.oms();
    exchange.await_words("serving the OMS");
    let check = |line: &str, code: i32, word: &str| {
        let ran = desk.order(line);
        let text = format!("{}{}", ran.out, ran.err);
        assert!(ran.code == Some(code) && text.contains(word), "{line}: {:?} {text}", ran.code);
    };
    check("new BTCUSDT buy 1 60000 --tif gtc --client-id grid-7 --id 1 --session 2", 0, "new new side=buy leaves=1");
    check("new BTCUSDT buy 1 60001 --client-id grid-7 --id 2 --session 2", 1, "has this client id");
    check("status --client-id grid-7", 0, "session=2 client_order_id=1");
    check("cancel --client-id other", 1, "there is no such order");
    check("new BTCUSDT buy 1 60000 --client-id é", 2, "use 1 to 36 printable ASCII characters");
    check("cancel 1 --client-id grid-7", 2, "cannot be used with");
    assert_eq!(oms.interrupt().code, Some(0));
    assert_eq!(desk.tickpath("log snapshot @/journal").code, Some(0));
    assert!(desk.tickpath("orders @/journal").out.contains("grid-7"));
    let _oms = desk.oms();
    check("status --client-id grid-7", 0, "session=2 client_order_id=1");
    check("new BTCUSDT buy 1 60001 --client-id grid-7 --id 3 --session 2", 1, "has this client id");
    check("cancel --client-id grid-7 --session 0", 0, "canceled canceled");
    check("new BTCUSDT buy 1 60002 --client-id grid-7 --id 4 --session 2", 0, "new new side=buy leaves=1");
    let blotter = desk.tickpath("blotter @/journal --json").out;
    assert_eq!(blotter.matches("grid-7").count(), 4, "the denied ones too: {blotter}");
    let journal = desk.tickpath("log cat @/journal").out;
    assert!(journal.contains("journal_extended_order") && journal.contains("text_id=grid-7"), "{journal}");
}
