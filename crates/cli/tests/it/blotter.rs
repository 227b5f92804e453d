//! `tickpath blotter` beside a desk that trades: tables, CSV, JSON, days, and rows while they change.

use serde_json::Value;

use crate::desk::Desk;
use crate::logs::{Running, until};
use crate::program::Ran;

/// Ask of the first exchange.toml for BTCUSDT.
const ASK: &str = "61800.1";

const FILLS: &str = "time_utc,exec_id,order_id,client_order_id,session,account,symbol,venue,side,quantity,price,state,\
                     fee,fee_currency,liquidity,counted_quantity,updated_utc";

fn blotter(desk: &Desk, line: &str) -> Ran {
    desk.tickpath(format!("blotter --config @/oms.toml {line}").trim_end())
}

fn document(desk: &Desk, line: &str) -> Value {
    let ran = blotter(desk, &format!("--json {line}"));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}: {}", ran.out))
}

/// Starts a desk with a fill and an open order.
fn traded(desk: &Desk) -> (Running, Running) {
    let (exchange, oms) = (desk.exchange(), desk.oms());
    exchange.await_words("serving the OMS");
    let ran = desk.order(&format!("new BTCUSDT buy 1 {ASK} --id 6"));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    let ran = desk.order("new BTCUSDT buy 1 60000 --session 2 --id 7");
    assert!(ran.out.contains("new new side=buy leaves=1"), "{}{}", ran.out, ran.err);
    let is_filled = || blotter(desk, "--orders --status filled --csv").out.lines().count() == 2;
    until(is_filled, || "the fill".to_owned());
    (exchange, oms)
}

#[test]
fn a_desks_day_is_printed_as_tables_csv_and_json() {
    let desk = Desk::new();
    let (_exchange, _oms) = traded(&desk);
    let ran = blotter(&desk, "");
    for words in ["current day, records 0 to ", "orders (2)\n", "fills (1)\n", "positions (1)\n", "realised_profit"] {
        assert!(ran.out.contains(words), "no '{words}' in {}{}", ran.out, ran.err);
    }
    let csv = blotter(&desk, "--fills --csv").out;
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert_eq!((lines[0], lines.len(), lines[2]), (FILLS, 3, ""), "a head, a fill, and an end: {csv}");
    let fields: Vec<&str> = lines[1].split(',').collect();
    let of_fill = ["buy", "1", ASK, "good", "", "", "", "1"];
    assert_eq!((fields[3], fields[6], &fields[8..16]), ("6", "BTCUSDT", &of_fill[..]), "no fee here: {csv}");
    let all = document(&desk, "--mark BTCUSDT=61900.1");
    let (orders, positions) = (&all["orders"], &all["positions"]);
    let shown = |order: &Value| ["status", "filled", "average_price", "user"].map(|key| order[key].clone());
    let (price, trader) = (Value::from(ASK), Value::from("trader"));
    assert_eq!(shown(&orders[0]), [Value::from("filled"), Value::from("1"), price.clone(), trader.clone()], "{all}");
    assert_eq!(shown(&orders[1]), [Value::from("new"), Value::from("0"), Value::Null, trader], "{all}");
    let money =
        ["start_quantity", "end_quantity", "realised_profit", "open_profit"].map(|key| positions[0][key].clone());
    assert_eq!(money, ["0", "1", "0", "100"].map(Value::from), "{all}");
    assert_eq!(positions[0]["average_price"], price, "{all}");
    assert_eq!(document(&desk, "--session 2")["fills"], Value::Array(Vec::new()));
    assert_eq!(document(&desk, "--account 99")["orders"], Value::Array(Vec::new()));
}

#[test]
fn an_ended_day_is_shown_by_date_and_the_next_has_its_position() {
    let desk = Desk::new();
    let (_exchange, _oms) = traded(&desk);
    let ran = desk.tickpath("oms day-end --config @/oms.toml");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let ran = blotter(&desk, "--day 20010101");
    let named = ran.err.split("; ").nth(1).and_then(|known| known.strip_suffix(" has\n"));
    let (Some(2), Some(date)) = (ran.code, named) else { panic!("{:?} {}", ran.code, ran.err) };
    let ended = document(&desk, &format!("--day {date}"));
    assert_eq!(ended["orders"].as_array().map(Vec::len), Some(2), "{ended}");
    assert_eq!(ended["day"].to_string(), date);
    assert_eq!(document(&desk, "--first-record 0"), ended);
    let today = document(&desk, "");
    assert_eq!((&today["day"], &today["fills"]), (&Value::Null, &Value::Array(Vec::new())), "{today}");
    let row = &today["positions"][0];
    assert_eq!((&row["start_quantity"], &row["start_price"]), (&Value::from("1"), &Value::from(ASK)), "{today}");
    assert_eq!((&row["mark_price"], &row["open_profit"]), (&Value::Null, &Value::Null), "no fill, no mark: {today}");
}

#[test]
fn changed_rows_are_printed_as_they_arrive() {
    let desk = Desk::new();
    let (_exchange, _oms) = traded(&desk);
    let following = Running::start(&desk.line("blotter --config @/oms.toml --follow --json"));
    following.await_words("until Ctrl-C");
    let ran = desk.order("new BTCUSDT buy 1 60001 --session 2 --id 9");
    assert!(ran.out.contains("new new"), "{}{}", ran.out, ran.err);
    let ran = desk.tickpath("exchange day-end --config @/exchange.toml");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let ran = desk.tickpath("oms day-end --config @/oms.toml");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    following.await_words("has ended; rows of the next day follow");
    let text = following.interrupt().out;
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let of_nine = rows.iter().filter(|row| row["table"] == "orders" && row["client_order_id"] == 9);
    let mut statuses: Vec<&str> = of_nine.filter_map(|row| row["status"].as_str()).collect();
    statuses.dedup();
    assert_eq!(statuses, ["pending_new", "new", "expired"], "{text}");
}

#[test]
fn a_mistake_is_an_error_with_its_remedy() {
    let desk = Desk::new();
    let (_exchange, _oms) = traded(&desk);
    for (line, words) in [
        ("--symbol NOPE", "'NOPE' is no instrument of this journal; its instruments are "),
        ("--mark NOPE=1", "'NOPE' is no instrument of this journal; its instruments are "),
        ("--mark BTCUSDT", "write it like BTCUSDT=61800.5"),
        ("--status open", "'open' is no status of an order; use one of new, partially_filled, "),
        ("--csv", "a CSV holds one table; add --orders, --fills or --positions"),
        ("--first-record 3", "no day begins with record 3; days begin with 0 (has not ended)"),
        ("--day 20261128", "no day 20261128 has ended; no day has ended since its archive begins"),
        ("--positions --session 1", "cannot be used with"),
    ] {
        let ran = blotter(&desk, line);
        assert!(ran.code == Some(2) && ran.err.contains(words), "{line}: {:?} {}{}", ran.code, ran.out, ran.err);
    }
}
