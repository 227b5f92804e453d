//! A session with an OMS.
//!
//! ```text
//!   tp_orders_open(config) ── logs on ──> tp_orders ── submit, cancel, replace ──> a request's id, at once; none waits
//!                                             └─────── poll, wait ───────────────> tp_order_event: what the OMS tells
//! ```
//! It is a [`tickpath_client::Client`], which keeps the session over losses of its connection; nothing runs in the background,
//! but while a lost connection is made again. What was told waits here until C has room for it.
//!
//! Not here: orders with triggers, mass cancels, questions and an admin's words, drop copies.

use std::collections::VecDeque;
use std::ffi::{CString, c_char};
use std::mem::offset_of;

use tickpath_client::{Client, ClientError, Config as ClientConfig, Event, Since};
use tickpath_clock::utc_ns;
use tickpath_market::{AccountId, ClientOrderId};

use crate::argument::{check_pointer, put, text};
use crate::bus::ignore_broken_pipes;
use crate::config::{Config, chosen, given_or, read};
use crate::handle::{Handle, Opened, close, make};
use crate::report::{sentence, tp_order_event};
use crate::request::{Asks, tp_cancel_order, tp_new_order, tp_replace_order};
use crate::room::Room;
use crate::status::{Failure, c_text, tp_status};

/// Events that wait to be handed over, at most: who has so many is not listened to until they are.
const MOST_WAITING: usize = 1 << 16;

/// With which reports a session begins.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_since {
    /// With what is new.
    TP_SINCE_NOW = 0,
    /// With the first of the day; what is not new is told as such.
    TP_SINCE_START = 1,
}

/// How a session with an OMS is opened. Zero is the usual in every field but size, url, user, password and, as a rule, account.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tp_orders_config {
    /// sizeof(tp_orders_config), as this header has it.
    pub size: usize,
    /// Where the OMS listens: unix:///PATH, the same over shared memory shm+unix:///PATH, tcp://HOST:PORT, or encrypted
    /// tls://HOST:PORT, with ?ca=FILE for an authority of one's own.
    pub url: *const c_char,
    /// Who logs on.
    pub user: *const c_char,
    /// What proves it.
    pub password: *const c_char,
    /// The id of the first request that is given none, from which on they count up: ids that this session has not had today. 0 is
    /// made of the time.
    pub first_id: u64,
    /// The account of requests that name none.
    pub account: u32,
    /// Whether `session` counts: 0 is the first of the user's sessions that nobody uses, 1 is that one, which is taken from who
    /// has it.
    pub has_session: u32,
    /// Which of the user's sessions.
    pub session: u32,
    /// With which reports it begins: a tp_since.
    pub since: u32,
    /// After so many milliseconds without a word either side takes the other for gone; 0 is the OMS's choice.
    pub heartbeat_ms: u32,
    /// How many milliseconds making a connection may take, the logon included; 0 is 5000.
    pub connect_timeout_ms: u32,
}

// As of the other configs: what the first version had.
const ORDERS_FIRST_BYTES: usize = 64;

// SAFETY: its fields are numbers and pointers, and fill it.
unsafe impl Config for tp_orders_config {
    fn first_bytes() -> usize {
        ORDERS_FIRST_BYTES
    }
}
const _: () = assert!(ORDERS_FIRST_BYTES == offset_of!(tp_orders_config, connect_timeout_ms) + size_of::<u32>());
const _: () = assert!(size_of::<tp_orders_config>() == 5 * 8 + 6 * 4);

/// A session with an OMS.
pub struct tp_orders(Handle<Session>);

struct Session {
    client: Client,
    account: AccountId,
    /// Of the next request that is given none.
    next_id: u64,
    /// What was told, and is not handed over.
    waiting: VecDeque<Event>,
    /// From this number on reports are live.
    live_from: u64,
    /// Of the events that the last poll handed over, which point at them.
    sentences: Vec<CString>,
    /// Why it is over, if C was told so.
    ended: Option<ClientError>,
}

impl Opened for Session {
    fn what() -> &'static str {
        "tp_orders"
    }
}

