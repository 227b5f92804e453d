//! Events of a session with an OMS, as small frozen objects. Prices and quantities are whole numbers of 10⁻⁸.

use std::fmt::Debug;
use std::sync::LazyLock;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tickpath_market::{
    ExecType, ExecutionReport, Liquidity, ManualOrderIndicator, Notional, OrdStatus, OrderDenied, Price, Quantity,
    ReportDetail, Request, Side,
};
use tickpath_oms_blotter::snake_case;
use tickpath_oms_client::ClientEvent;
use tickpath_oms_risk as risk;

use crate::event::PyGap;

/// The outcome of an order or a request. A denial has only the fields from `number` to `exec_type` ('denied') and
/// `account`: an order that the denied request was to change stays as it was.
#[pyclass(name = "Report", frozen, get_all, eq, hash, module = "tickpath")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PyReport {
    /// Sequence number of the report in the session.
    number: u64,
    /// Time at which the OMS sent the report, in ticks of its host's clock.
    stamp: u64,
    /// False for a replayed report, first sent while this client was not connected.
    live: bool,
    /// Reason why the OMS denied the request; None in other reports.
    pub denial: Option<PyDenial>,
    /// The OMS's id of the order.
    pub order_id: u64,
    /// Id of the request that the report answers; 0 if it answers none.
    pub client_order_id: u64,
    /// Type of the report: 'pending_new', 'new', 'trade', 'canceled', 'replaced', 'rejected', 'cancel_rejected',
    /// 'expired', 'denied' and others, named as in FIX.
    pub exec_type: &'static str,
    /// State of the order now: 'pending_new', 'new', 'partially_filled', 'filled', 'canceled', 'rejected' and others,
    /// named as in FIX; None in a denial.
    pub status: Option<&'static str>,
    /// The instrument's number.
    pub symbol: u32,
    /// The account of the order.
    account: u32,
    /// BUY or SELL; 0 in a report without a side.
    pub side: u8,
    /// Limit price of the order after this report.
    price: i64,
    /// Price of this fill; 0 if the report is no fill.
    last_price: i64,
    /// Quantity of this fill; 0 if the report is no fill.
    pub last_quantity: i64,
    /// Quantity filled so far.
    pub cumulative_quantity: i64,
    /// Quantity still open.
    leaves_quantity: i64,
    /// The venue's own reason code of a rejection.
    reason: u16,
    /// The venue's number.
    venue: u16,
    /// The venue's id of the order; 0 if the venue has reported none.
    venue_order_id: u64,
    /// The venue's id of this fill; 0 if the report is no fill.
    exec_id: u64,
    /// The venue's count of events of this order, from 1; 0 where the venue gives none.
    venue_sequence: u64,
    /// Time at which the venue received the request or made the event, in ticks of the host's clock; 0 if unknown.
    venue_stamp: u64,
    /// True if an admin entered the report by hand.
    manual: bool,
}

/// Reason why the OMS denied a request: the check, its limit, and the value that broke the limit, in the unit of the
/// check.
#[pyclass(name = "Denial", frozen, get_all, eq, hash, module = "tickpath")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PyDenial {
    /// Code of the check, as listed in docs/risk-checks.md.
    code: u16,
    /// Limit of the check.
    limit: i128,
    /// Value that the request would have led to.
    value: i128,
}

/// The detail of a report, which the exchange sent beside it. It follows its report, which has the same `order_id` and
/// `exec_id`; most reports have none.
#[pyclass(name = "ReportDetail", frozen, get_all, eq, hash, module = "tickpath")]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PyReportDetail {
    /// Sequence number of the detail in the session; details are numbered apart from reports.
    number: u64,
    /// Time at which the OMS sent the detail, in ticks of its host's clock.
    stamp: u64,
    /// The OMS's id of the order.
    order_id: u64,
    /// The venue's id of the fill; 0 if the report is no fill.
    exec_id: u64,
    /// Fee of the fill, in 10⁻¹⁶ of its currency; negative for a rebate.
    fee: i128,
    /// Currency of the fee; empty if there is no fee.
    fee_currency: String,
    /// Role of the order in the fill: 'maker', 'taker' or 'unknown'.
    liquidity: &'static str,
    /// Time at which the exchange received the request or made the event, in nanoseconds since the Unix epoch; 0 if
    /// unknown.
    venue_received_ns: u64,
    /// Time at which the exchange sent the report, in nanoseconds since the Unix epoch; 0 if unknown.
    venue_sent_ns: u64,
    /// The exchange's reason, as its text; empty if there is none.
    text: String,
}

