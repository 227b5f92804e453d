//! Events of a session with an OMS, as C reads them.

use std::ffi::c_char;
use std::mem::{offset_of, zeroed};

use tickpath_market::{ExecutionReport, ManualOrderIndicator, OrderDenied, ReportDetail, Request};
use tickpath_oms_client::ClientEvent;
use tickpath_oms_risk::Denial;

/// Type of an event of a session with an OMS.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_order_event_type {
    /// Report on an order or a request. A rejection by the venue is a report, too: its exec_type is TP_EXEC_REJECTED or
    /// TP_EXEC_CANCEL_REJECTED.
    TP_TOLD_REPORT = 1,
    /// The OMS has denied a request: it has number, stamp, is_live, client_order_id, order_id, account, code, limit and
    /// value. An order that the request was to change stays as it was.
    TP_TOLD_DENIED = 2,
    /// Reports are missing and will not arrive: those from `from` on, up to `to`, which is not missing.
    TP_TOLD_GAP = 3,
    /// The OMS did not take a request and never will: it has client_order_id and request. The library does not send it
    /// again, because it may be too old.
    TP_TOLD_NOT_TAKEN = 4,
    /// In doubt, permanently, whether the OMS took a request: it has client_order_id and request.
    TP_TOLD_IN_DOUBT = 5,
    /// The session is connected, for the first time or after a reconnect: it has session and heartbeat_ms.
    TP_TOLD_CONNECTED = 6,
    /// The connection is lost; the library reconnects by itself.
    TP_TOLD_DISCONNECTED = 7,
    /// A reconnect has failed; reported when the reason differs from the last reason.
    TP_TOLD_FAILED = 8,
    /// The OMS has the journal `to` where it had `from`: its report numbers begin anew.
    TP_TOLD_OTHER_JOURNAL = 9,
    /// The OMS has lost its last reports in a power loss: the reports from `from` on, up to `to`, are sent again, and
    /// their content may differ.
    TP_TOLD_SAID_AGAIN = 10,
    /// The OMS took the requests from `from` on, up to `to`, and no longer knows them.
    TP_TOLD_FORGOTTEN = 11,
    /// Detail of a report, which the exchange sent beside the report: it has number, stamp, order_id, exec_id, fee,
    /// fee_currency, liquidity, venue_received_ns, venue_sent_ns, and the exchange's reason as `sentence`. It follows
    /// its report, which has the same order_id and exec_id; most reports have none. Details have numbers of their own.
    TP_TOLD_DETAIL = 12,
    /// Client id and end time of an order, before the order's first report and before each answer to a query: it has
    /// number, stamp, is_live, client_order_id, order_id and account, its sentence is the client id, and its `to` the
    /// expire_ns.
    TP_TOLD_EXTENSION = 13,
}

/// Role of the order in a fill.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_liquidity {
    /// Not known, or no fill.
    TP_LIQUIDITY_UNKNOWN = 0,
    /// The order rested.
    TP_LIQUIDITY_MAKER = 1,
    /// The order arrived.
    TP_LIQUIDITY_TAKER = 2,
}

/// Content of a report, by FIX's numbers (150).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_exec_type {
    /// The venue has the order.
    TP_EXEC_NEW = 0,
    /// The order is canceled, on request or not.
    TP_EXEC_CANCELED = 4,
    /// The order is replaced: price and leaves_quantity are the new values.
    TP_EXEC_REPLACED = 5,
    /// A cancel is in flight.
    TP_EXEC_PENDING_CANCEL = 6,
    /// The venue has rejected the order.
    TP_EXEC_REJECTED = 8,
    /// The OMS has the order, the venue not yet.
    TP_EXEC_PENDING_NEW = 10,
    /// The order has expired: the unfilled rest of an immediate order, or the day's end.
    TP_EXEC_EXPIRED = 12,
    /// A replace is in flight.
    TP_EXEC_PENDING_REPLACE = 14,
    /// Fill of last_quantity at last_price.
    TP_EXEC_TRADE = 15,
    /// Correction of a fill: the report has the valid quantity and price.
    TP_EXEC_TRADE_CORRECT = 16,
    /// Cancellation of a fill.
    TP_EXEC_TRADE_CANCEL = 17,
    /// Present status of the order; nothing has happened to the order.
    TP_EXEC_ORDER_STATUS = 18,
    /// The venue has rejected a cancel or a replace; the order keeps working.
    TP_EXEC_CANCEL_REJECTED = 20,
    /// The order's trigger has fired.
    TP_EXEC_TRIGGERED = 21,
}

