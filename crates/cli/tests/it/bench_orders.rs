//! `tickpath bench orders` at a user's own running OMS.

use serde_json::Value;

use crate::desk::Desk;
use crate::reports::load;

/// An order below the first exchange's quotes: it rests until it is cancelled.
const ORDER: &str = "symbol=BTCUSDT,side=buy,qty=1,price=61790,position=default";

#[test]
fn a_running_oms_is_measured_from_outside_and_left_without_an_open_order() {
    let desk = Desk::new();
    let (exchange, _oms) = (desk.exchange(), desk.oms());
    exchange.await_words("serving the OMS");
    let call = format!("bench orders --target @/oms.toml --count 40 --rate 200 --sessions 2 --order {ORDER} --quiet");
    let asked = desk.tickpath(&call);
    assert_eq!(asked.code, Some(2), "{}", asked.err);
    assert!(asked.err.contains("40 real orders") && asked.err.contains("--yes"), "{}", asked.err);
    let ran = desk.tickpath(&format!("{call} --yes --json @/result.json"));
    assert!(matches!(ran.code, Some(0 | 3)), "{:?} {}", ran.code, ran.err);
    let result = load(&desk.path().join("result.json"));
    let runs = result["runs"].as_array().expect("runs is a list");
    assert_eq!(runs.iter().map(|run| run["batch"].as_str()).collect::<Vec<_>>(), [Some("orders"), Some("cancels")]);
    for run in runs {
        let counts = ["sent", "received", "lost"].map(|name| run["counts"][name].as_u64());
        assert_eq!(counts, [Some(40), Some(40), Some(0)], "{run}");
        for hop in ["t0_t1", "order_ack", "order_round_trip"] {
            assert_eq!(run["hops"][hop]["count"], 40, "{hop}: {run}");
        }
    }
    // The T2 of a request is sent with the next request.
    let released = runs.iter().map(|run| run["hops"]["t1_t2"]["count"].as_u64()).collect::<Vec<_>>();
    assert_eq!(released, [Some(40), Some(39)]);
    assert!(runs[1]["figures"].get("first_t0_to_last_t2_ns").is_none(), "{}", runs[1]["figures"]);
    let status = desk.tickpath("oms status --config @/oms.toml");
    let open = status.out.lines().find(|line| line.starts_with("working")).unwrap_or("no line");
    assert!(open.ends_with(" 0"), "{}", status.out);
}

#[test]
fn a_client_measures_alone_without_access_to_the_journal() {
    let desk = Desk::new();
    let (exchange, _oms) = (desk.exchange(), desk.oms());
    exchange.await_words("serving the OMS");
    // As from another host: with the file of the OMS, but no journal.
    desk.change("oms.toml", "journal = \"journal\"", "journal = \"elsewhere\"");
    let call = "bench orders --target @/oms.toml --yes --count 20 --quiet --json @/result.json --order";
    let ran = desk.tickpath(&format!("{call} {ORDER}"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for run in load(&desk.path().join("result.json"))["runs"].as_array().expect("runs is a list") {
        assert_eq!((run["counts"]["received"].as_u64(), run["counts"]["lost"].as_u64()), (Some(20), Some(0)));
        assert_eq!(run["hops"]["order_ack"]["count"], 20);
        assert!(run["hops"].get("t0_t1").is_none() && has_note(run, "cannot be read here"), "{run}");
    }
}

#[test]
fn an_oms_that_cannot_be_reached_is_an_error() {
    let desk = Desk::new();
    let call = format!("bench orders --target @/oms.toml --yes --count 1 --quiet --order {ORDER}");
    let ran = desk.tickpath(&call);
    assert!(ran.code == Some(1) && ran.err.contains("no OMS answers"), "{:?} {}", ran.code, ran.err);
    let ran = desk.tickpath(&format!("{call} --user nobody"));
    assert!(ran.err.contains("nobody.password") && ran.err.contains("--password-file"), "{}", ran.err);
    let ran = desk.tickpath(&call.replace("BTCUSDT", "XAU").replace(" --yes", ""));
    assert!(ran.code == Some(2) && ran.err.contains("BTCUSDT, ETHUSDT"), "{:?} {}", ran.code, ran.err);
}

fn has_note(run: &Value, word: &str) -> bool {
    run["notes"].as_array().into_iter().flatten().any(|note| note.as_str().is_some_and(|note| note.contains(word)))
}
