//! The transports that URLs name.

use tickpath_bus::{
    Connection, DeliveryGuarantee, Policy, ServerDescription, TRANSPORTS, connect, first_server, server_prefixes,
    transport_of,
};

#[test]
fn a_url_names_its_transport() {
    let dir = std::env::temp_dir();
    for url in ["shm://", "shm://bus-test", &format!("file://{}", dir.display())] {
        assert_eq!(open(url).capabilities().policies, Policy::ALL, "{url}");
    }
    for (variable, way, policy, delivery) in [
        ("TICKPATH_REDIS", "", Policy::Overwrite, DeliveryGuarantee::AtMostOnce),
        ("TICKPATH_REDIS", "?streams", Policy::Keep, DeliveryGuarantee::AtLeastOnce),
        ("TICKPATH_REDIS_UNIX", "", Policy::Overwrite, DeliveryGuarantee::AtMostOnce),
        ("TICKPATH_NATS", "", Policy::Overwrite, DeliveryGuarantee::AtMostOnce),
        ("TICKPATH_NATS", "?jetstream", Policy::Overwrite, DeliveryGuarantee::AtLeastOnce),
        ("TICKPATH_AMQP", "", Policy::Overwrite, DeliveryGuarantee::AtLeastOnce),
        ("TICKPATH_KAFKA", "", Policy::Keep, DeliveryGuarantee::AtLeastOnce),
    ] {
        let server = std::env::var(variable)
            .unwrap_or_else(|_| panic!("{variable} is not set; start the brokers: scripts/brokers run -- cargo test"));
        let connection = open(&format!("{server}{way}"));
        assert_eq!(connection.capabilities().policies[0], policy, "{variable}{way}");
        assert_eq!(connection.queue_capabilities().deliveries[0], delivery, "{variable}{way}");
    }
}

fn open(url: &str) -> Box<dyn Connection> {
    connect(url).unwrap_or_else(|e| panic!("{url}: {e}"))
}

#[test]
fn a_url_without_a_transport_is_refused_with_a_suggestion() {
    for (url, words) in [
        ("", "names no transport; use shm://, shm://PREFIX, file:///FOLDER, redis://HOST:PORT[?streams], nats://"),
        ("ticks", "'ticks' names no transport"),
        ("://", "names no transport"),
        ("shm:/ticks", "names no transport; did you mean shm://ticks?"),
        ("SHM://ticks", "did you mean shm://ticks?"),
        ("127.0.0.1:6379", "'127.0.0.1:6379' names no transport; did you mean redis://127.0.0.1:6379?"),
        ("reddis://ann:secret@h:1?streams", "did you mean redis://h:1?streams?"),
        ("kafak://h", "did you mean kafka://h?"),
        ("h:4222?jetstream", "did you mean nats://h:4222?jetstream?"),
        ("h:80", "use shm://, shm://PREFIX"),
        ("http://localhost", "names no transport"),
        ("shm://a b", "'a b' is no topic name; use 1 to"),
        ("shm://.hidden", "is no topic name; use 1 to"),
        ("file://relative/path", "is no absolute path; write file:///"),
        ("file:///", "is no absolute path; write file:///"),
        ("redis://", "use redis://[USER:PASSWORD@]HOST:PORT[,HOST:PORT][/DATABASE]"),
        ("redis://host:port", "use redis://[USER:PASSWORD@]HOST:PORT[,HOST:PORT][/DATABASE]"),
        ("redis://host/database", "use redis://[USER:PASSWORD@]HOST:PORT[,HOST:PORT][/DATABASE]"),
        ("redis://127.0.0.1:1?lists", "?streams"),
        ("nats://127.0.0.1:1?streams", "?jetstream"),
        ("rediss://:secret@host:1?stream", "'stream' is no option here: there are streams, sentinel"),
        ("kafka://host:1?acks=all", "'acks' is no option here: there are tls, ca, cert, key, sasl"),
        ("redis://h?password=secret", "env:NAME or file:PATH"),
        ("env:TICKPATH_TEST_NOT_SET", "TICKPATH_TEST_NOT_SET"),
        ("nats://", "use nats://[USER:PASSWORD@]HOST:PORT[,HOST:PORT…]"),
        ("amqp://", "use amqp://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][/VHOST]"),
        ("kafka://", "use kafka://HOST:PORT[,HOST:PORT]"),
        (
            "redis://127.0.0.1:1",
            "redis://127.0.0.1:1: refused the connection; start redis-server, or check host and port",
        ),
        ("nats://127.0.0.1:1", "refused the connection; start nats-server"),
        ("amqp://127.0.0.1:1", "refused the connection; start rabbitmq-server"),
        ("kafka://127.0.0.1:1", "refused the connection to 127.0.0.1:1; start Kafka"),
    ] {
        let error = connect(url).err().unwrap_or_else(|| panic!("{url} is taken")).to_string();
        assert!(error.contains(words), "{url}: {error}");
    }
}

#[test]
fn a_server_is_found_by_its_url() {
    for (url, found) in [
        ("nats://ann:secret@127.0.0.1", Some("127.0.0.1:4222")),
        ("kafka://127.0.0.1:19092,127.0.0.1:2", Some("127.0.0.1:19092")),
        ("amqp://127.0.0.1:5/vhost", Some("127.0.0.1:5")),
        ("redis://127.0.0.1?streams", Some("127.0.0.1:6379")),
        ("nats://[::1]", Some("[::1]:4222")),
        ("nats://[::1]:5", Some("[::1]:5")),
        ("redis+unix:///run/redis.sock", None),
        ("shm://ticks", None),
        ("http://127.0.0.1:80", None),
    ] {
        assert_eq!(first_server(url).as_deref(), found, "{url}");
    }
}

#[test]
fn each_transport_describes_itself() {
    assert_eq!(server_prefixes(), "redis://, nats://, amqp:// or kafka://");
    for one in TRANSPORTS {
        for scheme in one.schemes {
            let found = transport_of(&format!("{scheme}://x")).map(|found| found.name);
            assert_eq!(found, Some(one.name), "{scheme}");
        }
        assert_eq!(one.modes.first(), Some(&""), "{}: the plain way is the first", one.name);
        // Advice that holds for every server of a kind is given even without knowledge about the server; other
        // transports have none.
        assert_eq!((one.advise)(&ServerDescription::default()).is_empty(), !one.is_server(), "{}", one.name);
    }
    assert!(transport_of("shm").is_none() && transport_of("http://x").is_none());
}
