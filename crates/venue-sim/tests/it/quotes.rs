//! A venue without ticks: it quotes the configured prices, and renews the quotes.

use tickpath_clock::SimulatedClock;
use tickpath_market::{ExecType, Price, Quantity, Request, Side, SymbolId, TopOfBook};
use tickpath_venue_sim::VenueEngine;

use crate::random_commands::Command;
use crate::script::order;
use crate::world::{MORNING, Step, World, settle};

#[test]
fn a_used_up_quote_is_renewed() {
    let mut world = quoting(&[quote(0, 99, 101, 10)]);
    let mut line = world.open_without_ticks();
    for (id, quantity) in [(1, 4), (2, 10), (3, 35)] {
        // Every order fills completely, whatever its quantity.
        send(&mut world, id, quantity);
        settle(&mut line);
        assert_eq!(filled(&world, id), quantity, "order {id}");
        assert_eq!(depth(&line, 0, Side::Buy), [(99, 10)]);
    }
    assert_eq!(line.venue().resting_orders(), 0);
}

#[test]
fn a_restart_applies_the_configured_quotes() {
    let mut world = quoting(&[quote(0, 99, 101, 10), quote(1, 49, 51, 10)]);
    let mut line = world.open_without_ticks();
    send(&mut world, 1, 4);
    settle(&mut line);
    drop(line);
    let records = world.frames("journal").len();
    let line = world.open_without_ticks();
    assert_eq!(world.frames("journal").len(), records, "the same quotes are there already");
    assert_eq!(depth(&line, 0, Side::Sell), [(101, 6)], "with what was used of them");
    drop(line);
    world.config.quotes = vec![quote(1, 48, 51, 10)];
    let line = world.open_without_ticks();
    assert_eq!((depth(&line, 0, Side::Sell), depth(&line, 0, Side::Buy)), (vec![], vec![]));
    assert_eq!(depth(&line, 1, Side::Buy), [(48, 10)]);
    drop(line);
    // With ticks instead, then with configured quotes again.
    world.feed(&Step::Command(Command::Tick(quote(0, 9, 11, 10))), MORNING);
    let mut line = world.open();
    settle(&mut line);
    assert_eq!(depth(&line, 0, Side::Buy), [(9, 10)]);
    drop(line);
    assert_eq!(depth(&world.open_without_ticks(), 0, Side::Buy), []);
}

#[test]
fn symbols_can_be_added_and_never_removed() {
    let mut world = quoting(&[quote(0, 99, 101, 10)]);
    drop(world.open_without_ticks());
    world.config.venue.symbols += 2;
    world.config.quotes.push(quote(3, 9, 11, 5));
    assert_eq!(depth(&world.open_without_ticks(), 3, Side::Buy), [(9, 5)]);
    assert_eq!(depth(&world.open_without_ticks(), 3, Side::Buy), [(9, 5)]);
    world.config.venue.symbols = 1;
    world.config.quotes.pop();
    let line = world.open_without_ticks();
    assert!(line.venue().has_symbol(SymbolId(3)), "what was traded once is not forgotten");
    assert_eq!((depth(&line, 3, Side::Buy), line.venue().has_symbol(SymbolId(4))), (vec![], false));
}

fn quoting(quotes: &[TopOfBook]) -> World {
    let mut world = World::new();
    world.config.quotes = quotes.to_vec();
    world
}

fn quote(symbol: u32, bid: i64, ask: i64, quantity: i64) -> TopOfBook {
    TopOfBook {
        bid: Price(bid),
        bid_quantity: Quantity(quantity),
        ask: Price(ask),
        ask_quantity: Quantity(quantity),
        symbol: SymbolId(symbol),
        ..TopOfBook::default()
    }
}

/// Buys the first symbol at the offer.
fn send(world: &mut World, id: u64, quantity: i64) {
    let request = Request::New(order(Side::Buy, id, quantity, 101));
    world.feed(&Step::Command(Command::Request(request)), MORNING);
}

fn filled(world: &World, id: u64) -> i64 {
    let reports = world.reports();
    let fills = reports.iter().filter(|report| report.order_id.0 == id && report.exec_type == ExecType::Trade.code());
    fills.map(|fill| fill.last_quantity.0).sum()
}

fn depth(line: &VenueEngine<SimulatedClock>, symbol: u32, side: Side) -> Vec<(i64, i64)> {
    line.venue().depth(SymbolId(symbol), side).map(|(price, quantity)| (price.0, quantity.0)).collect()
}
