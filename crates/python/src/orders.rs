//! `orders(url, user, password, account=…)`: a session with an OMS.
//!
//! ```text
//!   orders() ── logs on ──> Orders ── submit, cancel, replace ──> a request's id, at once; it never waits
//!                             └────── for, poll, wait ──────────> Report, ReportDetail, Gap, NotTaken, InDoubt, Notice
//! ```
//! `PyOrders` is an [`ObjectHandle`] of a [`tickpath_oms_client::Client`], which keeps the session across lost
//! connections. Nothing runs in the background, so the program must poll or wait more often than its heartbeat time. A
//! request carries the stamp of the event that caused it, and T0 is taken when the request is handed over, so the OMS's
//! journal has all its hops. Denials of the OMS are reports with a `denial`; a venue's rejections have none.
//!
//! Nothing runs in the background of an event loop, either: the loop watches the session's socket and its heartbeat
//! time.
//!
//! Not covered: queries of all orders, admin commands, and drop copies.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use tickpath_bus::url::redact_logins;
use tickpath_clock::{HostClock, utc_ns};
use tickpath_market::{
    AccountId, ClientOrderId, MassCancel, MassCancelType, NewOrder, OrderType, Price, Quantity, ReplaceConditional,
    ReplaceOrder, Request, Side, SymbolId, TimeInForce,
};
use tickpath_oms_client::{Client, ClientError, ClientEvent, ClientSendError, Config, Since};

use crate::arguments::{
    GivenSymbol, cause_of, instructed_order, milliseconds, order_type_name, since_name, time_in_force_name,
};
use crate::book::SessionBook;
use crate::bus::by_name;
use crate::clock::host_clock;
use crate::error::{ErrorClass, not_sent, session_ended};
use crate::event::Units;
use crate::handle::{MAX_TURN_NS, ObjectHandle};
use crate::order_arguments::{OrderFields, OrderName, symbols_of};
use crate::report::{BufferedSessionEvent, PyReport};
use crate::subscription::MAX_EVENTS;
use crate::text_ids::TextIds;
use crate::topic::{MaxEvents, timeout_of};
use crate::trigger::PyTrigger;

/// Logs on to an OMS: unix:///PATH, shm+unix:///PATH, tcp://HOST:PORT or tls://HOST:PORT?ca=FILE. Orders are for
/// `account`. A symbol is given by its number in the OMS, or by its name there or in `symbols`, which cannot give a
/// name of the OMS another number. Reports start with the new ones ('now') or with the first of the day ('start').
/// `heartbeat` and `connect_timeout` are seconds. Requests get ids from `first_id` on, which must be new in this
/// session today; by default `first_id` is made from the time.
#[pyfunction]
#[pyo3(name = "orders", signature = (url, user, password, *, account, session = None, since = "now", symbols = None, heartbeat = None, connect_timeout = 5.0, first_id = None), text_signature = "(url, user, password, *, account, session=None, since='now', symbols=None, heartbeat=None, connect_timeout=5.0, first_id=None)")]
#[allow(clippy::too_many_arguments, reason = "each is a keyword in Python")]
pub fn open_orders(
    py: Python<'_>,
    url: &str,
    user: &str,
    password: &str,
    account: i64,
    session: Option<i64>,
    since: &str,
    symbols: Option<HashMap<String, u32>>,
    heartbeat: Option<f64>,
    connect_timeout: f64,
    first_id: Option<u64>,
) -> PyResult<PyOrders> {
    let clock = host_clock(py)?;
    let first_id = first_id.unwrap_or_else(utc_ns);
    if first_id == 0 {
        return Err(PyValueError::new_err("0 is no request id; give a first_id of 1 or more"));
    }
    let no_account = |_| PyValueError::new_err(format!("{account} is no account; use one of the OMS's accounts.csv"));
    let account = u32::try_from(account).map_err(no_account)?;
    // The highest number is reserved for "any session".
    let number = |given| u16::try_from(given).ok().filter(|&number| number != u16::MAX);
    let no_session = |given| PyValueError::new_err(format!("{given} is no session; use one of the user's, or None"));
    let session = session.map(|given| number(given).ok_or_else(|| no_session(given))).transpose()?;
    let of_user = format!("of '{user}' at {}", redact_logins(url));
    let config = Config {
        session,
        since: by_name("since", since, &[Since::Now, Since::Start], since_name)?,
        heartbeat_ms: heartbeat.map_or(Ok(0), |seconds| milliseconds("heartbeat", seconds))?,
        connect_timeout_ms: milliseconds("connect_timeout", connect_timeout)?,
        ..Config::new(url, user, password)
    };
    let timeout_ms = config.connect_timeout_ms;
    let connected = py.detach(move || {
        let mut client = Client::connect(config)?;
        let rows = client.instruments(timeout_ms)?;
        Ok((client, rows))
    });
    let (client, rows) = connected.map_err(|e: ClientError| ErrorClass::ConnectError.raise(py, &e.to_string()))?;
    let symbols = symbols_of(symbols, rows)?;
    let place = format!("session {} {of_user}", client.welcome().session);
    let (waiting, book, text_ids) = (VecDeque::new(), SessionBook::default(), TextIds::default());
    let (is_awaited, live_from, next_id, ended) = (false, 0, first_id, None);
    let session = BufferedSession { client, waiting, book, text_ids, is_awaited, live_from, next_id, ended };
    let (handle, is_run) = (ObjectHandle::new("session", place, session), AtomicBool::new(false));
    let requests = AtomicU64::new(0);
    Ok(PyOrders { handle, is_run, requests, clock, account: AccountId(account), symbols })
}

