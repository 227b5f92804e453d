//! A session with an OMS.
//!
//! ```text
//!   tp_orders_open(config) ── logs on ──> tp_orders ── submit, cancel, … ──> a request's id; no call waits
//!                                             └─────── poll, wait ───────────────> tp_order_event
//! ```
//! `tp_orders` holds a [`tickpath_oms_client::Client`], which keeps the session across lost connections; nothing runs
//! in the background, except while a lost connection is made again. Events wait here until C has room for them.
//!
//! Not covered: orders with triggers, mass cancels, queries of all orders, admin commands, and drop copies.

use std::collections::VecDeque;
use std::ffi::{CString, c_char};

use tickpath_clock::utc_ns;
use tickpath_market::{AccountId, ClientOrderId};
use tickpath_oms_client::{Client, ClientError, ClientEvent, Config as ClientConfig, Since};

use crate::argument::{check_pointer, put, text};
use crate::bus::ignore_broken_pipes;
use crate::config::{find_value, nonzero_or, read_struct, sized_struct};
use crate::event_array::EventArray;
use crate::handle::{Handle, close, create, handle_of, handle_type};
use crate::report::{explanation, tp_order_event};
use crate::request::{RequestStruct, tp_cancel_order, tp_new_order, tp_order_query, tp_replace_order};
use crate::status::{CallFailure, c_text, tp_status};

/// Max events that wait to be handed over; at this number the session stops reading until some are polled.
const MAX_WAITING_EVENTS: usize = 1 << 16;

/// First report of a session.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_since {
    /// The first new report.
    TP_SINCE_NOW = 0,
    /// The first report of the day; is_live is false in reports that are not new.
    TP_SINCE_START = 1,
}

/// Configuration of a session with an OMS. Zero is the default of every field except size, url, user, password and, as
/// a rule, account.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_orders_config {
    /// sizeof(tp_orders_config), as in this header.
    pub size: usize,
    /// Address of the OMS: unix:///PATH, the same over shared memory shm+unix:///PATH, tcp://HOST:PORT, or encrypted
    /// tls://HOST:PORT, with ?ca=FILE for a certificate authority that the host does not trust.
    pub url: *const c_char,
    /// Name of the user.
    pub user: *const c_char,
    /// Password of the user.
    pub password: *const c_char,
    /// Id of the first request without an id of its own; the following ids count up. This session must not have used
    /// these ids today; 0 derives the first id from the time.
    pub first_id: u64,
    /// Account of requests that name no account.
    pub account: u32,
    /// 0 takes the first of the user's sessions that is free; 1 takes the session `session`, and disconnects a client
    /// that holds it.
    pub has_session: u32,
    /// Number of the session among the user's sessions, if has_session is 1.
    pub session: u32,
    /// First report to receive: a tp_since.
    pub since: u32,
    /// Milliseconds of silence after which either side considers the other dead; 0 takes the value that the OMS
    /// chooses.
    pub heartbeat_ms: u32,
    /// Max time to connect, the logon included, in milliseconds; 0 means 5000.
    pub connect_timeout_ms: u32,
}

sized_struct!(tp_orders_config: 64 to connect_timeout_ms: u32, 5 * 8 + 6 * 4);

/// Session with an OMS.
pub struct tp_orders(Handle<OrdersSession>);

pub(crate) struct OrdersSession {
    client: Client,
    account: AccountId,
    /// Id of the next request without an id.
    next_id: u64,
    /// Events received and not handed over.
    waiting: VecDeque<ClientEvent>,
    /// Reports from this number on are live.
    live_from: u64,
    /// Sentences of the events handed over by the last poll, which point to them.
    sentences: Vec<CString>,
    /// Reason for the end of the session, once a poll has returned it.
    ended: Option<ClientError>,
}

handle_type!(tp_orders holds OrdersSession);

/// Logs on to an OMS, waits up to connect_timeout_ms of `config`, and writes the handle to `out`, or null on an error;
/// returns TP_CONNECT if the OMS does not answer or refuses the user. The session then survives lost connections, but
/// nothing reads in the background: poll or wait more often than heartbeat_ms, or the OMS considers the program dead.
/// Like tp_connect to a server, this call sets SIGPIPE to be ignored if the process has the default action for that
/// signal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_orders_open(config: *const tp_orders_config, out: *mut *mut tp_orders) -> tp_status {
    let log_on = || -> Result<tp_orders, CallFailure> {
        // SAFETY: null, or as large as its `size` field states, as the header requires.
        let config = unsafe { read_struct(config)? };
        // SAFETY: its texts are null or zero-terminated, as the header requires.
        let session = unsafe { config.session()? };
        ignore_broken_pipes();
        Ok(tp_orders(Handle::new(OrdersSession {
            client: Client::connect(session)?,
            account: AccountId(config.account),
            next_id: if config.first_id == 0 { utc_ns() } else { config.first_id },
            waiting: VecDeque::new(),
            live_from: 0,
            sentences: Vec::new(),
            ended: None,
        })))
    };
    // SAFETY: `out` is null or a valid place for a handle, as the header requires.
    unsafe { create(out, log_on) }
}

