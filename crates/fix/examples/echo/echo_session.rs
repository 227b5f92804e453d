//! A session with its frame reader, its store and the echo application: bytes and time in, bytes out.

use std::sync::Arc;

use tickpath_fix::{
    AppAnswer, BeginString, Dictionary, DisconnectReason, FrameReader, MemoryStore, Role, SequenceNumbers, Session,
    SessionConfig, SessionEvent, SessionIo,
};

use super::application::{EchoApplication, Reply};

/// CompID of the echo acceptor.
const NAME: &str = "ISLD";
/// Max time between a connection's first bytes and its Logon, in seconds.
const LOGON_S: u32 = 5;
/// Max length of a received message's body in bytes.
const MAX_BODY_BYTES: usize = 1 << 20;
/// Messages and bytes that are kept for resends.
const STORED_MESSAGES: usize = 1 << 16;
const STORED_BYTES: usize = 16 << 20;

/// Returns the settings of the echo acceptor: heartbeats as the Logon asks for, numbers that restart with each Logon, a
/// latency of at most 120 s, and all checks of the dictionary.
pub fn echo_config(begin_string: BeginString, peer: &str) -> SessionConfig {
    let mut config = SessionConfig::new(Role::Acceptor, begin_string, NAME, peer);
    config.reset_on_logon = true;
    config.max_latency_s = Some(120);
    config.times.logon_s = LOGON_S;
    config
}

/// An acceptor's session that echoes. One connection at a time feeds it.
pub struct EchoSession {
    reader: FrameReader,
    engine: Engine,
}

/// The session and what it is called with.
struct Engine {
    session: Session,
    store: MemoryStore,
    application: EchoApplication,
    output: Vec<u8>,
    /// Reason why the connection is to be closed.
    end: Option<DisconnectReason>,
    log: Box<dyn FnMut(&str)>,
}

impl EchoSession {
    /// Makes a session. `log` takes a sentence about each event that an operator should know of.
    pub fn new(config: SessionConfig, dictionary: Arc<Dictionary>, log: Box<dyn FnMut(&str)>) -> Self {
        let application = EchoApplication::new(dictionary.clone());
        let session = Session::new(config, dictionary, SequenceNumbers::FIRST);
        let store = MemoryStore::new(STORED_MESSAGES, STORED_BYTES);
        let engine = Engine { session, store, application, output: Vec::new(), end: None, log };
        Self { reader: FrameReader::new(MAX_BODY_BYTES), engine }
    }

    /// Begins a connection, at this time in nanoseconds since the Unix epoch.
    pub fn connected(&mut self, now_ns: u64) {
        self.reader.clear();
        self.engine.output.clear();
        self.engine.end = None;
        self.engine.run(now_ns, |session, io| session.connected(now_ns, io));
    }

    /// Takes received bytes. Bytes behind the message that ends the connection are ignored.
    pub fn receive(&mut self, bytes: &[u8], now_ns: u64) {
        self.reader.extend(bytes);
        while self.engine.end.is_none()
            && let Some(next) = self.reader.next()
        {
            match next {
                Ok(frame) => self.engine.run(now_ns, |session, io| session.receive(frame.bytes, now_ns, io)),
                Err(garbled) => {
                    (self.engine.log)(&garbled.to_string());
                    self.engine.run(now_ns, |session, io| session.garbled(now_ns, io));
                }
            }
        }
    }

    /// Does the work that is due by time.
    pub fn poll(&mut self, now_ns: u64) {
        self.engine.run(now_ns, |session, io| session.poll(now_ns, io));
    }

    /// Ends the connection.
    pub fn disconnected(&mut self, now_ns: u64) {
        self.engine.run(now_ns, |session, io| session.disconnected(now_ns, io));
    }

    /// Returns whether the connection is to be closed, once the output is sent.
    pub fn has_ended(&self) -> bool {
        self.engine.end.is_some()
    }

    /// Returns the bytes to send. The caller removes those that it has sent.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.engine.output
    }
}

impl Engine {
    /// Calls the session, and sends the replies of the application afterwards.
    fn run(&mut self, now_ns: u64, call: impl FnOnce(&mut Session, &mut SessionIo<'_>)) {
        self.call(call);
        while let Some(Reply { msg_type, body }) = self.application.next_reply() {
            let mut sent = Ok(0);
            self.call(|session, io| sent = session.send(&msg_type, now_ns, io, |writer| writer.raw(&body)));
            if let Err(error) = sent {
                (self.log)(&error.to_string());
            }
        }
    }

    fn call(&mut self, call: impl FnOnce(&mut Session, &mut SessionIo<'_>)) {
        let Self { session, store, application, output, end, log } = self;
        let mut events = |event: SessionEvent<'_>| -> AppAnswer {
            match event {
                SessionEvent::Disconnect(reason) => {
                    log(&format!("the connection ends: {reason}"));
                    end.get_or_insert(reason);
                }
                SessionEvent::Alarm(text) => log(text),
                _ => {}
            }
            application.handle(event)
        };
        call(session, &mut SessionIo { out: output, store, events: &mut events });
    }
}
