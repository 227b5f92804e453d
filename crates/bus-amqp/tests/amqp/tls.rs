//! TLS, with a separate broker.

use tempfile::TempDir;
use tickpath_bus_amqp::AmqpBus;
use tickpath_bus_api::conformance::{OwnedEvent, free_port, next_event, pull_stamps};
use tickpath_bus_api::{Connection, DeliveryGuarantee};
use tickpath_clock::Wait;
use tickpath_tls::authority::TestAuthority;

use crate::broker::{publisher, puller, pusher, subscriber};
use crate::dedicated_broker::DedicatedBroker;

const KIND: u8 = 16;

/// Host name in the broker's certificate.
const HOST: &str = "127.0.0.1";

#[test]
fn tls_is_required_and_the_brokers_certificate_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let (trusted, other) = (TestAuthority::new(folder.path(), "trusted"), TestAuthority::new(folder.path(), "other"));
    let broker = trusted.certify("broker", &[HOST]);
    let port = free_port();
    let configuration = format!(
        "listeners.ssl.1 = {HOST}:{port}\n\
         ssl_options.cacertfile = {}\nssl_options.certfile = {}\nssl_options.keyfile = {}\n\
         ssl_options.verify = verify_peer\nssl_options.fail_if_no_peer_cert = false\n\
         ssl_cert_login_from = common_name\nauth_mechanisms.1 = PLAIN\nauth_mechanisms.2 = EXTERNAL\n",
        trusted.certificate_file().display(),
        broker.cert.display(),
        broker.key.display(),
    );
    let own = DedicatedBroker::start(&configuration, &["rabbitmq_auth_mechanism_ssl"]);
    let ca = trusted.certificate_file().display().to_string();
    let place = format!("{HOST}:{port}");

    everything_works(&format!("amqps://{place}?ca={ca}"));
    everything_works(&format!("amqp://guest:guest@{place}?tls&ca={ca}"));
    a_certificate_is_a_login(&trusted, &folder, &place);

    let foreign = other.certificate_file().display().to_string();
    refused(&format!("amqps://ann:s3cret@{place}?ca={foreign}"), &["no authority that is trusted", "?ca=FILE"]);
    refused(&format!("amqps://ann:s3cret@{place}?ca={ca}"), &["check USER:PASSWORD@"]);
    refused(&format!("amqps://localhost:{port}?ca={ca}"), &["not for 'localhost'"]);
    refused(&format!("amqp://ann:s3cret@{place}"), &["amqps://"]);
    refused(&format!("amqps://ann:s3cret@{}?ca={ca}", own.address()), &["does not use TLS"]);

    trusted.certify_until("broker", &[HOST], 2020);
    own.evaluate("ssl:clear_pem_cache().");
    refused(&format!("amqps://ann:s3cret@{place}?ca={ca}"), &["has expired"]);
}

fn everything_works(url: &str) {
    let bus = AmqpBus::connect(url).unwrap_or_else(|e| panic!("{url}: {e}"));
    let version = bus.server_description().version.expect("it tells over TLS, too");
    assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{version}");
    let mut subscriber = subscriber(&bus, "secret", Wait::Block);
    // Larger than a TLS record, and than a frame.
    let large = vec![9; 300_000];
    publisher(&bus, "secret").publish_batch(1, KIND, &[&large, b"small"]).unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, &large));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b"small"));
    pusher(&bus, "secret").push(2, KIND, &large).unwrap();
    let mut puller = puller(&bus, "secret", DeliveryGuarantee::AtLeastOnce);
    assert_eq!(pull_stamps(&mut *puller, 1), [(2, false)]);
    puller.acknowledge().unwrap();
}

/// The name in the certificate is the user's.
fn a_certificate_is_a_login(authority: &TestAuthority, folder: &TempDir, place: &str) {
    let ca = authority.certificate_file().display().to_string();
    let url = |user: &str| {
        let identity = authority.certify(user, &["client"]);
        assert!(identity.cert.starts_with(folder.path()));
        format!("amqps://{place}?ca={ca}&cert={}&key={}", identity.cert.display(), identity.key.display())
    };
    everything_works(&url("guest"));
    refused(&url("nobody-known"), &["no user by the name in our certificate"]);
}

/// Checks that connecting fails, with an error that contains these words, but not the password.
fn refused(url: &str, words: &[&str]) {
    let error = AmqpBus::connect(url).err().unwrap_or_else(|| panic!("{url} is connected to")).to_string();
    for word in words {
        assert!(error.contains(word), "'{word}' is not in: {error}");
    }
    assert!(error.starts_with("amqp") && !error.contains("s3cret"), "{error}");
}
