//! The control port: questions and admin commands to the core, beside requests; and notices for the operator.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};

use mio::Waker;
use tickpath_clock::Clock;
use tickpath_market::{AccountId, ExecId, ExecType, ExecutionReport, OrderId, SymbolId};
use tickpath_oms_core::{Core, KILL_ACCOUNT, KILL_ALL, KILL_DISK, KILL_SESSION, OrderView, scope_name};
use tickpath_oms_protocol::{
    CommandAck, FrameKind, InstrumentRow, Query, Status, UserRole, write_frame, write_frame_with_text,
};
use tickpath_oms_runtime::{OmsError, OrderDifference, PositionComparison, Sequencer, SessionConfig, VenueAnswer};
use zerocopy::IntoBytes;

use super::config_reload::NewTradingConfig;
use super::event::ServerEvent;
use crate::settings::OmsUser;

pub(crate) struct ClientControlRequest {
    pub slot: usize,
    pub serial: u64,
    pub request: ControlRequest,
    pub user: Arc<OmsUser>,
}

/// Max rows in one page of a list. The core's thread answers one page in a turn.
const PAGE: usize = 128;
/// Rest after a page, in durations of that page, so that an order seldom meets a page: the lists of all sessions
/// together take a three hundredth of the core's thread, and their sending about as much again.
const PAUSE_FACTOR: u64 = 299;
/// Max kill switches that a status lists by name, so that they fit a frame.
const MAX_SWITCHES: usize = 100;
/// Time without a list that counts as rest, so that a short list after a silence comes at once.
const RESTED_AFTER_NS: u64 = 50_000_000;
/// Rows of a list per token of the session's rate limit.
const ROWS_PER_TOKEN: u64 = 16;

#[derive(Debug, Clone)]
pub(crate) enum ControlRequest {
    Query(QueryProgress),
    /// An admin command, as the record of its kind.
    Command {
        kind: u8,
        record: Vec<u8>,
    },
}

/// Progress of a question. The gateway asks for each page of a list when the client has room for it and a token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueryProgress {
    query: Query,
    /// Order id, or instrument number, behind which the next page begins; none for the first page.
    after: Option<u64>,
    rows: u64,
}

impl QueryProgress {
    /// Returns the listing of a question that has no answer yet.
    pub fn of(query: Query) -> Self {
        Self { query, after: None, rows: 0 }
    }

    /// Returns whether the token of the question's own frame pays for the next page.
    pub fn is_first_page(&self) -> bool {
        self.after.is_none()
    }

    fn is_list(&self) -> bool {
        !matches!(self.query.what, Query::STATUS | Query::ORDER | Query::ANSWERED)
    }
}

pub(crate) enum CoreReply {
    /// Frames of an answer or of one page of it, and the rest of the question if pages are left.
    Answer {
        slot: usize,
        serial: u64,
        frames: Vec<u8>,
        /// Tokens that the answer costs beyond the token taken for the question or page.
        tokens: u32,
        remaining: Option<QueryProgress>,
    },
    /// Sessions that may log in from now on.
    Sessions(Vec<SessionConfig>),
}

#[derive(Clone)]
pub(crate) struct GatewayWaker {
    sleeps: Arc<AtomicBool>,
    waker: Arc<Waker>,
}

impl GatewayWaker {
    pub fn new(waker: Waker) -> Self {
        Self { sleeps: Arc::new(AtomicBool::new(false)), waker: Arc::new(waker) }
    }

    /// Announces that the gateway goes to sleep; the gateway must look for messages once more afterwards.
    pub fn begin_sleep(&self) {
        self.sleeps.store(true, Ordering::SeqCst);
        // Pairs with the fence in `wake`: either the sender sees the flag, or the last look sees its message.
        fence(Ordering::SeqCst);
    }

    pub fn end_sleep(&self) {
        self.sleeps.store(false, Ordering::Relaxed);
    }

    /// Wakes the gateway if it sleeps, after a message was sent to it.
    #[inline]
    pub fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.sleeps.load(Ordering::Relaxed) && self.sleeps.swap(false, Ordering::Relaxed) {
            let _ = self.waker.wake();
        }
    }
}

/// The core's side of the control port: receives questions, sends answers and notices.
pub(crate) struct ControlServer {
    requests: Receiver<ClientControlRequest>,
    configs: Receiver<NewTradingConfig>,
    replies: Sender<CoreReply>,
    events: SyncSender<ServerEvent>,
    notices_sent: u64,
    started: u64,
    sessions: Arc<AtomicU64>,
    waker: Option<GatewayWaker>,
    /// Lists with a page to be answered, the longest waiting first.
    pending_lists: VecDeque<ClientControlRequest>,
    next_page_at: u64,
}

