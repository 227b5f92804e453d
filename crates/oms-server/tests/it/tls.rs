//! The OMS as a server over TLS: trusted and refused certificates with their messages, and clients with no TLS or a
//! partial handshake.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use tickpath_oms_client::{Client as Remote, ClientError, Config as RemoteConfig, Since};
use tickpath_oms_server::{ServerEvent, ServerTlsFiles};

use super::sessions::OmsFixture;
use super::*;

/// Max time of a socket operation.
const PATIENCE: Duration = Duration::from_secs(20);

/// A certificate authority.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Issues a certificate for these names, and its key.
    fn certify(&self, names: &[&str], until: i32) -> (String, String) {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("good names");
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }
}

impl OmsFixture {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put_certificate(&self, (certificate, key): &(String, String)) -> ServerTlsFiles {
        let files = ServerTlsFiles { certificate: self.file("certificate.pem"), key: self.file("key.pem") };
        fs::write(&files.certificate, certificate).expect("the folder is ours");
        fs::write(&files.key, key).expect("the folder is ours");
        files
    }

    /// Starts an OMS with such a certificate; returns also its port.
    fn secure(layout: Layout, authority: &Authority, names: &[&str]) -> (Self, u16) {
        let mut oms = Self::new(layout);
        oms.stop();
        oms.tls = Some(oms.put_certificate(&authority.certify(names, 2090)));
        fs::write(oms.file("ca.pem"), &authority.pem).expect("the folder is ours");
        oms.start();
        let port = oms.port("tls://127.0.0.1:");
        (oms, port)
    }

    fn port(&self, before: &str) -> u16 {
        let events = &self.running.as_ref().expect("it runs").events;
        let place = events.iter().find_map(|event| match event {
            ServerEvent::Listening(place) => place.strip_prefix(before).map(str::to_owned),
            _ => None,
        });
        place.expect("it listens").parse().expect("a port")
    }

    fn url(&self, host: &str, port: u16) -> String {
        format!("tls://{host}:{port}?ca={}", self.file("ca.pem").display())
    }

    fn reported(&self, what: &str) -> String {
        let events = &self.running.as_ref().expect("it runs").events;
        loop {
            let sentence =
                events.recv_timeout(PATIENCE).unwrap_or_else(|e| panic!("'{what}' was not told: {e}")).to_string();
            if sentence.contains(what) {
                return sentence;
            }
        }
    }
}

fn refused(url: &str) -> String {
    let config = RemoteConfig::new(url, "anna", "anna's password");
    match Remote::connect(config) {
        Ok(_) => panic!("{url} lets it in"),
        Err(e) => e.to_string(),
    }
}

