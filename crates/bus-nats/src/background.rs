//! The thread that receives over one connection after another, for a caller that must never wait for the server.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use futures_util::future::{Either, select};
use tickpath_bus_api::{Backoff, Outage};
use tokio::sync::oneshot;
use tokio::task::coop::unconstrained;
use tokio::time::sleep;

use crate::blocking_connection::LocalRuntime;
use crate::connection::NatsConnection;
use crate::error::{NatsServerError, ServerResult};
use crate::server::NatsEndpoint;

const PAUSE: Backoff = Backoff::between(Duration::from_millis(100), Duration::from_secs(1));

/// The number of checks per silence. Checks are counted, not timed, because a process that was paused did not receive
/// meanwhile.
const CHECKS_PER_SILENCE: u32 = 8;

/// The work of a background thread.
pub(crate) trait BackgroundFeed: Send + 'static {
    /// Subscribes, on each new connection; returns when the server has confirmed it.
    async fn attach(&mut self, connected: &NatsConnection) -> ServerResult;

    /// Puts messages into the caller's mailbox until the connection is lost.
    async fn run(&mut self, connected: &NatsConnection) -> ServerResult<Infallible>;

    /// Gives back the messages that were not handed over.
    async fn detach(&mut self, connected: &NatsConnection) -> ServerResult;

    /// Reports to the caller an error that does not pass by itself.
    fn report_error(&mut self, sentence: String);
}

/// The handle of the thread, which stops when the handle is dropped.
pub(crate) struct ReceiverThread {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    reconnects: Arc<AtomicU64>,
    outage: Outage,
}

impl ReceiverThread {
    /// Starts the thread; returns when the feed is attached for the first time.
    pub fn start<F: BackgroundFeed>(server: Arc<NatsEndpoint>, feed: F) -> ServerResult<Self> {
        let (stop, stopped) = oneshot::channel();
        let (opened, outcome) = sync_channel(1);
        let (reconnects, outage) = (Arc::new(AtomicU64::new(0)), Outage::default());
        let state = ReceiverThreadState {
            server,
            feed,
            opened: Some(opened),
            pause: PAUSE,
            reconnects: reconnects.clone(),
            outage: outage.clone(),
            skipped_servers: 0,
        };
        let thread = Builder::new().name("nats".to_owned()).spawn(move || state.run_connections(stopped));
        let thread = Some(thread.map_err(NatsServerError::NoThread)?);
        let background = Self { stop: Some(stop), thread, reconnects, outage };
        outcome.recv().unwrap_or(Err(NatsServerError::Closed))?;
        Ok(background)
    }

    pub fn reconnects(&self) -> u64 {
        self.reconnects.load(Ordering::Relaxed)
    }

    /// Returns why there is no connection now, in a sentence.
    pub fn outage(&self) -> Option<String> {
        self.outage.reason()
    }
}

impl Drop for ReceiverThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has already printed its message.
            let _ = thread.join();
        }
    }
}

struct ReceiverThreadState<F> {
    server: Arc<NatsEndpoint>,
    feed: F,
    /// The channel to the caller that waits for the first connection, until it is there.
    opened: Option<SyncSender<ServerResult>>,
    pause: Backoff,
    reconnects: Arc<AtomicU64>,
    outage: Outage,
    /// The number of servers in a row that had no JetStream or no leader.
    skipped_servers: usize,
}

enum NatsConnectionEnd {
    Stopped,
    /// The connection was never usable.
    Failed(NatsServerError),
    Lost(NatsServerError),
}

impl<F: BackgroundFeed> ReceiverThreadState<F> {
    fn run_connections(mut self, mut stop: oneshot::Receiver<()>) {
        loop {
            let first = self.server.first();
            let error = match self.next_connection(&mut stop) {
                NatsConnectionEnd::Stopped => return,
                NatsConnectionEnd::Lost(error) => {
                    self.pause.reset();
                    self.pause.grow();
                    error
                }
                NatsConnectionEnd::Failed(error) => {
                    self.pause.grow();
                    error
                }
            };
            if self.skips_server(first, &error) {
                continue;
            }
            if let Some(opened) = self.opened.take() {
                let _ = opened.send(Err(error));
                return;
            }
            let sentence = format!("{} {error}", self.server.name);
            if !error.is_transient() {
                self.feed.report_error(sentence.clone());
            }
            self.outage.begin(sentence);
        }
    }

