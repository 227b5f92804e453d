//! Text ids of orders: unique among the open orders of an account, reported, kept, and names of orders.

use std::collections::BTreeMap;

use tickpath_market::{
    AccountId, ClientOrderId, ExecType, ExtendedOrder, NewOrder, OrdStatus, OrderExtension, OrderId, Request, Side,
    TextId, TextIdAction, TextIdRequest, TimeInForce,
};
use tickpath_oms_core::{AccountLimits, DayEnd, Denial, Input, LOST_REPORTS, Output, SessionRules};

use crate::dice::{Dice, seed};
use crate::scene::{ACCOUNT, Scene, fill, order, reported, wide};
use crate::snapshot::{loaded, saved};

const OTHER_ACCOUNT: AccountId = AccountId(8);

/// Bytes of the head of an empty list in a snapshot.
const LIST_HEADER_BYTES: usize = 16;

fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.apply(Input::Account(AccountLimits { account: OTHER_ACCOUNT, ..wide() }));
    scene
}

fn text_id(text: &str) -> TextId {
    text.parse().expect("a text id")
}

fn extended(order: NewOrder, text: &str) -> Request {
    Request::Extended(ExtendedOrder { order, text_id: text_id(text), ..ExtendedOrder::default() })
}

impl Scene {
    /// Sends a good-till-cancel order with a text id.
    fn order_with(&mut self, client: u64, account: AccountId, text: &str) -> u64 {
        let time_in_force = TimeInForce::GoodTillCancel.code();
        self.request(extended(NewOrder { account, time_in_force, ..order(client, Side::Buy, 100, 10) }, text))
    }

    fn by_text_id(&mut self, client: u64, text: &str, action: TextIdAction) -> u64 {
        self.request(Request::ByTextId(TextIdRequest {
            client_order_id: ClientOrderId(client),
            account: ACCOUNT,
            text_id: text_id(text),
            action: action.code(),
            ..TextIdRequest::default()
        }))
    }

    /// Returns the denial of the last request, if it was denied.
    fn reason(&self) -> Option<Denial> {
        self.denial().map(|(denial, ..)| denial)
    }

    fn end_day(&mut self) {
        self.apply(Input::DayEnd(DayEnd { day: 20_261_130, lane_sequence: 0 }));
    }
}

#[test]
fn the_venue_gets_a_plain_order_and_the_client_its_text_id_first() {
    let (mut plain, mut scene) = (scene(), scene());
    plain.request(Request::New(order(5, Side::Buy, 100, 10)));
    let id = scene.request(extended(order(5, Side::Buy, 100, 10), "grid-7"));
    let [venue, Output::Extension { session: 1, extension }, report] = scene.out.as_slice() else {
        panic!("{:?}", scene.out)
    };
    assert_eq!([*venue, *report].as_slice(), plain.out.as_slice(), "as without a text id");
    let (order_id, client_order_id, text) = (OrderId(id), ClientOrderId(5), text_id("grid-7"));
    let expected = OrderExtension { order_id, client_order_id, expire_ns: 0, account: ACCOUNT, text_id: text };
    assert_eq!(*extension, expected);
    assert_eq!(
        (scene.core.text_id(order_id), scene.core.order_by_text_id(ACCOUNT, text)),
        (Some(text), Some(order_id))
    );
    assert_eq!(scene.core.extension(order_id), Some(expected));
}

#[test]
fn a_text_id_is_free_again_once_its_order_has_ended() {
    let mut scene = scene();
    let id = scene.order_with(1, ACCOUNT, "a");
    scene.order_with(2, ACCOUNT, "a");
    assert_eq!(scene.reason(), Some(Denial::DuplicateTextId), "in flight");
    scene.order_with(2, ACCOUNT, "b");
    assert_eq!(scene.reason(), Some(Denial::DuplicateClientOrderId), "a denied request has used its id");
    scene.order_with(3, OTHER_ACCOUNT, "a");
    assert_eq!(scene.reason(), None, "another account");
    scene.report(reported(id, ExecType::New, id, 1, 0, 10));
    scene.order_with(4, ACCOUNT, "a");
    assert_eq!(scene.reason(), Some(Denial::DuplicateTextId), "working");
    scene.doubt(LOST_REPORTS);
    scene.order_with(5, ACCOUNT, "a");
    assert_eq!(scene.reason(), Some(Denial::DuplicateTextId), "in doubt");
    scene.answer(id, OrdStatus::New, 1, 0, 10);
    scene.report(fill(id, 2, 10, 10, 0));
    let second = scene.order_with(6, ACCOUNT, "a");
    assert_eq!(scene.reason(), None, "filled");
    assert_eq!(scene.core.order_by_text_id(ACCOUNT, text_id("a")), Some(OrderId(second)), "the latest");
}