fn raw(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

#[test]
fn orders_and_a_days_replay_pass_over_tls() {
    const ORDERS: u64 = 5_000;
    let authority = Authority::new();
    for layout in [Layout::Inline, Layout::Split] {
        let (oms, port) = OmsFixture::secure(layout, &authority, &["localhost", "127.0.0.1"]);
        let mut client = oms.remote_at(oms.url("127.0.0.1", port), "anna", Since::Start);
        for id in 1..=ORDERS {
            let order = Request::New(limit(Side::Buy, id, 95, 1));
            while client.client.send(&order).is_err() {
                client.poll();
            }
        }
        client.await_reports(2 * ORDERS as usize);
        let all = std::mem::take(&mut client.heard);
        client.client.close();
        let mut again = oms.remote_at(oms.url("localhost", port), "anna", Since::Start);
        again.await_reports(2 * ORDERS as usize);
        assert!(again.heard == all, "not the same");
        assert_eq!(again.client.counts().gaps + again.client.counts().duplicates, 0);
    }
}

#[test]
fn a_client_refuses_an_untrusted_certificate() {
    let authority = Authority::new();
    let (oms, port) = OmsFixture::secure(Layout::Split, &authority, &["desk.example", "127.0.0.1"]);
    let sentence = refused(&oms.url("localhost", port));
    assert!(sentence.contains("certificate is not for 'localhost'"), "{sentence}");
    // An authority of the same name, and one that only this host knows.
    fs::write(oms.file("other.pem"), &Authority::new().pem).expect("the folder is ours");
    for other in [format!("?ca={}", oms.file("other.pem").display()), String::new()] {
        let sentence = refused(&format!("tls://127.0.0.1:{port}{other}"));
        assert!(sentence.contains("no authority that is trusted here") && sentence.contains("?ca=FILE"), "{sentence}");
    }
    for (file, text) in [("none.pem", None), ("empty.pem", Some(""))] {
        text.iter().for_each(|text| fs::write(oms.file(file), text).expect("the folder is ours"));
        let sentence = refused(&format!("tls://127.0.0.1:{port}?ca={}", oms.file(file).display()));
        assert!(sentence.contains(file) && sentence.contains("'ca' must be a"), "{sentence}");
    }
    oms.remote_at(oms.url("127.0.0.1", port), "anna", Since::Now).client.close();
}

#[test]
fn plain_and_tls_peers_refuse_each_other_with_a_reason() {
    let (oms, port) = OmsFixture::secure(Layout::Split, &Authority::new(), &["127.0.0.1"]);
    let sentence = refused(&format!("tcp://127.0.0.1:{port}"));
    assert!(sentence.contains("this port accepts TLS only; connect by tls://HOST:PORT"), "{sentence}");
    oms.reported("this port accepts TLS only");
    let plain = OmsFixture::new(Layout::Split);
    let port = plain.port("tcp://127.0.0.1:");
    let sentence = refused(&format!("tls://127.0.0.1:{port}?ca={}", oms.file("ca.pem").display()));
    assert!(sentence.contains("does not use TLS"), "{sentence}");
    plain.reported("this port has no TLS; connect by tcp://HOST:PORT");
}

#[test]
fn a_new_certificate_is_used_without_restart_and_a_bad_one_is_not() {
    let authority = Authority::new();
    let (oms, port) = OmsFixture::secure(Layout::Split, &authority, &["old.example"]);
    let url = oms.url("127.0.0.1", port);
    assert!(refused(&url).contains("not for '127.0.0.1'"));
    let mut client = oms.remote("anna", Since::Now);
    oms.put_certificate(&("no certificate".to_owned(), "no key".to_owned()));
    let sentence = oms.reported("the previous certificate stays in use");
    assert!(sentence.contains("there is no certificate in it"), "{sentence}");
    assert!(refused(&url).contains("not for '127.0.0.1'"));
    oms.put_certificate(&authority.certify(&["127.0.0.1"], 2090));
    client.until("the new one is shown", |_| {
        let config = RemoteConfig::new(url.as_str(), "anna", "anna's password");
        Remote::connect(config).map(Remote::close).is_ok()
    });
}

#[test]
fn an_unusable_certificate_is_refused_with_its_remedy() {
    let oms = OmsFixture::new(Layout::Split);
    let authority = Authority::new();
    let (good, other) = (authority.certify(&["a"], 2090), authority.certify(&["a"], 2090));
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let of_authority = (params.self_signed(&key).expect("a certificate").pem(), key.serialize_pem());
    let broken = good.0.replacen("MII", "MIA", 1);
    for (pair, sentence) in [
        (authority.certify(&["a"], 2020), "has expired"),
        ((good.0.clone(), other.1), "does not belong to the certificate"),
        ((good.1.clone(), good.1.clone()), "certificate.pem: there is no certificate in it"),
        ((good.0.clone(), good.0.clone()), "key.pem: there is no private key in it"),
        ((broken, good.1.clone()), "have a new certificate made"),
        (of_authority, "made with CA:FALSE"),
    ] {
        let files = oms.put_certificate(&pair);
        let why = files.check().expect_err(sentence).to_string();
        assert!(why.contains(sentence) && why.matches('\n').count() == 0, "{why}");
    }
    let files = oms.put_certificate(&good);
    files.check().expect("it is sound");
    fs::remove_file(&files.key).expect("it is there");
    let why = files.check().expect_err("there is no key").to_string();
    assert!(why.contains("key.pem") && why.contains("must be a PEM file that the OMS may read"), "{why}");
}

#[test]
fn a_certificate_that_expires_soon_causes_a_dated_warning() {
    let oms = OmsFixture::new(Layout::Split);
    let authority = Authority::new();
    let now = tickpath_clock::utc_ns() / 1_000_000_000;
    for (days, is_told) in [(2, true), (29, true), (40, false)] {
        let mut params = CertificateParams::new(vec!["a".to_owned()]).expect("a good name");
        params.not_after = date_time_ymd(1970, 1, 1) + Duration::from_secs(now + days * 86_400);
        let date = params.not_after.date().to_string();
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &authority.issuer).expect("a certificate");
        let files = oms.put_certificate(&(certificate.pem(), key.serialize_pem()));
        files.check().expect("it is good today");
        let doubt = files.expiry_warning();
        assert_eq!(doubt.is_some(), is_told, "{days} days: {doubt:?}");
        if let Some(doubt) = doubt {
            assert!(doubt.contains(&format!("expires on {date}; renew it before")), "{doubt}");
        }
    }
    let files = oms.put_certificate(&authority.certify(&["a"], 2020));
    let why = files.check().expect_err("it has expired").to_string();
    assert!(why.contains("has expired on 2020-01-01, ") && why.contains("; renew it"), "{why}");
    assert_eq!(
        files.expiry_warning().map(|doubt| doubt.contains("2020-01-01")),
        Some(true),
        "and nothing else is known of it"
    );
}

