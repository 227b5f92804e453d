//! Queues on lists and on streams: lost connections, lost queues, and foreign messages and keys.

use tickpath_bus_api::conformance::{free_port, pull_stamps, wait_until};
use tickpath_bus_api::{Connection, DeliveryGuarantee, PublishError, Puller, Pusher, QueueConfig, ReceiveError};
use tickpath_bus_redis::{MAX_PULLED_BYTES, RedisBus};
use tickpath_clock::Wait;

use crate::redis_server::RedisServer;

/// The queue of these tests.
pub const QUEUE: &str = "tickpath:test:orders";

/// The kind of the queue's messages.
pub const KIND: u8 = 16;

#[test]
fn a_puller_keeps_its_unacknowledged_messages_over_a_reconnect() {
    for bench in RedisQueueFixture::all() {
        let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Yield));
        push(&mut *pusher, 0..10);
        let held = pull_stamps(&mut *puller, 4);
        assert_eq!(puller.reconnects(), Some(0), "{bench}");
        assert!(bench.server.cut_connections() >= 2, "{bench}: a pusher and a puller");
        puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        bench.server.cut_connections();
        let rest = pull_stamps(&mut *puller, 6);
        let received: Vec<u64> = held.iter().chain(&rest).map(|received| received.0).collect();
        assert_eq!(received, (0..10).collect::<Vec<u64>>(), "{bench}");
        assert!(held.iter().chain(&rest).all(|received| !received.1), "{bench}: {held:?}, {rest:?}");
        assert!(puller.reconnects() >= Some(1), "{bench}: its connection was cut");
        puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        check_empty(&mut *puller);
        assert_eq!(bench.bus.count_waiting(QUEUE).unwrap(), Some(0), "{bench}");
    }
}

#[test]
fn a_message_received_in_a_sleep_and_not_pulled_is_returned() {
    for bench in RedisQueueFixture::all() {
        let (mut pusher, mut first) = (bench.pusher(), bench.puller(Wait::Block));
        push(&mut *pusher, 0..1);
        first.wait(60_000_000_000);
        drop(first);
        assert_eq!(bench.bus.count_waiting(QUEUE).unwrap(), Some(1), "{bench}");
        let received = pull_stamps(&mut *bench.puller(Wait::Block), 1);
        assert_eq!(received[0].0, 0, "{bench}");
    }
}

#[test]
fn a_lost_or_removed_queue_is_recreated() {
    for mut bench in RedisQueueFixture::all() {
        let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Block));
        push(&mut *pusher, 0..3);
        assert_eq!(pull_stamps(&mut *puller, 2).len(), 2, "{bench}");
        bench.bus.remove_queue(QUEUE).unwrap();
        push(&mut *pusher, 10..11);
        // A list exists exactly while it has elements, so its removal cannot be seen afterwards.
        if !bench.way.is_empty() {
            assert!(is_gone(next_error(&mut *puller)), "{bench}");
        }
        assert_eq!(pull_stamps(&mut *puller, 1)[0].0, 10, "{bench}");
        // Two messages in flight were removed with the queue.
        if let Err(e) = puller.acknowledge() {
            assert!(matches!(e, ReceiveError::NotAcknowledged(_)), "{bench}: {e}");
        }
        bench.server.kill();
        let error = pusher.push(11, KIND, b"").unwrap_err().to_string();
        assert!(error.contains("refused the connection; start redis-server"), "{bench}: {error}");
        assert_eq!(puller.pull(8, &mut |pulled| panic!("{pulled:?} from a dead server")).unwrap(), 0, "{bench}");
        bench.server.restart();
        push(&mut *pusher, 20..21);
        assert_eq!(pusher.reconnects(), Some(1), "{bench}");
        assert!(is_gone(next_error(&mut *puller)), "{bench}");
        assert_eq!(pull_stamps(&mut *puller, 1)[0].0, 20, "{bench}");
    }
}

#[test]
fn removal_leaves_no_key() {
    for bench in RedisQueueFixture::all() {
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
fn an_empty_list_without_pullers_leaves_no_key() {
    for bench in RedisQueueFixture::all().into_iter().filter(|bench| bench.way.is_empty()) {
        let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Block));
        push(&mut *pusher, 0..20);
        pull_stamps(&mut *puller, 20);
        puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        drop(puller);
        assert_eq!(bench.server.keys(), 0, "{bench}");
    }
}