/// A session with an OMS, for one account. Poll or wait more often than its heartbeat time. Use it in a `with` block,
/// or close it: orders at a venue keep working.
#[pyclass(name = "Orders", frozen, module = "tickpath")]
pub struct PyOrders {
    handle: ObjectHandle<BufferedSession>,
    /// A run receives the session's events, and no other caller may.
    is_run: AtomicBool,
    /// Number of requests sent through this object.
    requests: AtomicU64,
    clock: HostClock,
    account: AccountId,
    symbols: HashMap<String, SymbolId>,
}

struct BufferedSession {
    client: Client,
    /// Events received and not handed over.
    waiting: VecDeque<BufferedSessionEvent>,
    /// Open orders and positions by the reports returned so far.
    book: SessionBook,
    text_ids: TextIds,
    /// A task is waiting for an event.
    is_awaited: bool,
    /// Reports from this number on are live.
    live_from: u64,
    next_id: u64,
    /// Reason for the end of the session.
    ended: Option<ClientError>,
}

/// Reason why a request was not sent.
enum SendFailure {
    Ended(ClientError),
    Refused(Box<ClientSendError<Request>>),
}

impl BufferedSession {
    /// Sends a request under the caller's own id or the next one; returns the id.
    fn send(&mut self, own: Option<u64>, request: impl FnOnce(ClientOrderId) -> Request) -> Result<u64, SendFailure> {
        if let Some(why) = &self.ended {
            return Err(SendFailure::Ended(why.clone()));
        }
        let id = own.unwrap_or(self.next_id);
        self.client.send(&request(ClientOrderId(id))).map_err(|e| SendFailure::Refused(Box::new(e)))?;
        if own.is_none() {
            self.next_id = id.wrapping_add(1).max(1);
        }
        Ok(id)
    }

    /// Polls the client once; returns the number of events.
    fn poll_client(&mut self) -> Result<usize, ClientError> {
        let Self { client, waiting, text_ids, live_from, ended, .. } = self;
        let polled = client.poll(|event| {
            if let ClientEvent::Extension { extension, .. } = &event
                && !extension.text_id.is_none()
            {
                text_ids.insert(extension.order_id.0, extension.text_id);
            }
            if let ClientEvent::Connected(welcome) = &event {
                *live_from = welcome.live_report;
            }
            waiting.extend(BufferedSessionEvent::of(event, *live_from));
        });
        if let Err(why) = &polled {
            *ended = Some(why.clone());
        }
        polled
    }

