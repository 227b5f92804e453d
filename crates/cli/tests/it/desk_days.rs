//! A desk whose days end while its exchange, its OMS and its clients are killed. Every client checks the OMS against
//! its own list, and the position at the end is that of all their fills.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use serde_json::Value;
use tickpath_clock::sleep_ns;

use crate::desk::{ASK, Desk, Trader};
use crate::logs::{Running, until};

/// Number of kills in a normal run, and in a long one.
const KILLS: u64 = 40;
const SOAK_KILLS: u64 = 300;
/// Max time between the command that ends a day and the kill, in nanoseconds: a day's end takes less.
const MAX_AHEAD_NS: u64 = 60_000_000;

#[test]
fn kills_around_day_ends_neither_lose_nor_duplicate_orders() {
    let kills = if std::env::var_os("TICKPATH_SOAK").is_some() { SOAK_KILLS } else { KILLS };
    let desk = Desk::new();
    let (mut exchange, mut oms) = (desk.exchange(), desk.oms());
    exchange.await_words("serving the OMS");
    assert_eq!(desk.order(&format!("new BTCUSDT buy 1 {ASK} --session 3")).code, Some(0));
    let stop = Arc::new(AtomicBool::new(false));
    let dies: [Arc<AtomicBool>; 2] = Default::default();
    let traders: Vec<JoinHandle<Trader>> = (0..2_u16)
        .map(|session| {
            let (config, stop, dies) = (desk.config(session), stop.clone(), dies[usize::from(session)].clone());
            std::thread::spawn(move || Trader::new(config, session).trade(&stop, &dies))
        })
        .collect();
    for kill in 0..kills {
        let day = 20_000_101 + kill / 28 % 12 * 100 + kill % 28 + kill / 336 * 10_000;
        let ending = Running::start(&desk.line(&format!("oms day-end --day {day} --config @/oms.toml --wait 1")));
        // Another moment of the day's end each time.
        sleep_ns(kill.wrapping_mul(0x9e37_79b9_7f4a_7c15) % MAX_AHEAD_NS);
        match kill % 4 {
            0 | 2 => {
                drop(oms);
                oms = desk.oms();
            }
            1 => {
                drop(exchange);
                exchange = desk.exchange();
                exchange.await_words("serving the OMS");
            }
            _ => dies[(kill / 4 % 2) as usize].store(true, Ordering::Release),
        }
        drop(ending);
    }
    stop.store(true, Ordering::Release);
    let traders: Vec<Trader> = traders.into_iter().map(|trader| trader.join().expect("its list is right")).collect();
    let mut fills: Vec<(u64, u64)> = traders.iter().flat_map(Trader::fills).collect();
    let all = fills.len();
    fills.sort_unstable();
    fills.dedup_by_key(|(exec, _)| *exec);
    assert_eq!(fills.len(), all, "a fill was told to two sessions");
    assert!(all > 50, "too little was traded: {all}");
    // Even ids buy, and odd ids sell; one more was bought before.
    let net = fills.iter().map(|(_, order)| if order.is_multiple_of(2) { 1 } else { -1 }).sum::<i64>() + 1;
    let is_settled = || desk.tickpath("orders --config @/oms.toml").out.contains("0 open");
    until(is_settled, || "the end of all orders".to_owned());
    let text = desk.tickpath("blotter --config @/oms.toml --json").out;
    let blotter: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(blotter["positions"][0]["end_quantity"], net.to_string(), "{text}");
}