pub(crate) struct ControlClient {
    pub requests: Sender<ClientControlRequest>,
    pub replies: Receiver<CoreReply>,
    /// Number of sessions that are logged in.
    pub sessions: Arc<AtomicU64>,
}

impl ControlServer {
    pub fn new(
        events: SyncSender<ServerEvent>,
        configs: Receiver<NewTradingConfig>,
        started: u64,
        waker: Option<GatewayWaker>,
    ) -> (Self, ControlClient) {
        let ((request_sender, requests), (replies, reply_receiver)) = (channel(), channel());
        let sessions = Arc::new(AtomicU64::new(0));
        let client = ControlClient { requests: request_sender, replies: reply_receiver, sessions: sessions.clone() };
        let (notices_sent, pending_lists, next_page_at) = (0, VecDeque::new(), 0);
        let server = Self {
            requests,
            configs,
            replies,
            events,
            notices_sent,
            started,
            sessions,
            waker,
            pending_lists,
            next_page_at,
        };
        (server, client)
    }
}

impl<C: Clock> tickpath_oms_runtime::front_end::ControlPort<C> for ControlServer {
    fn serve(&mut self, oms: &mut Sequencer<C>) -> Result<usize, OmsError> {
        let mut done = 0;
        oms.note_sessions(self.sessions.load(Ordering::Relaxed));
        let count = oms.notice_count();
        if count > self.notices_sent {
            let new = (count - self.notices_sent) as usize;
            let kept: Vec<_> = oms.notices().cloned().collect();
            for notice in kept.into_iter().rev().take(new).rev() {
                let _ = self.events.try_send(ServerEvent::Notice(notice));
            }
            self.notices_sent = count;
        }
        while let Ok(received) = self.requests.try_recv() {
            if matches!(&received.request, ControlRequest::Query(listing) if listing.is_list()) {
                self.pending_lists.push_back(received);
                continue;
            }
            let frames = match &received.request {
                ControlRequest::Query(listing) => self.answer(&listing.query, &received.user, oms),
                ControlRequest::Command { kind, record } => run_command(oms, *kind, record)?,
            };
            let (slot, serial) = (received.slot, received.serial);
            let _ = self.replies.send(CoreReply::Answer { slot, serial, frames, tokens: 0, remaining: None });
            done += 1;
        }
        done += self.answer_list(oms);
        while let Ok(NewTradingConfig { config, users, directory, answer }) = self.configs.try_recv() {
            let result = match oms.replace_definitions(&config) {
                Ok(changes) => {
                    // The sessions come first: a client that logs in as a new user finds its session.
                    let _ = self.replies.send(CoreReply::Sessions(config.sessions));
                    directory.replace(users);
                    Ok(changes)
                }
                // The old trading configuration stays, and so do the users.
                Err(OmsError::IdentityConflicts(why)) => Err(why),
                Err(e) => return Err(e),
            };
            let _ = answer.send(result);
            done += 1;
        }
        if let Some(waker) = self.waker.as_ref().filter(|_| done > 0) {
            waker.wake();
        }
        Ok(done)
    }
}

impl ControlServer {
    fn answer<C: Clock>(&self, query: &Query, user: &OmsUser, oms: &Sequencer<C>) -> Vec<u8> {
        let (mut frames, now) = (Vec::new(), oms.clock().ticks());
        if query.what == Query::STATUS {
            let (status, switches) = (self.status(oms), visible_switches(oms.core(), user));
            let kind = FrameKind::Answer.code();
            write_frame_with_text(&mut frames, kind, 0, now, status.as_bytes(), switches.as_bytes());
            return frames;
        }
        let rows = if query.what == Query::ANSWERED {
            let answer = oms.answer(query.order).filter(|_| user.role == UserRole::Admin);
            let rows = answer.map(answer_rows).unwrap_or_default();
            for (session, report) in &rows {
                write_frame(&mut frames, FrameKind::OrderRow.code(), 0, (*session).into(), report.as_bytes());
            }
            rows.len()
        } else {
            let found = oms.core().order(OrderId(query.order)).filter(|order| user.may_see(order.account));
            write_rows(&mut frames, oms.core(), found.as_slice());
            found.as_slice().len()
        };
        write_frame(&mut frames, FrameKind::Answer.code(), rows as u64, now, &[]);
        frames
    }