/// A request that the OMS did not accept, and never will; the client does not send it again by itself.
#[pyclass(frozen, get_all, eq, hash, module = "tickpath")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NotTaken {
    /// Id of the request, as returned by the call.
    client_order_id: u64,
    /// Kind of the request: 'submit', 'cancel', 'replace' or 'status'.
    request: &'static str,
}

/// A request in doubt: the OMS may have accepted it, and the order may work. Do not send the request again before
/// `tickpath orders` has shown its state.
#[pyclass(frozen, get_all, eq, hash, module = "tickpath")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InDoubt {
    /// Id of the request, as returned by the call.
    client_order_id: u64,
    /// Kind of the request: 'submit', 'cancel', 'replace' or 'status'.
    request: &'static str,
}

/// An event of the session: `what` for programs, `sentence` for people.
#[pyclass(name = "Notice", frozen, get_all, eq, hash, module = "tickpath")]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PyNotice {
    /// Keyword for programs: connected, disconnected, failed, other_journal, said_again, forgotten, and in a run
    /// waiting.
    what: &'static str,
    /// The event as a sentence, for people.
    sentence: String,
}

/// Generates construction from named fields, and the fields' dict for pickling.
macro_rules! by_fields {
    ($class:ident, [$($field:ident),+]) => {
        impl $class {
            /// Returns the object with these fields replaced.
            fn with(mut self, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
                for (name, value) in fields.into_iter().flatten() {
                    let name: String = name.extract()?;
                    let wrong = |e: PyErr| PyTypeError::new_err(format!("{} of a {}: {e}", name, <$class as pyo3::PyClass>::NAME));
                    match name.as_str() {
                        $(stringify!($field) => self.$field = NamedField::of(&value, &name).map_err(wrong)?,)+
                        _ => {
                            let known = [$(stringify!($field)),+].join(", ");
                            let sentence = format!("a {} has no field '{name}'; use {known}", <$class as pyo3::PyClass>::NAME);
                            return Err(PyTypeError::new_err(sentence));
                        }
                    }
                }
                Ok(self)
            }

            fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let fields = PyDict::new(py);
                $(fields.set_item(stringify!($field), self.$field.clone())?;)+
                Ok(fields)
            }
        }
    };
}

by_fields! {
    PyReport,
    [
        number, stamp, live, denial, order_id, client_order_id, exec_type, status, symbol, account, side, price, last_price,
        last_quantity, cumulative_quantity, leaves_quantity, reason, venue, venue_order_id, exec_id, venue_sequence,
        venue_stamp, manual
    ]
}
by_fields!(PyDenial, [code, limit, value]);
by_fields! {
    PyReportDetail,
    [number, stamp, order_id, exec_id, fee, fee_currency, liquidity, venue_received_ns, venue_sent_ns, text]
}
by_fields!(NotTaken, [client_order_id, request]);
by_fields!(InDoubt, [client_order_id, request]);
by_fields!(PyNotice, [what, sentence]);

/// Type of a field that can be given by name.
trait NamedField: Sized {
    /// Converts the value given for a field of this name.
    fn of(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self>;
}

macro_rules! fields {
    ($($kind:ty),+) => {
        $(impl NamedField for $kind {
            fn of(value: &Bound<'_, PyAny>, _name: &str) -> PyResult<Self> {
                value.extract()
            }
        })+
    };
}

fields!(u8, u16, u32, u64, i64, i128, bool, String);

impl NamedField for Option<PyDenial> {
    fn of(value: &Bound<'_, PyAny>, _name: &str) -> PyResult<Self> {
        if value.is_none() { Ok(None) } else { Ok(Some(*value.cast::<PyDenial>()?.get())) }
    }
}

impl NamedField for Option<&'static str> {
    fn of(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        if value.is_none() { Ok(None) } else { NamedField::of(value, name).map(Some) }
    }
}

/// The values of [`NotTaken::request`].
const REQUESTS: [&str; 4] = ["submit", "cancel", "replace", "status"];
/// The values of [`PyNotice::what`].
const NOTICES: [&str; 7] =
    ["connected", "disconnected", "failed", "other_journal", "said_again", "forgotten", "waiting"];