#[test]
fn foreign_messages_are_refused_and_stay() {
    for bench in RedisQueueFixture::all() {
        let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Block));
        push(&mut *pusher, 7..9);
        bench.push_foreign("{\"price\": 64000.25}");
        push(&mut *pusher, 9..10);
        let mut received = Vec::new();
        for limit in [1, 64] {
            let error = loop {
                match puller.pull(limit, &mut |pulled| received.push(pulled.message.stamp)) {
                    Ok(_) => puller.wait(1_000_000),
                    Err(e) => break e.to_string(),
                }
            };
            assert!(error.contains("what another program has pushed"), "{bench}: {error}");
            assert!(received.starts_with(&[7, 8]), "{bench}: {received:?}");
            // A stream skips a foreign message and reports it once; the next foreign message is reported again.
            if !bench.way.is_empty() {
                bench.push_foreign("{\"price\": 64000.5}");
            }
        }
        // A sleeping puller does not remove it, either.
        puller.wait(200_000_000);
        drop(puller);
        let kept = match bench.way {
            "" => bench.server.run_command(&["LRANGE", QUEUE, "0", "-1"]),
            _ => bench.server.run_command(&["XRANGE", QUEUE, "-", "+"]),
        };
        assert!(format!("{kept:?}").contains("64000.25"), "{bench}: {kept:?}");
        if bench.way.is_empty() {
            let lies = |text: &str| format!("{kept:?}").find(text);
            assert!(lies("tickpt") < lies("64000.25"), "{bench}: it is the next one, as it was: {kept:?}");
            let refused = bench.bus.puller(QUEUE, &bench.config(), Wait::Block).err().expect("it is refused at once");
            assert!(refused.to_string().contains("QueueConfig::foreign"), "{bench}: {refused}");
        }
    }
}

#[test]
fn foreign_messages_are_pulled_under_a_configured_kind() {
    for bench in RedisQueueFixture::all() {
        bench.push_foreign("hello");
        let config = QueueConfig { foreign: Some(128), ..bench.config() };
        for wait in [Wait::Yield, Wait::Block] {
            let mut puller = bench.bus.puller(QUEUE, &config, wait).unwrap_or_else(|e| panic!("{bench}: {e}"));
            let mut received = Vec::new();
            while received.is_empty() {
                puller.wait(1_000_000_000);
                puller
                    .pull(8, &mut |pulled| received.push((pulled.message.kind, pulled.message.payload.to_vec())))
                    .unwrap();
            }
            puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
            assert_eq!(received, [(128, b"hello".to_vec())], "{bench}");
            bench.push_foreign("hello");
        }
    }
}

#[test]
fn a_pull_takes_a_bounded_number_of_bytes() {
    const MESSAGES: u64 = 20;
    for bench in RedisQueueFixture::all() {
        let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Yield));
        let large = vec![7; 1 << 20];
        for stamp in 0..MESSAGES {
            pusher.push(stamp, KIND, &large).unwrap();
        }
        let (mut received, mut calls) = (Vec::new(), 0);
        while received.len() < MESSAGES as usize {
            let before = received.len();
            puller.pull(1024, &mut |pulled| received.push(pulled.message.stamp)).unwrap();
            assert!(
                (1..=MAX_PULLED_BYTES >> 20).contains(&(received.len() - before)),
                "{bench}: {} at once",
                received.len()
            );
            calls += 1;
        }
        assert!(received.iter().copied().eq(0..MESSAGES) && calls >= 3, "{bench}: {received:?} in {calls} calls");
        puller.acknowledge().unwrap();
    }
}

#[test]
fn messages_given_to_other_pullers_are_not_acknowledged() {
    for bench in RedisQueueFixture::at_least_once() {
        let (mut pusher, mut silent) = (bench.pusher(), bench.hasty_puller());
        push(&mut *pusher, 0..3);
        assert_eq!(pull_stamps(&mut *silent, 3).len(), 3);
        // The first puller is not polled meanwhile, so the other takes it for dead.
        let mut other = bench.hasty_puller();
        assert_eq!(pull_stamps(&mut *other, 3), [(0, true), (1, true), (2, true)], "{bench}");
        let error = silent.acknowledge().expect_err("they are the other one's");
        assert!(
            matches!(error, ReceiveError::NotAcknowledged(_)) && error.to_string().contains("3 messages"),
            "{error}"
        );
        silent.acknowledge().expect("it is told once");
        other.acknowledge().unwrap_or_else(|e| panic!("{bench}: they are its own: {e}"));
        assert_eq!(bench.bus.count_waiting(QUEUE).unwrap(), Some(0), "{bench}");
    }
}