/// Logs on to an OMS, and waits for that as long as the config says. The handle goes to `out`, which is null if there is none:
/// TP_CONNECT says that the OMS does not answer, or does not let the user in. From then on the session outlives losses of its
/// connection. Poll or wait more often than its heartbeat_ms: nothing else listens, and who says nothing is taken for gone. As
/// by tp_connect to a server, SIGPIPE is ignored from then on if nobody has chosen otherwise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_orders_open(config: *const tp_orders_config, out: *mut *mut tp_orders) -> tp_status {
    let log_on = || -> Result<tp_orders, Failure> {
        // SAFETY: it is null or as large as its size says, as the header says.
        let config = unsafe { read("tp_orders_config", config)? };
        // SAFETY: its texts are null or text, as the header says.
        let session = unsafe { config.session()? };
        ignore_broken_pipes();
        Ok(tp_orders(Handle::new(Session {
            client: Client::connect(session)?,
            account: AccountId(config.account),
            next_id: if config.first_id == 0 { utc_ns() } else { config.first_id },
            waiting: VecDeque::new(),
            live_from: 0,
            sentences: Vec::new(),
            ended: None,
        })))
    };
    // SAFETY: it is null or a place for a handle, as the header says.
    unsafe { make(out, log_on) }
}

/// Sends a new order, stamped now, and never waits. `id`, which may be null, gets the id by which reports name it, and by which
/// it is canceled and replaced; 0 on an error, behind which it has not left. TP_OK is no proof that it has left either, nor
/// that the OMS has taken it: what it is told by tp_orders_poll is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_orders_submit(
    orders: *mut tp_orders,
    order: *const tp_new_order,
    id: *mut u64,
) -> tp_status {
    // SAFETY: as the header says.
    unsafe { ask(orders, "order", order, id) }
}

/// Asks to cancel an order, like tp_orders_submit; `id` gets the id of this request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_orders_cancel(
    orders: *mut tp_orders,
    cancel: *const tp_cancel_order,
    id: *mut u64,
) -> tp_status {
    // SAFETY: as the header says.
    unsafe { ask(orders, "cancel", cancel, id) }
}

/// Asks for another price and another total quantity of an order, like tp_orders_submit; `id` gets the id of this request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_orders_replace(
    orders: *mut tp_orders,
    replace: *const tp_replace_order,
    id: *mut u64,
) -> tp_status {
    // SAFETY: as the header says.
    unsafe { ask(orders, "replace", replace, id) }
}

/// Copies up to `max` events that are there to the array `events`, of which the first element's `size` is sizeof(tp_order_event);
/// `count` is how many, on every error too. It never waits, and with a `max` of 0 it only keeps the session alive. TP_ENDED
/// says that the session is over and that all was told.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_orders_poll(
    orders: *mut tp_orders,
    events: *mut tp_order_event,
    max: usize,
    count: *mut usize,
) -> tp_status {
    // SAFETY: it is null or was opened, and is not closed, as the header says.
    let orders = unsafe { orders.as_ref() };
    let mut told = 0;
    let status = Handle::using(orders.map(|orders| &orders.0), |session| {
        check_pointer("count", count)?;
        // SAFETY: so many are there, and the first one begins with its size, as the header says.
        let room = unsafe { Room::of(events, max)? };
        session.hear(room.most)?;
        told = session.tell(&room);
        Ok(())
    });
    // SAFETY: it is null or a place for a count, as the header says.
    unsafe { put(count, told) };
    status
}

/// Sleeps until there may be something to poll, or `timeout_ns` nanoseconds are over. It may return early, also by a signal, and
/// does when a sign of life is due: poll, and wait again. Who does not want to sleep polls alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_orders_wait(orders: *mut tp_orders, timeout_ns: u64) -> tp_status {
    // SAFETY: it is null or was opened, and is not closed, as the header says.
    let orders = unsafe { orders.as_ref() };
    Handle::using(orders.map(|orders| &orders.0), |session| {
        if session.waiting.is_empty() {
            session.client.wait(timeout_ns);
            // Signs of life go and are heard. Why the session is over is for a poll to tell.
            let _ = session.hear(0);
        }
        Ok(())
    })
}

/// Logs out, closes a session and frees it; what was sent gets up to 0.2 s to leave. Orders that work go on working, unless the
/// OMS is set to cancel them then. A null pointer is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_orders_close(orders: *mut tp_orders) -> tp_status {
    // SAFETY: it is null or was opened, and nobody uses it again, as the header says.
    unsafe { close(orders, |orders| &orders.0) }
}

