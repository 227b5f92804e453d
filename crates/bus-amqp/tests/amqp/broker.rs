//! The broker that the tests run against, and another program's messages to it.

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, ExchangeDeclareOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection as Client, ConnectionProperties, ExchangeKind};
use tickpath_bus_amqp::AmqpBus;
use tickpath_bus_api::{
    Connection, DeliveryGuarantee, Policy, Publisher, Puller, Pusher, QueueConfig, StartPosition, Subscriber,
    TopicConfig,
};
use tickpath_clock::{Wait, sleep_ns};

/// Address and login of the broker.
pub struct Broker {
    /// `USER:PASSWORD@`, or empty.
    login: String,
    /// `HOST:PORT`.
    pub address: String,
    /// `/VHOST`, or empty.
    path: String,
}

impl Broker {
    /// Returns the broker named by the environment.
    pub fn get() -> Self {
        const START: &str = "start the brokers: scripts/brokers run -- cargo test";
        let url = std::env::var("TICKPATH_AMQP").unwrap_or_else(|_| panic!("{START}"));
        let rest = url.strip_prefix("amqp://").unwrap_or_else(|| panic!("TICKPATH_AMQP is no AMQP URL; {START}"));
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let (login, address) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        Self { login: login.to_owned(), address: address.to_owned(), path: path.to_owned() }
    }

    /// Returns the URL.
    pub fn url(&self) -> String {
        self.url_at(&self.address)
    }

    /// Returns the URL of the same broker at another address.
    pub fn url_at(&self, address: &str) -> String {
        format!("amqp://{}{address}{}", self.login, self.path)
    }

    /// Returns the URL with another login.
    pub fn url_with_login(&self, login: &str) -> String {
        format!("amqp://{login}@{}{}", self.address, self.path)
    }

    /// Returns the URL with another virtual host.
    pub fn url_with_path(&self, path: &str) -> String {
        format!("amqp://{}{}{path}", self.login, self.address)
    }
}

/// A name for a topic and a queue of one test, both removed at its end.
pub struct Scratch {
    pub bus: AmqpBus,
    pub name: String,
}

impl Scratch {
    /// Connects to the broker without a relay.
    pub fn new(suffix: &str) -> Self {
        let bus = AmqpBus::connect(&Broker::get().url()).unwrap_or_else(|e| panic!("{e}"));
        Self { bus, name: format!("tickpath:test-{}.{suffix}", std::process::id()) }
    }

    /// Checks that this number of messages waits in the queue. The broker's count may lag for a moment.
    pub fn until_waiting(&self, count: u64) {
        let mut waiting = None;
        for _ in 0..6000 {
            waiting = self.bus.count_waiting(&self.name).unwrap_or_else(|e| panic!("{e}"));
            if waiting == Some(count) {
                return;
            }
            sleep_ns(10_000_000);
        }
        panic!("{waiting:?} messages wait, and not {count}");
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = self.bus.remove_topic(&self.name);
        let _ = self.bus.remove_queue(&self.name);
    }
}

/// Opens a topic for publishing.
pub fn publisher(bus: &AmqpBus, topic: &str) -> Box<dyn Publisher> {
    bus.publisher(topic, &TopicConfig::new(Policy::Overwrite)).unwrap_or_else(|e| panic!("{e}"))
}

/// Subscribes to a topic.
pub fn subscriber(bus: &AmqpBus, topic: &str, wait: Wait) -> Box<dyn Subscriber> {
    bus.subscriber(topic, StartPosition::Now, wait).unwrap_or_else(|e| panic!("{e}"))
}

/// Opens a queue for pushing.
pub fn pusher(bus: &AmqpBus, queue: &str) -> Box<dyn Pusher> {
    bus.pusher(queue, &QueueConfig::new(DeliveryGuarantee::AtLeastOnce)).unwrap_or_else(|e| panic!("{e}"))
}

/// Opens a queue for pulling.
pub fn puller(bus: &AmqpBus, queue: &str, delivery: DeliveryGuarantee) -> Box<dyn Puller> {
    bus.puller(queue, &QueueConfig::new(delivery), Wait::Block).unwrap_or_else(|e| panic!("{e}"))
}

/// Publishes as another program, and waits for the confirmations.
pub fn publish_foreign(exchange: &str, key: &str, bodies: &[&str]) {
    publish_with(&BasicProperties::default(), exchange, key, bodies);
}

/// Publishes with these headers as another program.
pub fn publish_foreign_with(headers: FieldTable, exchange: &str, bodies: &[&str]) {
    publish_with(&BasicProperties::default().with_headers(headers), exchange, "", bodies);
}

/// Publishes messages that expire unless they are delivered at once.
pub fn publish_fleeting(exchange: &str, bodies: &[&str]) {
    publish_with(&BasicProperties::default().with_expiration("0".into()), exchange, "", bodies);
}

fn publish_with(properties: &BasicProperties, exchange: &str, key: &str, bodies: &[&str]) {
    with_other_client(async |channel: &Channel| {
        channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
        for body in bodies {
            let options = BasicPublishOptions { mandatory: true, immediate: false };
            let properties = properties.clone();
            let publishing = channel.basic_publish(exchange.into(), key.into(), options, body.as_bytes(), properties);
            let confirmation = publishing.await.unwrap().await.unwrap();
            assert!(confirmation.is_ack() && confirmation.take_message().is_none(), "'{body}' came nowhere");
        }
    });
}

/// Declares an exchange as another program.
pub fn declare_foreign(exchange: &str, kind: ExchangeKind) {
    with_other_client(async |channel: &Channel| {
        let options = ExchangeDeclareOptions::default();
        channel.exchange_declare(exchange.into(), kind, options, FieldTable::default()).await.unwrap();
    });
}

/// Returns the number of consumers of an existing queue.
pub fn consumers(queue: &str) -> u32 {
    let mut count = 0;
    with_other_client(async |channel: &Channel| {
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let found = channel.queue_declare(queue.into(), options, FieldTable::default()).await.unwrap();
        count = found.consumer_count();
    });
    count
}

/// Runs this with another client until it is done.
fn with_other_client(doing: impl AsyncFnOnce(&Channel)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::connect(&Broker::get().url(), ConnectionProperties::default()).await.unwrap();
        let channel = client.create_channel().await.unwrap();
        doing(&channel).await;
        client.close(200, "OK".into()).await.unwrap();
    });
}