/// Sends a new order, stamped with the present time; never waits. Writes to `id`, which may be null, the id that names
/// the order in reports, cancels and replaces; 0 on an error, after which the order was not sent. TP_OK does not prove
/// that the order was sent or that the OMS took it: the events of tp_orders_poll do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_orders_submit(
    orders: *mut tp_orders,
    order: *const tp_new_order,
    id: *mut u64,
) -> tp_status {
    // SAFETY: the header requires the same of the caller.
    unsafe { send_request(orders, "order", order, id) }
}

/// Sends a request to cancel an order, like tp_orders_submit; writes the id of this request to `id`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_orders_cancel(
    orders: *mut tp_orders,
    cancel: *const tp_cancel_order,
    id: *mut u64,
) -> tp_status {
    // SAFETY: the header requires the same of the caller.
    unsafe { send_request(orders, "cancel", cancel, id) }
}

/// Sends a request to change the price and the total quantity of an order, like tp_orders_submit; writes the id of this
/// request to `id`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_orders_replace(
    orders: *mut tp_orders,
    replace: *const tp_replace_order,
    id: *mut u64,
) -> tp_status {
    // SAFETY: the header requires the same of the caller.
    unsafe { send_request(orders, "replace", replace, id) }
}

/// Sends a request for the state of an order, like tp_orders_submit; writes the id of this request to `id`. The answer
/// is a report whose exec_type is TP_EXEC_ORDER_STATUS, with the id of this request as its client_order_id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_orders_query(
    orders: *mut tp_orders,
    query: *const tp_order_query,
    id: *mut u64,
) -> tp_status {
    // SAFETY: the header requires the same of the caller.
    unsafe { send_request(orders, "query", query, id) }
}

/// Copies up to `max` available events to the array `events`, whose first element has `size` set to
/// sizeof(tp_order_event), and writes their number to `count`, on every error too. Never waits; with a `max` of 0 it
/// only keeps the session alive. TP_ENDED means that the session has ended and that all events were handed over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_orders_poll(
    orders: *mut tp_orders,
    events: *mut tp_order_event,
    max: usize,
    count: *mut usize,
) -> tp_status {
    let mut copied = 0;
    // SAFETY: null or an open handle, as the header requires.
    let status = Handle::with(unsafe { handle_of(orders) }, |session| {
        check_pointer("count", count)?;
        // SAFETY: `max` events are valid, and the first one begins with its size, as the header requires.
        let room = unsafe { EventArray::of(events, max)? };
        session.poll_client(room.capacity)?;
        copied = session.hand_over(&room);
        Ok(())
    });
    // SAFETY: `count` is null or a valid place for a number, as the header requires.
    unsafe { put(count, copied) };
    status
}

/// Sleeps until an event may be available or `timeout_ns` nanoseconds have passed. It may return early, also because of
/// a signal, and does so when a heartbeat is due: poll, and wait again. A program that must not sleep only polls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_orders_wait(orders: *mut tp_orders, timeout_ns: u64) -> tp_status {
    // SAFETY: null or an open handle, as the header requires.
    Handle::with(unsafe { handle_of(orders) }, |session| {
        if session.waiting.is_empty() {
            session.client.wait(timeout_ns);
            // Keeps the session alive. An error that ends the session is left for the next poll.
            let _ = session.poll_client(0);
        }
        Ok(())
    })
}

/// Logs out, closes a session and frees its handle; submitted requests get up to 0.2 s to be sent. Working
/// orders keep working, unless the OMS is configured to cancel them at a disconnect. Does nothing for a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_orders_close(orders: *mut tp_orders) -> tp_status {
    // SAFETY: null or an open handle that is never used again, as the header requires.
    unsafe { close(orders) }
}

