//! TCP relay between a client and a server, which can drop its connections silently, as a firewall does.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Loopback port that forwards to a server's port. It closes with the test.
pub struct FirewallProxy {
    address: SocketAddr,
    state: Arc<FirewallProxyState>,
}

struct FirewallProxyState {
    server: String,
    is_over: AtomicBool,
    /// New connections are dropped silently as soon as they are made.
    drops_new: AtomicBool,
    /// Generation of connections: those of earlier generations are dropped silently, so their data is discarded and
    /// they never end.
    generation: AtomicU64,
    /// Both sides of each connection.
    sockets: Mutex<Vec<TcpStream>>,
}

impl FirewallProxy {
    /// Creates a relay to the server at this address.
    pub fn to(server: &str) -> Self {
        Self::at(0, server)
    }

    /// Creates a relay that listens on this port.
    pub fn at(port: u16, server: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("loopback has a port");
        let address = listener.local_addr().expect("it is bound");
        let line = Arc::new(FirewallProxyState {
            server: server.to_owned(),
            is_over: AtomicBool::new(false),
            drops_new: AtomicBool::new(false),
            generation: AtomicU64::new(0),
            sockets: Mutex::default(),
        });
        let accepting = line.clone();
        std::thread::spawn(move || accepting.accept(&listener));
        Self { address, state: line }
    }

    /// Returns the address on which the relay listens.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Drops every connection silently, and each one made before [`heal`](Self::heal). None of them ends.
    pub fn drop_connections(&self) {
        self.state.drops_new.store(true, Ordering::SeqCst);
        self.state.generation.fetch_add(1, Ordering::SeqCst);
    }

    /// Lets new connections pass. Connections that were dropped stay so.
    pub fn heal(&self) {
        self.state.generation.fetch_add(1, Ordering::SeqCst);
        self.state.drops_new.store(false, Ordering::SeqCst);
    }
}

impl Drop for FirewallProxy {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        for socket in self.state.sockets.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // The connection may have ended already.
            let _ = socket.shutdown(Shutdown::Both);
        }
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

impl FirewallProxyState {
    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for near in listener.incoming() {
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            let life = self.generation.load(Ordering::SeqCst);
            let (Ok(near), Ok(far)) = (near, TcpStream::connect(&self.server)) else { continue };
            let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
            for (from, to) in [(&near, &far), (&far, &near)] {
                let copies = (from.try_clone(), to.try_clone());
                let (Ok(from), Ok(to)) = copies else { continue };
                let line = self.clone();
                std::thread::spawn(move || line.forward(from, to, life));
            }
            sockets.extend([near, far]);
        }
    }

    /// Forwards bytes until one side closes. The other side is closed then, unless the connection is dropped silently.
    fn forward(&self, mut from: TcpStream, mut to: TcpStream, life: u64) {
        let is_forgotten = || self.drops_new.load(Ordering::SeqCst) || self.generation.load(Ordering::SeqCst) != life;
        let mut bytes = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            if !is_forgotten() && to.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
        if !is_forgotten() {
            // The other side may have closed, too.
            let _ = to.shutdown(Shutdown::Both);
        }
    }
}