impl NamedField for &'static str {
    fn of(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let given: String = value.extract()?;
        let mut known: Vec<&str> = match name {
            "exec_type" => (0..=u8::MAX).map(exec_type).chain(["denied"]).collect(),
            "status" => (0..=u8::MAX).map(status).collect(),
            "liquidity" => (0..=u8::MAX).map(liquidity).collect(),
            "request" => REQUESTS.to_vec(),
            _ => NOTICES.to_vec(),
        };
        known.sort_unstable();
        known.dedup();
        let found = known.iter().find(|known| **known == given).copied();
        found.ok_or_else(|| PyValueError::new_err(format!("'{given}' is not one of {}", known.join(", "))))
    }
}

/// State that recreates an object: an empty tuple, and the fields by name.
type PickleState<'py> = ((), Bound<'py, PyDict>);

#[pymethods]
impl PyReport {
    /// Creates a report, for a test of `on_report`: of the fields that are not given, `exec_type` and `status` are
    /// 'new', `live` is True, and all others are 0.
    #[new]
    #[pyo3(signature = (**fields))]
    fn new(fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let order = ExecutionReport { exec_type: ExecType::New.code(), ..ExecutionReport::default() };
        let made = Self { status: Some("new"), ..Self::of(0, 0, true, &order) };
        made.with(fields)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<PickleState<'py>> {
        Ok(((), self.fields(py)?))
    }

    fn __repr__(&self) -> String {
        let Self { number, client_order_id, exec_type, symbol, .. } = *self;
        if let Some(denial) = &self.denial {
            return format!("Report(number={number}, client_order_id={client_order_id}, denial={})", denial.__repr__());
        }
        format!(
            "Report(number={number}, client_order_id={client_order_id}, symbol={symbol}, side={}, exec_type='{exec_type}', \
             status='{}', filled={}, leaves={}, last={}@{})",
            match Side::from_code(self.side) {
                Some(Side::Buy) => "BUY",
                Some(Side::Sell) => "SELL",
                None => "none",
            },
            self.status.unwrap_or_default(),
            Quantity(self.cumulative_quantity),
            Quantity(self.leaves_quantity),
            Quantity(self.last_quantity),
            Price(self.last_price)
        )
    }
}

impl PyReport {
    fn of(number: u64, stamp: u64, live: bool, report: &ExecutionReport) -> Self {
        Self {
            number,
            stamp,
            live,
            denial: None,
            order_id: report.order_id.0,
            client_order_id: report.client_order_id.0,
            exec_type: exec_type(report.exec_type),
            status: Some(status(report.status)),
            symbol: report.symbol.0,
            account: report.account.0,
            side: report.side,
            price: report.price.0,
            last_price: report.last_price.0,
            last_quantity: report.last_quantity.0,
            cumulative_quantity: report.cumulative_quantity.0,
            leaves_quantity: report.leaves_quantity.0,
            reason: report.reason,
            venue: report.venue.0,
            venue_order_id: report.venue_order_id.0,
            exec_id: report.exec_id.0,
            venue_sequence: report.venue_sequence,
            venue_stamp: report.venue_stamp,
            manual: report.manual == ManualOrderIndicator::Manual.code(),
        }
    }

    /// Returns the name of the check behind a live denial; None for any other report.
    pub fn denied_by(&self) -> Option<String> {
        self.denial.as_ref().filter(|_| self.live).map(|denial| match denial.name() {
            name if name.is_empty() => format!("code {}", denial.code),
            name => name,
        })
    }

    fn of_denial(number: u64, stamp: u64, live: bool, denied: &OrderDenied) -> Self {
        let OrderDenied { order_id, client_order_id, account, .. } = *denied;
        let nothing = ExecutionReport { order_id, client_order_id, account, ..ExecutionReport::default() };
        let (limit, value) = (i128::from_le_bytes(denied.limit), i128::from_le_bytes(denied.value));
        Self {
            denial: Some(PyDenial { code: denied.code, limit, value }),
            exec_type: "denied",
            status: None,
            ..Self::of(number, stamp, live, &nothing)
        }
    }
}

#[pymethods]
impl PyDenial {
    /// Creates a denial from its fields.
    #[new]
    #[pyo3(signature = (**fields))]
    fn new(fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self { code: 0, limit: 0, value: 0 }.with(fields)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<PickleState<'py>> {
        Ok(((), self.fields(py)?))
    }