    /// Takes out up to `limit` events. Each call polls the client, which keeps the session alive; the reason for the
    /// session's end is returned after all events.
    fn take_events(&mut self, limit: usize) -> Result<Vec<BufferedSessionEvent>, ClientError> {
        while self.waiting.len() < MAX_EVENTS {
            match self.poll_client() {
                Err(why) if self.waiting.is_empty() => return Err(why),
                Err(_) | Ok(0) => break,
                Ok(_) if self.waiting.len() >= limit => break,
                Ok(_) => {}
            }
        }
        let Self { waiting, book, .. } = self;
        let taken: Vec<BufferedSessionEvent> = waiting.drain(..limit.min(waiting.len())).collect();
        for event in &taken {
            if let BufferedSessionEvent::Report(report) = event {
                book.apply(report);
            }
        }
        Ok(taken)
    }

    fn put_back(&mut self, taken: Vec<BufferedSessionEvent>) {
        taken.into_iter().rev().for_each(|event| self.waiting.push_front(event));
    }

    /// Waits for an event until the turn is over; returns true if there is an event.
    fn wait_event(&mut self, left_ns: u64) -> Result<bool, ClientError> {
        if self.waiting.is_empty() {
            self.poll_client()?;
        }
        if self.waiting.is_empty() {
            self.client.wait(left_ns.min(MAX_TURN_NS));
            self.poll_client()?;
        }
        Ok(!self.waiting.is_empty())
    }
}

impl Drop for BufferedSession {
    fn drop(&mut self) {
        self.client.disconnect();
    }
}

impl PyOrders {
    /// Sends a request without releasing the interpreter, since sending never waits.
    fn send(
        &self,
        py: Python<'_>,
        own: Option<u64>,
        request: impl FnOnce(ClientOrderId) -> Request + Send,
    ) -> PyResult<u64> {
        if own == Some(0) {
            return Err(PyValueError::new_err("0 is no request id; give 1 or more, or leave it out"));
        }
        let sent = self.handle.with(py, |session| session.send(own, request))?.map_err(|unsent| match unsent {
            SendFailure::Ended(why) => session_ended(py, &why),
            SendFailure::Refused(why) => not_sent(py, &why),
        });
        self.requests.fetch_add(u64::from(sent.is_ok()), Ordering::Relaxed);
        sent
    }

    fn symbol(&self, given: GivenSymbol<'_>) -> PyResult<SymbolId> {
        match given {
            GivenSymbol::Number(number) => Ok(SymbolId(number)),
            GivenSymbol::Name(name) => self.symbols.get(name).copied().ok_or_else(|| {
                PyValueError::new_err(format!(
                    "'{name}' is no symbol of the OMS, and not in symbols=; give its number, or open the orders with \
                     symbols=tickpath.instruments('instruments.csv')"
                ))
            }),
        }
    }

    /// Takes up to `limit` events out, as objects. If an object cannot be made, all of them stay for the next call.
    fn take_objects(&self, py: Python<'_>, limit: usize) -> PyResult<Vec<Py<PyAny>>> {
        // Before events are taken, since a signal raised later would lose them.
        py.check_signals()?;
        let taken = self.handle.with(py, |session| session.take_events(limit))?.map_err(|e| session_ended(py, &e))?;
        let made: PyResult<Vec<_>> = taken.iter().map(|event| event.object(py)).collect();
        if made.is_err() {
            self.handle.with(py, |session| session.put_back(taken))?;
        }
        made
    }

    /// Takes the next event, if there is one.
    pub fn next_event(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        Ok(self.take_objects(py, 1)?.pop())
    }

    /// Polls without the interpreter. Returns true if there is an event, or the session has ended.
    pub fn has_news(&self) -> bool {
        self.handle.peek(|session| !session.waiting.is_empty() || !matches!(session.poll_client(), Ok(0)))
    }

    /// Returns the oldest order without an answer of its venue, as [`SessionBook::unanswered`].
    pub fn unanswered(&self, py: Python<'_>) -> PyResult<Option<(u64, u64)>> {
        self.handle.with(py, |session| session.book.unanswered())
    }

