//! Fault-injecting proxy in front of a server: one command meets a fault, all other traffic passes, on every
//! connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tickpath_bus_api::conformance::wait_until;
use tickpath_clock::sleep_ns;

/// The fault that the chosen command meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandFault {
    /// The command reaches the server, but its connection is cut when the answer arrives, so the client never sees it.
    Unanswered,
    /// The command stays in flight until [`RedisFaultProxy::release`], even if the client drops its connection
    /// meanwhile.
    Delayed,
}

/// A running proxy.
pub struct RedisFaultProxy {
    port: u16,
    state: Arc<RedisProxyState>,
}

struct RedisProxyState {
    server: u16,
    command: &'static [u8],
    fault: CommandFault,
    /// The command was seen.
    is_command_seen: AtomicBool,
    /// The command may be forwarded.
    is_released: AtomicBool,
    /// The command was forwarded, or the connection to the server had ended.
    is_over: AtomicBool,
}

impl RedisFaultProxy {
    /// Listens in front of the server on this port. The first bytes read that contain `command` meet the fault.
    pub fn to(server: u16, word: &'static str, fault: CommandFault) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let flag = || AtomicBool::new(false);
        let (has_met, is_let_go, is_over) = (flag(), flag(), flag());
        let state = Arc::new(RedisProxyState {
            server,
            command: word.as_bytes(),
            fault,
            is_command_seen: has_met,
            is_released: is_let_go,
            is_over,
        });
        std::thread::spawn({
            let state = state.clone();
            move || listener.incoming().for_each(|near| state.connect(near.unwrap()))
        });
        Self { port, state }
    }

    /// Returns the URL that leads to the server through the proxy.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Reports whether the command was seen.
    pub fn is_command_seen(&self) -> bool {
        self.state.is_command_seen.load(Ordering::Relaxed)
    }

    /// Releases a [`CommandFault::Delayed`] command, and waits until it was forwarded or its connection has proved
    /// dead.
    pub fn release(&self) {
        self.state.is_released.store(true, Ordering::Relaxed);
        wait_until(|| self.state.is_over.load(Ordering::Relaxed));
    }
}

impl RedisProxyState {
    fn connect(self: &Arc<Self>, near: TcpStream) {
        let Ok(far) = TcpStream::connect(("127.0.0.1", self.server)) else { return };
        let is_cut = Arc::new(AtomicBool::new(false));
        let ends = || (near.try_clone().unwrap(), far.try_clone().unwrap());
        let ((near_in, far_out), (near_out, far_in)) = (ends(), ends());
        let (state, cutting) = (self.clone(), is_cut.clone());
        std::thread::spawn(move || copy(near_in, far_out, |bytes, far| state.forward(bytes, far, &cutting)));
        let answers = move |answer: &[u8], near: &mut TcpStream| {
            !is_cut.load(Ordering::Relaxed) && near.write_all(answer).is_ok()
        };
        std::thread::spawn(move || copy(far_in, near_out, answers));
    }

    /// Forwards bytes, holding them back first if they contain the command. Returns whether the connection continues.
    fn forward(&self, bytes: &[u8], far: &mut TcpStream, cutting: &AtomicBool) -> bool {
        let is_it = bytes.windows(self.command.len()).any(|part| part == self.command);
        let has_met = is_it && !self.is_command_seen.swap(true, Ordering::Relaxed);
        match self.fault {
            CommandFault::Unanswered if has_met => cutting.store(true, Ordering::Relaxed),
            CommandFault::Delayed if has_met => {
                while !self.is_released.load(Ordering::Relaxed) {
                    sleep_ns(1_000_000);
                }
            }
            CommandFault::Unanswered | CommandFault::Delayed => {}
        }
        let continues = far.write_all(bytes).is_ok();
        self.is_over.fetch_or(has_met, Ordering::Relaxed);
        continues
    }
}

/// Copies until one side closes or `forward` returns false; then shuts down both sides.
fn copy(mut from: TcpStream, mut to: TcpStream, pass: impl Fn(&[u8], &mut TcpStream) -> bool) {
    let mut room = [0; 4096];
    loop {
        match from.read(&mut room) {
            Ok(read) if read > 0 && pass(&room[..read], &mut to) => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    // Shutdown fails if a peer has closed already.
    let _ = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
}
