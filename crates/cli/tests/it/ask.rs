//! How orders stand: asked of the OMS, and by an admin of their venue.

use crate::desk::Desk;
use crate::logs::until;

#[test]
fn order_status_tells_an_order_that_is_there_one_that_is_not_and_one_in_doubt() {
    let desk = Desk::new();
    desk.change("oms.toml", "#answer_within_ms = 5000", "answer_within_ms = 300");
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    let ran = desk.order("new BTCUSDT buy 1 60000 --session 2 --id 7");
    assert!(ran.out.contains("new new"), "{}{}", ran.out, ran.err);
    let table = desk.tickpath("orders --config @/oms.toml").out;
    let id = table.lines().nth(2).and_then(|row| row.split_whitespace().next()).expect("an order is open");
    let stands = "session=2 client_order_id=7 order_status new side=buy leaves=1 filled=0";
    let [by_id, by_admin] = ["", " --user admin"].map(|user| format!("--order-id {id}{user}"));
    let [asked, asked_by_admin] = [&by_id, &by_admin].map(|line| format!("{line} --ask-venue"));
    for (line, code, words) in [
        ("7 --session 2", 0, stands),
        ("8 --session 2", 1, "no such order"),
        (by_id.as_str(), 0, stands),
        (by_admin.as_str(), 0, stands),
        ("--order-id 1.1", 1, "there is no order 1.1"),
        (asked.as_str(), 2, "is no admin"),
        (asked_by_admin.as_str(), 0, stands),
        ("--order-id 1.1 --ask-venue --user admin", 1, "there is no order 1.1"),
        ("", 2, "CLIENT_ORDER_ID"),
    ] {
        let ran = desk.order(format!("status {line}").trim_end());
        let said = format!("{}{}", ran.out, ran.err);
        assert!(ran.code == Some(code) && said.contains(words), "{line}: {:?} {said}", ran.code);
    }
    // The exchange lives and answers nothing.
    exchange.signal("-STOP");
    let ran = desk.order(&format!("status {asked_by_admin} --wait 1"));
    assert!(ran.code == Some(5) && ran.err.contains("has not answered in time"), "{:?} {}", ran.code, ran.err);
    assert_eq!(desk.order("new BTCUSDT buy 1 60000 --session 2 --id 9 --wait 1").code, Some(5));
    let status = || desk.order("status 9 --session 2");
    until(|| status().code == Some(5), || status().out);
    let ran = status();
    assert!(ran.out.contains("order_status unknown") && ran.err.contains("in doubt"), "{}{}", ran.out, ran.err);
    exchange.signal("-CONT");
    until(|| status().code == Some(0), || status().out);
    assert!(status().out.contains("order_status new"), "{}", status().out);
}
