//! The thread that receives over one connection after another, for a caller that must never wait for the server.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use futures_util::future::{Either, select};
use tickpath_bus_api::{Outage, Pause};
use tokio::sync::oneshot;
use tokio::task::coop::unconstrained;
use tokio::time::sleep;

use crate::connected::Connected;
use crate::error::ServerError;
use crate::link::Engine;
use crate::server::Server;

/// The pause before a reconnect.
const PAUSE: Pause = Pause::between(Duration::from_millis(100), Duration::from_secs(1));

/// The number of checks per silence. Checks are counted, not timed, because a process that was paused did not receive
/// meanwhile.
const LOOKS: u32 = 8;

/// The work of a background thread.
pub(crate) trait Feed: Send + 'static {
    /// Subscribes, on each new connection; returns when the server has confirmed it.
    async fn attach(&mut self, connected: &Connected) -> Result<(), ServerError>;

    /// Puts messages into the caller's mailbox until the connection is lost.
    async fn run(&mut self, connected: &Connected) -> Result<Infallible, ServerError>;

    /// Gives back the messages that were not handed over.
    async fn detach(&mut self, connected: &Connected) -> Result<(), ServerError>;

    /// Reports to the caller an error that does not pass by itself.
    fn tell(&mut self, sentence: String);
}

/// The handle of the thread, which stops when the handle is dropped.
pub(crate) struct Background {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    reconnects: Arc<AtomicU64>,
    outage: Outage,
}

impl Background {
    /// Starts the thread; returns when the feed is attached for the first time.
    pub fn start<F: Feed>(server: Arc<Server>, feed: F) -> Result<Self, ServerError> {
        let (stop, stopped) = oneshot::channel();
        let (opened, outcome) = sync_channel(1);
        let (reconnects, outage) = (Arc::new(AtomicU64::new(0)), Outage::default());
        let life = Life {
            server,
            feed,
            opened: Some(opened),
            pause: PAUSE,
            reconnects: reconnects.clone(),
            outage: outage.clone(),
            passed_over: 0,
        };
        let thread = Builder::new().name("nats".to_owned()).spawn(move || life.live(stopped));
        let thread = Some(thread.map_err(ServerError::NoThread)?);
        let background = Self { stop: Some(stop), thread, reconnects, outage };
        outcome.recv().unwrap_or(Err(ServerError::Closed))?;
        Ok(background)
    }

    /// Returns the number of reconnects.
    pub fn reconnects(&self) -> u64 {
        self.reconnects.load(Ordering::Relaxed)
    }

    /// Returns why there is no connection now, in a sentence.
    pub fn outage(&self) -> Option<String> {
        self.outage.why()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has already printed its message.
            let _ = thread.join();
        }
    }
}

/// The state of the thread.
struct Life<F> {
    server: Arc<Server>,
    feed: F,
    /// The channel to the caller that waits for the first connection, until it is there.
    opened: Option<SyncSender<Result<(), ServerError>>>,
    /// The pause before the next connection.
    pause: Pause,
    reconnects: Arc<AtomicU64>,
    outage: Outage,
    /// The number of servers in a row that had no JetStream or no leader.
    passed_over: usize,
}

/// The end of a connection.
enum End {
    /// The handle was dropped.
    Stopped,
    /// The connection was never usable.
    Failed(ServerError),
    /// The connection was lost.
    Lost(ServerError),
}

impl<F: Feed> Life<F> {
    fn live(mut self, mut stop: oneshot::Receiver<()>) {
        loop {
            let first = self.server.first();
            let error = match self.next_connection(&mut stop) {
                End::Stopped => return,
                End::Lost(error) => {
                    self.pause.reset();
                    self.pause.grow();
                    error
                }
                End::Failed(error) => {
                    self.pause.grow();
                    error
                }
            };
            if self.passes_over(first, &error) {
                continue;
            }
            if let Some(opened) = self.opened.take() {
                let _ = opened.send(Err(error));
                return;
            }
            let sentence = format!("{} {error}", self.server.name());
            if !error.may_pass() {
                self.feed.tell(sentence.clone());
            }
            self.outage.say(sentence);
        }
    }

    /// Reports whether to try another server, because this one has no JetStream or no leader. The answer of the last
    /// server stands.
    fn passes_over(&mut self, first: usize, error: &ServerError) -> bool {
        if !error.is_elsewhere() {
            self.passed_over = 0;
            return false;
        }
        self.server.pass_over(first);
        self.passed_over = (self.passed_over + 1) % self.server.count();
        self.passed_over > 0
    }

    /// Runs one connection. Each has a runtime of its own, so that none of its tasks outlives it.
    fn next_connection(&mut self, stop: &mut oneshot::Receiver<()>) -> End {
        match Engine::of_receiver() {
            Ok(engine) => engine.run(self.connection(stop)),
            Err(e) => {
                self.pause.sleep();
                if stop.try_recv() == Err(oneshot::error::TryRecvError::Empty) { End::Failed(e) } else { End::Stopped }
            }
        }
    }

    async fn connection(&mut self, stop: &mut oneshot::Receiver<()>) -> End {
        let Self { server, feed, opened, pause, reconnects, outage, .. } = self;
        let opening = async {
            if !pause.now().is_zero() {
                sleep(pause.now()).await;
            }
            let connected = Connected::open(server).await?;
            connected.bounded(connected.patiently(async || feed.attach(&connected).await)).await?;
            Ok::<_, ServerError>(connected)
        };
        let connected = match unless(stop, opening).await {
            None => return End::Stopped,
            Some(Err(e)) => return End::Failed(e),
            Some(Ok(connected)) => connected,
        };
        match opened.take() {
            Some(opened) => _ = opened.send(Ok(())),
            None => _ = reconnects.fetch_add(1, Ordering::Relaxed),
        }
        outage.end();
        match unless(stop, until_lost(feed, &connected, server.silence())).await {
            Some(e) => End::Lost(e),
            None => {
                // A message that cannot be given back now is redelivered later.
                let _ = connected.bounded(feed.detach(&connected)).await;
                End::Stopped
            }
        }
    }
}

/// Runs the feed until the connection is lost; messages that have come by then are still handed on.
async fn until_lost<F: Feed>(feed: &mut F, connected: &Connected, silence: Duration) -> ServerError {
    // The library's task and the feed take turns; the feed's turn ends when no message is left.
    let running = pin!(unconstrained(feed.run(connected)));
    let failing = pin!(async {
        match select(pin!(connected.failed()), pin!(until_silent(connected, silence))).await {
            Either::Left((error, _)) | Either::Right((error, _)) => error,
        }
    });
    match select(running, failing).await {
        Either::Left((ended, _)) => ended.err().unwrap_or(ServerError::Closed),
        Either::Right((error, _)) => error,
    }
}

/// Returns when the server has sent nothing for `silence`; the library pings it twice in that time.
async fn until_silent(connected: &Connected, silence: Duration) -> ServerError {
    let heard = || connected.client.statistics().in_bytes.load(Ordering::Relaxed);
    let (mut before, mut quiet) = (heard(), 0);
    while quiet < LOOKS {
        sleep(silence / LOOKS).await;
        let now = heard();
        quiet = if now == before { quiet + 1 } else { 0 };
        before = now;
    }
    ServerError::Silent(silence)
}

/// Runs `work`; returns none if it is stopped before the end.
async fn unless<T>(stop: &mut oneshot::Receiver<()>, work: impl Future<Output = T>) -> Option<T> {
    match select(pin!(work), stop).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}
