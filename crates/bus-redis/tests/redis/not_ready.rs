//! Servers that answer but cannot be used yet: loading their data, waiting for their master, or busy with a script. The
//! client retries each of them like a server that is down.

use tickpath_bus_api::conformance::{OwnedEvent, free_port, next_event, pull_stamps, wait_until};
use tickpath_bus_api::{
    Connection, DeliveryGuarantee, Gap, Policy, Publisher, Puller, Pusher, QueueConfig, StartPosition, TopicConfig,
};
use tickpath_bus_redis::RedisBus;
use tickpath_clock::Wait;

use crate::queues::{is_gone, next_error};
use crate::redis_server::RedisServer;

const TOPIC: &str = "tickpath:test:ticks";
const QUEUE: &str = "tickpath:test:orders";
const KIND: u8 = 16;

/// Settings with which loading [`REFILL_BELOW`] takes a minute, while the server still answers after every few keys.
const LOADS_SLOWLY: [&str; 6] =
    ["--rdbcompression", "no", "--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024"];

/// Lua script that fills the server with data that loads slowly.
const FILL: &str = "for n = 1, 6000 do redis.call('SET', 'filler:' .. n, string.rep('x', 200)) end return 0";

#[test]
fn connects_opens_and_requests_wait_for_a_loading_server() {
    let mut loading = LoadingServer::new();
    let url = loading.server.url();
    loading.run_while_loading("connect", || drop(bus(&url, "")));
    for way in ["", "?streams"] {
        let bus = bus(&url, way);
        loading.run_while_loading("pusher", || drop(pusher(&bus)));
        loading.run_while_loading("puller", || drop(puller(&bus, DeliveryGuarantee::AtLeastOnce)));
        loading.run_while_loading("waiting", || assert_eq!(bus.count_waiting(QUEUE).unwrap(), Some(0)));
        loading.run_while_loading("remove_queue", || bus.remove_queue(QUEUE).unwrap());
    }
    let bus = bus(&url, "?streams");
    loading.run_while_loading("publisher", || drop(publisher(&bus)));
    loading.run_while_loading("subscriber", || {
        drop(bus.subscriber(TOPIC, StartPosition::Oldest, Wait::Block).unwrap_or_else(|e| panic!("{e}")));
    });
    loading.run_while_loading("remove", || bus.remove_topic(TOPIC).unwrap());
}

#[test]
fn senders_wait_for_a_loading_server() {
    let mut loading = LoadingServer::new();
    let url = loading.server.url();
    for way in ["", "?streams"] {
        let mut pusher = pusher(&bus(&url, way));
        loading.run_while_loading("push", || pusher.push(1, KIND, b"").unwrap());
        loading.run_while_loading("push_batch", || pusher.push_batch(2, KIND, &[b"one", b"two"]).unwrap());
        let received = pull_stamps(&mut *puller(&bus(&url, way), DeliveryGuarantee::AtLeastOnce), 2);
        assert_eq!(
            received,
            [(2, false), (2, false)],
            "what was pushed before is lost with the server, and nothing else"
        );
        bus(&url, way).remove_queue(QUEUE).unwrap();
    }
    let bus = bus(&url, "?streams");
    let mut publisher = publisher(&bus);
    loading.run_while_loading("publish", || publisher.publish(3, KIND, b"after").unwrap());
    let mut subscriber = bus.subscriber(TOPIC, StartPosition::Oldest, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(3, b"after"));
}

#[test]
fn receivers_wait_for_a_loading_server() {
    let mut loading = LoadingServer::new();
    let bus = bus(&loading.server.url(), "?streams");
    publisher(&bus).publish(1, KIND, b"before").unwrap();
    let mut subscriber = bus.subscriber(TOPIC, StartPosition::Oldest, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b"before"));
    let mut pullers = DeliveryGuarantee::ALL.map(|delivery| puller(&bus, delivery));
    loading.server.run_command(&["SAVE"]).unwrap();
    loading.restart();
    let before = loading.server.refusals("LOADING");
    // Each of the three retries, and none gives up.
    loading.until(|server| {
        assert_eq!(subscriber.poll(8, &mut |event| panic!("{event:?} from a loading server")).unwrap(), 0);
        for puller in &mut pullers {
            assert_eq!(puller.pull(8, &mut |pulled| panic!("{pulled:?} from a loading server")).unwrap(), 0);
        }
        server.refusals("LOADING") > before + 20
    });
    loading.finish();
    publisher(&bus).publish(2, KIND, b"after").unwrap();
    // The data that the server loaded may be older than the data it had.
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(2, b"after"));
    for (stamp, puller) in (3..).zip(&mut pullers) {
        pusher(&bus).push(stamp, KIND, b"").unwrap();
        assert!(is_gone(next_error(&mut **puller)));
        assert_eq!(pull_stamps(&mut **puller, 1), [(stamp, false)]);
        puller.acknowledge().unwrap();
    }
}