    /// Answers a page of the list that has waited longest, once the core has had its rest. Returns the number of pages.
    fn answer_list<C: Clock>(&mut self, oms: &Sequencer<C>) -> usize {
        if self.pending_lists.is_empty() {
            return 0;
        }
        let from = oms.clock().ticks();
        if from < self.next_page_at {
            return 0;
        }
        let Some(ClientControlRequest { slot, serial, request: ControlRequest::Query(listing), user }) =
            self.pending_lists.pop_front()
        else {
            return 0;
        };
        let (mut frames, in_page, after) = match listing.query.what {
            Query::INSTRUMENTS => instrument_page(oms, listing.after),
            _ => order_page(oms, listing.after, &user),
        };
        let rows = listing.rows + in_page;
        let rest = after.map(|after| QueryProgress { after: Some(after), rows, ..listing });
        if rest.is_none() {
            write_frame(&mut frames, FrameKind::Answer.code(), rows, from, &[]);
        }
        let tokens = page_tokens(in_page);
        let _ = self.replies.send(CoreReply::Answer { slot, serial, frames, tokens, remaining: rest });
        let rested = oms.clock().calibration().ticks_of_ns(RESTED_AFTER_NS);
        let took = oms.clock().ticks().saturating_sub(from);
        self.next_page_at = self.next_page_at.max(from.saturating_sub(rested)) + PAUSE_FACTOR * took;
        1
    }

    fn status<C: Clock>(&self, oms: &Sequencer<C>) -> Status {
        let counts = oms.counts();
        let uptime = oms.clock().ticks().saturating_sub(self.started);
        let (venues_up, venues) = oms.venues_up();
        Status {
            pid: std::process::id().into(),
            uptime_s: oms.core().ns(uptime) / 1_000_000_000,
            epoch: oms.core().epoch(),
            journal_records: oms.records(),
            sessions: self.sessions.load(Ordering::Relaxed),
            queued: counts.queued,
            sending: counts.sending,
            working: counts.working,
            done: counts.done,
            rejected: counts.rejected,
            withdrawn: counts.withdrawn,
            unknown: counts.unknown,
            denied_requests: counts.denied_requests,
            duplicates: counts.duplicates,
            strangers: counts.unknown_order_reports,
            mismatched: counts.mismatched,
            contradictions: counts.contradictions,
            malformed: counts.malformed,
            refused: oms.invalid_messages(),
            venues_up: venues_up as u64,
            venues: venues as u64,
            held: oms.held() as u64,
            disk_failed: oms.has_disk_failed().into(),
            foreign: oms.core().unknown_order_report_count() as u64,
            kill_switches: oms.core().kills().count() as u64,
        }
    }
}

/// Returns the kill switches that are on and that a user may see, as text; empty if there are none.
fn visible_switches(core: &Core, user: &OmsUser) -> String {
    let is_seen = |&(scope, target): &(u8, u32)| match scope {
        KILL_ACCOUNT => user.may_see(AccountId(target)),
        KILL_SESSION => {
            user.role == UserRole::Admin || user.sessions.iter().any(|&session| u32::from(session) == target)
        }
        _ => true,
    };
    let mut on = core.kills().filter(is_seen);
    let shown = on.by_ref().take(MAX_SWITCHES).map(|(scope, target)| match (scope, scope_name(scope)) {
        (KILL_ALL | KILL_DISK, Some(name)) => name.to_owned(),
        (_, name) => format!("{} {target}", name.unwrap_or("scope")),
    });
    let shown: Vec<String> = shown.collect();
    let more = on.count();
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &rest
}

/// Passes an admin command to the core. Returns the frames of its answer: the orders in scope, then an acknowledgement.
fn run_command<C: Clock>(oms: &mut Sequencer<C>, kind: u8, record: &[u8]) -> Result<Vec<u8>, OmsError> {
    let (mut frames, now) = (Vec::new(), oms.clock().ticks());
    match oms.accept_command(now, kind, record)? {
        Ok(accepted) => {
            write_rows(&mut frames, oms.core(), &accepted.orders);
            let done = CommandAck { record: accepted.record };
            write_frame(&mut frames, FrameKind::CommandAck.code(), accepted.orders.len() as u64, now, done.as_bytes());
        }
        Err(why) => {
            let (done, why) = (CommandAck { record: 0 }, why.to_string());
            write_frame_with_text(&mut frames, FrameKind::CommandAck.code(), 0, now, done.as_bytes(), why.as_bytes());
        }
    }
    Ok(frames)
}

