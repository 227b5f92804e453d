//! A core with one account and one symbol, and helpers for requests, reports and admin commands.

use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ExecId, ExecType, ExecutionReport, MassCancel, MassCancelType, NewOrder,
    OrdStatus, OrderId, OrderType, Price, Quantity, ReplaceOrder, Request, Side, StatusRequest, SymbolId, VenueId,
};
use tickpath_oms_core::{
    ALL_ACCOUNTS, AccountLimits, At, Boot, Config, Core, CoreCounts, Denial, Envelope, Grant, Input, Instrument,
    MessageLoss, OrderView, Output, Outputs, PositionView, QueryStatus, Release, ReportRecord, Resolve, UnsentRequest,
    VenueConnection, VenueRules,
};

pub const ACCOUNT: AccountId = AccountId(7);
pub const SYMBOL: SymbolId = SymbolId(3);
pub const VENUE: VenueId = VenueId(2);

/// A core that applies one input after another; the journal sequence and the clock rise by one each.
pub struct Scene {
    pub core: Core,
    pub out: Outputs,
    pub sequence: u64,
    pub stamp: u64,
    pub reference: Price,
    pub reference_age_ns: u64,
    /// T0 of the requests; none takes the stamp of the input.
    pub sent: Option<u64>,
    pub session: u16,
}

impl Scene {
    /// Creates a scene with limits that no test reaches by chance.
    pub fn new() -> Self {
        Self::with(wide())
    }

    pub fn with(limits: AccountLimits) -> Self {
        let mut scene = Self::empty();
        scene.apply(Input::Instrument(instrument(1)));
        scene.apply(Input::Account(limits));
        for session in [1, 2] {
            scene.apply(Input::Grant(Grant { account: ALL_ACCOUNTS, session, reserved: 0 }));
        }
        scene
    }

    /// Creates a core without any input.
    pub fn empty() -> Self {
        Self {
            core: Core::new(Config::default()),
            out: Outputs::new(),
            sequence: 0,
            stamp: 0,
            reference: Price(100),
            reference_age_ns: 1,
            sent: None,
            session: 1,
        }
    }

    /// Creates a scene whose venue numbers its events, or does not.
    pub fn numbered(numbered: bool) -> Self {
        let mut scene = Self::new();
        scene.apply(Input::Venue(VenueRules { numbered: u8::from(numbered), ..VenueRules::of(VENUE) }));
        scene
    }

    /// Applies an input and returns its id.
    pub fn apply(&mut self, input: Input) -> u64 {
        self.sequence += 1;
        self.stamp += 1;
        self.core.apply(At { sequence: self.sequence, stamp: self.stamp }, &input, &mut self.out);
        OrderId::new(self.core.epoch(), self.sequence).0
    }