/// Sends a request of C, and writes its id.
///
/// # Safety
/// `orders` is null or an open handle; `given` is null, or as large as its size states, and unchanged during the call;
/// `id` is null, or valid for a number and not used by others during the call.
#[inline(always)]
unsafe fn send_request<A: RequestStruct>(
    orders: *mut tp_orders,
    what: &str,
    given: *const A,
    id: *mut u64,
) -> tp_status {
    // SAFETY: `id` is null or a valid place for a number, as the caller guarantees.
    unsafe { put(id, 0) };
    // SAFETY: null or an open handle, as the caller guarantees.
    Handle::with(unsafe { handle_of(orders) }, |session| {
        check_pointer(what, given)?;
        // SAFETY: the struct is as large as its `size` field states, as the caller guarantees.
        let request = unsafe { read_struct(given)? };
        let sent = session.send(&request)?;
        // SAFETY: as above.
        unsafe { put(id, sent) };
        Ok(())
    })
}

impl OrdersSession {
    fn send(&mut self, given: &impl RequestStruct) -> Result<u64, CallFailure> {
        if let Some(why) = &self.ended {
            return Err(ended_failure(why));
        }
        let id = nonzero_or(given.id(), self.next_id);
        self.client.send(&given.request(ClientOrderId(id), self.account)?)?;
        if given.id() == 0 {
            self.next_id = id.wrapping_add(1).max(1);
        }
        Ok(id)
    }

    /// Polls once, then until `max` events wait or no more arrive; the session's end is an error after all events.
    fn poll_client(&mut self, max: usize) -> Result<(), CallFailure> {
        let Self { client, waiting, ended, .. } = self;
        while waiting.len() < MAX_WAITING_EVENTS {
            match client.poll(|event| waiting.push_back(event)) {
                Err(why) if waiting.is_empty() => {
                    let failure = ended_failure(&why);
                    *ended = Some(why);
                    return Err(failure);
                }
                Err(_) | Ok(0) => break,
                Ok(_) if waiting.len() >= max => break,
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// Hands over as many events as there is room for; returns their number.
    fn hand_over(&mut self, room: &EventArray) -> usize {
        self.sentences.clear();
        let mut copied = 0;
        while copied < room.capacity
            && let Some(event) = self.waiting.pop_front()
        {
            if let ClientEvent::Connected(welcome) = &event {
                self.live_from = welcome.live_report;
            }
            let Some(mut converted) = tp_order_event::of(&event, self.live_from) else { continue };
            let sentence = explanation(&event);
            if !sentence.is_empty() {
                let sentence = c_text(&sentence);
                converted.sentence = sentence.as_ptr();
                self.sentences.push(sentence);
            }
            room.put(copied, &converted);
            copied += 1;
        }
        copied
    }
}

impl Drop for OrdersSession {
    fn drop(&mut self) {
        self.client.disconnect();
    }
}

impl tp_orders_config {
    /// Converts to the client's configuration.
    ///
    /// # Safety
    /// The texts are null, or zero-terminated and unchanged during the call.
    unsafe fn session(&self) -> Result<ClientConfig, CallFailure> {
        const SINCE: [(u32, Since); 2] =
            [(tp_since::TP_SINCE_NOW as u32, Since::Now), (tp_since::TP_SINCE_START as u32, Since::Start)];
        // SAFETY: guaranteed by the caller.
        let url = unsafe { text("url", self.url)? };
        // SAFETY: guaranteed by the caller.
        let user = unsafe { text("user", self.user)? };
        // SAFETY: guaranteed by the caller.
        let password = unsafe { text("password", self.password)? };
        let config = ClientConfig::new(url, user, password);
        Ok(ClientConfig {
            session: self.wanted_session()?,
            since: find_value("tp_since", self.since, &SINCE)?,
            heartbeat_ms: self.heartbeat_ms,
            connect_timeout_ms: nonzero_or(self.connect_timeout_ms, config.connect_timeout_ms),
            ..config
        })
    }

    /// Returns the requested session number; None for any session.
    fn wanted_session(&self) -> Result<Option<u16>, CallFailure> {
        match (self.has_session, u16::try_from(self.session)) {
            (0, _) => Ok(None),
            // The highest number is reserved for "any session".
            (1, Ok(session)) if session < u16::MAX => Ok(Some(session)),
            (1, _) => Err(CallFailure::invalid(format!("{} is no session; take one of the user's", self.session))),
            (other, _) => {
                Err(CallFailure::invalid(format!("has_session is {other}; set it to 1, or to 0 for any session")))
            }
        }
    }
}

fn ended_failure(why: &ClientError) -> CallFailure {
    CallFailure::new(tp_status::TP_ENDED, format!("{why}; this session is over: close it, and open another one"))
}
