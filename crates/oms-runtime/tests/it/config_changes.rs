//! Changes of a trading configuration while the OMS runs: the differences are journaled, and hold for the next order.

use tickpath_market::{AccountId, Quantity, Side, SymbolId};
use tickpath_oms_core::{AccountLimits, Denial, FirmLimits, Input, MAY_NEW, SymbolLimits, VenueRules};

use crate::scripted_venue::{ScriptedVenue, informed, new_orders};
use crate::{AckLevel, NewOrder, ReceivedMessage, Scene, TIGHT, VENUE, WIDE, limit, poll};

fn denied(received: &[ReceivedMessage]) -> Vec<u16> {
    let code = |received: &ReceivedMessage| match received {
        ReceivedMessage::Denied(denied) => Some(denied.code),
        ReceivedMessage::Report(_) => None,
    };
    received.iter().filter_map(code).collect()
}

#[test]
fn a_removed_right_denies_the_next_order_and_a_granted_one_passes_it() {
    let scene = Scene::new();
    let mut oms = informed(&scene);
    let (mut venue, mut client) = (ScriptedVenue::join(&scene), scene.client(0));
    let whole = scene.config.trading.clone();
    let mut without = whole.clone();
    without.sessions[0].accounts = vec![TIGHT];
    let mut withheld = whole.clone();
    withheld.sessions[0].withheld = MAY_NEW;
    let steps = [
        (&without, 2, Some(Denial::NotEntitled)),
        (&without, 0, Some(Denial::NotEntitled)),
        (&whole, 2, None),
        (&withheld, 1, Some(Denial::NotPermitted)),
        (&whole, 1, None),
    ];
    for (id, (trading, changes, denial)) in (1..).zip(steps) {
        assert_eq!(oms.sequencer().replace_definitions(trading).expect("it is journaled"), changes, "step {id}");
        client.send(limit(Side::Buy, id, 90, 1));
        poll(&mut oms);
        assert_eq!(denied(&client.receive()), denial.map(Denial::code).into_iter().collect::<Vec<_>>(), "step {id}");
        assert_eq!(new_orders(&venue.receive()).len(), usize::from(denial.is_none()), "step {id}");
    }
    assert_eq!(oms.sequencer().counts().ignored, 0, "each definition is taken");
}

#[test]
fn only_differences_are_journaled_and_an_unchanged_start_adds_none() {
    let mut scene = Scene::new();
    let mut oms = informed(&scene);
    let mut trading = scene.config.trading.clone();
    let another = AccountLimits { account: AccountId(900), ..trading.accounts[0] };
    trading.accounts.push(another);
    trading.accounts[1].max_open_orders = 7;
    trading.instruments.remove(1);
    trading.venues[0] = VenueRules { max_queued: 3, ..VenueRules::of(VENUE) };
    trading.sessions.remove(1);
    let before = scene.replay().1.len();
    oms.sequencer().replace_definitions(&trading).expect("it is journaled");
    drop(oms);
    let (core, inputs, _) = scene.replay();
    let new = &inputs[before..];
    let [session_grant, session, instrument, limits, account, venue] = new else { panic!("{new:#?}") };
    assert!(
        matches!(session_grant, Input::DefinitionEnd(ended) if ended.kind == 77 && ended.session == 1),
        "a right first"
    );
    assert!(matches!(session, Input::DefinitionEnd(ended) if ended.kind == 76 && ended.session == 1));
    assert!(matches!(instrument, Input::DefinitionEnd(ended) if ended.kind == 65 && SymbolId(ended.id) == SymbolId(1)));
    assert!(matches!(limits, Input::Account(limits) if limits.max_open_orders == 7 && limits.account == TIGHT));
    assert_eq!(*account, Input::Account(another));
    assert!(matches!(venue, Input::Venue(rules) if rules.max_queued == 3));
    assert_eq!(core.counts().ignored, 0);
    scene.config.trading = trading;
    let count = inputs.len();
    drop(scene.oms());
    let later = scene.replay().1.len();
    assert_eq!(later, count + 1, "a start journals itself and nothing else");
}

#[test]
fn a_session_raised_to_the_disk_level_waits_for_the_disk() {
    let scene = Scene::new();
    let mut oms = informed(&scene);
    let (mut venue, mut client) = (ScriptedVenue::join(&scene), scene.client(0));
    let mut trading = scene.config.trading.clone();
    trading.sessions[0].level = AckLevel::Disk;
    oms.sequencer().replace_definitions(&trading).expect("it is journaled");
    let mut hand = oms.sequencer().commit_manually().expect("the journal can be synced");
    client.send(NewOrder { account: WIDE, ..limit(Side::Buy, 1, 90, 1) });
    poll(&mut oms);
    assert!(new_orders(&venue.receive()).is_empty() && client.receive().is_empty(), "it is held");
    hand.commit();
    poll(&mut oms);
    assert_eq!((new_orders(&venue.receive()).len(), client.receive().len()), (1, 1));
}

#[test]
fn limits_of_symbols_sessions_and_the_firm_change_at_run_time() {
    let mut scene = Scene::new();
    let mut oms = informed(&scene);
    let mut client = scene.client(0);
    let whole = scene.config.trading.clone();
    let mut own = whole.clone();
    let symbol = whole.instruments[0].symbol;
    let few = Quantity::from_whole(2);
    own.symbols = vec![SymbolLimits { account: WIDE, symbol, max_order_quantity: few, ..SymbolLimits::default() }];
    let mut firm = whole.clone();
    firm.firm = Some(FirmLimits { max_order_quantity: few, ..FirmLimits::default() });
    let mut session = whole.clone();
    session.sessions[0].limits.max_order_quantity = few;
    let mut lots = whole.clone();
    lots.instruments[0].lot = few;
    let steps = [
        (&own, 1, Some(Denial::SymbolQuantity)),
        (&firm, 2, Some(Denial::FirmQuantity)),
        (&session, 2, Some(Denial::SessionQuantity)),
        (&lots, 2, Some(Denial::Lot)),
        (&whole, 1, None),
    ];
    for (id, (trading, changes, denial)) in (1..).zip(steps) {
        assert_eq!(oms.sequencer().replace_definitions(trading).expect("it is journaled"), changes, "step {id}");
        client.send(NewOrder { account: WIDE, ..limit(Side::Buy, id, 90, 3) });
        poll(&mut oms);
        assert_eq!(denied(&client.receive()), denial.map(Denial::code).into_iter().collect::<Vec<_>>(), "step {id}");
    }
    assert_eq!(oms.sequencer().counts().ignored, 0, "each definition is taken");
    oms.sequencer().replace_definitions(&own).expect("it is journaled");
    drop((oms, client));
    scene.config.trading = own;
    let count = scene.replay().1.len();
    let mut oms = informed(&scene);
    assert_eq!(scene.replay().1.len(), count + 1, "a start with the same desk adds nothing");
    let mut client = scene.client(0);
    client.receive();
    client.send(NewOrder { account: WIDE, ..limit(Side::Buy, 9, 90, 3) });
    poll(&mut oms);
    assert_eq!(denied(&client.receive()), [Denial::SymbolQuantity.code()], "a start knows what was said before it");
}