/// Sends what C asks for, and gives C the request's id.
///
/// # Safety
/// `orders` is null, or was opened and is not closed; `given` is null, or as large as its size says, and stays as it is during
/// the call; `id` is null, or a place for a number that is nobody else's during the call.
#[inline(always)]
unsafe fn ask<A: Asks>(orders: *mut tp_orders, what: &str, given: *const A, id: *mut u64) -> tp_status {
    // SAFETY: it is null or a place for a number, as the caller promises.
    unsafe { put(id, 0) };
    // SAFETY: it is null or was opened, and is not closed, as the caller promises.
    let orders = unsafe { orders.as_ref() };
    Handle::using(orders.map(|orders| &orders.0), |session| {
        check_pointer(what, given)?;
        // SAFETY: it is as large as its size says, as the caller promises.
        let asked = unsafe { read(A::name(), given)? };
        let sent = session.send(&asked)?;
        // SAFETY: as above.
        unsafe { put(id, sent) };
        Ok(())
    })
}

impl Session {
    /// Sends a request, and gives its id.
    fn send(&mut self, asked: &impl Asks) -> Result<u64, Failure> {
        if let Some(why) = &self.ended {
            return Err(over(why));
        }
        let id = given_or(asked.id(), self.next_id);
        self.client.send(&asked.request(ClientOrderId(id), self.account)?)?;
        if asked.id() == 0 {
            self.next_id = id.wrapping_add(1).max(1);
        }
        Ok(id)
    }

    /// Hears until so many events wait or nothing more is there. It does each time, for that keeps the session alive; why it is
    /// over is told behind all that came.
    fn hear(&mut self, most: usize) -> Result<(), Failure> {
        let Self { client, waiting, ended, .. } = self;
        while waiting.len() < MOST_WAITING {
            match client.poll(|event| waiting.push_back(event)) {
                Err(why) if waiting.is_empty() => {
                    let failure = over(&why);
                    *ended = Some(why);
                    return Err(failure);
                }
                Err(_) | Ok(0) => break,
                Ok(_) if waiting.len() >= most => break,
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// Hands over as many events as there is room for; says how many it was.
    fn tell(&mut self, room: &Room) -> usize {
        self.sentences.clear();
        let mut told = 0;
        while told < room.most
            && let Some(event) = self.waiting.pop_front()
        {
            if let Event::Connected(welcome) = &event {
                self.live_from = welcome.live_report;
            }
            let Some(mut seen) = tp_order_event::of(&event, self.live_from) else { continue };
            let sentence = sentence(&event);
            if !sentence.is_empty() {
                let sentence = c_text(&sentence);
                seen.sentence = sentence.as_ptr();
                self.sentences.push(sentence);
            }
            room.put(told, &seen);
            told += 1;
        }
        told
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.client.leave();
    }
}

impl tp_orders_config {
    /// What the client takes.
    ///
    /// # Safety
    /// Its texts are null, or end with a zero, and stay as they are during the call.
    unsafe fn session(&self) -> Result<ClientConfig, Failure> {
        const SINCE: [(u32, Since); 2] =
            [(tp_since::TP_SINCE_NOW as u32, Since::Now), (tp_since::TP_SINCE_START as u32, Since::Start)];
        // SAFETY: as the caller promises.
        let url = unsafe { text("url", self.url)? };
        // SAFETY: as the caller promises.
        let user = unsafe { text("user", self.user)? };
        // SAFETY: as the caller promises.
        let password = unsafe { text("password", self.password)? };
        let config = ClientConfig::new(url, user, password);
        Ok(ClientConfig {
            session: self.wanted_session()?,
            since: chosen("tp_since", self.since, &SINCE)?,
            heartbeat_ms: self.heartbeat_ms,
            connect_timeout_ms: given_or(self.connect_timeout_ms, config.connect_timeout_ms),
            ..config
        })
    }

    /// Which of the user's sessions; none if any will do.
    fn wanted_session(&self) -> Result<Option<u16>, Failure> {
        match (self.has_session, u16::try_from(self.session)) {
            (0, _) => Ok(None),
            // The highest number would stand for any.
            (1, Ok(session)) if session < u16::MAX => Ok(Some(session)),
            (1, _) => Err(Failure::invalid(format!("{} is no session; take one of the user's", self.session))),
            (other, _) => {
                Err(Failure::invalid(format!("has_session is {other}; set it to 1, or to 0 for any session")))
            }
        }
    }
}

/// Why nothing comes of a session any more.
fn over(why: &ClientError) -> Failure {
    Failure::new(tp_status::TP_ENDED, format!("{why}; this session is over: close it, and open another one"))
}
