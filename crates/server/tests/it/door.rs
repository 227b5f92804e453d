//! At the door: who is kept out by others, who guesses passwords, and whose socket it is.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};

use tickpath_client::{Client as Remote, ClientError, Config as RemoteConfig};
use tickpath_server::ServerEvent;
use tickpath_session::{ClientLogon, Kind as Word, Logon, MAGIC, Refusal, VERSION, write_with_text};

use super::hostile::Raw;
use super::sessions::House;
use super::*;

/// More than the door hears at once.
const CROWD: usize = 300;

fn hello() -> Logon {
    Logon {
        magic: MAGIC,
        version: VERSION,
        session: 0,
        heartbeat_ms: 10_000,
        journal: 0,
        next_report: 0,
        last_sum: 0,
        client: 0,
        wishes: 0,
        reserved_end: 0,
    }
}

/// The first word of a logon, as bytes.
fn knock() -> Vec<u8> {
    let (_, first) = ClientLogon::new("anna", "a guess", None).expect("a good name");
    let mut out = Vec::new();
    write_with_text(&mut out, Word::Logon.code(), 0, 0, hello().as_bytes(), &first);
    out
}

impl House {
    fn tcp_port(&self) -> u16 {
        let mut port = None;
        self.event("it listens", |event| match event {
            ServerEvent::Listening(place) => {
                port = place.strip_prefix("tcp://127.0.0.1:").map(|port| port.parse().expect("a port"));
                port.is_some()
            }
            _ => false,
        });
        port.expect("it was told")
    }
}

/// An honest client is in the middle of its logon when a crowd comes.
fn comes_in_beside<T>(house: &House, crowd: impl FnOnce() -> Vec<T>) {
    let mut raw = Raw::new(house);
    let (mut logon, first) = ClientLogon::new("anna", "anna's password", None).expect("a good name");
    raw.say(Word::Logon.code(), 0, hello().as_bytes(), &first);
    let (_, _, challenge) = raw.hear().expect("a challenge");
    let crowd = crowd();
    // One that came behind all of the crowd and is in tells that the door has seen them.
    house.remote("boss", tickpath_client::Since::Now).client.close();
    raw.say(Word::Proof.code(), 0, &[], &logon.answer(&challenge).expect("a good challenge"));
    assert_eq!(raw.hear().expect("it is let in").0, Word::Welcome.code());
    drop(crowd);
}

#[test]
fn a_crowd_from_elsewhere_keeps_nobody_out_even_if_it_begins_to_log_on() {
    let house = House::new(Layout::Split);
    let port = house.tcp_port();
    comes_in_beside(&house, || {
        let knock = || {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
            stream.write_all(&knock()).expect("it is taken");
            stream
        };
        (0..CROWD).map(|_| knock()).collect()
    });
}

#[test]
fn a_silent_crowd_from_the_same_place_keeps_nobody_out_who_speaks() {
    let house = House::new(Layout::Split);
    comes_in_beside(&house, || (0..CROWD).map(|_| UnixStream::connect(house.socket()).expect("it listens")).collect());
}

#[test]
fn wrong_passwords_are_slow_however_many_come_at_once_and_for_whomever() {
    const GUESSES: usize = 12;
    let house = House::new(Layout::Split);
    let url = format!("unix://{}", house.socket().display());
    let guess = |user: &str| {
        let config = RemoteConfig { connect_timeout_ms: 20_000, ..RemoteConfig::new(&url, user, "a guess") };
        match Remote::connect(config).map(drop) {
            Err(ClientError::Refused { refusal, .. }) => refusal.expect("a known reason"),
            other => panic!("{user} was not refused: {other:?}"),
        }
    };
    let judged = |user: &str| {
        let told: Vec<Refusal> = std::thread::scope(|scope| {
            let guesses: Vec<_> = (0..GUESSES).map(|_| scope.spawn(|| guess(user))).collect();
            guesses.into_iter().map(|guess| guess.join().expect("it is told")).collect()
        });
        assert!(told.iter().all(|told| [Refusal::Password, Refusal::Full].contains(told)), "{told:?}");
        told.iter().filter(|&&told| told == Refusal::Password).count()
    };
    let judged = std::thread::scope(|scope| {
        let of = ["anna", "nobody"].map(|user| scope.spawn(move || judged(user)));
        // Meanwhile another user comes in at once.
        house.remote("boss", tickpath_client::Since::Now).client.close();
        of.map(|judged| judged.join().expect("all are told"))
    });
    // One a second, for as long as the door has patience.
    assert!(judged.iter().all(|judged| (1..=6).contains(judged)), "{judged:?}");
}

#[test]
fn a_socket_of_somebody_else_is_not_taken_away() {
    let mut house = House::new(Layout::Split);
    fs::remove_file(house.socket()).expect("it is there");
    let other = UnixListener::bind(house.socket()).expect("the place is free");
    house.stop();
    UnixStream::connect(house.socket()).expect("the other still listens");
    drop(other);
    house.start();
    house.trades(1);
    house.stop();
    assert!(!house.socket().exists(), "its own is taken away");
}