#[test]
fn a_broken_heartbeat_is_reported_over_a_new_connection() {
    let bench = RedisQueueFixture::at_least_once().remove(0);
    let (mut pusher, mut puller) = (bench.pusher(), bench.hasty_puller());
    push(&mut *pusher, 0..3);
    assert_eq!(pull_stamps(&mut *puller, 3).len(), 3);
    let mut client = bench.server.client();
    wait_until(|| redis::cmd("KEYS").arg("*/alive/*").query::<Vec<String>>(&mut client).unwrap().is_empty());
    bench.server.cut_connections();
    let error = puller.acknowledge().expect_err("nobody knows who had them meanwhile");
    assert!(matches!(error, ReceiveError::NotAcknowledged(_)) && error.to_string().contains("3 messages"), "{error}");
    assert_eq!(bench.bus.count_waiting(QUEUE).unwrap(), Some(3));
}

#[test]
fn a_dropped_puller_returns_nothing_that_others_claimed() {
    for bench in RedisQueueFixture::at_least_once() {
        let (mut pusher, mut silent) = (bench.pusher(), bench.hasty_puller());
        push(&mut *pusher, 0..3);
        assert_eq!(pull_stamps(&mut *silent, 3).len(), 3);
        let mut other = bench.hasty_puller();
        assert_eq!(pull_stamps(&mut *other, 3).len(), 3, "{bench}");
        drop(silent);
        assert_eq!(bench.bus.count_waiting(QUEUE).unwrap(), Some(0), "{bench}: all is the other one's");
        other.acknowledge().unwrap_or_else(|e| panic!("{bench}: they are its own: {e}"));
    }
}

#[test]
fn an_acknowledgement_succeeds_beside_foreign_messages() {
    for bench in RedisQueueFixture::at_least_once() {
        let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Yield));
        push(&mut *pusher, 0..2);
        assert_eq!(pull_stamps(&mut *puller, 2).len(), 2);
        bench.push_foreign("theirs");
        bench.server.cut_connections();
        puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        assert!(puller.reconnects() >= Some(1), "{bench}");
        assert!(next_error(&mut *puller).to_string().contains("what another program has pushed"), "{bench}");
    }
}

#[test]
fn a_foreign_message_in_a_list_is_inspected_and_not_taken() {
    for bench in RedisQueueFixture::all().into_iter().filter(|bench| bench.way.is_empty()) {
        let mut puller = bench.puller(Wait::Yield);
        bench.push_foreign("theirs");
        for limit in [1, 8, 1, 8] {
            let error = puller.pull(limit, &mut |pulled| panic!("{pulled:?}")).expect_err("it is not ours").to_string();
            assert!(error.contains("what another program has pushed"), "{bench}: {error}");
        }
        let mut client = bench.server.client();
        let commands: String = redis::cmd("INFO").arg("commandstats").query(&mut client).unwrap();
        // At most once, the foreign message is detected when it was taken, and not taken again. At least once, it stays
        // with the puller.
        let max = usize::from(bench.delivery == DeliveryGuarantee::AtMostOnce);
        let put_back = commands
            .split("cmdstat_rpush:calls=")
            .nth(1)
            .map_or(0, |rest| rest.split(',').next().and_then(|calls| calls.parse::<usize>().ok()).expect("a count"));
        assert!(put_back <= max, "{bench}: {commands}");
        let kept: Vec<String> = redis::cmd("LRANGE").arg(QUEUE).arg(0).arg(-1).query(&mut client).unwrap();
        assert_eq!(kept, ["theirs"], "{bench}");
    }
}

#[test]
fn messages_behind_a_foreign_one_return_unchanged() {
    let bench = RedisQueueFixture::at_least_once().remove(0);
    let (mut pusher, mut fallen) = (bench.pusher(), bench.puller(Wait::Yield));
    push(&mut *pusher, 0..2);
    assert_eq!(pull_stamps(&mut *fallen, 2).len(), 2);
    drop(fallen);
    let mut puller = bench.puller(Wait::Yield);
    bench.push_foreign("theirs");
    push(&mut *pusher, 2..5);
    assert_eq!(pull_stamps(&mut *puller, 2), [(0, true), (1, true)]);
    assert!(next_error(&mut *puller).to_string().contains("what another program has pushed"));
    let mut client = bench.server.client();
    let next: Vec<u8> = redis::cmd("RPOP").arg(QUEUE).query(&mut client).unwrap();
    assert_eq!(next, b"theirs");
    assert_eq!(pull_stamps(&mut *puller, 3), [(2, false), (3, false), (4, false)]);
    puller.acknowledge().unwrap();
    assert_eq!(bench.bus.count_waiting(QUEUE).unwrap(), Some(0));
}