#[test]
fn garbage_and_broken_handshakes_leave_the_acceptor_open() {
    let authority = Authority::new();
    for layout in [Layout::Inline, Layout::Split] {
        let (oms, port) = OmsFixture::secure(layout, &authority, &["127.0.0.1"]);
        // The head of a ClientHello that never continues: many at the same time.
        let half: Vec<TcpStream> = (0..200)
            .map(|_| {
                let mut stream = raw(port);
                stream.write_all(&[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]).expect("it is taken");
                stream
            })
            .collect();
        let says: [&[u8]; 5] = [
            &[22, 3, 1, 0, 5, 1, 2, 3, 4, 5],
            &[22; 600],
            &[22, 3, 3, 255, 255, 0, 0, 0],
            &[22, 3, 3, 0, 0, 22, 3, 3, 0, 0, 22, 3, 3, 0, 0],
            &[22, 3, 3, 0, 4, 14, 0, 0, 0],
        ];
        for bytes in says {
            let mut stream = raw(port);
            stream.write_all(bytes).expect("it is taken");
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let mut answer = Vec::new();
            match stream.read_to_end(&mut answer) {
                Ok(_) => {}
                Err(e) => assert_eq!(e.kind(), ErrorKind::ConnectionReset, "it is sent away: {e}"),
            }
        }
        let mut client = oms.remote_at(oms.url("127.0.0.1", port), "anna", Since::Now);
        client.send(limit(Side::Buy, 1, 101, 1));
        client.await_reports(3);
        drop(half);
    }
}

/// Starts a proxy between a client and the OMS that changes the bytes, and returns its port.
fn between(port: u16, change: impl Fn(usize, &mut Vec<u8>) + Send + 'static) -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let here = listener.local_addr().expect("it listens").port();
    std::thread::spawn(move || {
        let (client, _) = listener.accept().expect("somebody connects");
        let server = raw(port);
        let (mut from, mut to) = (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
        std::thread::spawn(move || drop(std::io::copy(&mut &server, &mut &client)));
        let mut pieces = 0;
        let mut buffer = [0; 4096];
        while let Ok(bytes @ 1..) = from.read(&mut buffer) {
            let mut piece = buffer[..bytes].to_vec();
            change(pieces, &mut piece);
            pieces += 1;
            if to.write_all(&piece).is_err() || piece.len() < bytes {
                let _ = to.shutdown(std::net::Shutdown::Both);
                return;
            }
        }
    });
    here
}

#[test]
fn a_changed_or_cut_tls_record_ends_only_its_connection() {
    let authority = Authority::new();
    let (oms, port) = OmsFixture::secure(Layout::Split, &authority, &["127.0.0.1"]);
    let mut other = oms.remote("boss", Since::Now);
    let config = |port: u16| RemoteConfig {
        reconnect: false,
        connect_timeout_ms: 10_000,
        ..RemoteConfig::new(oms.url("127.0.0.1", port), "anna", "anna's password")
    };
    // The client sends its hello, its finish with the logon, the proof, and then a request: each is at least one piece.
    for at in 0..4 {
        for cut in [false, true] {
            let changed = between(port, move |piece, bytes| {
                if piece == at {
                    let last = bytes.len() - 1;
                    if cut { bytes.truncate(last) } else { bytes[last] ^= 1 }
                }
            });
            let lost = Remote::connect(config(changed)).and_then(|mut client| {
                let _ = client.send(&Request::New(limit(Side::Buy, 9, 95, 1)));
                loop {
                    client.wait(1_000_000);
                    client.poll(drop)?;
                }
            });
            let why: ClientError = match lost {
                Err(why) => why,
                Ok(()) => unreachable!("it ends by an error"),
            };
            assert!(!matches!(why, ClientError::Unreachable { .. }), "{at} {cut}: {why}");
        }
    }
    assert_eq!(other.status().working, 0, "no request that was changed was taken");
    oms.remote_at(oms.url("127.0.0.1", port), "anna", Since::Now).client.close();
}
