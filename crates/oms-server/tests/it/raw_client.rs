//! A client without a library.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use tickpath_oms_protocol::{
    ClientLogon, FrameBuffer, FrameKind as Word, Logon, MAGIC, VERSION, Welcome, write_frame_with_text,
};

use super::sessions::OmsFixture;
use super::*;

/// Max time of a socket operation.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A client without a library, which can send any bytes.
pub(crate) struct RawClient {
    pub(crate) stream: UnixStream,
    pub(crate) inbox: FrameBuffer,
    pub(crate) welcome: Welcome,
}

impl RawClient {
    /// Connects without sending anything.
    pub(crate) fn new(oms: &OmsFixture) -> Self {
        Self { stream: Self::connect(oms), inbox: FrameBuffer::default(), welcome: Welcome::default() }
    }

    pub(crate) fn connect(oms: &OmsFixture) -> UnixStream {
        let stream = UnixStream::connect(oms.socket()).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream
    }

    /// Logs in to a session and requests all reports of the day.
    pub(crate) fn login(oms: &OmsFixture, user: &str, session: u16, heartbeat_ms: u32) -> Self {
        Self::login_at(oms, user, session, heartbeat_ms, VERSION)
    }

    /// Logs in as a client of this version.
    pub(crate) fn login_at(oms: &OmsFixture, user: &str, session: u16, heartbeat_ms: u32, version: u16) -> Self {
        Self::login_with(oms, user, &Self::logon(session, heartbeat_ms, version))
    }

    /// Returns the logon of a client without any report.
    pub(crate) fn logon(session: u16, heartbeat_ms: u32, version: u16) -> Logon {
        Logon {
            magic: MAGIC,
            version,
            session,
            heartbeat_ms,
            journal: 0,
            next_report: 0,
            last_sum: 0,
            client: 0,
            features: 0,
            last_detail_sum: 0,
            next_detail: 0,
        }
    }

    /// Sends this logon and proves the user's password.
    pub(crate) fn login_with(oms: &OmsFixture, user: &str, hello: &Logon) -> Self {
        let (mut logon, first) = ClientLogon::new(user, &format!("{user}'s password"), None).expect("a good name");
        let mut raw = Self::new(oms);
        raw.say(Word::Logon.code(), 0, hello.as_bytes(), &first);
        let (_, _, challenge) = raw.hear().expect("a challenge");
        let proof = logon.answer(&challenge).expect("a good challenge");
        raw.say(Word::Proof.code(), 0, &[], &proof);
        let (kind, payload, _) = raw.hear().expect("a welcome");
        assert_eq!(kind, Word::Welcome.code());
        raw.welcome = Welcome::read_from_bytes(&payload).expect("a whole welcome");
        raw
    }

    pub(crate) fn say(&mut self, kind: u8, number: u64, message: &[u8], text: &[u8]) {
        let mut out = Vec::new();
        write_frame_with_text(&mut out, kind, number, 0, message, text);
        self.stream.write_all(&out).expect("it is heard");
    }

    /// Returns the next frame: kind, message, text; none at the end of the connection.
    pub(crate) fn hear(&mut self) -> Option<(u8, Vec<u8>, Vec<u8>)> {
        loop {
            if let Some(frame) = self.inbox.next().expect("the OMS says frames") {
                return Some((frame.kind, frame.payload.to_vec(), frame.text.to_vec()));
            }
            match self.stream.read(self.inbox.free_space()) {
                Ok(0) => return None,
                Ok(bytes) => self.inbox.advance(bytes),
                Err(e) if e.kind() == ErrorKind::ConnectionReset => return None,
                Err(e) => panic!("nothing comes: {e}"),
            }
        }
    }

    /// Reads until the connection ends and returns the reason.
    pub(crate) fn farewell(&mut self) -> String {
        let mut why = String::new();
        while let Some((kind, _, text)) = self.hear() {
            if kind == Word::Logout.code() {
                why = String::from_utf8(text).expect("a sentence");
            }
        }
        why
    }
}