    /// Name of the check, as listed in docs/risk-checks.md; empty if this version does not know the code.
    #[getter]
    fn name(&self) -> String {
        risk::Denial::from_code(self.code).map_or_else(String::new, |denial| format!("{denial:?}"))
    }

    /// Reason and remedy, as a sentence.
    #[getter]
    fn sentence(&self) -> String {
        let unknown = || {
            let code = self.code;
            format!("the OMS denied the request by check {code}, which is newer than this client; update the client")
        };
        risk::Denial::from_code(self.code).map_or_else(unknown, |denial| denial.to_string())
    }

    fn __str__(&self) -> String {
        self.sentence()
    }

    fn __repr__(&self) -> String {
        let Self { code, limit, value } = *self;
        format!("Denial(code={code}, name='{}', limit={limit}, value={value})", self.name())
    }
}

#[pymethods]
impl PyReportDetail {
    /// Creates a detail, for a test of `on_detail`: of the fields that are not given, `liquidity` is 'unknown', and all
    /// others are 0 or empty.
    #[new]
    #[pyo3(signature = (**fields))]
    fn new(fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::of(0, 0, &ReportDetail::default()).with(fields)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<PickleState<'py>> {
        Ok(((), self.fields(py)?))
    }

    fn __repr__(&self) -> String {
        let Self { number, order_id, exec_id, fee, fee_currency, liquidity, text, .. } = self;
        let fee = Notional(*fee);
        format!(
            "ReportDetail(number={number}, order_id={order_id}, exec_id={exec_id}, fee={fee} {fee_currency}, \
             liquidity='{liquidity}', text={text:?})"
        )
    }
}

impl PyReportDetail {
    fn of(number: u64, stamp: u64, detail: &ReportDetail) -> Self {
        Self {
            number,
            stamp,
            order_id: detail.order_id.0,
            exec_id: detail.exec_id.0,
            fee: detail.fee(),
            fee_currency: detail.fee_currency.as_str().to_owned(),
            liquidity: liquidity(detail.liquidity),
            venue_received_ns: detail.venue_received_ns,
            venue_sent_ns: detail.venue_sent_ns,
            text: detail.text().into_owned(),
        }
    }
}

/// Generates the methods of an event about a request.
macro_rules! request_event {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// Creates the event from its fields.
            #[new]
            #[pyo3(signature = (**fields))]
            fn new(fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
                Self { client_order_id: 0, request: "submit" }.with(fields)
            }

            fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<PickleState<'py>> {
                Ok(((), self.fields(py)?))
            }

            fn __repr__(&self) -> String {
                let Self { client_order_id, request } = *self;
                format!("{}(client_order_id={client_order_id}, request='{request}')", stringify!($class))
            }
        }
    };
}

request_event!(NotTaken);
request_event!(InDoubt);

/// Returns a request's id, and the name of the call that made it.
fn request_name(request: &Request) -> (u64, &'static str) {
    let call = match request {
        Request::New(_) | Request::Conditional(_) | Request::Extended(_) => "submit",
        Request::ByTextId(named) if named.is_status() => "status",
        Request::Cancel(_) | Request::MassCancel(_) | Request::ByTextId(_) => "cancel",
        Request::Replace(_) | Request::ReplaceConditional(_) => "replace",
        Request::Status(_) => "status",
    };
    (request.client_order_id().0, call)
}

impl PyNotice {
    /// Notice that the order of this client id has waited for its venue.
    pub fn waiting(client_order_id: u64) -> Self {
        let sentence = format!(
            "order {client_order_id} has waited for its venue for a second: the venue is disconnected or does not answer, \
             and orders wait at the OMS until they are too old (RequestAge); `tickpath oms status` shows venues_up"
        );
        Self { what: "waiting", sentence }
    }
}

#[pymethods]
impl PyNotice {
    /// Creates the event from its fields.
    #[new]
    #[pyo3(signature = (**fields))]
    fn new(fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self { what: "connected", sentence: String::new() }.with(fields)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<PickleState<'py>> {
        Ok(((), self.fields(py)?))
    }

    fn __str__(&self) -> String {
        self.sentence.clone()
    }

    fn __repr__(&self) -> String {
        format!("Notice(what='{}', sentence={:?})", self.what, self.sentence)
    }
}