/// Status of an order, by FIX's numbers (39) where FIX has the status.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_order_status {
    /// The venue has the order, and nothing is filled.
    TP_ORDER_NEW = 0,
    /// Part of the order is filled, the rest is working.
    TP_ORDER_PARTIALLY_FILLED = 1,
    /// The order is filled completely. A fill can still be canceled.
    TP_ORDER_FILLED = 2,
    /// The order is done for the day.
    TP_ORDER_DONE_FOR_DAY = 3,
    /// The order is canceled.
    TP_ORDER_CANCELED = 4,
    /// A cancel is in flight.
    TP_ORDER_PENDING_CANCEL = 6,
    /// The order was rejected.
    TP_ORDER_REJECTED = 8,
    /// The venue has halted the order.
    TP_ORDER_SUSPENDED = 9,
    /// The order is in flight to the venue, or queued for the venue at the OMS.
    TP_ORDER_PENDING_NEW = 10,
    /// The order has expired.
    TP_ORDER_EXPIRED = 12,
    /// A replace is in flight.
    TP_ORDER_PENDING_REPLACE = 14,
    /// In doubt: the state of the order is unknown, and the order counts as open.
    TP_ORDER_UNKNOWN = 21,
    /// The order waits at the OMS for its trigger.
    TP_ORDER_ARMED = 22,
}

/// Type of a request.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_request {
    /// Request by tp_orders_submit.
    TP_REQUEST_SUBMIT = 1,
    /// Request by tp_orders_cancel.
    TP_REQUEST_CANCEL = 2,
    /// Request by tp_orders_replace.
    TP_REQUEST_REPLACE = 3,
    /// Request by tp_orders_query.
    TP_REQUEST_QUERY = 4,
}

/// Signed integer of 128 bits: high * 2^64 + low.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct tp_int128 {
    /// Lower half.
    pub low: u64,
    /// Upper half, with the sign: 0 or -1 if the number fits in 64 bits.
    pub high: i64,
}

