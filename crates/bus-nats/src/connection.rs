//! A connection of the client library, used until it is lost, and then given up.
//!
//! The library would reconnect by itself, and keep what it is to publish for later, so that neither the fate of a
//! message nor a gap would be known. So its reconnect delay is infinite: the user of a connection learns at once that
//! it is lost, drops it with its runtime, and makes a new one.

use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, Event, RequestErrorKind, ServerError as Complaint, jetstream};
use futures_util::future::{Either, select};
use tokio::net::lookup_host;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use crate::error::{NatsServerError, ServerResult, printable_server_text};
use crate::server::NatsEndpoint;

/// Max time for a server to accept a connection, and to answer a request.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// Max time for a cluster to elect a leader; shorter than [`TIMEOUT`], so that the server reports the lack of one. The
/// servers of a URL share it.
const ELECTION_TIMEOUT: Duration = Duration::from_secs(4);

/// The pause between two requests while a cluster has no leader.
const LEADER_RETRY_PAUSE: Duration = Duration::from_millis(50);

/// The number of messages in a subscription beyond which the library discards some; never reached. The library reads at
/// most 8 MiB at a time, which are 280,000 of the shortest messages, and after at most [`EVENT_INTERVAL`] reads all are
/// taken out, so that at most 32 MiB lie there.
const SUBSCRIPTION_CAPACITY: usize = 1 << 21;

/// The number of task turns of the library before the feed's turn; the default of 61 would let half a gibibyte pile up.
pub(crate) const EVENT_INTERVAL: u32 = 4;

pub(crate) struct NatsConnection {
    pub client: Client,
    pub context: jetstream::Context,
    /// Max time for a cluster to elect a leader.
    election_timeout: Duration,
    unusable_reason: watch::Receiver<Option<UnusableReason>>,
}

/// The reason why a connection is unusable.
#[derive(Debug, Clone)]
enum UnusableReason {
    Lost,
    Refused(String),
}

impl From<UnusableReason> for NatsServerError {
    fn from(reason: UnusableReason) -> Self {
        match reason {
            UnusableReason::Lost => Self::Closed,
            UnusableReason::Refused(what) => Self::Refused(what),
        }
    }
}

impl NatsConnection {
    /// Connects and logs in, to the first server that answers.
    pub async fn open(server: &NatsEndpoint) -> ServerResult<Self> {
        resolve(server).await?;
        let (sender, reason) = watch::channel(None);
        let is_open = Arc::new(AtomicBool::new(false));
        let opened = is_open.clone();
        // No pause between the servers of the first connect; after a loss the library never reconnects.
        let pause = move |_attempt: usize| if opened.load(Ordering::Relaxed) { Duration::MAX } else { Duration::ZERO };
        let urls = server.urls();
        let patience = TIMEOUT * u32::try_from(urls.len()).unwrap_or(1);
        let connecting = server
            .options()?
            .name("tickpath")
            .connection_timeout(TIMEOUT)
            .request_timeout(Some(TIMEOUT))
            .ping_interval(server.silence / 2)
            .subscription_capacity(SUBSCRIPTION_CAPACITY)
            .retain_servers_order()
            .ignore_discovered_servers()
            .reconnect_delay_callback(pause)
            .event_callback(move |event| {
                note_event(&sender, &event);
                ready(())
            })
            .connect(urls);
        let connected = timeout(patience, connecting).await.map_err(|_elapsed| NatsServerError::Timeout)?;
        // No task of the library has run since it connected.
        is_open.store(true, Ordering::Relaxed);
        let client = connected.map_err(|e| NatsServerError::from_connect(&e, &server.error_context()))?;
        let election_timeout = ELECTION_TIMEOUT / u32::try_from(server.count()).unwrap_or(1);
        Ok(Self { context: jetstream::new(client.clone()), client, election_timeout, unusable_reason: reason })
    }

    /// Runs `ask`, and repeats it for a while as long as the cluster has no leader.
    pub async fn retry_until_leader<T>(&self, mut ask: impl AsyncFnMut() -> ServerResult<T>) -> ServerResult<T> {
        let mut election_timeout = pin!(sleep(self.election_timeout));
        loop {
            match ask().await {
                Err(NatsServerError::NoLeader) => {}
                answer => return answer,
            }
            if let Either::Right(_) = select(pin!(sleep(LEADER_RETRY_PAUSE)), &mut election_timeout).await {
                return Err(NatsServerError::NoLeader);
            }
        }
    }

    /// Runs `work` with the limit [`TIMEOUT`]; fails early if the connection is lost.
    pub async fn with_timeout<T>(&self, work: impl Future<Output = ServerResult<T>>) -> ServerResult<T> {
        match select(pin!(timeout(TIMEOUT, work)), pin!(self.failure())).await {
            Either::Left((Ok(done), _)) => done,
            Either::Left((Err(_elapsed), _)) => Err(NatsServerError::Timeout),
            Either::Right((error, _)) => Err(error),
        }
    }

    /// Processes what the server has sent since the last call; fails if the connection is unusable, because the server
    /// may have closed it. Work that fails after this check may have arrived.
    pub async fn process_incoming(&self, is_fresh: bool) -> ServerResult {
        // The first turn polls the socket, the second one lets the library's tasks read it. A connection used just now
        // needs the second turn hardly ever, and a close that is missed so costs one more attempt.
        yield_now().await;
        if !is_fresh {
            yield_now().await;
        }
        let known = self.unusable_reason.borrow().clone();
        match known {
            Some(reason) => Err(reason.into()),
            None if matches!(self.client.connection_state(), State::Disconnected) => Err(NatsServerError::Closed),
            None => Ok(()),
        }
    }

    /// Returns the reason once the connection is unusable.
    pub async fn failure(&self) -> NatsServerError {
        let mut reason = self.unusable_reason.clone();
        let found = reason.wait_for(Option::is_some).await.map(|found| (*found).clone());
        found.ok().flatten().map_or(NatsServerError::Closed, NatsServerError::from)
    }

    /// Returns when the server has processed all that was sent before: it answers in order, also that the subject has
    /// no responder.
    pub async fn round_trip(&self) -> ServerResult {
        match self.client.request(self.client.new_inbox(), "".into()).await {
            Ok(_) => Ok(()),
            Err(e) if e.kind() == RequestErrorKind::NoResponders => Ok(()),
            Err(e) => Err(e.into()),
        }
    }
}

/// Resolves the servers' names before the library does, which gives names no time limit and no error of their own. One
/// server that resolves is enough.
async fn resolve(server: &NatsEndpoint) -> ServerResult {
    let mut failure = None;
    for address in server.addresses() {
        match timeout(TIMEOUT, lookup_host(address)).await {
            Ok(Ok(_addresses)) => return Ok(()),
            Ok(Err(e)) => failure = Some(e.to_string()),
            Err(_elapsed) => failure = Some("no answer within 5 s".to_owned()),
        }
    }
    Err(NatsServerError::Unresolved(failure.unwrap_or_default()))
}

/// Keeps the first event that makes the connection unusable. Messages that the library has discarded are such an event,
/// because a new connection reports the loss.
fn note_event(sender: &watch::Sender<Option<UnusableReason>>, event: &Event) {
    let found = match event {
        Event::Disconnected | Event::Closed | Event::SlowConsumer(_) => UnusableReason::Lost,
        Event::ServerError(Complaint::Other(what)) if what.starts_with("Permissions Violation") => {
            UnusableReason::Refused(printable_server_text(what))
        }
        _ => return,
    };
    sender.send_if_modified(|known| {
        let is_first = known.is_none();
        known.get_or_insert(found);
        is_first
    });
}