const ROW_BYTES: usize = size_of::<ExecutionReport>() + 32;

/// Returns the tokens that a page with so many rows costs beyond the token already taken for it.
fn page_tokens(rows: u64) -> u32 {
    u32::try_from(rows.div_ceil(ROWS_PER_TOKEN).saturating_sub(1)).unwrap_or(u32::MAX)
}

/// Returns a page of the open orders that a user may see: its frames, row count, and the order before the next page.
fn order_page<C: Clock>(oms: &Sequencer<C>, after: Option<u64>, user: &OmsUser) -> (Vec<u8>, u64, Option<u64>) {
    let page = oms.core().open_page(after.map(OrderId), PAGE, |account| user.may_see(account));
    let mut frames = Vec::with_capacity(page.orders.len() * ROW_BYTES);
    write_rows(&mut frames, oms.core(), &page.orders);
    (frames, page.orders.len() as u64, page.next.map(|order| order.0))
}

/// Returns a page of the instruments: its frames, row count, and the number before the next page.
fn instrument_page<C: Clock>(oms: &Sequencer<C>, after: Option<u64>) -> (Vec<u8>, u64, Option<u64>) {
    let first = SymbolId(after.map_or(0, |after| after as u32 + 1));
    let (mut frames, mut rows, mut last) = (Vec::new(), 0, None);
    for instrument in oms.instruments_from(first).take(PAGE) {
        let name = instrument.name();
        let row = InstrumentRow {
            symbol: instrument.symbol.0,
            venue: instrument.venue.0,
            reserved: 0,
            short_name: short_name(name.as_str()),
            long_name: name.0,
        };
        write_frame(&mut frames, FrameKind::InstrumentRow.code(), 0, 0, row.as_bytes());
        (rows, last) = (rows + 1, Some(u64::from(row.symbol)));
    }
    (frames, rows, last.filter(|_| rows == PAGE as u64))
}

/// Returns a name for clients that know only names of 16 bytes: nothing rather than a part, which two may share.
fn short_name(name: &str) -> [u8; 16] {
    let mut short = [0; 16];
    if let Some(to) = short.get_mut(..name.len()) {
        to.copy_from_slice(name.as_bytes());
    }
    short
}

/// Appends the frames of orders. The extension of an order is in the text, which older clients ignore.
fn write_rows(frames: &mut Vec<u8>, core: &Core, rows: &[OrderView]) {
    let kind = FrameKind::OrderRow.code();
    for order in rows {
        let extension = core.extension(order.id);
        let text = extension.as_ref().map_or(&[][..], |extension| extension.as_bytes());
        write_frame_with_text(frames, kind, 0, order.session.into(), row(order).as_bytes(), text);
    }
}

/// Returns the rows of a venue's answer, each with its session: the last report, then pairs of the two sides.
fn answer_rows(answer: &VenueAnswer) -> Vec<(u16, ExecutionReport)> {
    let VenueAnswer { last, orders, differing, differences, positions } = answer;
    if !last.ends_status_answer() {
        return vec![(0, *last)];
    }
    let mut rows = vec![(0, ExecutionReport { venue_sequence: *orders, exec_id: ExecId(*differing), ..*last })];
    for OrderDifference { ours, venues } in differences {
        rows.push(ours.as_ref().map_or((0, ExecutionReport::default()), |order| (order.session, row(order))));
        rows.push((0, venues.unwrap_or_default()));
    }
    for &PositionComparison { account, symbol, ours, venues } in positions {
        rows.extend([ours, venues].map(|[cumulative_quantity, leaves_quantity]| {
            (0, ExecutionReport { cumulative_quantity, leaves_quantity, account, symbol, ..ExecutionReport::default() })
        }));
    }
    rows
}

fn row(order: &OrderView) -> ExecutionReport {
    ExecutionReport {
        order_id: order.id,
        client_order_id: order.client_order_id,
        venue_order_id: order.venue_order_id,
        venue_sequence: order.venue_sequence,
        cumulative_quantity: order.cumulative,
        leaves_quantity: order.leaves,
        price: order.price,
        symbol: order.symbol,
        account: order.account,
        venue: order.venue,
        exec_type: ExecType::OrderStatus.code(),
        status: order.status.code(),
        side: order.side.code(),
        ..ExecutionReport::default()
    }
}
