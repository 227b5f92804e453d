//! What the processes of a run do. A role is plain data; `run` is the whole life of the process.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::child::Parent;
use crate::{LabError, host, orders, path, pubsub};

/// What a spawned process is for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Answers a cache line or a socket.
    Echo(EchoRole),
    /// Publishes messages at intended times.
    Publisher(PublisherRole),
    /// Receives them.
    Subscriber(SubscriberRole),
    /// Publishes ticks of a recording.
    Feed(FeedRole),
    /// Strategy and OMS.
    Trader(TraderRole),
    /// The simulated venue.
    Exchange(ExchangeRole),
    /// An OMS on its own.
    Oms(OmsRole),
    /// A client that sends batches of orders.
    Client(ClientRole),
    /// Walks a CPU's caches full.
    Evictor(EvictorRole),
    /// Writes to a socket whose other end is read.
    Sender(orders::SenderRole),
    /// A client beside the measured ones.
    Beside(orders::BesideRole),
    /// Sends a message and waits for its answer.
    Ping(pubsub::PingRole),
    /// Answers.
    Pong(pubsub::PingRole),
    /// Delays what goes through it.
    Proxy(crate::proxy::ProxyRole),
    /// Sends commands to a Redis server and counts the replies.
    Pipeline(crate::pipeline::PipelineRole),
    /// Pushes to queues.
    QueuePusher(crate::queue::QueuePusherRole),
    /// Pulls from a queue.
    QueuePuller(crate::queue::QueuePullerRole),
    /// Sets keys and gets them again.
    SetGet(crate::clients::SetGetRole),
}

/// Where a thread runs and how it waits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Thread {
    /// Its CPU.
    pub cpu: Option<usize>,
    /// `busy`, `yield` or `block`.
    pub wait: String,
    /// `normal` or `fifo:N`.
    pub priority: String,
}

/// See [`Role::Echo`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EchoRole {
    /// Shared words to answer on; a socket if there is none.
    pub words: Option<String>,
    /// Its CPU.
    pub cpu: usize,
}

/// See [`Role::Publisher`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PublisherRole {
    /// The transport's URL.
    pub target: String,
    /// The topic.
    pub topic: String,
    /// `overwrite`, `fail` or `keep`.
    pub policy: String,
    /// Bytes of a message.
    pub size: usize,
    /// Messages.
    pub count: u64,
    /// Messages a second; as fast as it goes if there is none.
    pub rate: Option<f64>,
    /// Messages that share a stamp.
    pub batch: usize,
    /// Whether connecting is a part of the first message's time, and the topic somebody else's to make.
    pub cold: bool,
    /// Where it runs.
    pub thread: Thread,
    /// Where its samples go.
    pub out: PathBuf,
}

/// See [`Role::Subscriber`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SubscriberRole {
    /// The transport's URL.
    pub target: String,
    /// The topic.
    pub topic: String,
    /// Messages to wait for.
    pub count: u64,
    /// Whether each message is stamped, or only counted.
    pub stamps: bool,
    /// Subscriptions, read in turn.
    pub readers: usize,
    /// Where it runs.
    pub thread: Thread,
    /// Where its samples go.
    pub out: PathBuf,
}

/// Where ticks come from and how fast.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ticks {
    /// A recording; made up from the seed if there is none.
    pub file: Option<PathBuf>,
    /// What made-up ticks depend on.
    pub seed: u64,
    /// Ticks a second; the recording's own times if there is none.
    pub rate: Option<f64>,
    /// How much faster than its own times.
    pub speed: f64,
    /// Ticks to publish; the recording is looped for as many.
    pub count: u64,
}

/// See [`Role::Feed`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FeedRole {
    /// The transport's URL.
    pub target: String,
    /// The topic.
    pub topic: String,
    /// A topic in shared memory for those who need the ticks but are not measured; none if the first one serves them.
    pub mirror: Option<String>,
    /// What it publishes.
    pub ticks: Ticks,
    /// Where it runs.
    pub thread: Thread,
    /// Where its samples go.
    pub out: PathBuf,
}

/// See [`Role::Trader`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TraderRole {
    /// The transport's URL.
    pub target: String,
    /// The topic.
    pub topic: String,
    /// The OMS.
    pub oms: OmsRole,
    /// Orders expected.
    pub count: u64,
    /// Where the strategy runs; in `inline` also the OMS.
    pub thread: Thread,
    /// Where its samples go.
    pub out: PathBuf,
}

/// See [`Role::Exchange`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExchangeRole {
    /// What the lanes' names begin with.
    pub lanes: String,
    /// Bytes of request lanes.
    pub request_bytes: usize,
    /// Bytes of report lanes.
    pub report_bytes: usize,
    /// Ticks in shared memory to make its market from.
    pub market: Option<String>,
    /// Orders expected.
    pub expected_orders: usize,
    /// The folder of its journal if lines come in by sockets, and no lanes are joined.
    pub sockets: Option<PathBuf>,
    /// Where it runs.
    pub thread: Thread,
}

/// See [`Role::Oms`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OmsRole {
    /// What the lanes' names begin with.
    pub lanes: String,
    /// Bytes of request lanes.
    pub request_bytes: usize,
    /// Bytes of report lanes.
    pub report_bytes: usize,
    /// The journal's folder.
    pub journal: PathBuf,
    /// Bytes of the journal that are made ready at the start.
    pub reserve_bytes: u64,
    /// What is traded.
    pub symbol: String,
    /// For whom.
    pub account: u32,
    /// Orders expected.
    pub expected_orders: usize,
    /// `inline`, `split` or `mutex`.
    pub layout: String,
    /// The core's thread.
    pub thread: Thread,
    /// The CPU that its other threads share.
    pub other_cpu: Option<usize>,
    /// Ticks in shared memory, for reference prices.
    pub market: Option<String>,
    /// What must hold a request before anything of it leaves: `os` or `disk`.
    pub level: String,
    /// Inputs between two snapshots; zero for none.
    pub snapshot_every: u64,
    /// Where its venue listens; it comes by lanes if there is none.
    pub line: Option<String>,
    /// Where its clients log in; they have lanes if there is none.
    pub server: Option<ServerRole>,
    /// Where its gaps go.
    pub out: PathBuf,
}

