//! Admin commands on the command line, with an OMS that is killed in between.

use std::fs;

use crate::desk::Desk;

/// Returns the ids of the open orders, as the table prints them.
fn open(desk: &Desk) -> Vec<String> {
    let table = desk.tickpath("orders --config @/oms.toml").out;
    let rows = table.lines().skip(2).filter(|line| !line.contains(" open ("));
    rows.filter_map(|row| row.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn an_admin_kills_and_cancels_by_scope_and_a_restart_forgets_nothing() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let oms = desk.oms();
    exchange.await_words("serving the OMS");
    let word = |line: &str| desk.tickpath(&format!("oms {line} --config @/oms.toml"));
    for (session, id) in [(1, 5), (2, 7)] {
        let ran = desk.order(&format!("new BTCUSDT buy 1 60000 --session {session} --id {id}"));
        assert!(ran.out.contains("new new side=buy"), "{}{}", ran.out, ran.err);
    }
    let ran = word("mass-cancel session 2");
    assert!(ran.code == Some(0) && ran.out.contains("1 order: 1 canceled"), "{}{}", ran.out, ran.err);
    let ran = word("kill account 1 --cancel");
    assert!(
        ran.code == Some(0) && ran.out.contains("the kill switch of account 1 is on; 1 order: 1 canceled"),
        "{}",
        ran.out
    );
    assert_eq!(open(&desk), Vec::<String>::new());
    drop(oms);
    let _oms = desk.oms();
    let denied = || desk.order("new BTCUSDT buy 1 60000").out;
    assert!(denied().contains("denied"), "the switch holds after a kill -9: {}", denied());
    let ran = word("unkill account 1");
    assert!(ran.code == Some(0) && ran.out.contains("is off"), "{}{}", ran.out, ran.err);
    let ran = desk.order("new BTCUSDT buy 1 60000 --session 1 --id 8");
    assert!(ran.out.contains("new new side=buy"), "{}{}", ran.out, ran.err);
    let ran = desk.tickpath("exchange day-end --config @/exchange.toml");
    assert!(
        ran.code == Some(0) && ran.out.contains("the exchange has ended its trading day"),
        "{}{}",
        ran.out,
        ran.err
    );
    let ran = desk.order("new BTCUSDT buy 1 60000 --session 1 --id 9");
    assert!(ran.out.contains("new new side=buy"), "{}{}", ran.out, ran.err);
    let ran = word("day-end");
    assert!(ran.code == Some(0) && ran.out.contains("has ended; 1 order: 1 new"), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("1 order still works at its venue"), "{}", ran.err);
    let ran = word("day-end");
    assert!(ran.code == Some(1) && ran.err.contains("has ended already"), "{}{}", ran.out, ran.err);
    let ran = word("day-end --day 20991231");
    assert!(ran.code == Some(1) && ran.err.contains("has not begun"), "{}{}", ran.out, ran.err);
    for (line, code, words) in [
        ("kill nothing 1", 2, "is no scope; use firm"),
        ("kill firm 3", 2, "is no scope; use firm"),
        ("kill disk", 2, "is no scope; use firm"),
        ("kill account many", 2, "is no scope; use firm"),
        ("unkill symbol NOPE", 2, "is no instrument"),
        ("kill firm --user trader", 2, "is no admin"),
        ("resolve 1.1 canceled --filled 0 --reason anna", 1, "there is no order 1.1"),
        ("resolve 1.1 gone --filled 0 --reason anna", 2, "use filled, canceled, rejected, expired or working"),
        ("enter fill 1.1 1 1 --exec-id 4 --reason anna", 1, "there is no order 1.1"),
        ("day-end --day 20261399", 2, "write the day like"),
        ("day-end --day 20260230", 2, "write the day like"),
        ("enter position 77 BTCUSDT 5 60000 --reason anna", 1, "account 77 or symbol"),
        ("enter position 1 NOPE 5 60000 --reason anna", 2, "is no instrument"),
        ("enter position 1 BTCUSDT 0 60000 --adjust --reason anna", 1, " already; enter another quantity"),
        ("enter position 1 BTCUSDT -5 60000 --reason anna", 0, "the position is entered"),
        ("enter position 1 BTCUSDT 2 --adjust --reason anna", 0, "the position is entered"),
    ] {
        let ran = word(line);
        let text = format!("{}{}", ran.out, ran.err);
        assert!(ran.code == Some(code) && text.contains(words), "{line}: {:?} {text}", ran.code);
    }
}

#[test]
fn a_lost_order_is_entered_and_canceled_under_its_old_id() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let oms = desk.oms();
    exchange.await_words("serving the OMS");
    let ran = desk.order("new BTCUSDT buy 1 60000 --session 2 --id 7");
    assert!(ran.out.contains("new new side=buy"), "{}{}", ran.out, ran.err);
    let [lost] = &open(&desk)[..] else { panic!("one order is open") };
    drop(oms);
    fs::remove_dir_all(desk.path().join("journal")).expect("nobody has it");
    let oms = desk.oms();
    assert_eq!(open(&desk), Vec::<String>::new());
    let enter = || {
        let line = format!("oms enter order BTCUSDT buy 1 60000 --sent-as {lost} --account 1 --session 2 --id 7");
        desk.tickpath(&format!("{line} --reason journal_lost --config @/oms.toml"))
    };
    let ran = enter();
    assert!(ran.code == Some(0) && ran.out.contains("the order is entered; 1 order: 1 new"), "{}{}", ran.out, ran.err);
    let again = enter();
    assert!(again.code == Some(1) && again.err.contains("is known already"), "{}{}", again.out, again.err);
    // The session is notified, even after a kill.
    drop(oms);
    let _oms = desk.oms();
    assert_eq!(open(&desk).len(), 1);
    let ran = desk.order("cancel 7 --session 2");
    assert!(ran.code == Some(0) && ran.out.contains("canceled canceled"), "{}{}", ran.out, ran.err);
    assert_eq!(open(&desk), Vec::<String>::new());
    let ran = desk.tickpath("orders --foreign --config @/oms.toml");
    assert!(ran.out.contains("0 reports of unknown orders"), "{}{}", ran.out, ran.err);
}
