//! Numbers keep their meaning: a configuration that gives a number to another symbol, venue or user is refused while
//! the number is in use.

use tickpath_market::{Currency, ExecType, Side, SymbolId, VenueId};
use tickpath_oms_core::{DayEnd, KILL_SYMBOL, KillSwitch, NAME_SESSION, NAME_VENUE, NameRecord, RecordKind};
use tickpath_oms_runtime::snapshot;
use zerocopy::IntoBytes;

use crate::scripted_venue::{ScriptedVenue, fill, informed, new_orders, report, with_one_order};
use crate::{
    Clock, ExecutionReport, Inline, Instrument, Price, Quantity, Scene, SimulatedClock, TradingDefinitions, VENUE,
    VenueRules, WIDE, limit, poll,
};

const FIRST: SymbolId = SymbolId(0);

/// Returns the reason why a configuration is refused; empty if it is accepted.
fn refused(oms: &mut Inline<SimulatedClock>, trading: &TradingDefinitions) -> String {
    oms.sequencer().replace_definitions(trading).map_or_else(|e| e.to_string(), |_| String::new())
}

/// Returns the reason why an OMS does not start with a configuration.
fn does_not_start(scene: &mut Scene, trading: &TradingDefinitions) -> String {
    let sound = std::mem::replace(&mut scene.config.trading, trading.clone());
    let started = Inline::open(scene.clock.clone(), &scene.config, None);
    scene.config.trading = sound;
    started.map(drop).expect_err("it must not start").to_string()
}

fn end_day(scene: &Scene, oms: &mut Inline<SimulatedClock>) {
    let day = DayEnd::default();
    let ended = oms.sequencer().accept_command(scene.clock.ticks(), RecordKind::DayEnd.code(), day.as_bytes());
    ended.expect("it is journaled").expect("a day may end");
}

/// Returns the same configuration with the names of its two symbols swapped.
fn swapped(trading: &TradingDefinitions) -> TradingDefinitions {
    let mut trading = trading.clone();
    let [first, second] = &mut trading.instruments[..] else { panic!("two instruments") };
    let (first_name, second_name) = (first.name(), second.name());
    (*first, *second) = (first.with_name(second_name), second.with_name(first_name));
    trading
}

/// Returns an OMS that holds five of the first symbol for the wide account, after the end of its day.
fn with_a_position() -> (Scene, Inline<SimulatedClock>, ScriptedVenue) {
    let (scene, mut oms, mut venue, _, id) = with_one_order();
    venue.send(&report(id, ExecType::New, 1, 0, 5));
    venue.send(&fill(id, 2, 9, 5, 5, 0));
    poll(&mut oms);
    end_day(&scene, &mut oms);
    assert_eq!(oms.sequencer().core().position(WIDE, FIRST).net, i128::from(Quantity::from_whole(5).0));
    (scene, oms, venue)
}

#[test]
fn a_position_of_one_symbol_never_becomes_one_of_another() {
    let (mut scene, mut oms, venue) = with_a_position();
    let trading = swapped(&scene.config.trading);
    let (records, digest) = (oms.sequencer().records(), oms.sequencer().core().digest());
    let why = refused(&mut oms, &trading);
    let expected = "symbol number 0 is FIRST, and cannot become SECOND: account 1 has a position of 5 in symbol 0; \
                    leave 0 to FIRST, and give SECOND a number that no symbol has had";
    assert!(why.contains(expected), "{why}");
    assert!(why.contains("FIRST is symbol number 0, and cannot become number 1: "), "{why}");
    assert_eq!((oms.sequencer().records(), oms.sequencer().core().digest()), (records, digest), "nothing is journaled");
    let name = oms.sequencer().core().instrument(FIRST).map(|instrument| instrument.name().to_string());
    assert_eq!(name.as_deref(), Some("FIRST"));
    drop((oms, venue));
    assert!(does_not_start(&mut scene, &trading).contains(expected), "a start is refused for the same reason");
    let mut oms = informed(&scene);
    assert_eq!(oms.sequencer().core().position(WIDE, FIRST).net, i128::from(Quantity::from_whole(5).0));
}

#[test]
fn an_order_bears_its_symbol_while_it_is_open_and_until_its_day_ends() {
    let (scene, mut oms, mut venue, mut client, id) = with_one_order();
    let trading = swapped(&scene.config.trading);
    let why = refused(&mut oms, &trading);
    assert!(why.contains("is FIRST, and cannot become SECOND: order ") && why.contains(" is open; "), "{why}");
    venue.send(&report(id, ExecType::New, 1, 0, 5));
    venue.send(&fill(id, 2, 9, 5, 5, 0));
    client.send(limit(Side::Sell, 2, 90, 5));
    poll(&mut oms);
    let sold = new_orders(&venue.receive())[0];
    let side = Side::Sell.code();
    venue.send(&ExecutionReport { side, ..report(sold, ExecType::New, 1, 0, 5) });
    venue.send(&ExecutionReport { side, ..fill(sold, 2, 10, 5, 5, 0) });
    poll(&mut oms);
    assert_eq!(oms.sequencer().core().position(WIDE, FIRST).net, 0, "the account is flat");
    let why = refused(&mut oms, &trading);
    assert!(why.contains(" of this day uses it; "), "{why}");
    end_day(&scene, &mut oms);
    assert_eq!(refused(&mut oms, &trading), "", "nothing bears the numbers any more");
    let name = oms.sequencer().core().instrument(FIRST).map(|instrument| instrument.name().to_string());
    assert_eq!(name.as_deref(), Some("SECOND"));
    assert_eq!(scene.replay().0.digest(), oms.sequencer().core().digest());
}

