//! Queues on lists and on streams: lost connections, lost queues, and what else can lie there.

use tickpath_bus_api::conformance::pull_stamps;
use tickpath_bus_api::{Connection, Delivery, Puller, Pusher, QueueConfig};
use tickpath_bus_redis::RedisBus;
use tickpath_clock::Wait;

use crate::redis_server::RedisServer;

const QUEUE: &str = "tickpath:test:orders";
const KIND: u8 = 16;

#[test]
fn what_is_held_survives_a_lost_connection_and_what_is_acknowledged_never_comes_again() {
    for bench in Bench::all() {
        let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Yield));
        push(&mut *pusher, 0..10);
        let held = pull_stamps(&mut *puller, 4);
        assert_eq!(puller.reconnects(), Some(0), "{bench}");
        assert!(bench.server.cut_connections() >= 2, "{bench}: a pusher and a puller");
        puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        bench.server.cut_connections();
        let rest = pull_stamps(&mut *puller, 6);
        let came: Vec<u64> = held.iter().chain(&rest).map(|came| came.0).collect();
        assert_eq!(came, (0..10).collect::<Vec<u64>>(), "{bench}");
        assert!(held.iter().chain(&rest).all(|came| !came.1), "{bench}: {held:?}, {rest:?}");
        assert!(puller.reconnects() >= Some(1), "{bench}: its connection was cut");
        puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        stays_empty(&mut *puller);
        assert_eq!(bench.bus.waiting(QUEUE).unwrap(), Some(0), "{bench}");
    }
}

#[test]
fn what_came_while_sleeping_and_was_not_pulled_goes_back() {
    for bench in Bench::all() {
        let (mut pusher, mut first) = (bench.pusher(), bench.puller(Wait::Block));
        push(&mut *pusher, 0..1);
        first.wait(60_000_000_000);
        drop(first);
        assert_eq!(bench.bus.waiting(QUEUE).unwrap(), Some(1), "{bench}");
        let came = pull_stamps(&mut *bench.puller(Wait::Block), 1);
        assert_eq!(came[0].0, 0, "{bench}");
    }
}

#[test]
fn a_queue_that_is_lost_or_removed_is_made_anew() {
    for mut bench in Bench::all() {
        let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Block));
        push(&mut *pusher, 0..3);
        assert_eq!(pull_stamps(&mut *puller, 2).len(), 2, "{bench}");
        bench.bus.remove_queue(QUEUE).unwrap();
        push(&mut *pusher, 10..11);
        assert_eq!(pull_stamps(&mut *puller, 1)[0].0, 10, "{bench}");
        puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        bench.server.kill();
        let error = pusher.push(11, KIND, b"").unwrap_err().to_string();
        assert!(error.contains("refused the connection; start redis-server"), "{bench}: {error}");
        assert_eq!(puller.pull(8, &mut |pulled| panic!("{pulled:?} from a dead server")).unwrap(), 0, "{bench}");
        bench.server.restart();
        push(&mut *pusher, 20..21);
        assert_eq!(pusher.reconnects(), Some(1), "{bench}");
        assert_eq!(pull_stamps(&mut *puller, 1)[0].0, 20, "{bench}");
    }
}

#[test]
fn removal_leaves_no_key() {
    for bench in Bench::all() {
        let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Block));
        push(&mut *pusher, 0..20);
        pull_stamps(&mut *puller, 5);
        let mut dropped = bench.puller(Wait::Block);
        pull_stamps(&mut *dropped, 5);
        drop(dropped);
        bench.bus.remove_queue(QUEUE).unwrap();
        assert_eq!(bench.server.keys(), 0, "{bench}");
        drop(puller);
        assert_eq!(bench.server.keys(), 0, "{bench}");
    }
}

#[test]
fn a_list_that_is_empty_and_has_no_pullers_leaves_no_key() {
    for bench in Bench::all().into_iter().filter(|bench| bench.way.is_empty()) {
        let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Block));
        push(&mut *pusher, 0..20);
        pull_stamps(&mut *puller, 20);
        puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        drop(puller);
        assert_eq!(bench.server.keys(), 0, "{bench}");
    }
}

#[test]
fn foreign_messages_are_skipped() {
    for bench in Bench::all() {
        let mut client = bench.server.client();
        for foreign in ["", "hello", "{\"price\": 64000.25}"] {
            let command = match bench.way {
                "" => redis::cmd("LPUSH").arg(QUEUE).arg(foreign).take(),
                _ => redis::cmd("XADD").arg(QUEUE).arg("*").arg("m").arg(foreign).take(),
            };
            command.exec(&mut client).unwrap();
        }
        let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Block));
        push(&mut *pusher, 7..8);
        assert_eq!(pull_stamps(&mut *puller, 1)[0].0, 7, "{bench}");
        puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        stays_empty(&mut *puller);
        assert_eq!(bench.bus.waiting(QUEUE).unwrap(), Some(0), "{bench}");
    }
}

#[test]
fn what_is_no_queue_is_left_alone() {
    for bench in Bench::all() {
        let mut client = bench.server.client();
        redis::cmd("SET").arg(QUEUE).arg("mine").exec(&mut client).unwrap();
        let refusals = [
            bench.bus.puller(QUEUE, &bench.config(), Wait::Block).err().expect("a string is no queue").to_string(),
            bench.bus.waiting(QUEUE).unwrap_err().to_string(),
            bench.bus.remove_queue(QUEUE).unwrap_err().to_string(),
            bench.pusher().push(1, KIND, b"").unwrap_err().to_string(),
        ];
        for refusal in refusals {
            assert!(refusal.starts_with(&bench.server.url()) && refusal.contains("WRONGTYPE"), "{bench}: {refusal}");
        }
        assert_eq!(redis::cmd("GET").arg(QUEUE).query::<String>(&mut client).unwrap(), "mine");
    }
}

/// A server, a way of using it, and a delivery.
struct Bench {
    server: RedisServer,
    bus: RedisBus,
    way: &'static str,
    delivery: Delivery,
}

impl std::fmt::Display for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "'{}' {}", self.way, self.delivery)
    }
}

impl Bench {
    /// Each way with each delivery.
    fn all() -> Vec<Self> {
        let start = |way: &'static str, delivery| {
            let server = RedisServer::start(&[]);
            let bus = RedisBus::connect(&format!("{}{way}", server.url())).unwrap();
            Self { server, bus, way, delivery }
        };
        ["", "?streams"].into_iter().flat_map(|way| Delivery::ALL.map(|delivery| start(way, delivery))).collect()
    }

    fn config(&self) -> QueueConfig {
        QueueConfig::new(self.delivery)
    }

    fn pusher(&self) -> Box<dyn Pusher> {
        self.bus.pusher(QUEUE, &self.config()).unwrap_or_else(|e| panic!("{self}: {e}"))
    }

    fn puller(&self, wait: Wait) -> Box<dyn Puller> {
        self.bus.puller(QUEUE, &self.config(), wait).unwrap_or_else(|e| panic!("{self}: {e}"))
    }
}

fn push(pusher: &mut dyn Pusher, stamps: std::ops::Range<u64>) {
    for stamp in stamps {
        pusher.push(stamp, KIND, b"payload").unwrap_or_else(|e| panic!("{stamp} is not pushed: {e}"));
    }
}

fn stays_empty(puller: &mut dyn Puller) {
    for _ in 0..10 {
        assert_eq!(puller.pull(8, &mut |pulled| panic!("{pulled:?} from an empty queue")).unwrap(), 0);
        puller.wait(1_000_000);
    }
}
