//! A connection of the client library. It is used until it is lost, and then given up.
//!
//! The library would connect again by itself, and keep meanwhile what it is to publish, for later. Nobody could say
//! then what became of a message, nor what was missed. So its own reconnecting is put to sleep for ever: who uses a
//! connection learns at once that it is lost, drops it with its runtime, and makes a new one.

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

use crate::error::{ServerError, said};
use crate::server::Server;

/// How long a server may take to accept, and to answer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// How long a cluster may take to have a leader; shorter than [`TIMEOUT`], so that the server is the one that says so.
/// Where a URL names several servers they share it.
const ELECTION: Duration = Duration::from_secs(4);

/// The pause between two questions for a leader.
const LOOK: Duration = Duration::from_millis(50);

/// Messages that a subscription may hold before the library throws some away. It never holds so many: the library reads
/// at most 8 MiB in one go, which are 280,000 of the shortest messages, and after at most [`EVENT_INTERVAL`] goes all
/// are taken out. So what lies there is bounded by 32 MiB of what was read, and this is never the bound.
const SUBSCRIPTION_MESSAGES: usize = 1 << 21;

/// Turns of the library's tasks before it is our turn again; the usual 61 would let it pile up half a gibibyte.
pub(crate) const EVENT_INTERVAL: u32 = 4;

/// A connection, logged in.
pub(crate) struct Connected {
    /// For core NATS.
    pub client: Client,
    /// For JetStream.
    pub context: jetstream::Context,
    /// How long a cluster may take to have a leader.
    election: Duration,
    trouble: watch::Receiver<Option<Trouble>>,
}

/// Why a connection is of no more use.
#[derive(Debug, Clone)]
enum Trouble {
    Lost,
    Refused(String),
}

impl From<Trouble> for ServerError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Lost => Self::Closed,
            Trouble::Refused(what) => Self::Refused(what),
        }
    }
}

impl Connected {
    /// Connects and logs in, to the first server that answers.
    pub async fn open(server: &Server) -> Result<Self, ServerError> {
        resolve(server).await?;
        let (sender, trouble) = watch::channel(None);
        let is_open = Arc::new(AtomicBool::new(false));
        let opened = is_open.clone();
        // One server after the other while it connects; when that is lost, no more.
        let pause = move |_attempt: usize| if opened.load(Ordering::Relaxed) { Duration::MAX } else { Duration::ZERO };
        let urls = server.urls();
        let patience = TIMEOUT * u32::try_from(urls.len()).unwrap_or(1);
        let connecting = server
            .options()?
            .name("tickpath")
            .connection_timeout(TIMEOUT)
            .request_timeout(Some(TIMEOUT))
            .ping_interval(server.silence() / 2)
            .subscription_capacity(SUBSCRIPTION_MESSAGES)
            .retain_servers_order()
            .ignore_discovered_servers()
            .reconnect_delay_callback(pause)
            .event_callback(move |event| {
                note(&sender, &event);
                ready(())
            })
            .connect(urls);
        let connected = timeout(patience, connecting).await.map_err(|_elapsed| ServerError::Timeout)?;
        // Nothing of the library has run since it connected.
        is_open.store(true, Ordering::Relaxed);
        let client = connected.map_err(|e| ServerError::of_connect(&e, &server.asked()))?;
        let election = ELECTION / u32::try_from(server.count()).unwrap_or(1);
        Ok(Self { context: jetstream::new(client.clone()), client, election, trouble })
    }

    /// Asks, and asks again as long as the answer is that there is no leader, for a while.
    pub async fn patiently<T>(&self, mut ask: impl AsyncFnMut() -> Result<T, ServerError>) -> Result<T, ServerError> {
        let mut election = pin!(sleep(self.election));
        loop {
            match ask().await {
                Err(ServerError::NoLeader) => {}
                answer => return answer,
            }
            if let Either::Right(_) = select(pin!(sleep(LOOK)), &mut election).await {
                return Err(ServerError::NoLeader);
            }
        }
    }

    /// Does this within [`TIMEOUT`], unless the connection is lost meanwhile.
    pub async fn bounded<T>(&self, work: impl Future<Output = Result<T, ServerError>>) -> Result<T, ServerError> {
        match select(pin!(timeout(TIMEOUT, work)), pin!(self.failed())).await {
            Either::Left((Ok(done), _)) => done,
            Either::Left((Err(_elapsed), _)) => Err(ServerError::Timeout),
            Either::Right((error, _)) => Err(error),
        }
    }

    /// Hears what the server has said since anybody listened; fails if the connection is of no more use: it may have
    /// hung up. What is done after that and fails may have arrived.
    pub async fn listen(&self, is_fresh: bool) -> Result<(), ServerError> {
        // In the first turn the system is asked what has come, in the second one the library's tasks read it. Of a
        // connection that was used just now the end is hardly ever missed so, and costs a second attempt no more.
        yield_now().await;
        if !is_fresh {
            yield_now().await;
        }
        let known = self.trouble.borrow().clone();
        match known {
            Some(trouble) => Err(trouble.into()),
            None if matches!(self.client.connection_state(), State::Disconnected) => Err(ServerError::Closed),
            None => Ok(()),
        }
    }

    /// Returns when the connection is of no more use, with the reason.
    pub async fn failed(&self) -> ServerError {
        let mut trouble = self.trouble.clone();
        let found = trouble.wait_for(Option::is_some).await.map(|found| (*found).clone());
        found.ok().flatten().map_or(ServerError::Closed, ServerError::from)
    }

    /// Returns when the server has done all that it was told before. It answers in turn, also that nobody listens.
    pub async fn round_trip(&self) -> Result<(), ServerError> {
        match self.client.request(self.client.new_inbox(), "".into()).await {
            Ok(_) => Ok(()),
            Err(e) if e.kind() == RequestErrorKind::NoResponders => Ok(()),
            Err(e) => Err(e.into()),
        }
    }
}

/// The library gives names no time limit, and addresses not their own error. One server that has a name is enough.
async fn resolve(server: &Server) -> Result<(), ServerError> {
    let mut failure = None;
    for address in server.addresses() {
        match timeout(TIMEOUT, lookup_host(address)).await {
            Ok(Ok(_addresses)) => return Ok(()),
            Ok(Err(e)) => failure = Some(e.to_string()),
            Err(_elapsed) => failure = Some("no answer within 5 s".to_owned()),
        }
    }
    Err(ServerError::Unresolved(failure.unwrap_or_default()))
}

/// Keeps the first event that makes the connection useless. Messages that the library threw away are among them: a new
/// connection tells of the loss.
fn note(trouble: &watch::Sender<Option<Trouble>>, event: &Event) {
    let found = match event {
        Event::Disconnected | Event::Closed | Event::SlowConsumer(_) => Trouble::Lost,
        Event::ServerError(Complaint::Other(what)) if what.starts_with("Permissions Violation") => {
            Trouble::Refused(said(what))
        }
        _ => return,
    };
    trouble.send_if_modified(|known| {
        let is_first = known.is_none();
        known.get_or_insert(found);
        is_first
    });
}
