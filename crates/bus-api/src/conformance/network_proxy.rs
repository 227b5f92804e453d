//! TCP proxy between a client and a server, with the faults of a bad network: a test chooses them.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tickpath_clock::sleep_ns;

/// Treatment of connections and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProxyMode {
    /// Forwards everything.
    #[default]
    Open,
    /// Withholds all bytes until the mode changes.
    Stalled,
    /// Withholds the server's bytes until the mode changes, and forwards the client's.
    Mute,
    /// Closes new connections at once, and forwards the bytes of the others.
    Refusing,
    /// Drops new connections silently, as a firewall does: their bytes are discarded, and they never end.
    Dropping,
}

/// Loopback port that forwards to a server's port. It closes with the test.
pub struct NetworkProxy {
    address: SocketAddr,
    state: Arc<NetworkProxyState>,
}

#[derive(Default)]
struct NetworkProxyState {
    server: Mutex<String>,
    mode: Mutex<ProxyMode>,
    is_over: AtomicBool,
    /// Number of bytes forwarded from the server.
    answered: AtomicU64,
    connections: Mutex<Vec<ProxiedConnection>>,
}

/// Both sides of a connection.
struct ProxiedConnection {
    sockets: [TcpStream; 2],
    /// The connection is dropped silently, and stays so.
    is_dropped: Arc<AtomicBool>,
}

impl NetworkProxy {
    /// Creates a proxy to the server at this address.
    pub fn to(server: &str) -> Self {
        Self::at(0, server)
    }

    /// Creates a proxy that listens on this port.
    pub fn at(port: u16, server: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("loopback has a port");
        let address = listener.local_addr().expect("it is bound");
        let state = Arc::new(NetworkProxyState { server: Mutex::new(server.to_owned()), ..Default::default() });
        let accepting = state.clone();
        std::thread::spawn(move || accepting.accept(&listener));
        Self { address, state }
    }

    /// Returns the address on which the proxy listens.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Leads new connections to this loopback port.
    pub fn lead_to(&self, port: u16) {
        *lock(&self.state.server) = format!("127.0.0.1:{port}");
    }

    /// Changes the mode.
    pub fn set(&self, mode: ProxyMode) {
        *lock(&self.state.mode) = mode;
    }

    /// Ends all connections.
    pub fn cut(&self) {
        for connection in lock(&self.state.connections).drain(..) {
            // The connection may have ended already.
            let _ = connection.sockets.map(|socket| socket.shutdown(Shutdown::Both));
        }
    }

    /// Ends all connections, and each one made before [`heal`](Self::heal) at once.
    pub fn cut_off(&self) {
        self.set(ProxyMode::Refusing);
        self.cut();
    }

    /// Ends all connections, with the bytes that they withhold; new ones pass.
    pub fn break_off(&self) {
        self.cut();
        self.heal();
    }

    /// Drops every connection silently, and each one made before [`heal`](Self::heal). None of them ends.
    pub fn drop_connections(&self) {
        self.set(ProxyMode::Dropping);
        lock(&self.state.connections).iter().for_each(|dropped| dropped.is_dropped.store(true, Ordering::SeqCst));
    }

    /// Lets new connections pass. Connections that were dropped stay so.
    pub fn heal(&self) {
        self.set(ProxyMode::Open);
    }

    /// Returns the number of bytes forwarded from the server so far.
    pub fn answered(&self) -> u64 {
        self.state.answered.load(Ordering::SeqCst)
    }
}

impl Drop for NetworkProxy {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        // Ends the threads that withhold bytes.
        self.break_off();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

impl NetworkProxyState {
    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for near in listener.incoming() {
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            if self.mode() == ProxyMode::Refusing {
                continue;
            }
            let server = lock(&self.server).clone();
            if let (Ok(near), Ok(far)) = (near, TcpStream::connect(server)) {
                self.join(near, far);
            }
        }
    }

    fn join(self: &Arc<Self>, near: TcpStream, far: TcpStream) {
        // Under the lock, so that a connection accepted before a cut is closed by it.
        let mut connections = lock(&self.connections);
        let mode = self.mode();
        if mode == ProxyMode::Refusing {
            return;
        }
        let is_dropped = Arc::new(AtomicBool::new(mode == ProxyMode::Dropping));
        for (from, to, is_answer) in [(&near, &far, false), (&far, &near, true)] {
            let copies = (from.try_clone(), to.try_clone(), to.set_nodelay(true));
            let (Ok(from), Ok(to), Ok(())) = copies else { continue };
            let (state, is_dropped) = (self.clone(), is_dropped.clone());
            std::thread::spawn(move || state.forward(from, to, is_answer, &is_dropped));
        }
        connections.push(ProxiedConnection { sockets: [near, far], is_dropped });
    }

    /// Forwards bytes until one side closes. The other side is closed then, unless the connection is dropped silently.
    fn forward(&self, mut from: TcpStream, mut to: TcpStream, is_answer: bool, is_dropped: &AtomicBool) {
        let is_dropped = || is_dropped.load(Ordering::SeqCst);
        let mut bytes = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            while self.withholds(is_answer) {
                sleep_ns(1_000_000);
            }
            if is_dropped() {
                continue;
            }
            if to.write_all(&bytes[..read]).is_err() {
                break;
            }
            if is_answer {
                self.answered.fetch_add(read as u64, Ordering::SeqCst);
            }
        }
        if !is_dropped() {
            // Either side may have closed already.
            let _ = [to, from].map(|socket| socket.shutdown(Shutdown::Both));
        }
    }

    fn withholds(&self, is_answer: bool) -> bool {
        match self.mode() {
            ProxyMode::Stalled => true,
            ProxyMode::Mute => is_answer,
            ProxyMode::Open | ProxyMode::Refusing | ProxyMode::Dropping => false,
        }
    }

    fn mode(&self) -> ProxyMode {
        *lock(&self.mode)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
