//! Neighbours that write arbitrary bytes into their lanes: an invalid message is counted and never journaled, a valid
//! one is checked, and the other sessions continue.

use tickpath_clock::SimulatedClock;
use tickpath_log::{Reader, Writer};
use tickpath_market::{
    AccountId, ClientOrderId, ExecType, ExecutionReport, Kind, NewOrder, OrdStatus, OrderId, Price, Quantity,
    ReplaceOrder, Request, Side, SymbolId,
};
use tickpath_oms_core::Input;
use tickpath_oms_runtime::VenueLanes;
use tickpath_oms_runtime::layout::Inline;
use zerocopy::IntoBytes;

use crate::layouts::{ThreadedOms, await_messages, each_layout};
use crate::{Clock, Dice, ReceivedMessage, SLOW, Scene, cancel, limit, poll, replace, seed, settle};

/// Frames of random bytes that a neighbour writes.
const FRAMES: u64 = 3_000;
/// Frames between two turns of the OMS.
const ROUND: u64 = 50;

/// Numbers that break sums, products and table lookups.
const EDGES: [i64; 7] = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];

#[test]
fn garbage_of_a_client_is_counted_and_never_journaled() {
    let mut dice = Dice::new(seed());
    let mut scene = Scene::new();
    let (mut oms, mut venue) = (scene.oms(), scene.venue());
    let (mut hostile, mut honest) = (scene.client(0), scene.client(1));
    scene.tick(99, 101);
    settle(&mut oms, &mut venue);
    let (mut garbage, mut requests, mut sent) = (0, 0, 0);
    for frame in 1..=FRAMES {
        let (kind, bytes) = random_frame(&mut dice, &[Kind::NewOrder, Kind::CancelOrder, Kind::ReplaceOrder]);
        match Request::read(kind, &bytes) {
            Ok(_) => requests += 1,
            Err(_) => garbage += 1,
        }
        hostile.requests.publish(frame, kind, &bytes).expect("there is room");
        if frame % ROUND == 0 {
            sent += 1;
            honest.send(limit(Side::Buy, sent, 90, 1));
            settle(&mut oms, &mut venue);
            hostile.receive();
        }
    }
    assert_eq!(oms.sequencer().invalid_messages(), garbage);
    let accepted = honest.receive_reports().into_iter().filter(|word| word.1 == ExecType::New).map(|word| word.0);
    assert!(accepted.eq(1..=sent), "the other session goes on");
    assert!(garbage > FRAMES / 4 && requests > FRAMES / 20, "{garbage} and {requests}: the dice know both");
    assert_eq!(journaled(&scene, |input| matches!(input, Input::Request { .. })), requests + sent);
}

#[test]
fn garbage_of_a_venue_is_counted_and_never_journaled() {
    let mut dice = Dice::new(seed());
    let mut scene = Scene::new();
    let mut oms = scene.oms();
    let mut venue = HostileVenue::new(&scene);
    let mut client = scene.client(0);
    scene.tick(99, 101);
    poll(&mut oms);
    let (mut garbage, mut reports) = (0, 0);
    for frame in 1..=FRAMES {
        let (kind, bytes) = random_frame(&mut dice, &[Kind::ExecutionReport, Kind::OrderDenied, Kind::NewOrder]);
        match ExecutionReport::read(kind, &bytes) {
            Ok(_) => reports += 1,
            Err(_) => garbage += 1,
        }
        venue.publish(kind, &bytes);
        if frame % ROUND == 0 {
            client.send(limit(Side::Buy, frame, 90, 1));
            drain(&mut oms);
        }
    }
    assert_eq!(oms.sequencer().invalid_messages(), garbage);
    assert_eq!(scene.to_venue().len() as u64, FRAMES / ROUND, "orders go on to the venue");
    assert_eq!(journaled(&scene, |input| matches!(input, Input::Report(_))), reports);
}