/// Event of a session with an OMS. Fields that its type does not use are 0; prices and quantities are in 10^-8. A later
/// version may add types, exec_types, statuses and codes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_order_event {
    /// sizeof(tp_order_event), as in this header.
    pub size: usize,
    /// Type of the event: a tp_order_event_type.
    pub r#type: u32,
    /// Content of a report: a tp_exec_type.
    pub exec_type: u32,
    /// Status of the order after a report: a tp_order_status.
    pub status: u32,
    /// Side of the order, in a report: a tp_side.
    pub side: u32,
    /// Number of the instrument, in a report.
    pub symbol: u32,
    /// Account of the order, in a report or a denial.
    pub account: u32,
    /// Number of a report or a denial in the session, from 0; UINT64_MAX for a denial of a request that the user's role
    /// does not allow.
    pub number: u64,
    /// Time at which the OMS sent the report or denial, in ticks of its host's clock.
    pub stamp: u64,
    /// Id of the request that the event answers, as tp_orders_submit, tp_orders_cancel or tp_orders_replace returned
    /// it; 0 if the event answers no request.
    pub client_order_id: u64,
    /// The OMS's id of the order.
    pub order_id: u64,
    /// The venue's id of the order.
    pub venue_order_id: u64,
    /// The venue's id of the fill; 0 if the report is not about a fill.
    pub exec_id: u64,
    /// The venue's sequence number of events of the order, from 1; 0 if the venue gives none.
    pub venue_sequence: u64,
    /// Time at which the venue received the request or made the event, in ticks of its host's clock; 0 if unknown.
    pub venue_stamp: u64,
    /// Limit price of the order after the event.
    pub price: i64,
    /// Price of the fill; 0 if the report is not about a fill.
    pub last_price: i64,
    /// Quantity of the fill; 0 if the report is not about a fill.
    pub last_quantity: i64,
    /// Quantity filled so far.
    pub cumulative_quantity: i64,
    /// Quantity still working after the event.
    pub leaves_quantity: i64,
    /// Limit of the check that denied the request, in the unit that docs/risk-checks.md gives for the check: 10^-8 of a
    /// quantity or a price, 10^-16 of money, nanoseconds, or a count.
    pub limit: tp_int128,
    /// Value that broke the limit of a denial, in the same unit.
    pub value: tp_int128,
    /// First number of a range, as the type states; for TP_TOLD_OTHER_JOURNAL, the previous journal.
    pub from: u64,
    /// First number after the range; for TP_TOLD_OTHER_JOURNAL, the present journal.
    pub to: u64,
    /// Reason and remedy, as text for people; the client id for TP_TOLD_EXTENSION; empty if there is none. The text
    /// belongs to the library and stays valid until the next poll of this session, or its close.
    pub sentence: *const c_char,
    /// The venue's own reason code of a rejection; 0 if there is none.
    pub reason: u32,
    /// Number of the venue.
    pub venue: u32,
    /// Code of the check that denied the request, from docs/risk-checks.md.
    pub code: u32,
    /// Type of the request that was not taken or is in doubt: a tp_request, or 0.
    pub request: u32,
    /// Number of the session among the user's sessions, for TP_TOLD_CONNECTED.
    pub session: u32,
    /// For TP_TOLD_CONNECTED, milliseconds after which the OMS considers a program dead that neither polls nor waits.
    pub heartbeat_ms: u32,
    /// True if a report or a denial is new; false if the OMS made it while this session was not connected.
    pub is_live: bool,
    /// True if an admin entered the order or request by hand.
    pub is_manual: bool,
    /// Reserved: 0.
    pub reserved: [u8; 6],
    /// Fee of a fill, in a detail, in 10^-16 of its currency; negative for a rebate.
    pub fee: tp_int128,
    /// Time at which the exchange received the request or made the event, in a detail, in nanoseconds since the Unix
    /// epoch; 0 if unknown.
    pub venue_received_ns: u64,
    /// Time at which the exchange sent the report, in a detail, in nanoseconds since the Unix epoch; 0 if unknown.
    pub venue_sent_ns: u64,
    /// Currency of the fee, in a detail; empty if there is no fee.
    pub fee_currency: [c_char; 16],
    /// Role of the order in the fill, in a detail: a tp_liquidity.
    pub liquidity: u32,
    /// Reserved: 0.
    pub reserved_end: u32,
}

// The size of the first version. The struct has no padding that a later field could occupy.
pub(crate) const EVENT_FIRST_BYTES: usize = 224;
const _: () = assert!(EVENT_FIRST_BYTES == offset_of!(tp_order_event, reserved) + size_of::<[u8; 6]>());
const _: () = assert!(size_of::<tp_order_event>() == EVENT_FIRST_BYTES + 16 + 2 * 8 + 16 + 2 * 4);
const _: () = assert!(EVENT_FIRST_BYTES == 8 + 6 * 4 + 13 * 8 + 2 * 16 + 2 * 8 + 8 + 6 * 4 + 2 + 6);

impl tp_int128 {
    fn of(number: i128) -> Self {
        Self { low: number as u64, high: (number >> 64) as i64 }
    }
}