    /// Reserves the session's events for a run, until the result is dropped.
    pub fn begin_run(&self, py: Python<'_>) -> PyResult<RunGuard<'_>> {
        if self.is_run.swap(true, Ordering::Acquire) { Err(self.used_by_run(py)) } else { Ok(RunGuard(self)) }
    }

    /// Rejects receiving while a run receives the session's events.
    fn check_run(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_run.load(Ordering::Relaxed) { Err(self.used_by_run(py)) } else { Ok(()) }
    }

    /// Rejects a second waiting task.
    fn check_task(&self, py: Python<'_>) -> PyResult<()> {
        if !self.handle.with(py, |session| session.is_awaited)? {
            return Ok(());
        }
        let sentence = "another task awaits the events of this session; receive them in one task, and pass them on";
        Err(ErrorClass::InUse.raise(py, sentence))
    }

    #[cold]
    fn used_by_run(&self, py: Python<'_>) -> PyErr {
        let sentence = "a run uses this session, and passes its events to the strategy; other code can only send";
        ErrorClass::InUse.raise(py, sentence)
    }

    /// Waits until there is an event or the timeout expires; without a timeout there is no limit.
    pub fn wait_within(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<bool> {
        let waited = self.handle.wait_within(py, self.clock, timeout, BufferedSession::wait_event)?;
        waited.map_err(|e| session_ended(py, &e))
    }
}

#[pymethods]
impl PyOrders {
    fn __repr__(&self) -> String {
        self.handle.repr("Orders")
    }

    /// Sends a new order; returns the id for `cancel` and `replace`. A 'limit' order has a price, a 'market' order
    /// None; the order works for the 'day', 'gtc', 'gtd', 'ioc' or 'fok'. `cause` is the event that the order answers.
    /// `id` is an id of your own, new in this session today, and so known before the call, whatever interrupts it. With
    /// a `trigger`, as made by `tickpath.when`, the order waits at the OMS until the condition holds. The venue rejects
    /// a `post_only` order that would trade at once, and a `reduce_only` order only reduces a position. `self_trade`
    /// names the order to cancel instead of a trade between two orders of one owner, None leaves that to the account's
    /// setting at the venue; `trade_mode` is the margin, None as the instrument requires. The simulated exchange knows
    /// `post_only` alone, and rejects an order with any of the others. `client_id` is a text of your own, up to 36
    /// printable characters, which no open order of the account has. `expire_ns` is the end of a 'gtd' order, in
    /// nanoseconds since the Unix epoch: the OMS cancels the order then, and reports it as expired. An order with a
    /// `trigger` has neither.
    #[pyo3(signature = (symbol, side, price, quantity, *, order_type = "limit", time_in_force = "day", cause = None, id = None, trigger = None, post_only = false, reduce_only = false, self_trade = None, trade_mode = None, client_id = None, expire_ns = None), text_signature = "(self, symbol, side, price, quantity, *, order_type='limit', time_in_force='day', cause=None, id=None, trigger=None, post_only=False, reduce_only=False, self_trade=None, trade_mode=None, client_id=None, expire_ns=None)")]
    #[allow(clippy::too_many_arguments, reason = "each is an argument in Python")]
    fn submit(
        &self,
        py: Python<'_>,
        symbol: GivenSymbol<'_>,
        side: &Bound<'_, PyAny>,
        price: Option<Units>,
        quantity: Units,
        order_type: &str,
        time_in_force: &str,
        cause: Option<&Bound<'_, PyAny>>,
        id: Option<u64>,
        trigger: Option<&PyTrigger>,
        post_only: bool,
        reduce_only: bool,
        self_trade: Option<&str>,
        trade_mode: Option<&str>,
        client_id: Option<&str>,
        expire_ns: Option<u64>,
    ) -> PyResult<u64> {
        let side = (side.extract().ok().and_then(Side::from_code))
            .ok_or_else(|| PyValueError::new_err(format!("{side} is no side; give tickpath.BUY or SELL")))?;
        let order_type = by_name("order_type", order_type, OrderType::ALL, order_type_name)?;
        let time_in_force = by_name("time_in_force", time_in_force, TimeInForce::ALL, time_in_force_name)?;
        let fields = OrderFields::of(client_id, expire_ns, time_in_force, trigger.is_some())?;
        let price = match (order_type, price) {
            (OrderType::Limit, Some(price)) => Price(price.0),
            (OrderType::Market, None) => Price::ZERO,
            (OrderType::Limit, None) => {
                return Err(PyValueError::new_err("a limit order has a price; give one, or order_type='market'"));
            }
            (OrderType::Market, Some(_)) => {
                return Err(PyValueError::new_err("a market order has no price; give None, or order_type='limit'"));
            }
        };
        let instructed = instructed_order(post_only, reduce_only, self_trade, trade_mode)?;
        let order = NewOrder {
            price,
            quantity: Quantity(quantity.0),
            cause: cause_of(cause)?,
            symbol: self.symbol(symbol)?,
            account: self.account,
            side: side.code(),
            order_type: order_type.code(),
            time_in_force: time_in_force.code(),
            ..instructed
        };
        let trigger = trigger.map(|trigger| trigger.to_market(|symbol| self.symbol(symbol))).transpose()?;
        self.send(py, id, |client_order_id| fields.request(NewOrder { client_order_id, ..order }, trigger))
    }

    /// Requests the cancellation of an order, by the id that `submit` returned, or by the `client_id` of an order of
    /// any session of the account: its latest order with this text. Returns the id of this request.
    #[pyo3(signature = (id = None, *, cause = None, client_id = None), text_signature = "(self, id=None, *, cause=None, client_id=None)")]
    fn cancel(
        &self,
        py: Python<'_>,
        id: Option<u64>,
        cause: Option<&Bound<'_, PyAny>>,
        client_id: Option<&str>,
    ) -> PyResult<u64> {
        let (cause, name, account) = (cause_of(cause)?, OrderName::of(id, client_id)?, self.account);
        self.send(py, None, |client_order_id| name.cancel(client_order_id, account, cause))
    }

    /// Requests another price and total quantity of an order, the filled quantity included, by the id that `submit`
    /// returned; returns the id of this request. With a `trigger`, an order that waits for its trigger gets this
    /// trigger instead.
    #[pyo3(signature = (id, *, price, quantity, cause = None, trigger = None))]
    fn replace(
        &self,
        py: Python<'_>,
        id: u64,
        price: Units,
        quantity: Units,
        cause: Option<&Bound<'_, PyAny>>,
        trigger: Option<&PyTrigger>,
    ) -> PyResult<u64> {
        let (original, price, quantity) = (ClientOrderId(id), Price(price.0), Quantity(quantity.0));
        let (cause, account) = (cause_of(cause)?, self.account);
        let trigger = trigger.map(|trigger| trigger.to_market(|symbol| self.symbol(symbol))).transpose()?;
        let replace = ReplaceOrder { original, price, quantity, cause, account, ..ReplaceOrder::default() };
        let armed = ReplaceConditional { original, price, quantity, cause, account, ..ReplaceConditional::default() };
        self.send(py, None, |client_order_id| match trigger {
            Some(trigger) => Request::ReplaceConditional(ReplaceConditional { client_order_id, trigger, ..armed }),
            None => Request::Replace(ReplaceOrder { client_order_id, ..replace }),
        })
    }

    /// Requests the cancellation of all open orders of this session and account, or of those in one symbol; returns the
    /// id of this request. Each order gets an answer of its own.
    #[pyo3(signature = (symbol = None, *, cause = None))]
    fn cancel_all(
        &self,
        py: Python<'_>,
        symbol: Option<GivenSymbol<'_>>,
        cause: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let cancel_type = if symbol.is_some() { MassCancelType::Symbol } else { MassCancelType::All };
        let symbol = symbol.map_or(Ok(SymbolId::default()), |symbol| self.symbol(symbol))?;
        let (cause, account) = (cause_of(cause)?, self.account);
        let cancel = MassCancel { cause, symbol, account, cancel_type: cancel_type.code(), ..MassCancel::default() };
        self.send(py, None, |client_order_id| Request::MassCancel(MassCancel { client_order_id, ..cancel }))
    }

    /// Queries the state of an order at the OMS, by the id that `submit` returned, or by the `client_id` of an order of
    /// any session of the account: its latest order with this text. Returns the id of this request. The answer is a
    /// Report whose `exec_type` is 'order_status', with the id of this request as its `client_order_id`.
    #[pyo3(signature = (id = None, *, client_id = None), text_signature = "(self, id=None, *, client_id=None)")]
    fn status(&self, py: Python<'_>, id: Option<u64>, client_id: Option<&str>) -> PyResult<u64> {
        let (name, account) = (OrderName::of(id, client_id)?, self.account);
        self.send(py, None, |client_order_id| name.status(client_order_id, account))
    }

    /// Returns the `client_id` of an order by the OMS's id of the order, a report's `order_id`; None if the order has
    /// none, or if the OMS has not reported the order to this session yet. The session keeps those of the latest 65,536
    /// orders that have one.
    fn client_id(&self, py: Python<'_>, order_id: u64) -> PyResult<Option<String>> {
        let found = self.handle.with(py, |session| session.text_ids.get(order_id))?;
        Ok(found.map(|text_id| text_id.to_string()))
    }

    /// Open orders, by the id that `submit` returned, each with its last report, according to the reports returned so
    /// far. A session with `since='start'` first returns the reports of the whole day.
    #[getter]
    fn open(&self, py: Python<'_>) -> PyResult<BTreeMap<u64, PyReport>> {
        self.handle.with(py, |session| session.book.open())
    }

    /// Quantity bought less quantity sold, by instrument, according to the reports returned so far: of the whole day
    /// with `since='start'`, else since the logon. Positions held at the start of the day are not known here.
    #[getter]
    fn positions(&self, py: Python<'_>) -> PyResult<BTreeMap<u32, i64>> {
        self.handle.with(py, |session| session.book.positions().clone())
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Returns the next event, as soon as there is one.
    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.check_run(py)?;
        loop {
            if let Some(event) = self.take_objects(py, 1)?.pop() {
                return Ok(event);
            }
            self.wait_within(py, None)?;
        }
    }

    /// Returns up to `max` available events; never waits.
    #[pyo3(signature = (max = MaxEvents(64)), text_signature = "(self, max=64)")]
    fn poll<'py>(&self, py: Python<'py>, max: MaxEvents) -> PyResult<Bound<'py, PyList>> {
        self.check_run(py)?;
        PyList::new(py, self.take_objects(py, max.0.min(MAX_EVENTS))?)
    }