#[test]
fn an_order_is_canceled_by_its_text_id_from_any_session_of_the_account() {
    for session in [1, 2] {
        let mut scene = scene();
        let id = scene.order_with(1, ACCOUNT, "a");
        scene.report(reported(id, ExecType::New, id, 1, 0, 10));
        scene.session = session;
        let cancel = scene.by_text_id(20, "a", TextIdAction::Cancel);
        assert_eq!(scene.canceled(), [id], "session {session}");
        assert_eq!(scene.state(id), OrdStatus::PendingCancel);
        scene.report(reported(id, ExecType::Canceled, cancel, 2, 0, 0));
        let ids: Vec<u64> = scene.client_reports().iter().map(|report| report.client_order_id.0).collect();
        assert!(ids.contains(&20), "the requester gets a report: {ids:?}");
        scene.by_text_id(21, "a", TextIdAction::Cancel);
        assert_eq!(scene.reason(), Some(Denial::TooLate));
        scene.by_text_id(20, "a", TextIdAction::Cancel);
        assert_eq!(scene.reason(), Some(Denial::DuplicateClientOrderId));
        scene.by_text_id(22, "none", TextIdAction::Cancel);
        assert_eq!(scene.reason(), Some(Denial::UnknownOrder));
        scene.by_text_id(22, "a", TextIdAction::Cancel);
        assert_eq!(scene.reason(), Some(Denial::DuplicateClientOrderId), "an unknown text id uses the id up");
    }
}

#[test]
fn a_session_without_rights_finds_no_order_by_its_text_id() {
    let mut scene = scene();
    scene.order_with(1, ACCOUNT, "a");
    scene.session = 9;
    for action in [TextIdAction::Cancel, TextIdAction::Status] {
        scene.by_text_id(20, "a", action);
        assert_eq!(scene.reason(), Some(Denial::UnknownOrder), "{action:?}");
    }
    scene.session = 2;
    for (withheld, action) in
        [(tickpath_oms_core::MAY_CANCEL, TextIdAction::Cancel), (tickpath_oms_core::MAY_STATUS, TextIdAction::Status)]
    {
        scene.apply(Input::Session(SessionRules { session: 2, withheld, ..SessionRules::default() }));
        scene.by_text_id(21, "a", action);
        assert_eq!(scene.reason(), Some(Denial::NotPermitted), "{action:?}");
    }
}

#[test]
fn the_state_of_an_order_is_reported_by_its_text_id_and_behind_it() {
    let mut scene = scene();
    let id = scene.order_with(1, ACCOUNT, "a");
    for session in [1, 2] {
        scene.session = session;
        // A status request uses up no id.
        for _ in 0..2 {
            scene.by_text_id(20, "a", TextIdAction::Status);
            let [Output::Extension { session: first, extension }, Output::Report { session: second, report }] =
                scene.out.as_slice()
            else {
                panic!("{:?}", scene.out)
            };
            assert_eq!((*first, *second), (session, session));
            assert_eq!((extension.text_id, extension.client_order_id.0), (text_id("a"), 20));
            assert_eq!((report.order_id.0, report.client_order_id.0), (id, 20));
            assert_eq!(report.exec_type, ExecType::OrderStatus.code());
        }
    }
    scene.session = 1;
    scene.status(30, 1);
    assert!(matches!(scene.out.as_slice(), [Output::Extension { .. }, Output::Report { .. }]), "{:?}", scene.out);
    scene.order(2, Side::Buy, 100, 10);
    scene.status(31, 2);
    assert!(matches!(scene.out.as_slice(), [Output::Report { .. }]), "{:?}", scene.out);
}

