//! A connection whose tasks run on the caller's thread while the caller waits; no other thread is involved.

use std::cell::Cell;

use tickpath_clock::{Clock, HostClock};
use tokio::runtime::{Builder, Runtime};

use crate::connection::{EVENT_INTERVAL, NatsConnection};
use crate::error::{NatsServerError, ServerResult};
use crate::server::NatsEndpoint;

/// A runtime that runs on the thread of a waiting caller. Tasks that are left when it is dropped end.
pub(crate) struct LocalRuntime {
    runtime: Option<Runtime>,
}

impl LocalRuntime {
    /// Starts the runtime of a publisher, a pusher or a single request.
    pub fn start() -> ServerResult<Self> {
        Self::of(&mut Builder::new_current_thread())
    }

    /// Starts the runtime of a subscriber or puller, which must not read ahead too far.
    pub fn of_receiver() -> ServerResult<Self> {
        Self::of(Builder::new_current_thread().event_interval(EVENT_INTERVAL))
    }

    fn of(builder: &mut Builder) -> ServerResult<Self> {
        let runtime = builder.enable_all().build().map_err(NatsServerError::NoThread)?;
        Ok(Self { runtime: Some(runtime) })
    }

    pub fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.as_ref().expect("it is there until it is dropped").block_on(work)
    }
}

impl Drop for LocalRuntime {
    /// Does not wait for the tasks: a name that is being resolved can take long.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The idle time, in nanoseconds, up to which a connection is not polled twice before it is used.
const FRESH_NS: i64 = 1_000_000;

pub(crate) struct BlockingConnection {
    pub connected: NatsConnection,
    engine: LocalRuntime,
    clock: HostClock,
    /// The index of the server that was tried first.
    pub first_server: usize,
    /// The end of the last call, in ticks.
    last_used: Cell<u64>,
}

impl BlockingConnection {
    pub fn open(server: &NatsEndpoint) -> ServerResult<Self> {
        let (clock, first) = (server.clock, server.first());
        let engine = LocalRuntime::start()?;
        let connected = engine.run(NatsConnection::open(server))?;
        Ok(Self { connected, engine, clock, first_server: first, last_used: Cell::new(clock.ticks()) })
    }

    /// Runs `ask`, and repeats it for a while as long as a cluster has no leader.
    pub fn run_until_leader<T>(&self, ask: impl AsyncFn(&NatsConnection) -> ServerResult<T>) -> ServerResult<T> {
        self.run(self.connected.retry_until_leader(async || ask(&self.connected).await))
    }

    /// Runs `work` in bounded time. Processes first what the server has sent since the last call, and starts no work if
    /// the server has closed the connection.
    pub fn run<T>(&self, work: impl Future<Output = ServerResult<T>>) -> ServerResult<T> {
        let is_fresh = self.clock.ns_between(self.last_used.get(), self.clock.ticks()) < FRESH_NS;
        let done = self.engine.run(async {
            self.connected.process_incoming(is_fresh).await?;
            self.connected.with_timeout(work).await
        });
        self.last_used.set(self.clock.ticks());
        done
    }
}