/// An event of a session that is no Python object yet.
pub enum BufferedSessionEvent {
    Report(PyReport),
    Detail(Box<PyReportDetail>),
    Gap(PyGap),
    NotTaken(NotTaken),
    InDoubt(InDoubt),
    Notice(PyNotice),
}

impl BufferedSessionEvent {
    /// Converts an event for Python; reports from number `live_from` on are live. Returns None for duplicate reports,
    /// and for events that only queries and admin commands cause.
    pub fn of(event: ClientEvent, live_from: u64) -> Option<Self> {
        let notice = |what, sentence| Some(Self::Notice(PyNotice { what, sentence }));
        match event {
            ClientEvent::Report { number, stamp, report } => {
                Some(Self::Report(PyReport::of(number, stamp, number >= live_from, &report)))
            }
            ClientEvent::Denied { number, stamp, denial } => {
                Some(Self::Report(PyReport::of_denial(number, stamp, number >= live_from, &denial)))
            }
            ClientEvent::Detail { number, stamp, detail } => {
                Some(Self::Detail(Box::new(PyReportDetail::of(number, stamp, &detail))))
            }
            ClientEvent::Gap { from, to } => Some(Self::Gap(PyGap::of(to.saturating_sub(from)))),
            ClientEvent::NotTaken { request, .. } => {
                let (client_order_id, request) = request_name(&request);
                Some(Self::NotTaken(NotTaken { client_order_id, request }))
            }
            ClientEvent::InDoubt { request, .. } => {
                let (client_order_id, request) = request_name(&request);
                Some(Self::InDoubt(InDoubt { client_order_id, request }))
            }
            ClientEvent::Connected(welcome) => notice("connected", format!("session {} is connected", welcome.session)),
            ClientEvent::Disconnected { why } => notice("disconnected", why.to_string()),
            ClientEvent::Failed { why } => notice("failed", why.to_string()),
            ClientEvent::OtherJournal { before, now } => notice(
                "other_journal",
                format!("the OMS has the journal {now} instead of {before}; `tickpath orders` shows the open orders"),
            ),
            ClientEvent::Resent { from, to } => notice(
                "said_again",
                format!("the OMS has lost its last reports: {from} to {to} may be sent again, with other contents"),
            ),
            ClientEvent::Forgotten { from, to } => notice(
                "forgotten",
                format!("the OMS has lost requests {from} to {to}; `tickpath orders` shows the open orders"),
            ),
            // The session keeps the text id, for `Orders.client_id`.
            ClientEvent::Extension { .. }
            | ClientEvent::Copied { .. }
            | ClientEvent::Duplicate { .. }
            | ClientEvent::CommandAnswered(_)
            | ClientEvent::OrderRow { .. }
            | ClientEvent::InstrumentRow(_)
            | ClientEvent::KillSwitches(_)
            | ClientEvent::Answered(_) => None,
        }
    }

    pub fn object(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(match self {
            Self::Report(report) => Py::new(py, *report)?.into_any(),
            Self::Detail(detail) => Py::new(py, (**detail).clone())?.into_any(),
            Self::Gap(gap) => Py::new(py, *gap)?.into_any(),
            Self::NotTaken(request) => Py::new(py, *request)?.into_any(),
            Self::InDoubt(request) => Py::new(py, *request)?.into_any(),
            Self::Notice(notice) => Py::new(py, notice.clone())?.into_any(),
        })
    }
}

/// Names of all codes, as in FIX: the names of the values, in snake case.
fn names<T: Debug>(from_code: fn(u8) -> Option<T>) -> [&'static str; 256] {
    let name = |value: T| -> &'static str { snake_case(value).leak() };
    std::array::from_fn(|code| from_code(code as u8).map_or("other", name))
}

fn exec_type(code: u8) -> &'static str {
    static NAMES: LazyLock<[&str; 256]> = LazyLock::new(|| names(ExecType::from_code));
    NAMES[usize::from(code)]
}

fn status(code: u8) -> &'static str {
    static NAMES: LazyLock<[&str; 256]> = LazyLock::new(|| names(OrdStatus::from_code));
    NAMES[usize::from(code)]
}

fn liquidity(code: u8) -> &'static str {
    static NAMES: LazyLock<[&str; 256]> = LazyLock::new(|| names(Liquidity::from_code));
    NAMES[usize::from(code)]
}
