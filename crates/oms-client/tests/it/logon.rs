//! Accepted logons, and the reported reasons of rejected ones.

use std::fs;
use std::net::TcpListener;

use tickpath_oms_client::{Client, ClientError, Config};
use tickpath_oms_protocol::{FrameHeader, FrameKind, Logon, LogonRejectReason, ScramError, Secret, VERSION, Welcome};
use zerocopy::IntoBytes;

use crate::fake_oms::{FakeOms, PASSWORD, order, welcome};

fn error_text(config: Config) -> String {
    Client::connect(config).map(drop).unwrap_err().to_string()
}

#[test]
fn an_unreachable_address_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (none, file) = (folder.path().join("none.sock"), folder.path().join("file"));
    fs::write(&file, "no socket").unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for url in [format!("unix://{}", none.display()), format!("unix://{}", file.display()), format!("tcp://{free}")] {
        let text = error_text(Config::new(url.clone(), "anna", "x"));
        assert!(text.contains(&url) && text.contains("start it with `tickpath oms`"), "{text}");
    }
}

#[test]
fn an_invalid_address_is_reported_without_its_password() {
    for url in ["", "oms.sock", "redis://host", "tcp://anna:horse@host:1"] {
        let text = error_text(Config::new(url, "anna", "x"));
        assert!(text.contains("tcp://HOST:PORT") && !text.contains("horse"), "{text}");
    }
}

#[test]
fn a_wrong_password_gets_the_sentence_of_the_oms() {
    let oms = FakeOms::unix();
    let (client, ()) = oms.beside(Config::new(oms.url(), "anna", "wrong"), |mut peer| peer.check_password());
    let Err(ClientError::Refused { refusal, sentence }) = client else { panic!("{client:?}") };
    assert_eq!(refusal, Some(LogonRejectReason::Password));
    assert!(sentence.contains("password is wrong"), "{sentence}");
}

#[test]
fn an_invalid_user_name_is_refused_locally() {
    let oms = FakeOms::unix();
    let refused = Client::connect(Config::new(oms.url(), "anna,admin", "x"));
    assert!(matches!(refused, Err(ClientError::Logon(ScramError::User))), "{refused:?}");
}

#[test]
fn an_oms_without_the_secret_is_refused() {
    let oms = FakeOms::unix();
    let (client, ()) = oms.beside(oms.config(), |mut peer| {
        let (_, server_final) = peer.prove(&Secret::from_password("another"));
        assert!(server_final.is_none());
        let made_up = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
        peer.say_text(FrameKind::Welcome, welcome(0, 0).as_bytes(), made_up);
    });
    assert!(matches!(client, Err(ClientError::Logon(ScramError::Server))), "{client:?}");
}

#[test]
fn iterations_out_of_bounds_are_not_answered() {
    let oms = FakeOms::unix();
    for iterations in [1, 2_000_000] {
        let (client, ()) = oms.beside(oms.config(), |mut peer| {
            let (_, first) = peer.logon();
            let nonce = String::from_utf8(first).unwrap().split_once(",r=").unwrap().1.to_owned();
            peer.say_text(FrameKind::Challenge, &[], format!("r={nonce}more,s=c2FsdA==,i={iterations}").as_bytes());
            assert_eq!(peer.hear(), None, "no proof");
        });
        assert!(matches!(client, Err(ClientError::Logon(ScramError::Iterations(n))) if n == iterations), "{client:?}");
    }
}

#[test]
fn a_version_that_was_not_offered_is_refused() {
    let oms = FakeOms::unix();
    for version in [0, VERSION + 1] {
        let (client, _) = oms.beside(oms.config(), |mut peer| peer.let_in(Welcome { version, ..welcome(0, 0) }));
        assert!(matches!(client, Err(ClientError::Protocol(_))), "{client:?}");
    }
}

#[test]
fn a_slow_logon_times_out() {
    let oms = FakeOms::tcp();
    let config = || Config { connect_timeout_ms: 200, ..oms.config() };
    let silent = oms.beside(config(), |mut peer| {
        peer.logon();
        assert_eq!(peer.hear(), None);
    });
    assert!(matches!(silent.0, Err(ClientError::LogonTimeout { ms: 200, .. })), "{:?}", silent.0);
    let trickling = oms.beside(config(), |mut peer| {
        peer.logon();
        // A frame that never ends, whose bytes arrive often enough that no single read times out.
        let head = FrameHeader { length: 4096, kind: FrameKind::Challenge.code(), ..FrameHeader::default() };
        for byte in [head.as_bytes(), &[0; 4096]].concat() {
            tickpath_clock::sleep_ns(1_000_000);
            if !peer.try_say(&[byte]) {
                break;
            }
        }
    });
    assert!(matches!(trickling.0, Err(ClientError::LogonTimeout { .. })), "{:?}", trickling.0);
}

#[test]
fn an_oms_that_closes_during_the_logon_is_an_error() {
    let oms = FakeOms::unix();
    let (client, ()) = oms.beside(oms.config(), |mut peer| drop(peer.logon()));
    assert!(matches!(client, Err(ClientError::Closed | ClientError::Lost(_))), "{client:?}");
    let (client, ()) = oms.beside(oms.config(), |mut peer| {
        peer.logon();
        peer.refuse(LogonRejectReason::Stopping, "the OMS stops;\u{1b}[31m come back");
    });
    let text = client.unwrap_err().to_string();
    assert_eq!(text, "the OMS refused: the OMS stops; [31m come back", "and nothing of it steers a terminal");
}

#[test]
fn the_password_is_not_printed() {
    let oms = FakeOms::unix();
    let (client, peer) = oms.meet(oms.config(), welcome(0, 0));
    let printed = format!("{:?} {client:?}", oms.config());
    assert!(!printed.contains(PASSWORD) && printed.contains("anna"), "{printed}");
    drop(peer);
}

#[test]
fn without_lanes_the_client_uses_the_socket() {
    let oms = FakeOms::unix();
    let config = Config { url: format!("shm+{}", oms.url()), ..oms.config() };
    let (client, (mut peer, logon)) = oms.beside(config.clone(), |mut peer| {
        let logon = peer.let_in(welcome(0, 0));
        (peer, logon)
    });
    assert_eq!(logon.features, Logon::LANES);
    let mut client = client.unwrap();
    assert_eq!(client.send(&order(1)), Ok(0));
    assert_eq!(peer.hear().expect("the request").number, 0);
    let (client, _) =
        oms.beside(config, |mut peer| peer.let_in(Welcome { version: VERSION, lanes: 1, ..welcome(0, 0) }));
    assert!(client.unwrap_err().to_string().contains("without their memory"));
}