#[test]
fn a_server_that_loads_for_too_long_is_reported() {
    let mut loading = LoadingServer::new();
    let (url, streams) = (loading.server.url(), bus(&loading.server.url(), "?streams"));
    let mut publisher = publisher(&streams);
    loading.restart();
    let published = std::thread::scope(|scope| {
        let publishing = scope.spawn(|| publisher.publish(1, KIND, b"lost"));
        let connected = RedisBus::connect(&url).expect_err("it loads").to_string();
        assert_eq!(connected, format!("{url}: is still loading its data; try again when it has finished"));
        publishing.join().unwrap()
    });
    let sentence = published.unwrap_err().to_string();
    assert_eq!(sentence, format!("{url} is still loading its data; try again when it has finished"));
    loading.finish();
    publisher.publish(2, KIND, b"after").unwrap();
}

#[test]
fn a_loading_server_publishes() {
    let mut loading = LoadingServer::new();
    let bus = bus(&loading.server.url(), "");
    let mut publisher = bus.publisher(TOPIC, &TopicConfig::new(Policy::Overwrite)).unwrap_or_else(|e| panic!("{e}"));
    loading.restart();
    let mut subscriber = bus.subscriber(TOPIC, StartPosition::Now, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    publisher.publish(1, KIND, b"meanwhile").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b"meanwhile"));
    assert_eq!(loading.server.run_command(&["PING"]), Err("LOADING".to_owned()));
}

#[test]
fn receivers_wait_for_a_replica_without_its_master() {
    let server = RedisServer::start(&["--replica-serve-stale-data", "no"]);
    let bus = bus(&server.url(), "?streams");
    let mut publisher = publisher(&bus);
    publisher.publish(1, KIND, b"before").unwrap();
    let mut subscriber = bus.subscriber(TOPIC, StartPosition::Oldest, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b"before"));
    server.run_command(&["REPLICAOF", "127.0.0.1", &free_port().to_string()]).unwrap();
    let sentence = publisher.publish(2, KIND, b"refused").unwrap_err().to_string();
    assert!(sentence.contains("is a replica"), "who writes is told, and can look for the master: {sentence}");
    let before = server.refusals("MASTERDOWN");
    wait_until(|| {
        assert_eq!(subscriber.poll(8, &mut |event| panic!("{event:?} from a replica without master")).unwrap(), 0);
        server.refusals("MASTERDOWN") > before + 2
    });
    server.run_command(&["REPLICAOF", "NO", "ONE"]).unwrap();
    publisher.publish(3, KIND, b"after").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(3, b"after"));
}

#[test]
fn clients_wait_for_a_server_busy_with_a_script() {
    let server = RedisServer::start(&["--lua-time-limit", "50"]);
    let bus = bus(&server.url(), "?streams");
    let mut publisher = publisher(&bus);
    publisher.publish(1, KIND, b"before").unwrap();
    let mut subscriber = bus.subscriber(TOPIC, StartPosition::Oldest, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b"before"));
    assert!(server.cut_connections() >= 2, "a publisher and a subscriber");
    let (mut sentence, mut polled) = (String::new(), Ok(0));
    std::thread::scope(|scope| {
        let running = scope.spawn(|| server.run_command(&["EVAL", "while true do end", "0"]));
        wait_until(|| server.run_command(&["PING"]) == Err("BUSY".to_owned()));
        // The query waits for 5 s, in which the subscriber is refused, too.
        let asking =
            scope.spawn(|| bus.count_waiting(QUEUE).map_or_else(|e| e.to_string(), |count| format!("{count:?}")));
        wait_until(|| {
            polled = subscriber.poll(8, &mut |event| panic!("{event:?} from a busy server"));
            asking.is_finished() || polled.is_err()
        });
        sentence = asking.join().unwrap();
        // Ends the script before any assertion: nothing else would end it.
        server.run_command(&["SCRIPT", "KILL"]).unwrap();
        running.join().unwrap().expect_err("it was ended");
    });
    assert_eq!(polled.unwrap(), 0);
    assert!(sentence.contains("busy with a script") && sentence.contains("end it by SCRIPT KILL"), "{sentence}");
    publisher.publish(2, KIND, b"after").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(2, b"after"));
}