#[test]
fn pullers_work_on_a_server_that_forgets_or_refuses_scripts() {
    let bench = RedisQueueFixture::at_least_once().remove(0);
    let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Yield));
    for (stamp, command) in [
        (0, &["PING"][..]),
        (1, &["SCRIPT", "FLUSH"]),
        (2, &["ACL", "SETUSER", "default", "-script"]),
        (3, &["SCRIPT"]),
    ] {
        // The server refuses the last command, and from then on our scripts.
        let _ = bench.server.run_command(command);
        if stamp == 3 {
            bench.server.cut_connections();
        }
        push(&mut *pusher, stamp..stamp + 1);
        assert_eq!(pull_stamps(&mut *puller, 1), [(stamp, false)]);
        puller.acknowledge().unwrap_or_else(|e| panic!("{stamp}: {e}"));
    }
}

#[test]
fn a_dropped_puller_returns_a_foreign_message_to_the_queue() {
    let bench = RedisQueueFixture::at_least_once().remove(0);
    let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Yield));
    push(&mut *pusher, 0..1);
    assert_eq!(pull_stamps(&mut *puller, 1), [(0, false)]);
    let mut client = bench.server.client();
    let taken_keys: Vec<String> = redis::cmd("KEYS").arg("*/taken/*").query(&mut client).unwrap();
    assert_eq!(taken_keys.len(), 1, "{taken_keys:?}");
    // Simulates a puller that slept and was woken by a foreign message.
    bench.push_foreign("theirs");
    redis::cmd("LMOVE").arg(QUEUE).arg(&taken_keys[0]).arg("RIGHT").arg("LEFT").exec(&mut client).unwrap();
    drop(puller);
    let kept: Vec<String> = redis::cmd("LRANGE").arg(QUEUE).arg(0).arg(-1).query(&mut client).unwrap();
    assert_eq!(kept, ["theirs"]);
    assert_eq!(bench.bus.count_waiting(QUEUE).unwrap(), Some(2));
}

#[test]
fn all_keys_of_a_queue_share_a_cluster_slot() {
    let bench = RedisQueueFixture::at_least_once().remove(0);
    let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Yield));
    push(&mut *pusher, 0..3);
    let mut dropped = bench.puller(Wait::Yield);
    assert_eq!(pull_stamps(&mut *dropped, 2).len(), 2);
    drop(dropped);
    assert_eq!(pull_stamps(&mut *puller, 1), [(0, true)]);
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut bench.server.client()).unwrap();
    assert!(keys.len() >= 5 && keys.iter().any(|key| key == QUEUE), "{keys:?}");
    // The part in braces decides the slot.
    let beside = format!("{{{QUEUE}}}/");
    assert!(keys.iter().all(|key| key == QUEUE || key.starts_with(&beside)), "{keys:?}");
}

#[test]
fn pullers_wait_for_a_replica_and_pushers_get_an_error() {
    for bench in RedisQueueFixture::all() {
        let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Block));
        bench.server.run_command(&["REPLICAOF", "127.0.0.1", &free_port().to_string()]).unwrap();
        let error = pusher.push(1, KIND, b"").unwrap_err();
        assert!(matches!(&error, PublishError::Unavailable(_)), "{bench}: {error}");
        let before = bench.server.refusals("READONLY");
        while bench.server.refusals("READONLY") < before + 2 {
            assert_eq!(puller.pull(8, &mut |pulled| panic!("{pulled:?}")).unwrap(), 0, "{bench}");
            puller.wait(10_000_000);
        }
        bench.server.run_command(&["REPLICAOF", "NO", "ONE"]).unwrap();
        push(&mut *pusher, 2..3);
        assert_eq!(pull_stamps(&mut *puller, 1)[0].0, 2, "{bench}");
    }
}

