//! The acceptor: clients crowded out, password guessing, and the owner of a socket.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};

use tickpath_oms_client::{Client as Remote, ClientError, Config as RemoteConfig};
use tickpath_oms_protocol::{
    ClientLogon, FrameKind as Word, Logon, LogonReject, LogonRejectReason, MAGIC, Secret, VERSION,
    write_frame_with_text,
};
use tickpath_oms_server::ServerEvent;

use super::raw_client::RawClient;
use super::sessions::OmsFixture;
use super::*;

/// More connections than the acceptor handles at once.
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
        features: 0,
        last_detail_sum: 0,
        next_detail: 0,
    }
}

/// Returns the first frame of a logon as bytes.
fn knock() -> Vec<u8> {
    let (_, first) = ClientLogon::new("anna", "a guess", None).expect("a good name");
    let mut out = Vec::new();
    write_frame_with_text(&mut out, Word::Logon.code(), 0, 0, hello().as_bytes(), &first);
    out
}

impl OmsFixture {
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

/// Checks that an honest client completes its logon although a crowd arrives in the middle.
fn comes_in_beside<T>(oms: &OmsFixture, crowd: impl FnOnce() -> Vec<T>) {
    let mut raw = RawClient::new(oms);
    let (mut logon, first) = ClientLogon::new("anna", "anna's password", None).expect("a good name");
    raw.say(Word::Logon.code(), 0, hello().as_bytes(), &first);
    let (_, _, challenge) = raw.hear().expect("a challenge");
    let crowd = crowd();
    // A logon after the whole crowd shows that the acceptor has handled the crowd.
    oms.remote("boss", tickpath_oms_client::Since::Now).client.close();
    raw.say(Word::Proof.code(), 0, &[], &logon.answer(&challenge).expect("a good challenge"));
    assert_eq!(raw.hear().expect("it is let in").0, Word::Welcome.code());
    drop(crowd);
}

#[test]
fn a_crowd_from_another_origin_blocks_no_logon_even_with_a_challenge() {
    let oms = OmsFixture::new(Layout::Split);
    let port = oms.tcp_port();
    comes_in_beside(&oms, || {
        let knock = || {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
            stream.write_all(&knock()).expect("it is taken");
            stream
        };
        (0..CROWD).map(|_| knock()).collect()
    });
}

#[test]
fn a_silent_crowd_from_the_same_origin_blocks_no_logon() {
    let oms = OmsFixture::new(Layout::Split);
    comes_in_beside(&oms, || (0..CROWD).map(|_| UnixStream::connect(oms.socket()).expect("it listens")).collect());
}

#[test]
fn wrong_passwords_are_delayed_on_every_connection_and_for_every_user() {
    const GUESSES: usize = 12;
    let oms = OmsFixture::new(Layout::Split);
    let url = format!("unix://{}", oms.socket().display());
    let guess = |user: &str| {
        let config = RemoteConfig { connect_timeout_ms: 20_000, ..RemoteConfig::new(&url, user, "a guess") };
        match Remote::connect(config).map(drop) {
            Err(ClientError::Refused { refusal, .. }) => refusal.expect("a known reason"),
            other => panic!("{user} was not refused: {other:?}"),
        }
    };
    let judged = |user: &str| {
        let sentence: Vec<LogonRejectReason> = std::thread::scope(|scope| {
            let guesses: Vec<_> = (0..GUESSES).map(|_| scope.spawn(|| guess(user))).collect();
            guesses.into_iter().map(|guess| guess.join().expect("it is told")).collect()
        });
        assert!(
            sentence.iter().all(|sentence| [LogonRejectReason::Password, LogonRejectReason::Full].contains(sentence)),
            "{sentence:?}"
        );
        sentence.iter().filter(|&&sentence| sentence == LogonRejectReason::Password).count()
    };
    let judged = std::thread::scope(|scope| {
        let of = ["anna", "nobody"].map(|user| scope.spawn(move || judged(user)));
        // Meanwhile another user logs on at once.
        oms.remote("boss", tickpath_oms_client::Since::Now).client.close();
        of.map(|judged| judged.join().expect("all are told"))
    });
    // One logon a second, within the acceptor's time limit.
    assert!(judged.iter().all(|judged| (1..=6).contains(judged)), "{judged:?}");
}

/// A logon that has its challenge, with the proof to send.
struct HalfLogon {
    raw: RawClient,
    challenge: String,
    proof: Vec<u8>,
}

impl HalfLogon {
    fn new(oms: &OmsFixture, user: &str, password: &str, session: u16) -> Self {
        let mut raw = RawClient::new(oms);
        let (mut logon, first) = ClientLogon::new(user, password, None).expect("a good name");
        raw.say(Word::Logon.code(), 0, Logon { session, ..hello() }.as_bytes(), &first);
        let (_, _, challenge) = raw.hear().expect("a challenge");
        let proof = logon.answer(&challenge).expect("a good challenge");
        Self { raw, challenge: String::from_utf8(challenge).expect("a text"), proof }
    }