#[test]
fn a_text_id_survives_a_snapshot_and_the_day_as_long_as_its_order() {
    let mut scene = scene();
    let resting = scene.order_with(1, ACCOUNT, "kept");
    let done = scene.order_with(2, ACCOUNT, "done");
    scene.report(reported(resting, ExecType::New, resting, 1, 0, 10));
    scene.report(fill(done, 1, 10, 10, 0));
    for ends_day in [false, true, true] {
        if ends_day {
            scene.end_day();
        }
        let bytes = saved(&scene.core);
        scene.core = loaded(&bytes).expect("a core reads its own snapshot");
        assert!(saved(&scene.core) == bytes, "every byte of the state is in it");
        assert_eq!(scene.core.text_id(OrderId(resting)), Some(text_id("kept")));
        scene.order_with(10 + scene.sequence, ACCOUNT, "kept");
        assert_eq!(scene.reason(), Some(Denial::DuplicateTextId));
    }
    assert_eq!(scene.core.order_by_text_id(ACCOUNT, text_id("done")), None, "its order is forgotten");
    scene.by_text_id(1000, "kept", TextIdAction::Cancel);
    assert_eq!(scene.canceled(), [resting]);
}

#[test]
fn a_text_id_names_the_same_order_after_the_day_and_after_a_snapshot() {
    let mut scene = scene();
    let first = scene.order_with(1, ACCOUNT, "a");
    scene.report(reported(first, ExecType::New, first, 1, 0, 10));
    // The fill of 5 is missing, so the ended order is kept.
    scene.report(reported(first, ExecType::Canceled, 0, 3, 5, 0));
    let second = scene.order_with(2, ACCOUNT, "a");
    assert_eq!(scene.reason(), None, "the first order has ended");
    scene.report(fill(second, 1, 10, 10, 0));
    scene.end_day();
    assert!(scene.core.order(OrderId(first)).is_some() && scene.core.order(OrderId(second)).is_none());
    let other = loaded(&saved(&scene.core)).expect("a core reads its own snapshot");
    for core in [&scene.core, &other] {
        assert_eq!(core.order_by_text_id(ACCOUNT, text_id("a")), Some(OrderId(first)));
    }
}

#[test]
fn a_snapshot_of_the_layout_before_has_no_text_ids() {
    let mut scene = scene();
    let id = scene.order(1, Side::Buy, 100, 10);
    let mut bytes = saved(&scene.core);
    bytes[..4].copy_from_slice(&3_u32.to_le_bytes());
    bytes.truncate(bytes.len() - LIST_HEADER_BYTES);
    scene.core = loaded(&bytes).expect("an earlier layout is read");
    assert_eq!((scene.core.text_id(OrderId(id)), scene.state(id)), (None, OrdStatus::PendingNew));
    scene.order_with(2, ACCOUNT, "a");
    assert_eq!(scene.reason(), None);
}

/// Compares the core with a list of all orders by account and text.
#[test]
fn a_text_id_names_at_most_one_open_order_and_always_the_latest() {
    let mut dice = Dice::new(seed());
    let (mut scene, mut latest) = (scene(), BTreeMap::<(AccountId, u64), u64>::new());
    for client in 1..3_000 {
        let key = ([ACCOUNT, OTHER_ACCOUNT][dice.below(2) as usize], dice.below(5));
        let is_open = latest.get(&key).is_some_and(|&id| {
            matches!(scene.state(id), OrdStatus::PendingNew | OrdStatus::New | OrdStatus::PendingCancel)
        });
        let text = format!("text-{}", key.1);
        let id = scene.order_with(client, key.0, &text);
        assert_eq!(scene.reason(), is_open.then_some(Denial::DuplicateTextId), "order {client} of {key:?}");
        if !is_open {
            latest.insert(key, id);
        }
        let &named = latest.get(&key).expect("an order has the text id");
        assert_eq!(scene.core.order_by_text_id(key.0, text_id(&text)), Some(OrderId(named)));
        match dice.below(4) {
            0 => drop(scene.report(reported(named, ExecType::Canceled, 0, 0, 0, 0))),
            1 => drop(scene.report(fill(named, 0, 10, 10, 0))),
            2 => scene.core = loaded(&saved(&scene.core)).expect("a core reads its own snapshot"),
            _ => {}
        }
    }
}