#[test]
fn a_server_with_a_failed_disk_is_read_and_refuses_writes() {
    let server = RedisServer::start(&[]);
    let bus = bus(&server.url(), "?streams");
    publisher(&bus).publish(1, KIND, b"before").unwrap();
    // A folder in place of the dump file makes saving fail.
    std::fs::create_dir(server.dump()).unwrap();
    server.run_command(&["CONFIG", "SET", "save", "3600 1"]).unwrap();
    server.run_command(&["BGSAVE"]).unwrap();
    wait_until(|| server.run_command(&["PING"]) == Err("MISCONF".to_owned()));
    let connected = self::bus(&server.url(), "?streams");
    let mut subscriber =
        connected.subscriber(TOPIC, StartPosition::Oldest, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b"before"));
    let mut publisher = publisher(&connected);
    let refused = publisher.publish(2, KIND, b"refused").expect_err("it takes nothing to keep");
    assert!(refused.is_transient() && refused.to_string().contains("cannot write its disk"), "{refused}");
    server.run_command(&["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"]).unwrap();
    publisher.publish(3, KIND, b"after").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(3, b"after"));
}

/// A server that keeps loading for as long as a test needs.
struct LoadingServer {
    server: RedisServer,
}

impl LoadingServer {
    /// Starts a server, fills it and saves its data; it does not load yet.
    fn new() -> Self {
        let server = RedisServer::start(&LOADS_SLOWLY);
        server.run_command(&["EVAL", FILL, "0"]).unwrap();
        server.run_command(&["SAVE"]).unwrap();
        Self { server }
    }

    /// Kills and restarts the server; it is loading when this returns.
    fn restart(&mut self) {
        self.server.kill();
        self.server.restart();
        assert_eq!(self.server.run_command(&["PING"]), Err("LOADING".to_owned()));
    }

    /// Waits until the condition holds, and checks that the server is still loading then.
    fn until(&self, mut is_so: impl FnMut(&RedisServer) -> bool) {
        wait_until(|| is_so(&self.server));
        assert_eq!(self.server.run_command(&["PING"]), Err("LOADING".to_owned()));
    }

    /// Lets the server load the rest at once; it is ready when this returns.
    fn finish(&self) {
        self.server.run_command(&["CONFIG", "SET", "key-load-delay", "0"]).unwrap();
        wait_until(|| self.server.run_command(&["PING"]).is_ok());
    }

    /// Runs `work` while the server loads, and lets the loading finish after the first command that was refused.
    fn run_while_loading(&mut self, what: &str, work: impl FnOnce() + Send) {
        println!("{what}");
        self.restart();
        let before = self.server.refusals("LOADING");
        std::thread::scope(|scope| {
            let working = scope.spawn(work);
            wait_until(|| self.server.refusals("LOADING") > before || working.is_finished());
            self.finish();
            working.join().unwrap_or_else(|_| panic!("{what} gave up on a server that loads"));
        });
    }
}

fn bus(url: &str, way: &str) -> RedisBus {
    RedisBus::connect(&format!("{url}{way}")).unwrap_or_else(|e| panic!("{e}"))
}

fn publisher(bus: &RedisBus) -> Box<dyn Publisher> {
    bus.publisher(TOPIC, &TopicConfig::new(Policy::Keep)).unwrap_or_else(|e| panic!("{e}"))
}

fn pusher(bus: &RedisBus) -> Box<dyn Pusher> {
    bus.pusher(QUEUE, &QueueConfig::new(DeliveryGuarantee::AtLeastOnce)).unwrap_or_else(|e| panic!("{e}"))
}

fn puller(bus: &RedisBus, delivery: DeliveryGuarantee) -> Box<dyn Puller> {
    bus.puller(QUEUE, &QueueConfig::new(delivery), Wait::Block).unwrap_or_else(|e| panic!("{e}"))
}