    /// Completes the logon, which is refused, and returns the reason.
    fn refused(mut self) -> (Option<LogonRejectReason>, String) {
        self.raw.say(Word::Proof.code(), 0, &[], &self.proof);
        let (kind, message, text) = self.raw.hear().expect("an answer");
        assert_eq!(kind, Word::Refused.code(), "it is let in");
        let refused = LogonReject::read_from_bytes(&message).expect("a whole refusal");
        (LogonRejectReason::from_code(refused.code), String::from_utf8(text).expect("a sentence"))
    }
}

impl OmsFixture {
    /// Changes the users' file. Eve is removed in it, so her disconnection shows that the file was read.
    fn change_users(&self, change: impl Fn(&str, &str) -> Option<String>) {
        let eve = self.remote("eve", tickpath_oms_client::Since::Now);
        let file = self.folder().join("users.toml");
        let before = fs::read_to_string(&file).expect("it is there");
        let user = |block: &str| {
            let name = ["anna", "boss", "eve"].into_iter().find(|name| block.contains(&format!("name = \"{name}\"")));
            match name.expect("these are all") {
                "eve" => Some(format!("{block}disabled = true\n")),
                name => change(name, block),
            }
        };
        let after: Vec<String> =
            before.split("[[user]]\n").skip(1).filter_map(user).map(|block| format!("[[user]]\n{block}")).collect();
        fs::write(&file, after.concat()).expect("it is ours");
        self.event(
            "the file was read",
            |event| matches!(event, ServerEvent::Disconnected { user, .. } if user == "eve"),
        );
        drop(eve);
    }
}

/// Returns a user's lines with another secret.
fn with_secret(block: &str, secret: &str) -> String {
    let line = |line: &str| match line.starts_with("secret") {
        true => format!("secret = \"{secret}\"\n"),
        false => format!("{line}\n"),
    };
    block.lines().map(line).collect()
}

#[test]
fn a_logon_that_began_before_its_record_changed_is_refused() {
    let oms = OmsFixture::new(Layout::Split);
    let with_old = HalfLogon::new(&oms, "anna", "anna's password", 0);
    let with_new = HalfLogon::new(&oms, "anna", "another password", 1);
    let removed = HalfLogon::new(&oms, "boss", "boss's password", 2);
    let other = Secret::from_password("another password").to_string();
    // The user boss is removed.
    oms.change_users(|name, block| (name == "anna").then(|| with_secret(block, &other)));
    for (what, begun) in [("the old password", with_old), ("a user that is gone", removed)] {
        let (refusal, why) = begun.refused();
        assert!(
            refusal == Some(LogonRejectReason::NotPermitted) && why.contains("has changed"),
            "{what}: {refusal:?} {why}"
        );
    }
    assert_eq!(with_new.refused().0, Some(LogonRejectReason::Password), "the new password on the old challenge");
    let url = format!("unix://{}", oms.socket().display());
    let config =
        |password: &str| RemoteConfig { connect_timeout_ms: 20_000, ..RemoteConfig::new(&url, "anna", password) };
    Remote::connect(config("another password")).expect("a new logon knows the new record").close();
    assert!(Remote::connect(config("anna's password")).is_err(), "and no other");
}

#[test]
fn unknown_users_get_challenges_like_those_of_imported_users() {
    let oms = OmsFixture::new(Layout::Split);
    // A secret as another server makes it: fewer iterations, and a salt of 24 bytes.
    let own = Secret::from_password("anna's password").to_string();
    let keys = own.rsplit_once('$').expect("it has keys").1;
    let imported = format!("SCRAM-SHA-256$4096:{}${keys}", "abcd".repeat(8));
    oms.change_users(|name, block| match name {
        "anna" => Some(with_secret(block, &imported)),
        _ => Some(block.to_owned()),
    });
    let form = |user: &str| {
        let begun = HalfLogon::new(&oms, user, "a guess", 0);
        let (_, sentence) = begun.challenge.split_once(",s=").expect("a salt");
        let (salt, iterations) = sentence.split_once(",i=").expect("iterations");
        (salt.len(), iterations.to_owned())
    };
    assert_eq!(form("anna"), (32, "4096".to_owned()));
    // Eve, who is disabled, has the default form.
    let usual = form("eve");
    let forms: Vec<_> = (0..40).map(|nth| form(&format!("nobody{nth}"))).collect();
    for like in [&form("anna"), &usual] {
        assert!(forms.contains(like), "of 40 strangers none looks like {like:?}: {forms:?}");
    }
    assert_eq!(form("nobody7"), forms[7], "the same name, the same challenge");
}

#[test]
fn the_challenge_of_an_unknown_user_survives_a_restart() {
    let mut oms = OmsFixture::new(Layout::Split);
    let salts = |oms: &OmsFixture| {
        ["anna", "nobody", "nobody else"].map(|user| {
            let begun = HalfLogon::new(oms, user, "a guess", 0);
            begun.challenge.split_once(",s=").expect("a salt").1.to_owned()
        })
    };
    let before = salts(&oms);
    oms.stop();
    oms.start();
    assert_eq!(salts(&oms), before, "else whoever changes is no user");
}

#[test]
fn names_of_unknown_users_are_escaped_in_the_log() {
    let oms = OmsFixture::new(Layout::Split);
    let name = "x\u{2028}boss has logged in\u{202e}\u{200b}";
    let (refusal, _) = HalfLogon::new(&oms, name, "a guess", 0).refused();
    assert_eq!(refusal, Some(LogonRejectReason::Password));
    oms.event("it is told", |event| {
        let ServerEvent::Refused { why, .. } = event else { return false };
        for text in [why, &event.to_string()] {
            let is_raw = text.contains(['\u{2028}', '\u{202e}', '\u{200b}']);
            assert!(!is_raw && text.contains("\\u{2028}boss"), "{text:?}");
        }
        true
    });
    let broken =
        ServerEvent::Disconnected { user: "anna".to_owned(), session: 0, why: "\u{1b}[2J\r\nready".to_owned() };
    assert_eq!(broken.to_string(), "anna has left session 0: \\u{1b}[2J\\u{d}\\u{a}ready");
}

#[test]
fn a_process_with_secrets_gives_no_core_dump() {
    use rustix::process::{DumpableBehavior, dumpable_behavior};
    let _house = OmsFixture::new(Layout::Split);
    assert_eq!(dumpable_behavior().expect("Linux tells"), DumpableBehavior::NotDumpable);
}

#[test]
fn the_socket_of_another_server_is_not_removed() {
    let mut oms = OmsFixture::new(Layout::Split);
    fs::remove_file(oms.socket()).expect("it is there");
    let other = UnixListener::bind(oms.socket()).expect("the place is free");
    oms.stop();
    UnixStream::connect(oms.socket()).expect("the other still listens");
    drop(other);
    oms.start();
    oms.trades(1);
    oms.stop();
    assert!(!oms.socket().exists(), "its own is taken away");
}
