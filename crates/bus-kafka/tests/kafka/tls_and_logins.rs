//! TLS and logins: a requested protection is in force, or the connection fails with its reason.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use tickpath_bus_api::conformance::{OwnedEvent, free_port, next_event, pull_stamps};
use tickpath_bus_api::{Connection, DeliveryGuarantee, Policy, QueueConfig, ReceiveError, StartPosition, TopicConfig};
use tickpath_bus_kafka::KafkaBus;
use tickpath_clock::Wait;
use tickpath_tls::authority::{TestAuthority, TestCertificate};

use crate::kafka_server::{KafkaServer, USER, acquire_permit};
use crate::until;

/// The server's listeners, by their requirements.
struct Ports {
    encrypted: u16,
    /// Requires a client certificate.
    mutual: u16,
    /// Has a certificate for another name.
    other: u16,
    expired: u16,
    login: u16,
    /// Requires a login, without TLS.
    open: u16,
}

/// A server with certificates, and their authority.
struct SecuredKafka {
    server: KafkaServer,
    ports: Ports,
    authority: TestAuthority,
    /// An authority that has not issued the server's certificates.
    untrusted_authority: TestAuthority,
    /// Folder of all files; removed last.
    folder: TempDir,
}

/// Runs all cases on one server, because its start takes seconds.
#[test]
fn encryption_and_logins_work_or_fail_with_a_clear_error() {
    let _turn = acquire_permit(1);
    let folder = tempfile::tempdir().unwrap();
    let authority = TestAuthority::new(folder.path(), "authority");
    let stranger = TestAuthority::new(folder.path(), "stranger");
    let (ports, server) = start(folder.path(), &authority);
    let mut secured = SecuredKafka { server, ports, authority, untrusted_authority: stranger, folder };
    each_requested_security_is_used_or_the_connect_fails(&secured);
    a_subscriber_reports_a_wrong_certificate_until_it_is_replaced(&mut secured);
}

fn each_requested_security_is_used_or_the_connect_fails(secured: &SecuredKafka) {
    let SecuredKafka { server, ports, authority, untrusted_authority: stranger, folder } = secured;
    let Ports { encrypted, mutual, other, expired, login, open } = ports;
    let ours = authority.certify("client", &["client"]);
    let tls = format!("?tls&ca={}", authority.certificate_file().display());
    let identity = format!("&cert={}&key={}", ours.cert.display(), ours.key.display());
    let (user, host) = (format!("{}:{}@", USER.0, USER.1), "127.0.0.1");

    for good in [
        format!("{host}:{encrypted}{tls}"),
        format!("{host}:{},{host}:{encrypted}{tls}", free_port()),
        format!("{host}:{mutual}{tls}{identity}"),
        format!("{user}{host}:{login}{tls}"),
        format!("{user}{host}:{open}"),
        format!("{user}{host}:{open}?sasl=plain"),
    ] {
        carries_a_message(&format!("kafka://{good}"));
    }
    let plain = server.address();
    for (bad, words) in [
        (
            format!("{host}:{encrypted}?tls&ca={}", stranger.certificate_file().display()),
            "of no authority that is trusted here",
        ),
        (format!("{host}:{other}{tls}"), "not for '127.0.0.1'"),
        (format!("{host}:{expired}{tls}"), "has expired"),
        (format!("{host}:{mutual}{tls}"), "cert=FILE&key=FILE"),
        (format!("{host}:{encrypted}"), "TLS"),
        (format!("{plain}{tls}"), "TLS"),
        (format!("{host}:{encrypted}?tls&ca={}/none", folder.path().display()), "must be a PEM file"),
        (format!("{}:wrong@{host}:{login}{tls}", USER.0), "refused the login"),
        (format!("{user}{host}:{login}{tls}&sasl=scram-sha-256"), "'sasl=' in the URL: scram-sha-512"),
        (format!("{host}:{open}"), "a login"),
        (format!("{user}{plain}"), "asks for no login"),
    ] {
        let refused = KafkaBus::connect(&format!("kafka://{bad}")).err();
        let sentence = refused.unwrap_or_else(|| panic!("{bad} is connected to")).to_string();
        assert!(sentence.contains(words), "{bad}: '{words}' is not in: {sentence}");
        assert!(sentence.starts_with("kafka://127.0.0.1:") && !sentence.contains(USER.1), "{sentence}");
    }
}

