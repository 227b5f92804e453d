//! A relay between client and broker, which can cut, stall and refuse connections as a bad network does.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tickpath_clock::sleep_ns;

/// Treatment of connections and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Forwards everything.
    Open,
    /// Accepts connections, and withholds all bytes.
    Stalled,
    /// Forwards the client's bytes, and withholds the broker's.
    Mute,
    /// Closes new connections at once.
    Refusing,
    /// The relay ends.
    Over,
}

/// A running relay.
pub struct FlakyProxy {
    port: u16,
    state: Arc<FlakyProxyState>,
    accepting: Option<JoinHandle<()>>,
}

struct FlakyProxyState {
    broker: String,
    mode: Mutex<Mode>,
    streams: Mutex<Vec<TcpStream>>,
}

impl FlakyProxy {
    /// Starts a relay to the broker at this address.
    pub fn start(broker: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state =
            FlakyProxyState { broker: broker.to_owned(), mode: Mutex::new(Mode::Open), streams: Mutex::default() };
        let state = Arc::new(state);
        let accepting = std::thread::spawn({
            let state = state.clone();
            move || accept(&listener, &state)
        });
        Self { port, state, accepting: Some(accepting) }
    }

    /// Returns the listening address.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Changes the mode.
    pub fn set(&self, mode: Mode) {
        *self.state.mode.lock().unwrap() = mode;
    }

    /// Cuts all connections.
    pub fn cut(&self) {
        for stream in self.state.streams.lock().unwrap().drain(..) {
            // The peer may have closed the connection already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for FlakyProxy {
    fn drop(&mut self) {
        self.set(Mode::Over);
        self.cut();
        let _ = TcpStream::connect(self.address());
        let _ = self.accepting.take().map(JoinHandle::join);
    }
}

impl FlakyProxyState {
    fn mode(&self) -> Mode {
        *self.mode.lock().unwrap()
    }
}

fn accept(listener: &TcpListener, state: &Arc<FlakyProxyState>) {
    for client in listener.incoming() {
        match state.mode() {
            Mode::Over => return,
            Mode::Refusing => continue,
            Mode::Open | Mode::Stalled | Mode::Mute => {}
        }
        let client = client.expect("a connection is accepted");
        let broker = TcpStream::connect(&state.broker).expect("the broker answers");
        for (from, to, kept) in [(&client, &broker, Mode::Stalled), (&broker, &client, Mode::Mute)] {
            to.set_nodelay(true).unwrap();
            state.streams.lock().unwrap().push(to.try_clone().unwrap());
            let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            let state = state.clone();
            std::thread::spawn(move || copy(from, to, kept, &state));
        }
    }
}

/// Forwards bytes until one side closes, then closes the other one. Withholds bytes in the modes `Stalled` and `kept`.
fn copy(mut from: TcpStream, mut to: TcpStream, kept: Mode, state: &FlakyProxyState) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(read) = from.read(&mut bytes) {
        if read == 0 {
            break;
        }
        while [Mode::Stalled, kept].contains(&state.mode()) {
            sleep_ns(1_000_000);
        }
        if to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
