//! A connection that runs on its caller's thread, while the caller waits: no other thread comes in between.

use tokio::runtime::{Builder, Runtime};

use crate::connected::{Connected, EVENT_INTERVAL};
use crate::error::ServerError;
use crate::server::Server;

/// A runtime that runs while somebody waits for something, on that thread. What is left when it is dropped, ends.
pub(crate) struct Engine {
    runtime: Option<Runtime>,
}

impl Engine {
    /// A new one.
    pub fn start() -> Result<Self, ServerError> {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_all().event_interval(EVENT_INTERVAL).build().map_err(ServerError::NoThread)?;
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

/// A connection and its runtime.
pub(crate) struct Link {
    connected: Connected,
    engine: Engine,
}

impl Link {
    /// Connects and logs in.
    pub fn open(server: &Server) -> Result<Self, ServerError> {
        let engine = Engine::start()?;
        let connected = engine.run(Connected::open(server))?;
        Ok(Self { connected, engine })
    }

    /// The connection.
    pub fn connected(&self) -> &Connected {
        &self.connected
    }

    /// Does this in bounded time. What the server has said since the last call is heard first: if it has hung up,
    /// nothing of this is done.
    pub fn run<T>(&self, work: impl Future<Output = Result<T, ServerError>>) -> Result<T, ServerError> {
        self.engine.run(async {
            self.connected.listen().await?;
            self.connected.bounded(work).await
        })
    }
}
