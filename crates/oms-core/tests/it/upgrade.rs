//! A snapshot written by core version 3, and the outputs of a core that resumes from it.

use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, NewOrder, OrderType, Price, Quantity, ReplaceOrder, Request, SymbolId,
    VenueId,
};
use tickpath_oms_core::{
    At, Core, DayEnd, Digest, Envelope, Input, KILL_ALL, KillSwitch, LOST_REPORTS, MessageLoss, OrderView, Outputs,
    QueryStatus, VenueConnection,
};

/// Inputs that use every part of a snapshot: limits, rights, windows, positions, orders, waiting requests.
fn inputs(live: &[OrderView]) -> Vec<Input> {
    let mut inputs = Vec::new();
    let mut client = 1 << 50;
    let mut request = |session: u16, request: &dyn Fn(ClientOrderId) -> Request| {
        client += 1;
        let envelope = Envelope {
            sent: u64::MAX,
            reference_price: Price(100),
            reference_age_ns: 1,
            session,
            ..Default::default()
        };
        Input::Request { envelope, request: request(ClientOrderId(client)) }
    };
    for (account, symbol, side, session) in
        (0..36).map(|n| (n % 3 + 1, n / 3 % 3 + 1, n as u8 / 9 % 2 + 1, n as u16 / 18 + 1))
    {
        for quantity in [1, 8] {
            inputs.push(request(session, &|client_order_id| {
                Request::New(NewOrder {
                    client_order_id,
                    price: Price(100),
                    quantity: Quantity(quantity),
                    symbol: SymbolId(symbol),
                    account: AccountId(account),
                    side,
                    order_type: OrderType::Limit.code(),
                    ..Default::default()
                })
            }));
        }
    }
    for order in live {
        let (original, account, price) = (order.client_order_id, order.account, Price(101));
        let quantity = Quantity(order.quantity.0.saturating_add(1));
        inputs.push(request(order.session, &|client_order_id| {
            Request::Replace(ReplaceOrder { client_order_id, original, account, price, quantity, ..Default::default() })
        }));
        inputs.push(request(order.session, &|client_order_id| {
            Request::Cancel(CancelOrder { client_order_id, original, account, ..Default::default() })
        }));
        inputs.push(Input::QueryStatus(QueryStatus { order: order.id.0, ..Default::default() }));
    }
    for venue in [1, 2, 3].map(VenueId) {
        inputs.push(Input::VenueConnection(VenueConnection { venue, up: 1, reserved: [0; 5] }));
        inputs.push(Input::MessageLoss(MessageLoss { messages: 1, venue, lost: LOST_REPORTS, reserved: [0; 5] }));
    }
    inputs.push(Input::Kill(KillSwitch { scope: KILL_ALL, on: 1, cancel: 1, ..KillSwitch::default() }));
    inputs.push(Input::DayEnd(DayEnd::default()));
    inputs
}

/// Applies the inputs and returns the digest after them.
fn go_on(core: &mut Core) -> Digest {
    let mut live: Vec<OrderView> = core.open_orders().collect();
    live.sort_by_key(|order| order.id);
    let mut out = Outputs::new();
    for (sequence, input) in (100_000..).zip(inputs(&live)) {
        core.apply(At { sequence, stamp: 1 << 40 }, &input, &mut out);
    }
    core.digest()
}

/// A snapshot after 900 drawn inputs, with 32 open orders and 20 waiting requests.
const SNAPSHOT: &[u8] = include_bytes!("data/snapshot-3.bin");

#[test]
fn a_core_version_3_snapshot_continues_like_that_version() {
    let mut bytes = SNAPSHOT;
    let mut core = Core::load(0, &mut |piece| match bytes.split_at_checked(piece.len()) {
        Some((taken, left)) => {
            piece.copy_from_slice(taken);
            bytes = left;
            true
        }
        None => false,
    })
    .unwrap();
    assert!(bytes.is_empty(), "{} bytes are left", bytes.len());
    assert_eq!(core.open_orders().count(), 32);
    // Digest of version 3 after the same inputs.
    let expected = Digest { inputs: 1076, outputs: 834, digest: 11_876_682_523_812_191_131 };
    assert_eq!(go_on(&mut core), expected);
}