    pub fn request(&mut self, request: Request) -> u64 {
        let envelope = Envelope {
            sent: self.sent.unwrap_or(self.stamp + 1),
            reference_price: self.reference,
            reference_age_ns: self.reference_age_ns,
            session: self.session,
            ..Default::default()
        };
        self.apply(Input::Request { envelope, request })
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

    /// Sends a cancel of an order of any session.
    pub fn cancel_by_id(&mut self, client: u64, order: u64) -> u64 {
        let (client_order_id, order_id) = (ClientOrderId(client), OrderId(order));
        self.request(Request::Cancel(CancelOrder { client_order_id, order_id, ..Default::default() }))
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

    pub fn status(&mut self, client: u64, original: u64) -> u64 {
        let (client_order_id, original) = (ClientOrderId(client), ClientOrderId(original));
        self.request(Request::Status(StatusRequest {
            client_order_id,
            original,
            account: ACCOUNT,
            ..Default::default()
        }))
    }

    pub fn mass_cancel(&mut self, client: u64, account: AccountId, symbol: Option<SymbolId>) -> u64 {
        let cancel_type = if symbol.is_some() { MassCancelType::Symbol } else { MassCancelType::All };
        self.request(Request::MassCancel(MassCancel {
            client_order_id: ClientOrderId(client),
            account,
            symbol: symbol.unwrap_or_default(),
            cancel_type: cancel_type.code(),
            ..Default::default()
        }))
    }

    /// Applies a venue's report and returns the status reported to the client, if any. Symbol, account and side default
    /// to those of the order.
    pub fn report(&mut self, report: ExecutionReport) -> Option<OrdStatus> {
        let record = self.agreeing(report);
        self.report_exactly(record)
    }

    /// Returns the report with unset fields filled in from its order.
    pub fn agreeing(&self, report: ExecutionReport) -> ReportRecord {
        let record = |report| ReportRecord { report, source: VENUE, line: 0, lane_sequence: 0 };
        let Some(order) = self.core.order_by_venue_id(VENUE, report.order_id.0) else { return record(report) };
        record(ExecutionReport {
            symbol: if report.symbol.0 == 0 { order.symbol } else { report.symbol },
            account: if report.account.0 == 0 { order.account } else { report.account },
            side: if report.side == 0 { order.side.code() } else { report.side },
            ..report
        })
    }

    /// Applies a venue's report unchanged.
    pub fn report_exactly(&mut self, record: ReportRecord) -> Option<OrdStatus> {
        self.apply(Input::Report(record));
        self.client_reports().first().map(|report| OrdStatus::from_code(report.status).expect("the status is known"))
    }

    /// Answers a status request with the state of an order.
    pub fn answer(
        &mut self,
        id: u64,
        status: OrdStatus,
        number: u64,
        cumulative: i64,
        leaves: i64,
    ) -> Option<OrdStatus> {
        let question = OrderId::new(self.core.epoch(), self.sequence).0;
        self.report(status_of(id, status, question, number, cumulative, leaves))
    }

    /// Answers a status request: the venue has no such order.
    pub fn answer_unknown(&mut self, id: u64) -> Option<OrdStatus> {
        let record = self.agreeing(status_of(id, OrdStatus::Rejected, self.sequence, 0, 0, 0));
        let report = ExecutionReport { side: 0, ..record.report };
        self.report_exactly(ReportRecord { report, ..record })
    }

    /// Returns the reports that the last input sent to clients.
    pub fn client_reports(&self) -> Vec<ExecutionReport> {
        self.out
            .iter()
            .filter_map(|out| if let Output::Report { report, .. } = out { Some(*report) } else { None })
            .collect()
    }

    /// Returns the requests that the last input sent to venues.
    pub fn venue_requests(&self) -> Vec<Request> {
        self.out
            .iter()
            .filter_map(|out| if let Output::Venue { request, .. } = out { Some(*request) } else { None })
            .collect()
    }

    /// Returns the orders for which the last input sent a status request.
    pub fn status_requests(&self) -> Vec<u64> {
        let original = |request| if let Request::Status(status) = request { Some(status.original.0) } else { None };
        self.venue_requests().into_iter().filter_map(original).collect()
    }

    /// Returns the orders for which the last input sent a cancel.
    pub fn canceled(&self) -> Vec<u64> {
        let original = |request| if let Request::Cancel(cancel) = request { Some(cancel.original.0) } else { None };
        self.venue_requests().into_iter().filter_map(original).collect()
    }

    pub fn boot(&mut self, epoch: u64, boot: u8) {
        self.apply(Input::Boot(Boot { epoch, boot_id: [boot; 16], ticks_per_second: 1_000_000_000, utc_ns: 0 }));
    }

    pub fn line(&mut self, up: bool) {
        self.apply(Input::VenueConnection(VenueConnection { venue: VENUE, up: u8::from(up), reserved: [0; 5] }));
    }

    pub fn doubt(&mut self, lost: u8) {
        self.apply(Input::MessageLoss(MessageLoss { messages: 1, venue: VENUE, lost, reserved: [0; 5] }));
    }

    /// Returns a request that the venue's line did not take.
    pub fn returned(&mut self, request: &Request) {
        self.apply(Input::UnsentRequest(UnsentRequest::new(VENUE, self.stamp, request)));
    }

    /// Releases the request that waits longest; returns false if none waits.
    pub fn release(&mut self) -> bool {
        let Some((order, request)) = self.core.next_waiting(VENUE) else { return false };
        self.apply(Input::Release(Release {
            order: order.0,
            request: request.client_order_id().0,
            reference_price: self.reference,
            reference_age_ns: self.reference_age_ns,
            venue: VENUE,
            reserved: [0; 6],
        }));
        true
    }

    pub fn inquire(&mut self, id: u64) {
        self.apply(Input::QueryStatus(QueryStatus { order: id, ..Default::default() }));
    }

    pub fn resolve(&mut self, id: u64, status: OrdStatus, cumulative: i64, reason: &str) {
        let mut text = [0; 32];
        text[..reason.len()].copy_from_slice(reason.as_bytes());
        let (status, cumulative_quantity) = (status.code(), Quantity(cumulative));
        self.apply(Input::Resolve(Resolve {
            order: id,
            cumulative_quantity,
            status,
            reason: text,
            ..Default::default()
        }));
    }

    pub fn view(&self, id: u64) -> OrderView {
        self.core.order(OrderId(id)).expect("the order is known")
    }

    pub fn state(&self, id: u64) -> OrdStatus {
        self.view(id).status
    }

    pub fn position(&self) -> PositionView {
        self.core.position(ACCOUNT, SYMBOL)
    }

    /// Returns the net position and the open buy quantity.
    pub fn bought(&self) -> (i128, i128) {
        (self.position().net, self.position().working_buy)
    }

    pub fn counts(&self) -> CoreCounts {
        self.core.counts()
    }

    /// Returns the denial of the last request with its limit and value, or none if the request passed.
    #[track_caller]
    pub fn denial(&self) -> Option<(Denial, i128, i128)> {
        match self.out.as_slice() {
            [Output::Denied { denied, .. }] => {
                let denial = Denial::from_code(denied.code).expect("the code is known");
                Some((denial, i128::from_le_bytes(denied.limit), i128::from_le_bytes(denied.value)))
            }
            [] => panic!("a request gave nothing"),
            _ => None,
        }
    }
}

pub fn instrument(multiplier: i64) -> Instrument {
    Instrument { symbol: SYMBOL, venue: VENUE, multiplier, ..Default::default() }
}

pub fn wide() -> AccountLimits {
    AccountLimits {
        account: ACCOUNT,
        max_order_quantity: Quantity(i64::MAX),
        max_notional: i128::MAX.to_le_bytes(),
        collar: u32::MAX,
        max_reference_age_ns: u64::MAX,
        max_position: Quantity(i64::MAX),
        ..Default::default()
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

/// Returns a report on an order without a fill.
pub fn reported(id: u64, what: ExecType, answers: u64, sequence: u64, cumulative: i64, leaves: i64) -> ExecutionReport {
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

/// Returns a fill whose execution id is the cumulative quantity after it.
pub fn fill(id: u64, sequence: u64, last: i64, cumulative: i64, leaves: i64) -> ExecutionReport {
    ExecutionReport {
        exec_id: ExecId(cumulative as u64),
        last_price: Price(100),
        last_quantity: Quantity(last),
        ..reported(id, ExecType::Trade, 0, sequence, cumulative, leaves)
    }
}

/// Returns an amendment of a fill: a bust or a correction.
pub fn amended(
    id: u64,
    what: ExecType,
    exec: u64,
    sequence: u64,
    last: i64,
    cumulative: i64,
    leaves: i64,
) -> ExecutionReport {
    ExecutionReport {
        exec_id: ExecId(exec),
        last_price: Price(100),
        last_quantity: Quantity(last),
        ..reported(id, what, 0, sequence, cumulative, leaves)
    }
}

/// Returns a venue's answer to a status request.
pub fn status_of(
    id: u64,
    status: OrdStatus,
    question: u64,
    sequence: u64,
    cumulative: i64,
    leaves: i64,
) -> ExecutionReport {
    ExecutionReport {
        status: status.code(),
        ..reported(id, ExecType::OrderStatus, question, sequence, cumulative, leaves)
    }
}
