//! Lanes in shared memory that a logon opens: equivalent to a socket for honest clients, and safe against hostile ones.

use std::fs::File;
use std::io::{ErrorKind, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tickpath_log::LanePair;
use tickpath_oms_client::{ClientEvent, Since};
use tickpath_oms_protocol::{
    ClientLogon, FrameBuffer, FrameKind as Word, HEADER_BYTES, Logon, MAGIC, Query, VERSION, Welcome, write_frame,
    write_frame_with_text,
};
use tickpath_oms_server::ServerEvent;

use super::sessions::OmsFixture;
use super::*;

/// Offsets in a lane's memory: the owner's read position, and the start of its ring.
const HEAD: u64 = 0;
const RING: u64 = 4096;

const LAYOUTS: [Layout; 2] = [Layout::Inline, Layout::Split];

/// A client with lanes whose memory it can overwrite.
struct RawLaneClient {
    socket: UnixStream,
    /// The memory that the client writes, and the memory that the OMS writes.
    memory: [OwnedFd; 2],
}

impl RawLaneClient {
    fn login(oms: &OmsFixture, session: u16) -> Self {
        let mut socket = UnixStream::connect(oms.socket()).expect("it listens");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
        let (mut logon, first) = ClientLogon::new("anna", "anna's password", None).expect("a good name");
        let hello = Logon {
            magic: MAGIC,
            version: VERSION,
            session,
            heartbeat_ms: 60_000,
            journal: 0,
            next_report: 0,
            last_sum: 0,
            client: 0,
            features: Logon::LANES,
            last_detail_sum: 0,
            next_detail: 0,
        };
        let say = |socket: &mut UnixStream, kind: Word, message: &[u8], text: &[u8]| {
            let mut out = Vec::new();
            write_frame_with_text(&mut out, kind.code(), 0, 0, message, text);
            socket.write_all(&out).expect("it is heard");
        };
        say(&mut socket, Word::Logon, hello.as_bytes(), &first);
        let mut inbox = FrameBuffer::default();
        let bytes = socket.read(inbox.free_space()).expect("a challenge");
        inbox.advance(bytes);
        let challenge = inbox.next().expect("a frame").expect("all of it").text.to_vec();
        say(&mut socket, Word::Proof, &[], &logon.answer(&challenge).expect("a good challenge"));
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut room = [0; 4096];
        let got = recvmsg(&socket, &mut [IoSliceMut::new(&mut room)], &mut control, RecvFlags::CMSG_CLOEXEC);
        let got = got.expect("a welcome").bytes;
        let (welcome, _) = Welcome::read_from_prefix(&room[HEADER_BYTES..got]).expect("a whole welcome");
        assert_eq!((welcome.lanes, welcome.version), (1, VERSION));
        let memory: Vec<OwnedFd> = control
            .drain()
            .flat_map(|message| match message {
                RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect(),
                _ => Vec::new(),
            })
            .collect();
        Self { socket, memory: memory.try_into().expect("two descriptors") }
    }

    fn lanes(&self) -> LanePair {
        LanePair::join(self.memory.each_ref().map(|memory| memory.try_clone().expect("a descriptor")))
            .expect("they are sound")
    }

    /// Overwrites a word of the client's own memory.
    fn overwrite(&mut self, place: u64, word: u64) {
        let file = File::from(self.memory[0].try_clone().expect("a descriptor"));
        rustix::io::pwrite(&file, &word.to_le_bytes(), place).expect("it is its own");
        self.ring();
    }

    fn ring(&mut self) {
        // After a disconnection the ring has no reader.
        let _ = self.socket.write_all(&[0]);
    }

    /// Checks that the OMS closed the socket.
    fn is_sent_away(&mut self) {
        let mut rest = Vec::new();
        match self.socket.read_to_end(&mut rest) {
            Ok(_) => {}
            // The socket was closed with unread rings in it.
            Err(e) => assert_eq!(e.kind(), ErrorKind::ConnectionReset, "the OMS closes it in time"),
        }
    }
}

fn order(id: u64, number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(&mut out, Kind::NewOrder.code(), number, 0, limit(Side::Buy, id, 95, 1).as_bytes());
    out
}

impl OmsFixture {
    fn laned(&self, user: &str, since: Since) -> super::sessions::RecordingClient {
        let client = self.remote_at(format!("shm+unix://{}", self.socket().display()), user, since);
        assert_eq!(client.client.welcome().lanes, 1);
        client
    }

    fn gone(&self, session: u16) -> String {
        let mut why = String::new();
        self.event("a client is gone", |event| match event {
            ServerEvent::Disconnected { session: of, why: sentence, .. } if *of == session => {
                why.clone_from(sentence);
                true
            }
            _ => false,
        });
        why
    }
}

#[test]
fn orders_and_a_days_replay_pass_through_lanes() {
    const ORDERS: u64 = 20_000;
    for layout in LAYOUTS {
        let oms = OmsFixture::new(layout);
        let mut client = oms.laned("anna", Since::Start);
        for id in 1..=ORDERS {
            let order = Request::New(limit(Side::Buy, id, 95, 1));
            while client.client.send(&order).is_err() {
                client.poll();
            }
        }
        client.await_reports(2 * ORDERS as usize);
        let all = std::mem::take(&mut client.heard);
        client.client.close();
        oms.gone(0);
        for url in ["shm+unix", "unix"] {
            let url = format!("{url}://{}", oms.socket().display());
            let mut again = oms.remote_at(url, "anna", Since::Start);
            again.await_reports(2 * ORDERS as usize);
            assert!(again.heard == all, "not the same");
            assert_eq!(again.client.counts().gaps + again.client.counts().duplicates, 0);
            again.client.close();
        }
    }
}

#[test]
fn lanes_reopen_after_an_oms_restart_without_loss() {
    for layout in LAYOUTS {
        let mut oms = OmsFixture::new(layout);
        let mut client = oms.laned("anna", Since::Start);
        client.send(limit(Side::Buy, 1, 101, 1));
        client.await_reports(3);
        oms.stop();
        oms.start();
        client.until("it is there again", |client| {
            client.events.iter().filter(|event| matches!(event, ClientEvent::Connected(_))).count() == 2
        });
        assert_eq!(client.client.welcome().lanes, 1);
        client.send(limit(Side::Buy, 2, 101, 1));
        client.await_reports(6);
        assert_eq!(client.numbers(), [0, 1, 2, 3, 4, 5]);
    }
}

#[test]
fn either_side_wakes_a_sleeping_peer() {
    let oms = OmsFixture::new(Layout::Split);
    let mut client = oms.laned("anna", Since::Now);
    for id in 1..=2_000 {
        client.send(limit(Side::Buy, id, 1, 1));
        client.until("the denial", |client| client.heard.len() as u64 == id);
    }
}

#[test]
fn frames_sent_before_the_end_are_received() {
    for layout in LAYOUTS {
        let oms = OmsFixture::new(layout);
        let client = RawLaneClient::login(&oms, 0);
        client.lanes().write(&order(1, 0)).expect("there is room");
        drop(client);
        assert!(oms.gone(0).contains("closed"));
        let mut again = oms.remote("anna", Since::Start);
        again.until("its reports", |again| again.heard.len() == 2);
        assert_eq!(again.client.welcome().next_request, 1);
    }
}

#[test]
fn a_client_that_wakes_and_exits_is_disconnected() {
    let oms = OmsFixture::new(Layout::Split);
    for _ in 0..20 {
        let mut client = RawLaneClient::login(&oms, 0);
        // More rings than the socket takes: the OMS must find the end of the connection after them.
        client.socket.set_nonblocking(true).expect("a socket");
        while client.socket.write(&[0; 64]).is_ok() {}
        drop(client);
        oms.gone(0);
    }
}

#[test]
fn a_client_that_overwrites_its_lane_ends_its_own_session_only() {
    for layout in LAYOUTS {
        let oms = OmsFixture::new(layout);
        // Records longer than any valid one, and a read position beyond the written data.
        for (at, (place, word)) in
            [(RING, 1 << 40), (RING, u64::MAX), (RING, (16 << 10) + 1), (HEAD, 1 << 40)].into_iter().enumerate()
        {
            let mut client = RawLaneClient::login(&oms, 0);
            client.overwrite(place, word);
            if place == HEAD {
                // The OMS checks the claimed read position when it has data to send.
                let mut lanes = client.lanes();
                for number in 0..1_500 {
                    let mut query = Vec::new();
                    let asked = Query { what: Query::STATUS, ..Query::default() };
                    write_frame(&mut query, Word::Query.code(), number, 0, asked.as_bytes());
                    while lanes.write(&query).expect("the OMS breaks nothing") < query.len() {
                        client.overwrite(HEAD, word);
                    }
                    if client.socket.write_all(&[0]).is_err() {
                        break;
                    }
                }
            }
            let why = oms.gone(0);
            assert!(why.contains("overwritten"), "{place} {word}: {why}");
            client.is_sent_away();
            oms.trades(1 + at as u64);
        }
        // Valid lanes with invalid content: no frames, a lost number, an invalid request.
        let nonsense = [vec![255; 64], order(1, 7), {
            let mut bytes = order(1, 0);
            bytes[HEADER_BYTES..].fill(255);
            bytes
        }];
        for bytes in nonsense {
            let mut client = RawLaneClient::login(&oms, 0);
            client.lanes().write(&bytes).expect("there is room");
            client.ring();
            oms.gone(0);
            client.is_sent_away();
        }
        oms.trades(100);
    }
}

#[test]
fn a_flooding_or_deaf_client_harms_no_other() {
    for layout in LAYOUTS {
        let oms = OmsFixture::new(layout);
        let mut client = RawLaneClient::login(&oms, 0);
        let mut lanes = client.lanes();
        // Each order is answered by two reports, which the client never reads, and it rings without a pause.
        let (mut number, mut rest) = (0, Vec::new());
        while number < 20_000 {
            if rest.is_empty() {
                rest = order(number + 1, number);
                number += 1;
            }
            let output = lanes.write(&rest).expect("the OMS breaks nothing");
            rest.drain(..output);
            client.ring();
            if number % 5_000 == 0 && rest.is_empty() {
                oms.trades(number);
            }
        }
        while !rest.is_empty() {
            let output = lanes.write(&rest).expect("the OMS breaks nothing");
            rest.drain(..output);
        }
        oms.trades(50_000);
        drop((client, lanes));
        oms.gone(0);
        let mut again = oms.laned("anna", Since::Start);
        let session = again.client.welcome().session;
        assert_eq!(session, 0);
        again.until("all of its reports", |again| again.heard.len() == 40_000);
    }
}
