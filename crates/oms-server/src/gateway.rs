//! The gateway: the sockets of logged-in clients.
//!
//! ```text
//!   sockets ──> inbox ──> number, bucket ──> the sequencer           T1: `ClientConnection::read`
//!   sockets <── output <──┬─ live: the history as it grows
//!                         └─ catch-up: the history from the client's position, a little in each turn
//! ```
//! A client that does not read costs at most a mebibyte of pending output, then catches up from the history. A client
//! that sends without a pause is limited by its turn and its token bucket, and waits in its own socket.
//!
//! The gateway owns one part for each of its concerns. A turn (`poll`) is a list of steps, and a step lends each part
//! that it needs to the part that does the work.

use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::Duration;

use mio::Poll;
use tickpath_clock::Clock;
use tickpath_log::LogPath;
use tickpath_oms_protocol::FrameKind;
use tickpath_oms_runtime::front_end::{FrontEndState, InputSink, SessionFrontEnd};
use tickpath_oms_runtime::history::HistoryIndex;
use tickpath_oms_runtime::layout::InputEvent;
use tickpath_oms_runtime::{LaneKind, NextNumbers, OmsError};

use super::admission_queue::AdmissionQueue;
use super::catch_up::{CatchUpQueue, send_history};
use super::check_schedule::CheckSchedule;
use super::client_table::{ClientTable, ReadyList};
use super::config::ServerConfig;
use super::config_reload::NewTradingConfig;
use super::connection::{DisconnectReason, OutstandingControl};
use super::control::{ControlClient, CoreReply, GatewayWaker};
use super::denials::DenialBudget;
use super::disk_space::DiskSpaceMonitor;
use super::drop_copies::DropCopyThread;
use super::error::ServerOpenError;
use super::report_feed::ReportFeed;
use super::session_numbers::RequestNumbers;
use super::session_table::SessionTable;
use super::socket_poll::SocketPoll;
use crate::settings::DenialLimits;

/// Max sleep while a client waits for a token or for the journal, which no poll reports.
const MAX_WAIT_NS: u64 = 1_000_000;

/// Parts of the OMS that a gateway is opened with, beside its configuration.
pub(crate) struct GatewayParts {
    pub journal_id: u64,
    pub journal_path: LogPath,
    pub history: HistoryIndex,
    /// Numbers of the next report and detail to each session.
    pub next_numbers: NextNumbers,
    /// State of the front end at the start.
    pub front_end_state: FrontEndState,
    pub control: ControlClient,
    pub configs: Sender<NewTradingConfig>,
}

/// Session front end of the server: the sockets of logged-in clients, and the parts that serve them.
pub(crate) struct Gateway<C> {
    pub(super) clock: C,
    pub(super) config: ServerConfig,
    pub(super) admissions: AdmissionQueue,
    pub(super) copies: DropCopyThread,
    pub(super) sockets: SocketPoll,
    pub(super) clients: ClientTable,
    pub(super) ready: ReadyList,
    pub(super) requests: RequestNumbers,
    pub(super) reports: ReportFeed,
    pub(super) catch_up: CatchUpQueue,
    pub(super) sessions: SessionTable,
    pub(super) denials: DenialBudget,
    pub(super) control: ControlClient,
    pub(super) checks: CheckSchedule,
    /// Waker of a gateway with a thread of its own.
    waker: Option<GatewayWaker>,
}

impl<C: Clock> Gateway<C> {
    /// Opens the gateway and starts its acceptor. With a waker the gateway can sleep.
    pub fn open(
        clock: C,
        poll: Poll,
        waker: Option<GatewayWaker>,
        config: &ServerConfig,
        parts: GatewayParts,
    ) -> Result<Self, ServerOpenError> {
        let GatewayParts { journal_id, journal_path, history, next_numbers, front_end_state, control, configs } = parts;
        let limits = config.settings.as_ref().map_or(DenialLimits::default(), |settings| settings.denials);
        let disk_space = DiskSpaceMonitor::new(journal_path.dir().to_owned(), u64::from(limits.disk_reserve_mb) << 20);
        let denials = DenialBudget::new(limits, disk_space.is_low.clone());
        let admissions = AdmissionQueue::open(clock.clone(), config, configs, disk_space)?;
        let journal = (journal_path, journal_id);
        let copies = DropCopyThread::open(clock.clone(), config, admissions.directory.clone(), journal)?;
        let reports = ReportFeed::open(journal_id, history, next_numbers)?;
        let now = clock.ticks();
        let absent_deadline = now + clock.calibration().ticks_of_ns(u64::from(config.heartbeat_ms) * 1_000_000);
        Ok(Self {
            config: config.clone(),
            admissions,
            copies,
            sockets: SocketPoll::new(poll),
            clients: ClientTable::default(),
            ready: ReadyList::default(),
            requests: RequestNumbers::new(front_end_state),
            reports,
            catch_up: CatchUpQueue::new(now),
            sessions: SessionTable::new(&config.sessions, absent_deadline),
            denials,
            control,
            checks: CheckSchedule::new(&clock, now),
            waker,
            clock,
        })
    }