    /// Waits until an event is available, or `timeout` seconds are over; returns True if an event is available.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        self.check_run(py)?;
        self.wait_within(py, timeout_of(timeout)?)
    }

    /// Returns an iterator for `async for`.
    fn __aiter__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let module = this.py().import("tickpath.aio")?;
        module.call_method1("Told", (this,))
    }

    /// Returns an event for a task, if there is one.
    fn _attempt(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.check_run(py)?;
        self.check_task(py)?;
        self.next_event(py)
    }

    /// Returns the descriptor that an event loop should watch, -1 for none, and the seconds after which the loop should
    /// look in any case. None if an event may be there now.
    fn _sleeps(&self, py: Python<'_>) -> PyResult<Option<(RawFd, f64)>> {
        self.handle.with(py, |session| {
            let is_there = !session.waiting.is_empty();
            let sleeps = if is_there { None } else { session.client.prepare_sleep() };
            session.is_awaited = sleeps.is_some();
            sleeps.map(|(socket, due_ns)| (socket.map_or(-1, |socket| socket.as_raw_fd()), due_ns as f64 / 1e9))
        })
    }

    /// Ends the event loop's wait that `_sleeps` began.
    fn _is_awake(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.with(py, |session| {
            session.is_awaited = false;
            session.client.wake();
        })
    }

    /// Number of the session, among the user's sessions.
    #[getter]
    fn session(&self, py: Python<'_>) -> PyResult<u16> {
        self.handle.with(py, |session| session.client.welcome().session)
    }

    /// Number of requests sent through this object.
    #[getter]
    fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// True while requests can be sent.
    #[getter(connected)]
    pub fn is_connected(&self, py: Python<'_>) -> PyResult<bool> {
        self.handle.with(py, |session| session.client.is_connected())
    }

    /// Seconds without a poll after which the OMS considers the client dead.
    #[getter]
    fn heartbeat(&self, py: Python<'_>) -> PyResult<f64> {
        self.handle.with(py, |session| f64::from(session.client.welcome().heartbeat_ms) / 1e3)
    }

    /// Closes the session; a second call does nothing.
    fn close(&self, py: Python<'_>) {
        self.handle.close(py);
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) {
        self.handle.close(py);
    }
}

/// Exclusive right of a run to receive a session's events.
pub struct RunGuard<'a>(&'a PyOrders);

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        self.0.is_run.store(false, Ordering::Release);
    }
}
