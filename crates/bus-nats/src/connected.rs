//! A connection of the client library. It is used until it is lost, and then given up.
//!
//! The library would connect again by itself, and keep meanwhile what it is to publish, for later. Nobody could say
//! then what became of a message, nor what was missed. So its own reconnecting is put to sleep for ever: who uses a
//! connection learns at once that it is lost, drops it with its runtime, and makes a new one.

use std::future::ready;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::{Client, Event, RequestErrorKind, ServerError as Complaint, jetstream};
use futures_util::future::{Either, select};
use tokio::net::lookup_host;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::error::ServerError;
use crate::server::Server;

/// How long a server may take to accept, and to answer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// How long a cluster may take to have a leader; shorter than [`TIMEOUT`], so that the server is the one that says so.
const ELECTION: Duration = Duration::from_secs(4);

/// The pause between two questions for a leader.
const LOOK: Duration = Duration::from_millis(50);

/// Messages that a subscription may hold before the library throws some away. It never holds so many: the library reads
/// at most 8 MiB in one go, which are 280,000 of the shortest messages, and after at most 61 goes all are taken out.
const SUBSCRIPTION_MESSAGES: usize = 1 << 25;

/// A connection, logged in.
pub(crate) struct Connected {
    /// For core NATS.
    pub client: Client,
    /// For JetStream.
    pub context: jetstream::Context,
    trouble: watch::Receiver<Option<Trouble>>,
}

/// Why a connection is of no more use.
#[derive(Debug, Clone)]
enum Trouble {
    Lost,
    Refused(String),
}

impl Connected {
    /// Connects and logs in.
    pub async fn open(server: &Server) -> Result<Self, ServerError> {
        resolve(server).await?;
        let (sender, trouble) = watch::channel(None);
        let is_first = AtomicBool::new(true);
        let pause = move |_attempt: usize| {
            if is_first.swap(false, Ordering::Relaxed) { Duration::ZERO } else { Duration::MAX }
        };
        let connecting = server
            .options()
            .name("tickpath")
            .connection_timeout(TIMEOUT)
            .request_timeout(Some(TIMEOUT))
            .subscription_capacity(SUBSCRIPTION_MESSAGES)
            .ignore_discovered_servers()
            .reconnect_delay_callback(pause)
            .event_callback(move |event| {
                note(&sender, &event);
                ready(())
            })
            .connect(server.name());
        let connected = timeout(TIMEOUT, connecting).await.map_err(|_elapsed| ServerError::Timeout)?;
        let client = connected.map_err(|e| ServerError::of_connect(&e, server.has_login()))?;
        Ok(Self { context: jetstream::new(client.clone()), client, trouble })
    }

    /// Does this within [`TIMEOUT`], unless the connection is lost meanwhile.
    pub async fn bounded<T>(&self, work: impl Future<Output = Result<T, ServerError>>) -> Result<T, ServerError> {
        match select(pin!(timeout(TIMEOUT, work)), pin!(self.failed())).await {
            Either::Left((Ok(done), _)) => done,
            Either::Left((Err(_elapsed), _)) => Err(ServerError::Timeout),
            Either::Right((error, _)) => Err(error),
        }
    }

    /// Returns when the connection is of no more use, with the reason.
    pub async fn failed(&self) -> ServerError {
        let mut trouble = self.trouble.clone();
        let found = trouble.wait_for(Option::is_some).await.map(|found| (*found).clone());
        match found {
            Ok(Some(Trouble::Refused(what))) => ServerError::Refused(what),
            _ => ServerError::Closed,
        }
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

/// Asks, and asks again as long as the answer is that there is no leader.
pub(crate) async fn patiently<T>(mut ask: impl AsyncFnMut() -> Result<T, ServerError>) -> Result<T, ServerError> {
    let mut election = pin!(sleep(ELECTION));
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

/// The library gives names no time limit, and addresses not their own error.
async fn resolve(server: &Server) -> Result<(), ServerError> {
    match timeout(TIMEOUT, lookup_host(server.address())).await {
        Ok(Ok(_addresses)) => Ok(()),
        Ok(Err(e)) => Err(ServerError::Unresolved(e.to_string())),
        Err(_elapsed) => Err(ServerError::Unresolved("no answer within 5 s".to_owned())),
    }
}

/// Keeps the first event that makes the connection useless. Messages that the library threw away are among them: a new
/// connection tells of the loss.
fn note(trouble: &watch::Sender<Option<Trouble>>, event: &Event) {
    let found = match event {
        Event::Disconnected | Event::Closed | Event::SlowConsumer(_) => Trouble::Lost,
        Event::ServerError(Complaint::Other(what)) if what.starts_with("Permissions Violation") => {
            Trouble::Refused(what.clone())
        }
        _ => return,
    };
    trouble.send_if_modified(|known| {
        let is_first = known.is_none();
        known.get_or_insert(found);
        is_first
    });
}
