//! A cluster of three masters, each with a third of the slots.

use std::num::NonZeroU32;

use tickpath_bus_api::conformance::{OwnedEvent, check_no_event, free_port, next_event, pull_stamps, wait_until};
use tickpath_bus_api::{
    Connection, DeliveryGuarantee, Fate, Gap, Publisher, QueueConfig, StartPosition, Subscriber, TopicConfig,
};
use tickpath_bus_redis::RedisBus;
use tickpath_clock::Wait;

use crate::redis_server::RedisServer;

const TOPIC: &str = "tickpath:test:ticks";
const KIND: u8 = 16;

/// The first and last slot of each node.
const SLOTS: [(&str, &str); 3] = [("0", "5460"), ("5461", "10922"), ("10923", "16383")];

/// Three nodes that have met.
struct RedisCluster {
    nodes: Vec<RedisServer>,
}

impl RedisCluster {
    fn start() -> Self {
        let mut nodes: Vec<RedisServer> = Vec::new();
        for (at, (first, last)) in SLOTS.into_iter().enumerate() {
            let bus = free_port().to_string();
            let node = RedisServer::start(&["--cluster-enabled", "yes", "--cluster-port", &bus]);
            node.run_command(&["CLUSTER", "ADDSLOTSRANGE", first, last]).unwrap();
            node.run_command(&["CLUSTER", "SET-CONFIG-EPOCH", &(at + 1).to_string()]).unwrap();
            if let Some(known) = nodes.first() {
                known.run_command(&["CLUSTER", "MEET", "127.0.0.1", &node.port().to_string(), &bus]).unwrap();
            }
            nodes.push(node);
        }
        wait_until(|| {
            nodes.iter().all(|node| {
                let info = format!("{:?}", node.run_command(&["CLUSTER", "INFO"]));
                info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
            })
        });
        Self { nodes }
    }

    /// Returns the URL of all nodes, beginning with the node at index `first`.
    fn url(&self, first: usize, options: &str) -> String {
        let count = self.nodes.len();
        let nodes = (0..count).map(|at| format!("127.0.0.1:{}", self.nodes[(first + at) % count].port()));
        format!("redis://{}?cluster{options}", nodes.collect::<Vec<_>>().join(","))
    }

    /// Returns the index of the node that owns this name's slot, and the slot.
    fn place(&self, name: &str) -> (usize, u64) {
        let slot: u64 = redis::cmd("CLUSTER").arg("KEYSLOT").arg(name).query(&mut self.nodes[0].client()).unwrap();
        let has = |(_, last): &(&str, &str)| last.parse::<u64>().unwrap() >= slot;
        (SLOTS.iter().position(has).unwrap(), slot)
    }

    /// Moves this name's slot, with its keys, to the next node.
    fn move_slot(&self, name: &str) {
        let (from, slot) = self.place(name);
        let to = (from + 1) % self.nodes.len();
        let [id_from, id_to] = [from, to]
            .map(|at| -> String { redis::cmd("CLUSTER").arg("MYID").query(&mut self.nodes[at].client()).unwrap() });
        let slot = slot.to_string();
        let set = |at: usize, arguments: &[&str]| {
            self.nodes[at].run_command(&[&["CLUSTER", "SETSLOT", slot.as_str()][..], arguments].concat()).unwrap();
        };
        set(to, &["IMPORTING", &id_from]);
        set(from, &["MIGRATING", &id_to]);
        let port = self.nodes[to].port().to_string();
        self.nodes[from].run_command(&["MIGRATE", "127.0.0.1", &port, name, "0", "5000"]).unwrap();
        for at in [to, from, (to + 1) % self.nodes.len()] {
            set(at, &["NODE", &id_to]);
        }
    }
}