impl tp_order_event {
    /// Converts an event for C; reports from number `live_from` on are live. Returns None for duplicate reports, and
    /// for events that only queries and admin commands cause.
    pub fn of(event: &ClientEvent, live_from: u64) -> Option<Self> {
        Some(match event {
            ClientEvent::Report { number, stamp, report } => {
                Self { number: *number, stamp: *stamp, is_live: *number >= live_from, ..Self::of_report(report) }
            }
            ClientEvent::Denied { number, stamp, denial } => {
                Self { number: *number, stamp: *stamp, is_live: *number >= live_from, ..Self::of_denial(denial) }
            }
            ClientEvent::Detail { number, stamp, detail } => {
                Self { number: *number, stamp: *stamp, ..Self::of_detail(detail) }
            }
            ClientEvent::Extension { number, stamp, extension } => Self {
                number: *number,
                stamp: *stamp,
                is_live: *number >= live_from,
                client_order_id: extension.client_order_id.0,
                order_id: extension.order_id.0,
                account: extension.account.0,
                to: extension.expire_ns,
                ..Self::of_type(tp_order_event_type::TP_TOLD_EXTENSION)
            },
            ClientEvent::Gap { from, to } => Self::of_range(tp_order_event_type::TP_TOLD_GAP, *from, *to),
            ClientEvent::NotTaken { request, .. } => Self::of_request(tp_order_event_type::TP_TOLD_NOT_TAKEN, request),
            ClientEvent::InDoubt { request, .. } => Self::of_request(tp_order_event_type::TP_TOLD_IN_DOUBT, request),
            ClientEvent::Connected(welcome) => Self {
                session: welcome.session.into(),
                heartbeat_ms: welcome.heartbeat_ms,
                ..Self::of_type(tp_order_event_type::TP_TOLD_CONNECTED)
            },
            ClientEvent::Disconnected { .. } => Self::of_type(tp_order_event_type::TP_TOLD_DISCONNECTED),
            ClientEvent::Failed { .. } => Self::of_type(tp_order_event_type::TP_TOLD_FAILED),
            ClientEvent::OtherJournal { before, now } => {
                Self::of_range(tp_order_event_type::TP_TOLD_OTHER_JOURNAL, *before, *now)
            }
            ClientEvent::Resent { from, to } => Self::of_range(tp_order_event_type::TP_TOLD_SAID_AGAIN, *from, *to),
            ClientEvent::Forgotten { from, to } => Self::of_range(tp_order_event_type::TP_TOLD_FORGOTTEN, *from, *to),
            ClientEvent::Copied { .. }
            | ClientEvent::Duplicate { .. }
            | ClientEvent::CommandAnswered(_)
            | ClientEvent::OrderRow { .. }
            | ClientEvent::InstrumentRow(_)
            | ClientEvent::KillSwitches(_)
            | ClientEvent::Answered(_) => return None,
        })
    }