#[test]
fn hostile_values_of_a_client_are_answered() {
    let mut scene = Scene::new();
    let (mut oms, mut venue) = (scene.oms(), scene.venue());
    let (mut client, mut honest) = (scene.client(0), scene.client(1));
    scene.tick(99, 101);
    settle(&mut oms, &mut venue);
    let mut asked = 0;
    for (price, quantity) in EDGES.iter().flat_map(|price| EDGES.map(|quantity| (Price(*price), Quantity(quantity)))) {
        asked += 1;
        let order = NewOrder { price, quantity, ..limit(Side::Sell, asked, 0, 0) };
        client.send(order);
        client.send(NewOrder { order_type: 1, client_order_id: ClientOrderId(asked | 1 << 40), ..order });
        let far = NewOrder { symbol: SymbolId(u32::MAX), account: AccountId(u32::MAX), ..order };
        client.send(NewOrder { client_order_id: ClientOrderId(asked | 1 << 41), ..far });
        client.send(cancel(asked | 1 << 42, price.0 as u64));
        let Request::Replace(change) = replace(asked | 1 << 43, asked, 0, 0) else { panic!("a replace was built") };
        client.send(Request::Replace(ReplaceOrder { price, quantity, ..change }));
        settle(&mut oms, &mut venue);
    }
    let answers = client.receive().iter().filter(|received| is_first_answer(received)).count() as u64;
    assert_eq!(answers, 5 * asked, "each request is denied or acknowledged");
    honest.send(limit(Side::Buy, 1, 90, 1));
    settle(&mut oms, &mut venue);
    assert_eq!(honest.receive_reports().len(), 2, "the other session goes on");
    assert_eq!(oms.sequencer().invalid_messages(), 0);
    let digest = oms.sequencer().core().digest();
    drop(oms);
    assert_eq!(scene.replay().0.digest(), digest);
}

#[test]
fn hostile_values_of_a_venue_stop_no_oms() {
    let mut scene = Scene::new();
    let mut oms = scene.oms();
    let mut venue = HostileVenue::new(&scene);
    let mut client = scene.client(0);
    scene.tick(99, 101);
    poll(&mut oms);
    client.send(limit(Side::Buy, 1, 90, 5));
    poll(&mut oms);
    let Some((kind, bytes)) = scene.to_venue().pop() else { panic!("the order went to the venue") };
    let id = Request::read(kind, &bytes).expect("the OMS writes requests").client_order_id().0;
    for exec_type in ExecType::ALL {
        for number in EDGES {
            for order_id in [id, 0, u64::MAX] {
                let quantity = Quantity(number);
                let report = ExecutionReport {
                    order_id: OrderId(order_id),
                    client_order_id: ClientOrderId(number as u64),
                    last_quantity: quantity,
                    cumulative_quantity: quantity,
                    leaves_quantity: quantity,
                    venue_sequence: number as u64,
                    price: Price(number),
                    exec_type: exec_type.code(),
                    status: OrdStatus::New.code(),
                    symbol: SymbolId(u32::MAX),
                    ..ExecutionReport::default()
                };
                venue.publish(Kind::ExecutionReport.code(), report.as_bytes());
            }
            drain(&mut oms);
        }
    }
    assert!(oms.sequencer().counts().unknown_order_reports > 0 && oms.sequencer().counts().malformed > 0);
    client.receive();
    // An order of another account: a fill that a venue claims counts against the account of the order that the venue
    // received.
    client.send(NewOrder { account: SLOW, ..limit(Side::Buy, 2, 90, 5) });
    poll(&mut oms);
    assert_eq!(client.receive_reports().len(), 1, "the next order goes on");
    let digest = oms.sequencer().core().digest();
    drop(oms);
    assert_eq!(scene.replay().0.digest(), digest);
}

