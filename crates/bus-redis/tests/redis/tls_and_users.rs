//! TLS, passwords and users.

use std::io::Read;
use std::net::TcpListener;
use std::path::Path;

use tickpath_bus_api::conformance::{OwnedEvent, next_event, wait_until};
use tickpath_bus_api::{Connection, Gap, Policy, StartPosition, TopicConfig};
use tickpath_bus_redis::RedisBus;
use tickpath_clock::Wait;
use tickpath_tls::authority::{TestAuthority, TestCertificate};

use crate::redis_server::RedisServer;

const TOPIC: &str = "tickpath:test:ticks";

/// A server with a TLS port and a plain port.
struct TlsRedisServer {
    server: RedisServer,
    port: u16,
}

impl TlsRedisServer {
    fn start(authority: &TestAuthority, identity: &TestCertificate, clients: &str) -> Self {
        let port = tickpath_bus_api::conformance::free_port();
        let (tls_port, text) = (port.to_string(), |path: &Path| path.to_str().expect("its name is text").to_owned());
        let (ca, cert, key) = (text(&authority.certificate_file()), text(&identity.cert), text(&identity.key));
        let server = RedisServer::start(
            &[
                ["--tls-port", &tls_port],
                ["--tls-ca-cert-file", &ca],
                ["--tls-cert-file", &cert],
                ["--tls-key-file", &key],
                ["--tls-auth-clients", clients],
            ]
            .concat(),
        );
        Self { server, port }
    }
}

fn carries(url: &str) {
    for way in ["", "&streams"] {
        let bus = RedisBus::connect(&format!("{url}{way}")).unwrap_or_else(|e| panic!("{url}{way}: {e}"));
        let mut subscriber = bus.subscriber(TOPIC, StartPosition::Now, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
        let config = TopicConfig::new(if way.is_empty() { Policy::Overwrite } else { Policy::Keep });
        let mut publisher = bus.publisher(TOPIC, &config).unwrap_or_else(|e| panic!("{e}"));
        // Larger than a TLS record, and larger than a socket's buffer.
        for bytes in [0, 100, 20_000, 8 << 20] {
            let payload = vec![7; bytes];
            publisher.publish(bytes as u64, 16, &payload).unwrap();
            assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(bytes as u64, &payload), "{url}{way}");
        }
    }
}

fn refused(url: &str, words: &[&str]) {
    let error = RedisBus::connect(url).err().unwrap_or_else(|| panic!("{url} is connected to")).to_string();
    for word in words {
        assert!(error.contains(word), "'{word}' is not in: {error}");
    }
}

#[test]
fn messages_travel_over_tls_between_trusted_ends_only() {
    let folder = tempfile::tempdir().unwrap();
    let (authority, other) = (TestAuthority::new(folder.path(), "ca"), TestAuthority::new(folder.path(), "other"));
    let good = authority.certify("server", &["localhost", "127.0.0.1"]);
    let secure = TlsRedisServer::start(&authority, &good, "no");
    let TlsRedisServer { server, port } = &secure;
    let (ca, other) =
        (authority.certificate_file().display().to_string(), other.certificate_file().display().to_string());
    carries(&format!("rediss://localhost:{port}?ca={ca}"));
    carries(&format!("redis://127.0.0.1:{port}?tls&ca={ca}"));
    let name = RedisBus::connect(&format!("redis://localhost:{port}?tls&ca={ca}")).unwrap();
    assert_eq!(format!("{name:?}"), format!("RedisBus {{ server: rediss://localhost:{port} }}"));
    refused(&format!("rediss://localhost:{port}?ca={other}"), &["is of no authority that is trusted here", "ca=FILE"]);
    refused(&format!("rediss://localhost:{port}"), &["TLS", "ca=FILE"]);
    refused(&format!("rediss://localhost:{}?ca={ca}", server.port()), &["did not finish the TLS handshake"]);
    refused(&format!("redis://localhost:{port}"), &["redis://localhost"]);
    refused(&format!("rediss://localhost:{port}?ca=/no/such/file"), &["/no/such/file", "PEM"]);
    refused(&format!("redis://localhost:{port}?ca={ca}"), &["add 'tls'"]);
}

#[test]
fn clients_wait_for_a_server_that_closes_the_tls_handshake() {
    let folder = tempfile::tempdir().unwrap();
    let authority = TestAuthority::new(folder.path(), "ca");
    let TlsRedisServer { mut server, port } =
        TlsRedisServer::start(&authority, &authority.certify("server", &["localhost"]), "no");
    let url = format!("rediss://localhost:{port}?ca={}", authority.certificate_file().display());
    let bus = RedisBus::connect(&url).unwrap_or_else(|e| panic!("{url}: {e}"));
    let mut subscriber = bus.subscriber(TOPIC, StartPosition::Now, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    server.kill();
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    std::thread::scope(|scope| {
        let hanging_up = scope.spawn(|| {
            for _ in 0..3 {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 4096]);
            }
        });
        wait_until(|| {
            subscriber.poll(8, &mut |event| panic!("{event:?} from nobody")).expect("it is waited for");
            hanging_up.is_finished()
        });
    });
    drop(listener);
    server.restart();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
}