    /// Returns an event of this type with all other fields zero.
    fn of_type(kind: tp_order_event_type) -> Self {
        // SAFETY: zeros are a valid value of every field: numbers, false, and a null pointer.
        let zero: Self = unsafe { zeroed() };
        Self { size: size_of::<Self>(), r#type: kind as u32, sentence: c"".as_ptr(), ..zero }
    }

    fn of_range(kind: tp_order_event_type, from: u64, to: u64) -> Self {
        Self { from, to, ..Self::of_type(kind) }
    }

    fn of_report(report: &ExecutionReport) -> Self {
        Self {
            exec_type: report.exec_type.into(),
            status: report.status.into(),
            side: report.side.into(),
            symbol: report.symbol.0,
            account: report.account.0,
            client_order_id: report.client_order_id.0,
            order_id: report.order_id.0,
            venue_order_id: report.venue_order_id.0,
            exec_id: report.exec_id.0,
            venue_sequence: report.venue_sequence,
            venue_stamp: report.venue_stamp,
            price: report.price.0,
            last_price: report.last_price.0,
            last_quantity: report.last_quantity.0,
            cumulative_quantity: report.cumulative_quantity.0,
            leaves_quantity: report.leaves_quantity.0,
            reason: report.reason.into(),
            venue: report.venue.0.into(),
            is_manual: report.manual == ManualOrderIndicator::Manual.code(),
            ..Self::of_type(tp_order_event_type::TP_TOLD_REPORT)
        }
    }

    fn of_detail(detail: &ReportDetail) -> Self {
        let mut fee_currency = [0; 16];
        for (place, byte) in fee_currency.iter_mut().zip(detail.fee_currency.as_str().bytes()) {
            *place = byte as c_char;
        }
        Self {
            order_id: detail.order_id.0,
            exec_id: detail.exec_id.0,
            fee: tp_int128::of(detail.fee()),
            venue_received_ns: detail.venue_received_ns,
            venue_sent_ns: detail.venue_sent_ns,
            fee_currency,
            liquidity: detail.liquidity.into(),
            ..Self::of_type(tp_order_event_type::TP_TOLD_DETAIL)
        }
    }

    fn of_denial(denied: &OrderDenied) -> Self {
        Self {
            account: denied.account.0,
            client_order_id: denied.client_order_id.0,
            order_id: denied.order_id.0,
            limit: tp_int128::of(i128::from_le_bytes(denied.limit)),
            value: tp_int128::of(i128::from_le_bytes(denied.value)),
            code: denied.code.into(),
            ..Self::of_type(tp_order_event_type::TP_TOLD_DENIED)
        }
    }

    fn of_request(kind: tp_order_event_type, request: &Request) -> Self {
        let what = match request {
            Request::New(_) | Request::Conditional(_) | Request::Extended(_) => tp_request::TP_REQUEST_SUBMIT as u32,
            Request::ByTextId(named) if named.is_status() => tp_request::TP_REQUEST_QUERY as u32,
            Request::Cancel(_) | Request::MassCancel(_) | Request::ByTextId(_) => tp_request::TP_REQUEST_CANCEL as u32,
            Request::Replace(_) | Request::ReplaceConditional(_) => tp_request::TP_REQUEST_REPLACE as u32,
            Request::Status(_) => tp_request::TP_REQUEST_QUERY as u32,
        };
        Self { client_order_id: request.client_order_id().0, request: what, ..Self::of_type(kind) }
    }
}

/// Returns an event's explanation for people, with the remedy; empty if there is none.
pub fn explanation(event: &ClientEvent) -> String {
    let sentence = match event {
        ClientEvent::Denied { denial, .. } => return denial_reason(denial.code),
        ClientEvent::Disconnected { why } | ClientEvent::Failed { why } => return why.to_string(),
        ClientEvent::Detail { detail, .. } => return detail.text().into_owned(),
        ClientEvent::Connected(welcome) => return format!("session {} is connected", welcome.session),
        ClientEvent::Extension { extension, .. } => return extension.text_id.to_string(),
        ClientEvent::Gap { .. } => "reports are missing and will not arrive; `tickpath orders` lists the open orders",
        ClientEvent::NotTaken { .. } => "the OMS has not taken it and never will; send it again if it still holds",
        ClientEvent::InDoubt { .. } => "the OMS may or may not have taken it; `tickpath orders` lists the open orders",
        ClientEvent::OtherJournal { .. } => "the OMS has another journal; `tickpath orders` lists the open orders",
        ClientEvent::Resent { .. } => {
            "the OMS has lost its last reports; it sends them again, and their content may differ"
        }
        ClientEvent::Forgotten { .. } => {
            "the OMS took requests that it no longer knows; `tickpath orders` lists the open orders"
        }
        _ => "",
    };
    sentence.to_owned()
}

fn denial_reason(code: u16) -> String {
    let newer = || format!("the OMS has denied it by a check of code {code}, which is newer than this library");
    Denial::from_code(code).map_or_else(newer, |denial| denial.to_string())
}

#[cfg(test)]
mod tests {
    use tickpath_market::{
        AccountId, CancelOrder, ClientOrderId, ExecId, ExecType, Liquidity, NewOrder, OrdStatus, OrderId, Price,
        Quantity, ReplaceOrder, SymbolId, VenueId, VenueOrderId,
    };
    use tickpath_oms_client::ClientError;
    use tickpath_oms_protocol::Welcome;

    use super::tp_exec_type::*;
    use super::tp_order_event_type::*;
    use super::tp_order_status::*;
    use super::*;

    fn converted(event: &ClientEvent) -> (tp_order_event, String) {
        (tp_order_event::of(event, 5).expect("C receives it"), explanation(event))
    }