#[test]
fn no_layout_accepts_an_invalid_message() {
    each_layout(|scene, name| {
        let beside = ThreadedOms::start(scene);
        let (mut hostile, mut honest) = (scene.client(0), scene.client(1));
        let long = [replace(7, 1, 90, 1).as_bytes(), &[0; 8]].concat();
        let mut write = |kind: u8, bytes: &[u8]| {
            hostile.requests.publish(1, kind, bytes).expect("there is room");
        };
        write(Kind::ReplaceOrder.code(), &long);
        write(Kind::NewOrder.code(), &[0xff; 48]);
        write(Kind::NewOrder.code(), &long);
        write(Kind::ExecutionReport.code(), &[0; 104]);
        write(255, &[]);
        write(255, &[1; 4_000]);
        write(Kind::CancelOrder.code(), &long[..39]);
        honest.send(limit(Side::Buy, 1, 90, 1));
        await_messages(&mut honest, &beside.deadline, 2);
        beside.end();
        let requests = journaled(scene, |input| matches!(input, Input::Request { .. }));
        assert_eq!(requests, 1, "{name}: only the order is journaled");
        assert!(hostile.receive().is_empty(), "{name}: nobody answers garbage");
    });
}

#[test]
fn no_layout_stops_at_invalid_reports_of_a_venue() {
    each_layout(|scene, name| {
        // An OMS that has made the lanes and has read nothing yet.
        let oms = scene.oms();
        let mut venue = HostileVenue::new(scene);
        for length in [0, 104, 50_000, 200_000] {
            let bytes = vec![0xff; length];
            venue.publish(Kind::ExecutionReport.code(), &bytes);
            venue.publish(255, &bytes);
        }
        drop((venue, oms));
        let beside = ThreadedOms::start(scene);
        let mut client = scene.client(0);
        client.send(limit(Side::Buy, 1, 90, 1));
        await_messages(&mut client, &beside.deadline, 2);
        beside.end();
        assert_eq!(journaled(scene, |input| matches!(input, Input::Report(_))), 1, "{name}: only the acceptance");
    });
}

/// The venue's ends of its lanes, under a hostile writer.
struct HostileVenue {
    clock: SimulatedClock,
    reports: Writer,
    _requests: Reader,
}

impl HostileVenue {
    fn new(scene: &Scene) -> Self {
        let VenueLanes { requests, reports } = scene.venue_lanes();
        Self { clock: scene.clock.clone(), reports, _requests: requests }
    }

    fn publish(&mut self, kind: u8, bytes: &[u8]) {
        self.reports.publish(self.clock.ticks(), kind, bytes).expect("the OMS reads this lane");
    }
}

/// Returns a frame of random bytes: often with a matching kind and length, so that the values are the fault.
fn random_frame(dice: &mut Dice, kinds: &[Kind]) -> (u8, Vec<u8>) {
    let kind = match dice.below(4) {
        0 => 16 + dice.below(240) as u8,
        _ => kinds[dice.below(kinds.len() as u64) as usize].code(),
    };
    let length = match dice.below(4) {
        0 => dice.below(300) as usize,
        1 => 104,
        2 => 48,
        _ => [40, 56][dice.below(2) as usize],
    };
    let mut bytes: Vec<u8> = (0..length).map(|_| dice.draw() as u8).collect();
    // Small values at the code fields of a new order and a report, because random codes would never pass.
    for at in [40, 41, 42, 43, 100, 101] {
        if let Some(byte) = bytes.get_mut(at) {
            *byte %= 3;
        }
    }
    (kind, bytes)
}

/// Polls the OMS until it has nothing to do.
fn drain(oms: &mut Inline<SimulatedClock>) {
    for _ in 0..crate::MAX_TURNS {
        if poll(oms) == 0 {
            return;
        }
    }
    panic!("the OMS does not come to rest");
}

/// Returns the number of journaled inputs of this sort.
fn journaled(scene: &Scene, is_meant: fn(&Input) -> bool) -> u64 {
    scene.replay().1.iter().filter(|input| is_meant(input)).count() as u64
}

/// Returns whether this is the first answer to a request: a denial or a pending report.
fn is_first_answer(received: &ReceivedMessage) -> bool {
    match received {
        ReceivedMessage::Denied(_) => true,
        ReceivedMessage::Report(report) => {
            let pending = [ExecType::PendingNew, ExecType::PendingCancel, ExecType::PendingReplace];
            pending.iter().any(|exec_type| exec_type.code() == report.exec_type)
        }
    }
}