/// An OMS's door.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerRole {
    /// The Unix socket to listen on.
    pub unix: Option<PathBuf>,
    /// The address to listen on.
    pub tcp: Option<SocketAddr>,
    /// The file of its users.
    pub users: PathBuf,
}

/// How a client reaches its OMS.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// By lanes in shared memory.
    Lanes {
        /// What their names begin with.
        name: String,
        /// Bytes of the request lane.
        request_bytes: usize,
        /// Bytes of the report lane.
        report_bytes: usize,
    },
    /// By sessions over sockets.
    Sockets {
        /// How they log in.
        login: Login,
        /// How many there are.
        sessions: u16,
        /// How many of them send; the others are only connected.
        active: u16,
    },
}

/// Whom to log in to, and as whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    /// `unix:///PATH` or `tcp://HOST:PORT`.
    pub url: String,
    /// The user.
    pub user: String,
    /// The file whose first line is the password.
    pub password_file: PathBuf,
    /// Which of the user's sessions; any that is free if there is none.
    pub session: Option<u16>,
}

/// See [`Role::Client`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClientRole {
    /// Its way to the OMS.
    pub entry: Entry,
    /// The topic that it publishes the reference price on; somebody else does if there is none.
    pub market: Option<String>,
    /// The order that it sends.
    pub order: crate::trade::OrderSpec,
    /// The number of the order's instrument.
    pub symbol: u32,
    /// Where it runs.
    pub thread: Thread,
    /// Where its stamps go, a file for each batch.
    pub out: PathBuf,
}

/// See [`Role::Evictor`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EvictorRole {
    /// Whose caches.
    pub cpu: usize,
}

impl Role {
    /// The role's name, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Echo(_) => "echo",
            Self::Publisher(_) => "publisher",
            Self::Subscriber(_) => "subscriber",
            Self::Feed(_) => "feed",
            Self::Trader(_) => "trader",
            Self::Exchange(_) => "exchange",
            Self::Oms(_) => "OMS",
            Self::Client(_) => "client",
            Self::Evictor(_) => "evictor",
            Self::Sender(_) => "sender",
            Self::Beside(_) => "client beside",
            Self::Ping(_) => "ping",
            Self::Pong(_) => "pong",
            Self::Proxy(_) => "proxy",
            Self::Pipeline(_) => "generator",
            Self::QueuePusher(_) => "pusher",
            Self::QueuePuller(_) => "puller",
            Self::SetGet(_) => "client",
        }
    }
}

/// Runs the role that the environment holds as JSON, as this whole process.
pub fn run() -> Result<(), LabError> {
    let parent = Parent::listen();
    let json = std::env::var(crate::child::ROLE).unwrap_or_default();
    let role = serde_json::from_str(&json).map_err(|e| LabError::Setting(format!("no role: {e}")));
    let done = role.and_then(|role| live(&role, &parent));
    if let Err(error) = &done {
        parent.error(&error.to_string());
    }
    done
}

fn live(role: &Role, parent: &Parent) -> Result<(), LabError> {
    match role {
        Role::Echo(role) => host::echo(role, parent),
        Role::Publisher(role) => pubsub::publisher(role, parent),
        Role::Subscriber(role) => pubsub::subscriber(role, parent),
        Role::Feed(role) => path::feed(role, parent),
        Role::Trader(role) => crate::strategy::trader(role, parent),
        Role::Exchange(role) => crate::trade::exchange(role, parent),
        Role::Oms(role) => crate::trade::oms(role, parent),
        Role::Client(role) => orders::client(role, parent),
        Role::Evictor(role) => orders::evictor(role, parent),
        Role::Sender(role) => orders::sender(role, parent),
        Role::Beside(role) => orders::beside(role, parent),
        Role::Ping(role) => pubsub::ping(role, parent),
        Role::Pong(role) => pubsub::pong(role, parent),
        Role::Proxy(role) => crate::proxy::proxy(role, parent),
        Role::Pipeline(role) => crate::pipeline::generator(role, parent),
        Role::QueuePusher(role) => crate::queue::pusher(role, parent),
        Role::QueuePuller(role) => crate::queue::puller(role, parent),
        Role::SetGet(role) => crate::clients::set_get(role, parent),
    }
}

impl Thread {
    /// A thread with this CPU and wait strategy.
    pub fn new(cpu: usize, wait: tickpath_clock::Wait, priority: tickpath_clock::Priority) -> Self {
        Self { cpu: Some(cpu), wait: wait.to_string(), priority: priority.to_string() }
    }

    /// The wait strategy.
    pub(crate) fn wait(&self) -> Result<tickpath_clock::Wait, LabError> {
        self.wait.parse().map_err(|e: tickpath_clock::ParseWaitError| LabError::Setting(e.to_string()))
    }

    /// Pins and prioritises the calling thread.
    pub(crate) fn settle(&self) -> Result<(), LabError> {
        Ok(tickpath_clock::settle(self.cpu, self.priority()?)?)
    }

    /// The priority.
    pub(crate) fn priority(&self) -> Result<tickpath_clock::Priority, LabError> {
        self.priority.parse().map_err(|e: tickpath_clock::ParsePriorityError| LabError::Setting(e.to_string()))
    }
}
