//! A relay between client and server that can be cut, as a bad network.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A port that forwards to a server's, until it is dropped.
pub struct CuttableRelay {
    port: u16,
    state: Arc<CuttableRelayState>,
}

struct CuttableRelayState {
    server_port: AtomicU16,
    is_cut: AtomicBool,
    is_over: AtomicBool,
    /// The server's bytes are dropped.
    is_silent: AtomicBool,
    /// Number of bytes forwarded from the server.
    answered: AtomicU64,
    /// Both sides of each connection.
    sockets: Mutex<Vec<TcpStream>>,
}

impl CuttableRelay {
    /// Starts a relay to this port on loopback.
    pub fn to(server_port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let is = || AtomicBool::new(false);
        let server_port = AtomicU16::new(server_port);
        let line = Arc::new(CuttableRelayState {
            server_port,
            is_cut: is(),
            is_over: is(),
            is_silent: is(),
            answered: AtomicU64::new(0),
            sockets: Mutex::default(),
        });
        let accepting = line.clone();
        std::thread::spawn(move || accepting.accept(&listener));
        Self { port, state: line }
    }

    /// Returns the URL of the client's end.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Leads new connections to another port.
    pub fn lead_to(&self, server_port: u16) {
        self.state.server_port.store(server_port, Ordering::SeqCst);
    }

    /// Cuts all connections, and every new one at once.
    pub fn cut(&self) {
        self.state.is_cut.store(true, Ordering::SeqCst);
        self.state.close_all();
    }

    /// Drops the server's bytes from now on; the client's bytes pass.
    pub fn silence(&self) {
        self.state.is_silent.store(true, Ordering::SeqCst);
    }

    /// Ends all connections; new ones pass in both directions.
    pub fn break_off(&self) {
        // Under the lock, so that no connection is added in between.
        let mut sockets = self.state.sockets.lock().unwrap();
        for socket in sockets.drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
        self.state.is_silent.store(false, Ordering::SeqCst);
    }

    /// Returns the number of bytes forwarded from the server so far.
    pub fn answered(&self) -> u64 {
        self.state.answered.load(Ordering::SeqCst)
    }

    /// Lets new connections pass.
    pub fn heal(&self) {
        self.state.is_cut.store(false, Ordering::SeqCst);
    }
}

impl Drop for CuttableRelay {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        self.state.close_all();
        // Wakes the accepting thread.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl CuttableRelayState {
    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for near in listener.incoming() {
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            let Ok(near) = near else { continue };
            if let Ok(far) = TcpStream::connect(("127.0.0.1", self.server_port.load(Ordering::SeqCst))) {
                self.join(near, far);
            }
        }
    }

    fn join(self: &Arc<Self>, near: TcpStream, far: TcpStream) {
        // Under the lock, so that a connection accepted before a cut is closed by it.
        let mut sockets = self.sockets.lock().unwrap();
        if self.is_cut.load(Ordering::SeqCst) {
            return;
        }
        for (from, to, is_answer) in [(&near, &far, false), (&far, &near, true)] {
            let (from, to, line) = (from.try_clone().unwrap(), to.try_clone().unwrap(), self.clone());
            std::thread::spawn(move || line.forward(from, to, is_answer));
        }
        sockets.extend([near, far]);
    }

    /// Forwards bytes until one side closes the connection.
    fn forward(&self, mut from: TcpStream, mut to: TcpStream, is_answer: bool) {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            if is_answer && self.is_silent.load(Ordering::SeqCst) {
                continue;
            }
            if to.write_all(&bytes[..read]).is_err() {
                break;
            }
            if is_answer {
                self.answered.fetch_add(read as u64, Ordering::SeqCst);
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    }

    fn close_all(&self) {
        for socket in self.sockets.lock().unwrap().drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}