    /// Reports whether to try another server, because this one has no JetStream or no leader. The answer of the last
    /// server stands.
    fn skips_server(&mut self, first: usize, error: &NatsServerError) -> bool {
        if !error.is_server_specific() {
            self.skipped_servers = 0;
            return false;
        }
        self.server.skip_server(first);
        self.skipped_servers = (self.skipped_servers + 1) % self.server.count();
        self.skipped_servers > 0
    }

    /// Runs one connection. Each has a runtime of its own, so that none of its tasks outlives it.
    fn next_connection(&mut self, stop: &mut oneshot::Receiver<()>) -> NatsConnectionEnd {
        match LocalRuntime::of_receiver() {
            Ok(engine) => engine.run(self.run_connection(stop)),
            Err(e) => {
                self.pause.sleep();
                if stop.try_recv() == Err(oneshot::error::TryRecvError::Empty) {
                    NatsConnectionEnd::Failed(e)
                } else {
                    NatsConnectionEnd::Stopped
                }
            }
        }
    }

    async fn run_connection(&mut self, stop: &mut oneshot::Receiver<()>) -> NatsConnectionEnd {
        let Self { server, feed, opened, pause, reconnects, outage, .. } = self;
        let opening = async {
            if !pause.current().is_zero() {
                sleep(pause.current()).await;
            }
            let connected = NatsConnection::open(server).await?;
            connected.with_timeout(connected.retry_until_leader(async || feed.attach(&connected).await)).await?;
            Ok::<_, NatsServerError>(connected)
        };
        let connected = match run_unless_stopped(stop, opening).await {
            None => return NatsConnectionEnd::Stopped,
            Some(Err(e)) => return NatsConnectionEnd::Failed(e),
            Some(Ok(connected)) => connected,
        };
        match opened.take() {
            Some(opened) => _ = opened.send(Ok(())),
            None => _ = reconnects.fetch_add(1, Ordering::Relaxed),
        }
        outage.end();
        match run_unless_stopped(stop, run_until_lost(feed, &connected, server.silence)).await {
            Some(e) => NatsConnectionEnd::Lost(e),
            None => {
                // A message that cannot be given back now is redelivered later.
                let _ = connected.with_timeout(feed.detach(&connected)).await;
                NatsConnectionEnd::Stopped
            }
        }
    }
}

/// Runs the feed until the connection is lost; messages that have come by then are still handed on.
async fn run_until_lost<F: BackgroundFeed>(
    feed: &mut F,
    connected: &NatsConnection,
    silence: Duration,
) -> NatsServerError {
    // The library's task and the feed take turns; the feed's turn ends when no message is left.
    let running = pin!(unconstrained(feed.run(connected)));
    let failing = pin!(async {
        match select(pin!(connected.failure()), pin!(until_silent(connected, silence))).await {
            Either::Left((error, _)) | Either::Right((error, _)) => error,
        }
    });
    match select(running, failing).await {
        Either::Left((ended, _)) => ended.err().unwrap_or(NatsServerError::Closed),
        Either::Right((error, _)) => error,
    }
}

/// Returns when the server has sent nothing for `silence`; the library pings it twice in that time.
async fn until_silent(connected: &NatsConnection, silence: Duration) -> NatsServerError {
    let received = || connected.client.statistics().in_bytes.load(Ordering::Relaxed);
    let (mut before, mut quiet) = (received(), 0);
    while quiet < CHECKS_PER_SILENCE {
        sleep(silence / CHECKS_PER_SILENCE).await;
        let now = received();
        quiet = if now == before { quiet + 1 } else { 0 };
        before = now;
    }
    NatsServerError::Silent(silence)
}

/// Runs `work`; returns none if it is stopped before the end.
async fn run_unless_stopped<T>(stop: &mut oneshot::Receiver<()>, work: impl Future<Output = T>) -> Option<T> {
    match select(pin!(work), stop).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}