#[test]
fn a_key_that_is_no_queue_is_left_alone() {
    for bench in RedisQueueFixture::all() {
        let mut client = bench.server.client();
        redis::cmd("SET").arg(QUEUE).arg("mine").exec(&mut client).unwrap();
        let refusals = [
            bench.bus.puller(QUEUE, &bench.config(), Wait::Block).err().expect("a string is no queue").to_string(),
            bench.bus.count_waiting(QUEUE).unwrap_err().to_string(),
            bench.bus.remove_queue(QUEUE).unwrap_err().to_string(),
            bench.pusher().push(1, KIND, b"").unwrap_err().to_string(),
        ];
        for refusal in refusals {
            assert!(refusal.starts_with(&bench.server.url()) && refusal.contains("WRONGTYPE"), "{bench}: {refusal}");
            assert!(refusal.contains("use another name"), "{bench}: {refusal}");
        }
        assert_eq!(redis::cmd("GET").arg(QUEUE).query::<String>(&mut client).unwrap(), "mine");
    }
}

/// A server, a way to use it, and a delivery guarantee.
pub struct RedisQueueFixture {
    /// The server.
    pub server: RedisServer,
    /// The bus over it.
    pub bus: RedisBus,
    /// The suffix of the URL behind the server's address.
    pub way: &'static str,
    /// The delivery guarantee of the queue.
    pub delivery: DeliveryGuarantee,
}

impl std::fmt::Display for RedisQueueFixture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "'{}' {}", self.way, self.delivery)
    }
}

impl RedisQueueFixture {
    /// Starts a bench for each way and each delivery guarantee.
    pub fn all() -> Vec<Self> {
        let start = |way: &'static str, delivery| {
            let server = RedisServer::start(&[]);
            let bus = RedisBus::connect(&format!("{}{way}", server.url())).unwrap();
            Self { server, bus, way, delivery }
        };
        ["", "?streams"]
            .into_iter()
            .flat_map(|way| DeliveryGuarantee::ALL.map(|delivery| start(way, delivery)))
            .collect()
    }

    /// Starts a bench for each way with at-least-once delivery, lists first.
    pub fn at_least_once() -> Vec<Self> {
        Self::all().into_iter().filter(|bench| bench.delivery == DeliveryGuarantee::AtLeastOnce).collect()
    }

    /// Pushes a message as another program would.
    pub fn push_foreign(&self, text: &str) {
        let command = match self.way {
            "" => &["LPUSH", QUEUE, text][..],
            _ => &["XADD", QUEUE, "*", "m", text],
        };
        self.server.run_command(command).unwrap();
    }

    /// Returns the queue's configuration.
    pub fn config(&self) -> QueueConfig {
        QueueConfig::new(self.delivery)
    }

    /// Opens a pusher.
    pub fn pusher(&self) -> Box<dyn Pusher> {
        self.bus.pusher(QUEUE, &self.config()).unwrap_or_else(|e| panic!("{self}: {e}"))
    }

    /// Opens a puller.
    pub fn puller(&self, wait: Wait) -> Box<dyn Puller> {
        self.puller_with(&self.config(), wait)
    }

    /// Opens a puller with its own configuration.
    pub fn puller_with(&self, config: &QueueConfig, wait: Wait) -> Box<dyn Puller> {
        self.bus.puller(QUEUE, config, wait).unwrap_or_else(|e| panic!("{self}: {e}"))
    }

    /// Opens a puller that takes a silent puller for dead after 200 ms.
    pub fn hasty_puller(&self) -> Box<dyn Puller> {
        self.puller_with(&QueueConfig { silence_ns: 200_000_000, ..self.config() }, Wait::Block)
    }
}

/// Pushes one message per stamp.
pub fn push(pusher: &mut dyn Pusher, stamps: std::ops::Range<u64>) {
    for stamp in stamps {
        pusher.push(stamp, KIND, b"payload").unwrap_or_else(|e| panic!("{stamp} is not pushed: {e}"));
    }
}

/// Checks that no message arrives.
pub fn check_empty(puller: &mut dyn Puller) {
    for _ in 0..10 {
        assert_eq!(puller.pull(8, &mut |pulled| panic!("{pulled:?} from an empty queue")).unwrap(), 0);
        puller.wait(1_000_000);
    }
}

/// Returns the puller's next error; fails if a message arrives before it.
pub fn next_error(puller: &mut dyn Puller) -> ReceiveError {
    for _ in 0..6000 {
        match puller.pull(8, &mut |pulled| panic!("{pulled:?} before an error")) {
            Ok(_) => puller.wait(10_000_000),
            Err(error) => return error,
        }
    }
    panic!("nothing was told within a minute");
}

/// Reports whether the error says that the queue's messages may be gone.
pub fn is_gone(error: ReceiveError) -> bool {
    matches!(&error, ReceiveError::MessagesLost(sentence) if sentence.contains("may be gone"))
}