#[test]
fn a_topic_lives_on_one_node_and_any_node_leads_there() {
    let cluster = RedisCluster::start();
    for way in ["", "&streams"] {
        let buses = [0, 1, 2].map(|first| RedisBus::connect(&cluster.url(first, way)).unwrap());
        for number in 0..9 {
            let topic = format!("{TOPIC}:{number}");
            let mut subscriber = subscriber(&buses[number % 3], &topic, StartPosition::Now);
            let mut publisher = publisher(&buses[(number + 1) % 3], &topic);
            for stamp in 0..5 {
                publisher.publish(stamp, KIND, b"").unwrap_or_else(|e| panic!("{topic}: {e}"));
                assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(stamp, b""), "{topic}");
            }
            check_no_event(&mut *subscriber);
        }
    }
    assert!(cluster.nodes.iter().filter(|node| node.keys() > 0).count() > 1, "they lie on several nodes");
    // Nodes that report only their port are on the host that was asked.
    for node in &cluster.nodes {
        node.run_command(&["CONFIG", "SET", "cluster-preferred-endpoint-type", "unknown-endpoint"]).unwrap();
    }
    let bus = RedisBus::connect(&cluster.url(0, "&streams")).unwrap();
    for number in 0..9 {
        let topic = format!("{TOPIC}:{number}");
        let mut subscriber = subscriber(&bus, &topic, StartPosition::Oldest);
        for stamp in 0..5 {
            assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(stamp, b""), "{topic}");
        }
    }
    bus.remove_topic(&format!("{TOPIC}:0")).unwrap();
}

#[test]
fn a_queue_keeps_all_its_keys_on_one_node() {
    let cluster = RedisCluster::start();
    for (way, delivery) in [
        ("", DeliveryGuarantee::AtLeastOnce),
        ("", DeliveryGuarantee::AtMostOnce),
        ("&streams", DeliveryGuarantee::AtLeastOnce),
    ] {
        let bus = RedisBus::connect(&cluster.url(1, way)).unwrap();
        let config = QueueConfig::new(delivery);
        for number in 0..6 {
            let queue = format!("{TOPIC}:queue:{delivery}:{number}");
            let mut pusher = bus.pusher(&queue, &config).unwrap_or_else(|e| panic!("{e}"));
            (0..5).for_each(|stamp| pusher.push(stamp, KIND, b"").unwrap_or_else(|e| panic!("{queue}: {e}")));
            assert_eq!(bus.count_waiting(&queue).unwrap(), Some(5));
            let mut puller = bus.puller(&queue, &config, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(pull_stamps(&mut *puller, 3), [(0, false), (1, false), (2, false)]);
            puller.acknowledge().unwrap();
            let held = pull_stamps(&mut *puller, 2);
            assert_eq!(held, [(3, false), (4, false)]);
            drop(puller);
            if delivery == DeliveryGuarantee::AtLeastOnce {
                let mut other = bus.puller(&queue, &config, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
                assert_eq!(pull_stamps(&mut *other, 2), [(3, true), (4, true)]);
                other.acknowledge().unwrap();
            }
            bus.remove_queue(&queue).unwrap();
        }
    }
    let limited =
        QueueConfig { max_deliveries: NonZeroU32::new(3), ..QueueConfig::new(DeliveryGuarantee::AtLeastOnce) };
    let bus = RedisBus::connect(&cluster.url(0, "&streams")).unwrap();
    let refused = bus.puller(TOPIC, &limited, Wait::Block).err().expect("they lie elsewhere").to_string();
    assert!(refused.contains("on another node of the cluster"), "{refused}");
}

#[test]
fn a_replica_takes_over_from_a_killed_master() {
    let mut cluster = RedisCluster::start();
    let (home, _) = cluster.place(TOPIC);
    let bus_port = free_port().to_string();
    let replica = RedisServer::start(&[
        "--cluster-enabled",
        "yes",
        "--cluster-port",
        &bus_port,
        "--cluster-node-timeout",
        "2000",
    ]);
    let master_id: String = redis::cmd("CLUSTER").arg("MYID").query(&mut cluster.nodes[home].client()).unwrap();
    cluster.nodes[home].run_command(&["CLUSTER", "MEET", "127.0.0.1", &replica.port().to_string(), &bus_port]).unwrap();
    wait_until(|| replica.run_command(&["CLUSTER", "REPLICATE", &master_id]).is_ok());
    wait_until(|| format!("{:?}", replica.run_command(&["INFO", "replication"])).contains("master_link_status:up"));
    let id: String = redis::cmd("CLUSTER").arg("MYID").query(&mut replica.client()).unwrap();
    // Each node has to know the replica before the master dies.
    wait_until(|| {
        cluster.nodes.iter().all(|node| {
            let info: String = redis::cmd("CLUSTER").arg("NODES").query(&mut node.client()).unwrap();
            info.lines().any(|line| line.starts_with(&id) && line.contains("slave"))
        })
    });
    let bus = RedisBus::connect(&cluster.url(0, "&streams")).unwrap();
    let (mut publisher, mut subscriber) = (publisher(&bus, TOPIC), subscriber(&bus, TOPIC, StartPosition::Now));
    publisher.publish(1, KIND, b"").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b""));
    drop(cluster.nodes.remove(home));
    // Forces the takeover, like an operator who does not wait for the vote.
    wait_until(|| replica.run_command(&["CLUSTER", "FAILOVER", "TAKEOVER"]).is_ok());
    let mut stamp = 2;
    wait_until(|| match publisher.publish(stamp, KIND, b"") {
        Ok(()) => true,
        Err(error) if error.fate() == Fate::Unknown => publisher.resend().is_ok(),
        Err(error) => {
            assert!(error.is_transient(), "{error}");
            stamp += 1;
            false
        }
    });
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(stamp, b""));
}