#[test]
fn an_unused_number_may_be_reused_but_not_one_with_a_kill_switch() {
    let scene = Scene::new();
    let mut oms = informed(&scene);
    let (trading, other) = (scene.config.trading.clone(), swapped(&scene.config.trading));
    assert_eq!(refused(&mut oms, &other), "");
    assert_eq!(refused(&mut oms, &trading), "");
    let kill = |on: u8| KillSwitch { scope: KILL_SYMBOL, target: FIRST.0, on, ..KillSwitch::default() };
    let mut switch = |on: u8| {
        let now = scene.clock.ticks();
        oms.sequencer()
            .accept_command(now, RecordKind::Kill.code(), kill(on).as_bytes())
            .expect("it is journaled")
            .expect("a word");
        refused(&mut oms, &other)
    };
    let why = switch(1);
    assert!(why.contains("its kill switch is on"), "{why}");
    assert_eq!(switch(0), "");
}

#[test]
fn a_symbol_with_a_position_may_change_only_its_limits() {
    let (scene, mut oms, _venue) = with_a_position();
    let trading = scene.config.trading.clone();
    let mut with = |first: Instrument| {
        let mut other = trading.clone();
        other.instruments[0] = first;
        other.venues = vec![VenueRules::of(VENUE), VenueRules::of(VenueId(2))];
        refused(&mut oms, &other)
    };
    let first = trading.instruments[0];
    let why = with(Instrument { venue: VenueId(2), ..first });
    assert!(why.contains("FIRST, symbol number 0, cannot change (venue 1 to 2): account 1 has a position"), "{why}");
    let why = with(Instrument { multiplier: 10, ..first });
    assert!(why.contains("(multiplier 1 to 10): account 1 has a position"), "{why}");
    let why = with(Instrument { symbol: SymbolId(7), ..first });
    assert!(why.contains("FIRST is symbol number 0, and cannot become number 7: account 1 has a position"), "{why}");
    let limits = Instrument {
        tick_size: Price::from_whole(1),
        lot: Quantity::from_whole(2),
        lowest_price: Price::from_whole(1),
        highest_price: Price::from_whole(500),
        restricted: 1,
        ..first
    };
    assert_eq!(with(limits), "", "limits change at any time");
    let in_dollars = first.with_currency(Currency::constant("USD"));
    assert_eq!(with(in_dollars), "", "a currency that was not told may be told");
    let why = with(first.with_currency(Currency::constant("TWD")));
    assert!(why.contains("(currency USD to TWD): account 1 has a position"), "{why}");
}

#[test]
fn a_removed_symbol_keeps_its_number_over_a_snapshot_and_a_start() {
    let (mut scene, mut oms, venue) = with_a_position();
    let whole = scene.config.trading.clone();
    let mut without = whole.clone();
    let first = without.instruments.remove(0);
    let mut other = without.clone();
    other.instruments.push(first.with_name("OTHER".parse().expect("a good name")));
    assert_eq!(refused(&mut oms, &without), "", "a symbol may be removed");
    let expected = "symbol number 0 is FIRST, and cannot become OTHER: account 1 has a position of 5";
    let why = refused(&mut oms, &other);
    assert!(why.contains(expected), "{why}");
    drop((oms, venue));
    snapshot::make(&scene.config.journal.path).expect("the journal can be read");
    let why = does_not_start(&mut scene, &other);
    assert!(why.contains(expected), "{why}");
    scene.config.trading = without;
    let mut oms = informed(&scene);
    let why = refused(&mut oms, &other);
    assert!(why.contains(expected), "{why}");
    assert_eq!(refused(&mut oms, &whole), "", "the symbol itself may come back");
}

#[test]
fn sessions_and_venues_keep_their_names_once_they_are_used() {
    let mut scene = Scene::new();
    let named = |venue: &str, users: [&str; 2]| {
        let [first, second] = users;
        vec![
            NameRecord::new(NAME_VENUE, VENUE.0, venue),
            NameRecord::new(NAME_SESSION, 0, first),
            NameRecord::new(NAME_SESSION, 1, second),
        ]
    };
    scene.config.trading.names = named("SIM", ["anna", "bob"]);
    let mut oms = informed(&scene);
    let (mut venue, mut client) = (ScriptedVenue::join(&scene), scene.client(0));
    let trading = scene.config.trading.clone();
    let users = TradingDefinitions { names: named("SIM", ["bob", "anna"]), ..trading.clone() };
    let venues = TradingDefinitions { names: named("OTHER", ["anna", "bob"]), ..trading.clone() };
    for free in [&users, &venues, &trading] {
        assert_eq!(refused(&mut oms, free), "", "nobody has used them");
    }
    client.send(limit(Side::Buy, 1, 90, 5));
    poll(&mut oms);
    let id = new_orders(&venue.receive())[0];
    let why = refused(&mut oms, &users);
    assert!(why.contains("session 0 is anna's, and cannot become bob's: order ") && why.contains("is open"), "{why}");
    let why = refused(&mut oms, &venues);
    assert!(why.contains("venue number 1 is SIM, and cannot become OTHER: order "), "{why}");
    venue.send(&ExecutionReport { status: 8, ..report(id, ExecType::Rejected, 1, 0, 0) });
    poll(&mut oms);
    end_day(&scene, &mut oms);
    assert_eq!(refused(&mut oms, &venues), "", "nothing bears the venue's number any more");
    let expected = "session 0 is anna's, and cannot become bob's: reports to anna are in its history";
    let why = refused(&mut oms, &users);
    assert!(why.contains(expected), "{why}");
    drop((oms, venue, client));
    let why = does_not_start(&mut scene, &users);
    assert!(why.contains(expected), "{why}");
}