#[test]
fn a_certificate_of_another_name_or_past_its_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let authority = TestAuthority::new(folder.path(), "ca");
    let ca = authority.certificate_file().display().to_string();
    let elsewhere = authority.certify("elsewhere", &["redis.example"]);
    let old = authority.certify_until("old", &["localhost"], 2020);
    for (identity, words) in [(elsewhere, "is not for 'localhost'"), (old, "has expired")] {
        let TlsRedisServer { server: _server, port } = TlsRedisServer::start(&authority, &identity, "no");
        refused(&format!("rediss://localhost:{port}?ca={ca}"), &[words]);
    }
}

#[test]
fn a_server_may_require_a_client_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let (authority, other) = (TestAuthority::new(folder.path(), "ca"), TestAuthority::new(folder.path(), "other"));
    let TlsRedisServer { server: _server, port } =
        TlsRedisServer::start(&authority, &authority.certify("server", &["localhost"]), "yes");
    let url = |identity: &TestCertificate| {
        let (ca, TestCertificate { cert, key, .. }) = (authority.certificate_file(), identity);
        format!("rediss://localhost:{port}?ca={}&cert={}&key={}", ca.display(), cert.display(), key.display())
    };
    carries(&url(&authority.certify("us", &["us.example"])));
    refused(
        &format!("rediss://localhost:{port}?ca={}", authority.certificate_file().display()),
        &["cert=FILE&key=FILE"],
    );
    refused(&url(&other.certify("them", &["them.example"])), &["certificate"]);
    refused(&url(&authority.certify_until("late", &["us.example"], 2020)), &["certificate"]);
}

#[test]
fn a_user_has_the_rights_that_the_server_grants() {
    let server = RedisServer::start(&[]);
    server
        .run_command(&["ACL", "SETUSER", "ann", "on", ">s@cret", "~tickpath:*", "&tickpath:*", "+@all", "-@dangerous"])
        .unwrap();
    let url = server.url_with("ann:s%40cret");
    for way in ["", "?streams"] {
        let bus = RedisBus::connect(&format!("{url}{way}")).unwrap();
        let config = TopicConfig::new(bus.capabilities().policies[0]);
        let mut subscriber = bus.subscriber(TOPIC, StartPosition::Now, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
        let mut publisher = bus.publisher(TOPIC, &config).unwrap_or_else(|e| panic!("{e}"));
        publisher.publish(1, 16, b"").unwrap();
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b""));
        let mut elsewhere = bus.publisher("others:ticks", &config).unwrap_or_else(|e| panic!("{e}"));
        let denied = elsewhere.publish(1, 16, b"").expect_err("it has no right to");
        assert!(!denied.is_transient() && denied.to_string().contains("NOPERM"), "{denied}");
        assert!(!denied.to_string().contains("cret"), "{denied}");
    }
}

/// Sentinels and servers may each have a password, the same or different ones.
#[test]
fn sentinels_with_a_password_are_sent_it() {
    let master = RedisServer::start(&["--requirepass", "both"]);
    let watched = "sentinel auth-pass mine both\n";
    let with_one = RedisServer::sentinel(master.port(), &format!("{watched}requirepass both\n"));
    let with_another = RedisServer::sentinel(master.port(), &format!("{watched}requirepass theirs\n"));
    let open = RedisServer::sentinel(master.port(), watched);
    let url = |login: &str, sentinel: &RedisServer, own: &str| {
        format!("redis://{login}127.0.0.1:{}?sentinel=mine{own}", sentinel.port())
    };
    for good in [
        url(":both@", &with_one, ""),
        url(":both@", &with_another, "&sentinel-password=theirs"),
        url(":both@", &open, ""),
    ] {
        RedisBus::connect(&good).unwrap_or_else(|e| panic!("{good}: {e}"));
    }
    for (bad, told) in [
        (url("", &with_one, ""), "is a sentinel, and wants a password"),
        (url(":both@", &with_another, ""), "is a sentinel, and refused the password"),
        (url("", &with_another, "&sentinel-password=theirs"), "as the master, and that one wants a password"),
        (url(":theirs@", &with_another, ""), "as the master, and that one refused the user name or the password"),
    ] {
        let refused = RedisBus::connect(&bad).expect_err(&bad).to_string();
        assert!(refused.contains(told), "{bad}: {refused}");
    }
    let refused = RedisBus::connect("redis://h?sentinel-password=x").unwrap_err().to_string();
    assert!(refused.contains("add 'sentinel=NAME'"), "{refused}");
}