#[test]
fn clients_follow_a_topic_to_another_node() {
    let cluster = RedisCluster::start();
    let bus = RedisBus::connect(&cluster.url(0, "&streams")).unwrap();
    let (mut publisher, mut subscriber) = (publisher(&bus, TOPIC), subscriber(&bus, TOPIC, StartPosition::Now));
    publisher.publish(1, KIND, b"").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b""));
    cluster.move_slot(TOPIC);
    publisher.publish(2, KIND, b"").expect("the new node is asked at once");
    assert_eq!(publisher.reconnects(), Some(1));
    // The stream moved to another server, and what the old server failed to hand over is unknown.
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(2, b""));
    check_no_event(&mut *subscriber);
}

#[test]
fn a_url_without_cluster_gets_an_error_with_the_remedy() {
    let cluster = RedisCluster::start();
    let (home, _) = cluster.place(TOPIC);
    let other = &cluster.nodes[(home + 1) % 3];
    let bus = RedisBus::connect(&format!("{}?streams", other.url())).unwrap();
    let refused = bus.subscriber(TOPIC, StartPosition::Oldest, Wait::Block).err().expect("it is not there").to_string();
    assert!(refused.contains("write '?cluster' in the URL"), "{refused}");
    let refused = publisher(&bus, TOPIC).publish(1, KIND, b"").expect_err("it is not there");
    assert!(!refused.is_transient() && refused.to_string().contains("write '?cluster' in the URL"), "{refused}");
}

#[test]
fn a_plain_server_is_refused_as_cluster_node_and_as_sentinel() {
    let server = RedisServer::start(&[]);
    let bus = RedisBus::connect(&format!("{}?streams&cluster", server.url())).unwrap();
    let opened = bus.subscriber(TOPIC, StartPosition::Oldest, Wait::Block).err().map(|e| e.to_string());
    let asked = bus.count_waiting(TOPIC).err().map(|e| e.to_string());
    for refused in [opened, asked] {
        let refused = refused.expect("it is no cluster");
        assert!(refused.contains("is no node of a cluster; leave 'cluster' out of the URL"), "{refused}");
    }
    let refused = RedisBus::connect(&format!("{}?sentinel=mine", server.url())).unwrap_err().to_string();
    assert!(refused.contains("is no sentinel; leave 'sentinel=NAME' out of the URL"), "{refused}");
}

fn publisher(bus: &RedisBus, topic: &str) -> Box<dyn Publisher> {
    let policy = bus.capabilities().policies[0];
    bus.publisher(topic, &TopicConfig::new(policy)).unwrap_or_else(|e| panic!("{e}"))
}

fn subscriber(bus: &RedisBus, topic: &str, start: StartPosition) -> Box<dyn Subscriber> {
    bus.subscriber(topic, start, Wait::Block).unwrap_or_else(|e| panic!("{e}"))
}
