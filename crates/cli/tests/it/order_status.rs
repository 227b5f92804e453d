//! Order status: queried from the OMS, and by an admin from the venue, for one order or for all.

use std::fs;

use crate::desk::Desk;
use crate::logs::until;

#[test]
fn order_status_distinguishes_known_unknown_and_doubtful_orders() {
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
        let text = format!("{}{}", ran.out, ran.err);
        assert!(ran.code == Some(code) && text.contains(words), "{line}: {:?} {text}", ran.code);
    }
    // The exchange is stopped and answers nothing.
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

#[test]
fn reconcile_lists_and_books_fills_whose_reports_were_lost() {
    let desk = Desk::new();
    desk.change("oms.toml", "#answer_within_ms = 5000", "answer_within_ms = 0");
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    let ran = desk.order("new BTCUSDT buy 1 60000 --session 2 --id 7");
    assert!(ran.out.contains("new new"), "{}{}", ran.out, ran.err);
    desk.change("exchange.toml", "\n#drop = 0\n", "\ndrop = 1\n");
    exchange.signal("-HUP");
    exchange.await_words("of the reports are dropped");
    // The order fills against the quote, and the OMS gets no report.
    assert_eq!(desk.order("new BTCUSDT buy 1 61800.1 --session 2 --id 8 --wait 1").code, Some(5));
    desk.change("exchange.toml", "\ndrop = 1\n", "\n#drop = 0\n");
    exchange.signal("-HUP");
    exchange.await_words("no injected faults");
    let status = || desk.order("status 8 --session 2").out;
    assert!(status().contains("pending_new side=buy leaves=1 filled=0"), "{}", status());
    let reconcile = || desk.tickpath("oms reconcile SIM --reason anna --config @/oms.toml");
    let ran = reconcile();
    let line =
        "in the OMS pending_new, 0 filled, 1 open; at the venue filled, 1 filled, 0 open; now filled, 1 filled, 0 open";
    let text = "has reported 2 orders; 1 differed, 0 are not settled; 1 positions agree, 0 differ";
    assert!(ran.code == Some(0) && ran.out.contains(line) && ran.out.contains(text), "{}{}", ran.out, ran.err);
    assert!(status().contains("order_status filled side=buy leaves=0 filled=1"), "{}", status());
    let ran = reconcile();
    assert!(ran.code == Some(0) && ran.out.contains("has reported 2 orders; 0 differed"), "{}{}", ran.out, ran.err);
    for (line, code, words) in [
        ("NOPE --reason anna", 2, "no venue is called 'NOPE'"),
        ("SIM", 2, "--reason"),
        ("SIM --take --reason anna", 2, "--account"),
        ("SIM --reason anna --user trader", 2, "is no admin"),
    ] {
        let ran = desk.tickpath(&format!("oms reconcile {line} --config @/oms.toml"));
        assert!(ran.code == Some(code) && ran.err.contains(words), "{line}: {:?} {}{}", ran.code, ran.out, ran.err);
    }
}

#[test]
fn reconcile_enters_the_orders_of_a_lost_journal() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let oms = desk.oms();
    exchange.await_words("serving the OMS");
    let ran = desk.order("new BTCUSDT buy 1 60000 --session 2 --id 7");
    assert!(ran.out.contains("new new"), "{}{}", ran.out, ran.err);
    let table = desk.tickpath("orders --config @/oms.toml").out;
    let lost = table.lines().nth(2).and_then(|row| row.split_whitespace().next()).expect("an order is open");
    drop(oms);
    fs::remove_dir_all(desk.path().join("journal")).expect("nobody has it");
    let _oms = desk.oms();
    let reconcile = |rest: &str| desk.tickpath(&format!("oms reconcile SIM --reason anna{rest} --config @/oms.toml"));
    let command = format!("tickpath oms enter order BTCUSDT buy 1 60000 --sent-as {lost} ");
    // The exchange joins the new lanes some time later.
    let is_listed = || {
        let ran = reconcile(" --wait 2");
        ran.code == Some(1) && ran.out.contains("is unknown to the OMS; at the venue new") && ran.out.contains(&command)
    };
    until(is_listed, || reconcile("").out);
    let ran = reconcile(" --take --account 1 --session 2");
    assert!(ran.code == Some(0) && ran.out.contains("; entered by record "), "{}{}", ran.out, ran.err);
    let ran = reconcile("");
    assert!(ran.code == Some(0) && ran.out.contains("has reported 1 orders; 0 differed"), "{}{}", ran.out, ran.err);
    let ran = desk.tickpath("oms mass-cancel session 2 --config @/oms.toml");
    assert!(ran.code == Some(0) && ran.out.contains("1 order: 1 canceled"), "{}{}", ran.out, ran.err);
}
