//! A connection to the broker, and the thread that waits for its socket.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use lapin::protocol::constants::REPLY_SUCCESS;
use lapin::tcp::RustlsConnector;
use lapin::{AsyncTcpStream, Channel, Connection, ConnectionProperties};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::error::AmqpServerError;
use crate::server::{AmqpHost, AmqpServer};
use crate::signal::complete;

/// Max time for a server to accept a connection, and to answer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);
/// Max time for the broker to confirm the close of a connection, which is then dropped without it.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The name of our connections in the broker's list.
const CLIENT_NAME: &str = "tickpath";

/// A connection that is logged in. Its threads end with it.
#[derive(Debug)]
pub(crate) struct AmqpConnection {
    connection: Arc<Connection>,
    /// The last field, so that it still runs while the connection is dropped.
    _io_driver: IoDriver,
}

impl AmqpConnection {
    /// Connects to the first server that answers, and logs in.
    pub fn open(server: &AmqpServer) -> Result<Self, AmqpServerError> {
        let mut failed = Vec::new();
        for host in &server.hosts {
            match Self::open_at(server, host) {
                Ok(link) => return Ok(link),
                Err(e) => failed.push((host.host_port.clone(), e)),
            }
        }
        Err(AmqpServerError::combine(failed))
    }

    fn open_at(server: &AmqpServer, host: &AmqpHost) -> Result<Self, AmqpServerError> {
        let addresses = host.addresses(host.port)?;
        let driver = IoDriver::start().map_err(AmqpServerError::LocalResource)?;
        let runtime = {
            let _entered = driver.handle.enter();
            lapin::runtime::default_runtime()?
        };
        let tls = server.tls.as_ref().map(|config| (RustlsConnector::from(config.clone()), host.name.clone()));
        let connecting = Connection::connector(
            server.uri(host),
            runtime,
            async move |_, runtime| {
                let connected = AsyncTcpStream::connect(&runtime, addresses.clone()).await;
                let secured = match (connected, &tls) {
                    (Ok(stream), Some((connector, name))) => stream.into_rustls(connector, name).await,
                    (connected, _) => connected,
                };
                secured.map_err(lapin::Error::from)
            },
            ConnectionProperties::default().with_connection_name(CLIENT_NAME.into()),
        );
        let connected = complete(connecting, TIMEOUT).ok_or(AmqpServerError::Timeout)?;
        let connection = connected.map_err(|e| AmqpServerError::from_handshake(e, &host.name, server.login()))?;
        Ok(Self { connection: Arc::new(connection), _io_driver: driver })
    }

    /// Opens a channel. A refusal ends the channel of its request, and no other.
    pub fn channel(&self) -> Result<Channel, AmqpServerError> {
        self.wait_for_answer(self.connection.create_channel())
    }

    /// Opens a channel without waiting. The future must be dropped before this link.
    pub fn begin_channel(&self) -> impl Future<Output = lapin::Result<Channel>> + Send + use<> {
        let connection = self.connection.clone();
        async move { connection.create_channel().await }
    }

    /// Returns true if the connection is up, as far as is known.
    pub fn is_up(&self) -> bool {
        self.connection.status().connected()
    }

    /// Returns true if the broker has reported that it takes no messages now.
    pub fn is_blocked(&self) -> bool {
        self.connection.status().blocked()
    }

    pub fn wait_for_answer<T>(&self, asked: impl Future<Output = lapin::Result<T>>) -> Result<T, AmqpServerError> {
        complete(asked, TIMEOUT).ok_or_else(|| self.silence())?.map_err(AmqpServerError::from)
    }

    /// Returns why there is no answer.
    pub fn silence(&self) -> AmqpServerError {
        if self.is_blocked() { AmqpServerError::Blocked } else { AmqpServerError::Timeout }
    }
}

impl Drop for AmqpConnection {
    fn drop(&mut self) {
        // With its answer the broker has removed what belonged to the connection, and requeued what was not
        // acknowledged. Without it, the broker does the same when it finds the socket closed.
        let _answered = complete(self.connection.close(REPLY_SUCCESS, "OK".into()), CLOSE_TIMEOUT);
    }
}

/// A thread that waits for sockets and timers on behalf of the client library.
#[derive(Debug)]
struct IoDriver {
    handle: Handle,
    /// The thread's stop signal, sent by dropping it.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl IoDriver {
    fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("amqp".to_owned());
        let thread = thread.spawn(move || {
            let _dropped = runtime.block_on(stopped);
            // Its sockets fail from here on, which ends the library's own thread.
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for IoDriver {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // An error means that the thread panicked, and so has ended.
            let _ended = thread.join();
        }
    }
}
