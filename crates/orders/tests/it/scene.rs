//! A core with one account and one symbol, and words for what clients and venues say.

use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ExecId, ExecType, ExecutionReport, NewOrder, OrdStatus, OrderId, OrderType,
    Price, Quantity, ReplaceOrder, Request, Side, SymbolId, VenueId,
};
use tickpath_orders::{
    AccountLimits, At, Config, Core, Denial, Envelope, Input, Instrument, OrderView, Output, Outputs, PositionView,
};

pub const ACCOUNT: AccountId = AccountId(7);
pub const SYMBOL: SymbolId = SymbolId(3);
pub const VENUE: VenueId = VenueId(2);

/// A core that is told one input after another; the journal sequence and the clock rise by one each.
pub struct Scene {
    pub core: Core,
    pub out: Outputs,
    pub sequence: u64,
    pub stamp: u64,
    pub reference: Price,
    pub reference_age: u64,
    pub session: u16,
}

impl Scene {
    /// Limits that nothing in a test reaches by chance.
    pub fn new() -> Self {
        Self::with(wide())
    }

    pub fn with(limits: AccountLimits) -> Self {
        let mut scene = Self {
            core: Core::new(Config::default()),
            out: Outputs::new(),
            sequence: 0,
            stamp: 0,
            reference: Price(100),
            reference_age: 1,
            session: 1,
        };
        scene.say(Input::Instrument(Instrument { symbol: SYMBOL, venue: VENUE, multiplier: 1, ..Default::default() }));
        scene.say(Input::Account(limits));
        scene
    }

    /// Tells the core an input and returns the input's sequence.
    pub fn say(&mut self, input: Input) -> u64 {
        self.sequence += 1;
        self.stamp += 1;
        self.core.apply(At { sequence: self.sequence, stamp: self.stamp }, &input, &mut self.out);
        self.sequence
    }

    pub fn request(&mut self, request: Request) -> u64 {
        let envelope = Envelope {
            reference_price: self.reference,
            reference_age: self.reference_age,
            session: self.session,
            ..Default::default()
        };
        self.say(Input::Request { envelope, request })
    }

    pub fn order(&mut self, client: u64, side: Side, price: i64, quantity: i64) -> u64 {
        self.request(Request::New(order(client, side, price, quantity)))
    }

    pub fn cancel(&mut self, client: u64, original: u64) -> u64 {
        self.request(Request::Cancel(CancelOrder {
            client_order_id: ClientOrderId(client),
            original: ClientOrderId(original),
            account: ACCOUNT,
            ..Default::default()
        }))
    }

    pub fn replace(&mut self, client: u64, original: u64, price: i64, quantity: i64) -> u64 {
        self.request(Request::Replace(ReplaceOrder {
            client_order_id: ClientOrderId(client),
            original: ClientOrderId(original),
            price: Price(price),
            quantity: Quantity(quantity),
            account: ACCOUNT,
            ..Default::default()
        }))
    }

    /// Tells a venue's report and returns the status that the client is told, if it is told any.
    pub fn hear(&mut self, report: ExecutionReport) -> Option<OrdStatus> {
        self.say(Input::Report(report));
        match self.out.as_slice() {
            [] => None,
            [Output::Report { report, .. }] => OrdStatus::from_code(report.status),
            other => panic!("one report gave {other:?}"),
        }
    }

    pub fn view(&self, id: u64) -> OrderView {
        self.core.order(OrderId(id)).expect("the order is known")
    }

    pub fn position(&self) -> PositionView {
        self.core.position(ACCOUNT, SYMBOL)
    }

    /// Why the last request was denied, with limit and value; none if it passed.
    pub fn denial(&self) -> Option<(Denial, i128, i128)> {
        match self.out.as_slice() {
            [Output::Denied { denied, .. }] => {
                let denial = Denial::from_code(denied.code).expect("the code is known");
                Some((denial, i128::from_le_bytes(denied.limit), i128::from_le_bytes(denied.value)))
            }
            [Output::Venue(_), Output::Report { .. }] => None,
            other => panic!("a request gave {other:?}"),
        }
    }
}

pub fn wide() -> AccountLimits {
    AccountLimits {
        account: ACCOUNT,
        rate_limit: 0,
        rate_window: 0,
        max_order_quantity: Quantity(i64::MAX),
        max_notional: i128::MAX.to_le_bytes(),
        collar: u32::MAX,
        reserved: 0,
        max_reference_age: u64::MAX,
        max_position: Quantity(i64::MAX),
    }
}

pub fn order(client: u64, side: Side, price: i64, quantity: i64) -> NewOrder {
    NewOrder {
        client_order_id: ClientOrderId(client),
        price: Price(price),
        quantity: Quantity(quantity),
        symbol: SYMBOL,
        account: ACCOUNT,
        side: side.code(),
        order_type: OrderType::Limit.code(),
        ..Default::default()
    }
}

/// A report on an order without a fill.
pub fn said(id: u64, what: ExecType, answers: u64, sequence: u64, cumulative: i64, leaves: i64) -> ExecutionReport {
    ExecutionReport {
        order_id: OrderId(id),
        client_order_id: ClientOrderId(answers),
        venue_sequence: sequence,
        cumulative_quantity: Quantity(cumulative),
        leaves_quantity: Quantity(leaves),
        price: Price(100),
        venue: VENUE,
        exec_type: what.code(),
        ..Default::default()
    }
}

/// A fill whose execution id is the cumulative quantity after it.
pub fn fill(id: u64, sequence: u64, last: i64, cumulative: i64, leaves: i64) -> ExecutionReport {
    ExecutionReport {
        exec_id: ExecId(cumulative as u64),
        last_price: Price(100),
        last_quantity: Quantity(last),
        ..said(id, ExecType::Trade, 0, sequence, cumulative, leaves)
    }
}
