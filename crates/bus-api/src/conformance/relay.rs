//! A piece of network between a client and a server, which can forget its connections as a firewall does.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A port of loopback that leads to a server's. It is gone with the test.
pub struct Relay {
    address: SocketAddr,
    line: Arc<Line>,
}

struct Line {
    server: String,
    is_over: AtomicBool,
    /// New connections are forgotten as soon as they are made.
    is_forgetful: AtomicBool,
    /// Connections of earlier lives are forgotten: what either side says there goes nowhere, and no end is told.
    life: AtomicU64,
    /// Both sides of each connection.
    sockets: Mutex<Vec<TcpStream>>,
}

impl Relay {
    /// A relay to the server that listens there.
    pub fn to(server: &str) -> Self {
        Self::at(0, server)
    }

    /// The same, which listens on this port.
    pub fn at(port: u16, server: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("loopback has a port");
        let address = listener.local_addr().expect("it is bound");
        let line = Arc::new(Line {
            server: server.to_owned(),
            is_over: AtomicBool::new(false),
            is_forgetful: AtomicBool::new(false),
            life: AtomicU64::new(0),
            sockets: Mutex::default(),
        });
        let accepting = line.clone();
        std::thread::spawn(move || accepting.accept(&listener));
        Self { address, line }
    }

    /// Where it listens.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Forgets every connection, and each that is made before [`heal`](Self::heal). None of them ends.
    pub fn forget(&self) {
        self.line.is_forgetful.store(true, Ordering::SeqCst);
        self.line.life.fetch_add(1, Ordering::SeqCst);
    }

    /// New connections pass. Those that were forgotten stay so.
    pub fn heal(&self) {
        self.line.life.fetch_add(1, Ordering::SeqCst);
        self.line.is_forgetful.store(false, Ordering::SeqCst);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.line.is_over.store(true, Ordering::SeqCst);
        for socket in self.line.sockets.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // It may have ended.
            let _ = socket.shutdown(Shutdown::Both);
        }
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

impl Line {
    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for near in listener.incoming() {
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            let life = self.life.load(Ordering::SeqCst);
            let (Ok(near), Ok(far)) = (near, TcpStream::connect(&self.server)) else { continue };
            let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
            for (from, to) in [(&near, &far), (&far, &near)] {
                let copies = (from.try_clone(), to.try_clone());
                let (Ok(from), Ok(to)) = copies else { continue };
                let line = self.clone();
                std::thread::spawn(move || line.carry(from, to, life));
            }
            sockets.extend([near, far]);
        }
    }

    /// Until one side has gone, of which the other one is told unless the connection is forgotten.
    fn carry(&self, mut from: TcpStream, mut to: TcpStream, life: u64) {
        let is_forgotten = || self.is_forgetful.load(Ordering::SeqCst) || self.life.load(Ordering::SeqCst) != life;
        let mut bytes = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            if !is_forgotten() && to.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
        if !is_forgotten() {
            // The other side may have gone, too.
            let _ = to.shutdown(Shutdown::Both);
        }
    }
}