    #[test]
    fn a_report_keeps_every_field() {
        let report = ExecutionReport {
            order_id: OrderId(1),
            client_order_id: ClientOrderId(2),
            venue_order_id: VenueOrderId(3),
            exec_id: ExecId(4),
            venue_sequence: 5,
            last_price: Price(-6),
            last_quantity: Quantity(7),
            cumulative_quantity: Quantity(8),
            leaves_quantity: Quantity(9),
            price: Price(10),
            venue_stamp: 11,
            symbol: SymbolId(12),
            account: AccountId(13),
            reason: 14,
            venue: VenueId(15),
            exec_type: ExecType::Trade.code(),
            status: OrdStatus::Filled.code(),
            side: 2,
            manual: ManualOrderIndicator::Manual.code(),
        };
        let (event, sentence) = converted(&ClientEvent::Report { number: 4, stamp: 16, report });
        assert_eq!((event.r#type, event.number, event.stamp, event.is_live), (TP_TOLD_REPORT as u32, 4, 16, false));
        assert_eq!((event.exec_type, event.status, event.side), (TP_EXEC_TRADE as u32, TP_ORDER_FILLED as u32, 2));
        assert_eq!((event.order_id, event.client_order_id, event.venue_order_id, event.exec_id), (1, 2, 3, 4));
        assert_eq!((event.venue_sequence, event.venue_stamp, event.symbol, event.account), (5, 11, 12, 13));
        assert_eq!((event.last_price, event.last_quantity, event.price), (-6, 7, 10));
        assert_eq!((event.cumulative_quantity, event.leaves_quantity), (8, 9));
        assert_eq!((event.reason, event.venue, event.is_manual, sentence.as_str()), (14, 15, true, ""));
        assert!(converted(&ClientEvent::Report { number: 5, stamp: 16, report }).0.is_live);
    }

    #[test]
    fn a_denial_has_both_halves_of_its_numbers() {
        let (limit, value) = (1_i128 << 64 | 7, -2_i128);
        let denial = OrderDenied {
            order_id: OrderId(1),
            client_order_id: ClientOrderId(2),
            limit: limit.to_le_bytes(),
            value: value.to_le_bytes(),
            account: AccountId(3),
            code: Denial::MaximumQuantity.code(),
            more_decimals: 0,
        };
        let (event, sentence) = converted(&ClientEvent::Denied { number: 5, stamp: 6, denial });
        assert_eq!((event.r#type, event.code, event.number, event.stamp), (TP_TOLD_DENIED as u32, 23, 5, 6));
        assert_eq!((event.order_id, event.client_order_id, event.account, event.is_live), (1, 2, 3, true));
        assert_eq!(event.limit, tp_int128 { low: 7, high: 1 });
        assert_eq!(event.value, tp_int128 { low: u64::MAX - 1, high: -1 });
        assert!(sentence.contains("split the order"), "{sentence}");
        let newer = OrderDenied { code: 9_999, ..denial };
        let (_, sentence) = converted(&ClientEvent::Denied { number: 5, stamp: 6, denial: newer });
        assert!(sentence.contains("newer than this library"), "{sentence}");
    }

    #[test]
    fn a_detail_keeps_every_field() {
        let detail = ReportDetail {
            order_id: OrderId(1),
            exec_id: ExecId(2),
            fee: (-3_i128).to_le_bytes(),
            venue_received_ns: 4,
            venue_sent_ns: 5,
            fee_currency: "USDT".parse().expect("it is a currency"),
            liquidity: Liquidity::Maker.code(),
            ..ReportDetail::default()
        }
        .with_text("it would trade");
        let (event, sentence) = converted(&ClientEvent::Detail { number: 6, stamp: 7, detail });
        assert_eq!((event.r#type, event.number, event.stamp), (TP_TOLD_DETAIL as u32, 6, 7));
        assert_eq!((event.order_id, event.exec_id, event.venue_received_ns, event.venue_sent_ns), (1, 2, 4, 5));
        assert_eq!((event.fee, event.liquidity), (tp_int128 { low: u64::MAX - 2, high: -1 }, 1));
        let currency = event.fee_currency.map(|letter| letter as u8);
        assert_eq!((&currency[..5], sentence.as_str()), (&b"USDT\0"[..], "it would trade"));
    }

    #[test]
    fn every_event_has_its_type_and_its_sentence() {
        let request = |request: Request| ClientEvent::NotTaken { number: 1, request };
        for (event, what, from, to, part) in [
            (ClientEvent::Gap { from: 5, to: 7 }, TP_TOLD_GAP, 5, 7, "will not arrive"),
            (request(Request::New(NewOrder::default())), TP_TOLD_NOT_TAKEN, 0, 0, "never will"),
            (ClientEvent::Connected(Welcome::default()), TP_TOLD_CONNECTED, 0, 0, "session 0 is connected"),
            (ClientEvent::Disconnected { why: ClientError::Closed }, TP_TOLD_DISCONNECTED, 0, 0, "without a reason"),
            (ClientEvent::Failed { why: ClientError::Closed }, TP_TOLD_FAILED, 0, 0, "without a reason"),
            (ClientEvent::OtherJournal { before: 8, now: 9 }, TP_TOLD_OTHER_JOURNAL, 8, 9, "another journal"),
            (ClientEvent::Resent { from: 1, to: 3 }, TP_TOLD_SAID_AGAIN, 1, 3, "sends them again"),
            (ClientEvent::Forgotten { from: 2, to: 4 }, TP_TOLD_FORGOTTEN, 2, 4, "no longer knows"),
        ] {
            let (event, sentence) = converted(&event);
            assert_eq!((event.r#type, event.from, event.to), (what as u32, from, to), "{sentence}");
            assert!(sentence.contains(part), "'{part}' in '{sentence}'");
        }
        assert!(tp_order_event::of(&ClientEvent::Duplicate { number: 1 }, 0).is_none());
    }

    #[test]
    fn a_returned_request_has_its_id_and_type() {
        let id = ClientOrderId(77);
        for (request, what) in [
            (Request::New(NewOrder { client_order_id: id, ..NewOrder::default() }), tp_request::TP_REQUEST_SUBMIT),
            (Request::Cancel(CancelOrder { client_order_id: id, ..Default::default() }), tp_request::TP_REQUEST_CANCEL),
            (
                Request::Replace(ReplaceOrder { client_order_id: id, ..Default::default() }),
                tp_request::TP_REQUEST_REPLACE,
            ),
        ] {
            let (event, _) = converted(&ClientEvent::InDoubt { number: 1, request });
            assert_eq!((event.r#type, event.request), (TP_TOLD_IN_DOUBT as u32, what as u32));
            assert_eq!(event.client_order_id, 77);
        }
    }

    #[test]
    fn the_header_has_a_name_for_every_code() {
        let exec_types = [
            TP_EXEC_NEW,
            TP_EXEC_CANCELED,
            TP_EXEC_REPLACED,
            TP_EXEC_PENDING_CANCEL,
            TP_EXEC_REJECTED,
            TP_EXEC_PENDING_NEW,
            TP_EXEC_EXPIRED,
            TP_EXEC_PENDING_REPLACE,
            TP_EXEC_TRADE,
            TP_EXEC_TRADE_CORRECT,
            TP_EXEC_TRADE_CANCEL,
            TP_EXEC_ORDER_STATUS,
            TP_EXEC_CANCEL_REJECTED,
            TP_EXEC_TRIGGERED,
        ];
        let codes: Vec<u8> = ExecType::ALL.iter().map(|exec_type| exec_type.code()).collect();
        assert_eq!(exec_types.map(|exec_type| exec_type as u8).as_slice(), codes);
        let statuses = [
            TP_ORDER_NEW,
            TP_ORDER_PARTIALLY_FILLED,
            TP_ORDER_FILLED,
            TP_ORDER_DONE_FOR_DAY,
            TP_ORDER_CANCELED,
            TP_ORDER_PENDING_CANCEL,
            TP_ORDER_REJECTED,
            TP_ORDER_SUSPENDED,
            TP_ORDER_PENDING_NEW,
            TP_ORDER_EXPIRED,
            TP_ORDER_PENDING_REPLACE,
            TP_ORDER_UNKNOWN,
            TP_ORDER_ARMED,
        ];
        let codes: Vec<u8> = OrdStatus::ALL.iter().map(|status| status.code()).collect();
        assert_eq!(statuses.map(|status| status as u8).as_slice(), codes);
        let roles =
            [tp_liquidity::TP_LIQUIDITY_UNKNOWN, tp_liquidity::TP_LIQUIDITY_MAKER, tp_liquidity::TP_LIQUIDITY_TAKER];
        let codes: Vec<u8> = Liquidity::ALL.iter().map(|role| role.code()).collect();
        assert_eq!(roles.map(|role| role as u8).as_slice(), codes);
    }
}