fn a_subscriber_reports_a_wrong_certificate_until_it_is_replaced(secured: &mut SecuredKafka) {
    let SecuredKafka { server, ports, authority, untrusted_authority: stranger, folder } = secured;
    let url = format!("kafka://127.0.0.1:{}?tls&ca={}", ports.encrypted, authority.certificate_file().display());
    let connect = || KafkaBus::connect(&url).unwrap_or_else(|e| panic!("{e}"));
    let (bus, topic) = (connect(), "turned");
    let mut subscriber = bus.subscriber(topic, StartPosition::Oldest, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    let config = QueueConfig::new(DeliveryGuarantee::AtLeastOnce);
    let mut puller = bus.puller(topic, &config, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    bus.pusher(topic, &config).unwrap_or_else(|e| panic!("{e}")).push(3, 16, b"ours").unwrap();
    assert_eq!(pull_stamps(&mut *puller, 1), [(3, false)]);

    server.kill();
    key_store(folder.path(), "encrypted", &stranger.certify("wrong", &["127.0.0.1"]));
    server.restart();
    let is_told = |error: ReceiveError| error.to_string().contains("of no authority that is trusted here");
    until(|| {
        subscriber.wait(1_000_000);
        subscriber.poll(8, &mut |event| panic!("{event:?}")).is_err_and(is_told)
    });
    until(|| {
        puller.wait(1_000_000);
        puller.pull(8, &mut |pulled| panic!("{pulled:?}")).is_err_and(is_told)
    });

    server.kill();
    key_store(folder.path(), "encrypted", &authority.certify("right", &["127.0.0.1"]));
    server.restart();
    let opened = connect().publisher(topic, &TopicConfig::new(Policy::Keep));
    opened.unwrap_or_else(|e| panic!("{e}")).publish(7, 16, b"ours").unwrap();
    let mut received = Vec::new();
    until(|| {
        subscriber.wait(1_000_000);
        // Errors meanwhile repeat the same reason.
        let _ = subscriber.poll(8, &mut |event| received.push(format!("{event:?}")));
        !received.is_empty()
    });
    assert!(received[0].contains("stamp: 7"), "{received:?}");
}

/// Publishes over one connection to this URL, and receives over another one.
fn carries_a_message(url: &str) {
    let connect = || KafkaBus::connect(url).unwrap_or_else(|e| panic!("{url}: {e}"));
    let (topic, reader) = ("secure", connect());
    let mut subscriber =
        reader.subscriber(topic, StartPosition::Oldest, Wait::Block).unwrap_or_else(|e| panic!("{url}: {e}"));
    let opened = connect().publisher(topic, &TopicConfig::new(Policy::Keep));
    opened.unwrap_or_else(|e| panic!("{url}: {e}")).publish(7, 16, b"ours").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(0, 7, b"ours"), "{url}");
    drop(subscriber);
    reader.remove_topic(topic).unwrap_or_else(|e| panic!("{url}: {e}"));
}

fn start(folder: &Path, authority: &TestAuthority) -> (Ports, KafkaServer) {
    let ports = Ports {
        encrypted: free_port(),
        mutual: free_port(),
        other: free_port(),
        expired: free_port(),
        login: free_port(),
        open: free_port(),
    };
    let good = authority.certify("server", &["127.0.0.1"]);
    let other = authority.certify("other", &["other.example"]);
    let expired = authority.certify_until("expired", &["127.0.0.1"], 2020);
    let Ports { encrypted, mutual, other: another, expired: old, login, open } = &ports;
    let mut listeners = String::new();
    let mut settings = "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,ENCRYPTED:SSL,\
                        MUTUAL:SSL,OTHER:SSL,EXPIRED:SSL,LOGIN:SASL_SSL,OPEN:SASL_PLAINTEXT\n"
        .to_owned();
    for (name, port, identity) in [
        ("encrypted", encrypted, Some(&good)),
        ("mutual", mutual, Some(&good)),
        ("other", another, Some(&other)),
        ("expired", old, Some(&expired)),
        ("login", login, Some(&good)),
        ("open", open, None),
    ] {
        listeners += &format!(",{}://127.0.0.1:{port}", name.to_uppercase());
        if let Some(identity) = identity {
            settings += &format!(
                "listener.name.{name}.ssl.keystore.type=PEM\nlistener.name.{name}.ssl.keystore.location={}\n\
                 listener.name.{name}.ssl.truststore.type=PEM\nlistener.name.{name}.ssl.truststore.location={}\n",
                key_store(folder, name, identity),
                authority.certificate_file().display()
            );
        }
    }
    settings += "listener.name.mutual.ssl.client.auth=required\n\
                 listener.name.login.sasl.enabled.mechanisms=SCRAM-SHA-512\n\
                 listener.name.open.sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN\n";
    for name in ["login", "open"] {
        settings += &format!(
            "listener.name.{name}.scram-sha-512.sasl.jaas.config=\
             org.apache.kafka.common.security.scram.ScramLoginModule required;\n"
        );
    }
    settings += &format!(
        "listener.name.open.plain.sasl.jaas.config=\
         org.apache.kafka.common.security.plain.PlainLoginModule required user_{}=\"{}\";\n",
        USER.0, USER.1
    );
    let server = KafkaServer::start(&listeners, &settings);
    (ports, server)
}

/// Writes a key and its certificate to one file, the form that Kafka requires.
fn key_store(folder: &Path, name: &str, identity: &TestCertificate) -> String {
    let file = folder.join(format!("{name}.store.pem"));
    let read = |part: &Path| fs::read_to_string(part).unwrap();
    fs::write(&file, read(&identity.key) + &read(&identity.cert)).unwrap();
    file.display().to_string()
}