    /// Takes the answers of the core and the sessions that may log in. Returns their number.
    fn take_core_replies(&mut self) -> usize {
        let mut done = 0;
        while let Ok(reply) = self.control.replies.try_recv() {
            done += 1;
            match reply {
                CoreReply::Answer { slot, serial, frames, tokens, remaining } => {
                    let Some(connection) = self.clients.get_mut(slot) else { continue };
                    if connection.serial != serial {
                        continue;
                    }
                    connection.output.write_frames(&frames);
                    connection.limit.bucket.charge(tokens);
                    if remaining.is_some() {
                        connection.liveness.last_received = self.clock.ticks();
                    }
                    connection.control.outstanding =
                        remaining.map_or(OutstandingControl::None, OutstandingControl::Queued);
                    connection.send_next_control(slot, &self.control);
                    self.ready.mark(slot);
                }
                CoreReply::Sessions(configs) => self.sessions.replace(configs, &self.denials),
            }
        }
        done
    }

    /// Gives a turn to the client that has waited longest to catch up. Returns the number of clients that had one.
    fn catch_up(&mut self, sink: &mut impl InputSink) -> Result<usize, OmsError> {
        if self.catch_up.is_empty() {
            return Ok(0);
        }
        let began = self.clock.ticks();
        let Some(slot) = self.catch_up.begin_turn(began) else { return Ok(0) };
        match self.clients.get_mut(slot).map(|connection| send_history(connection, &self.reports)) {
            Some(Ok(true)) => self.ready.mark(slot),
            Some(Ok(false)) | None => {}
            Some(Err(reason)) => self.disconnect(slot, reason, sink)?,
        }
        self.catch_up.end_turn(began, self.clock.ticks());
        Ok(1)
    }

    /// Ends a connection, and keeps its token bucket for the session's next client.
    pub(super) fn disconnect(
        &mut self,
        slot: usize,
        reason: DisconnectReason,
        sink: &mut impl InputSink,
    ) -> Result<(), OmsError> {
        let Some(mut connection) = self.clients.remove(slot) else { return Ok(()) };
        let now = self.clock.ticks();
        connection.disconnect(reason, now, &self.config.events);
        self.sockets.deregister(&mut connection.stream);
        let session = connection.session;
        self.sessions.keep_bucket(session, connection.limit.bucket);
        self.control.sessions.store(self.clients.session_count() as u64, Ordering::Relaxed);
        if !connection.is_journaled {
            return Ok(());
        }
        sink(LaneKind::Requests(session), now, InputEvent::Login(false))
    }
}

impl<C: Clock> SessionFrontEnd for Gateway<C> {
    fn poll(&mut self, sink: &mut impl InputSink) -> Result<usize, OmsError> {
        // Received before the sockets are polled: a frame sent before these logons, a logout above all, is read first.
        let admitted = self.admissions.receive();
        let mut done = self.sockets.poll_in_turn(admitted > 0, &mut self.clients, &mut self.ready);
        done += self.reports.forward_live(&mut self.clients, &mut self.ready, &mut self.denials)?;
        done += self.take_core_replies();
        self.clients.poll_lanes(&mut self.ready);
        done += self.serve_ready_clients(sink)?;
        self.enforce_budgets(sink)?;
        done += self.catch_up(sink)?;
        done += self.admit_waiting(admitted, sink)?;
        let now = self.clock.ticks();
        if self.checks.begin_round(now) {
            self.run_checks(now, sink)?;
        }
        Ok(done)
    }

    /// Sleeps until there may be work, or until the timeout. Returns at once without a waker.
    fn sleep(&mut self, timeout_ns: u64) {
        let Some(waker) = &self.waker else { return };
        if !self.catch_up.is_empty() {
            // The pause between two catch-up turns is shorter than any sleep.
            return tickpath_clock::yield_now();
        }
        waker.begin_sleep();
        // The next turn returns the error again.
        let forwarded = self.reports.forward_live(&mut self.clients, &mut self.ready, &mut self.denials);
        let mut is_quiet = matches!(forwarded, Ok(0));
        for lanes in self.clients.lanes() {
            is_quiet &= lanes.announce_sleep();
        }
        if is_quiet {
            let may_wait = self.ready.is_empty() && self.admissions.waiting.is_empty();
            let timeout_ns = if may_wait { timeout_ns } else { timeout_ns.min(MAX_WAIT_NS) };
            self.sockets.poll(Duration::from_nanos(timeout_ns), &mut self.clients, &mut self.ready);
        }
        waker.end_sleep();
        self.clients.lanes().for_each(|lanes| lanes.withdraw_sleep());
    }
}

impl<C> Drop for Gateway<C> {
    fn drop(&mut self) {
        self.admissions.close();
        for connection in self.clients.iter_mut() {
            connection.send_message(FrameKind::Logout, 0, 0, &[], b"the OMS stops");
            let _ = connection.flush();
        }
    }
}
