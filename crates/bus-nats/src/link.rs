//! A connection that runs on its caller's thread, while the caller waits: no other thread comes in between.

use std::cell::Cell;

use tickpath_clock::{Clock, HostClock};
use tokio::runtime::{Builder, Runtime};

use crate::connected::{Connected, EVENT_INTERVAL};
use crate::error::ServerError;
use crate::server::Server;

/// A runtime that runs while somebody waits for something, on that thread. What is left when it is dropped, ends.
pub(crate) struct Engine {
    runtime: Option<Runtime>,
}

impl Engine {
    /// For who sends.
    pub fn start() -> Result<Self, ServerError> {
        Self::of(&mut Builder::new_current_thread())
    }

    /// For who receives, and must not read ahead too far.
    pub fn of_receiver() -> Result<Self, ServerError> {
        Self::of(Builder::new_current_thread().event_interval(EVENT_INTERVAL))
    }

    fn of(builder: &mut Builder) -> Result<Self, ServerError> {
        let runtime = builder.enable_all().build().map_err(ServerError::NoThread)?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// Runs until this is done.
    pub fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.as_ref().expect("it is there until it is dropped").block_on(work)
    }
}

impl Drop for Engine {
    /// Without waiting: a name that is just being resolved can take long.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A connection that was idle for no longer than this, in nanoseconds, is not looked at twice before it is used.
const FRESH_NS: i64 = 1_000_000;

/// A connection and its runtime.
pub(crate) struct Link {
    connected: Connected,
    engine: Engine,
    clock: HostClock,
    /// Which server was tried first.
    first: usize,
    /// When the last call ended, in ticks.
    used: Cell<u64>,
}

impl Link {
    /// Connects and logs in.
    pub fn open(server: &Server) -> Result<Self, ServerError> {
        let (clock, first) = (server.clock(), server.first());
        let engine = Engine::start()?;
        let connected = engine.run(Connected::open(server))?;
        Ok(Self { connected, engine, clock, first, used: Cell::new(clock.ticks()) })
    }

    /// Which server was tried first when it was opened.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Asks this, and asks again for a while as long as a cluster has no leader.
    pub fn run_patiently<T>(&self, ask: impl AsyncFn(&Connected) -> Result<T, ServerError>) -> Result<T, ServerError> {
        self.run(self.connected.patiently(async || ask(&self.connected).await))
    }

    /// The connection.
    pub fn connected(&self) -> &Connected {
        &self.connected
    }

    /// Does this in bounded time. What the server has said since the last call is heard first: if it has hung up,
    /// nothing of this is done.
    pub fn run<T>(&self, work: impl Future<Output = Result<T, ServerError>>) -> Result<T, ServerError> {
        let is_fresh = self.clock.ns_between(self.used.get(), self.clock.ticks()) < FRESH_NS;
        let done = self.engine.run(async {
            self.connected.listen(is_fresh).await?;
            self.connected.bounded(work).await
        });
        self.used.set(self.clock.ticks());
        done
    }
}
