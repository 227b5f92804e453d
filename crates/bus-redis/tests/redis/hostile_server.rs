//! A hostile server that answers one command without an end. The client must fail with an error that names the limit,
//! and close the connection before much was sent.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tickpath_bus_api::conformance::{OwnedEvent, next_event, socket_buffer_bytes, wait_until};
use tickpath_bus_api::{Connection, DeliveryGuarantee, Gap, Policy, QueueConfig, StartPosition, TopicConfig};
use tickpath_bus_redis::RedisBus;
use tickpath_clock::Wait;

const TOPIC: &str = "ticks";

/// The most that the client may read of an answer that carries no message, in bytes.
const MAX_READ_BYTES: usize = 16 << 20;

/// The start of an answer, and the part that is repeated after it.
type Flood = (&'static [u8], &'static [u8]);

/// Arrays of one element, nested without an end.
const NESTED: Flood = (b"", b"*1\r\n");

/// Nested arrays that each announce a million elements.
const ANNOUNCED: Flood = (b"", b"*1048576\r\n");

/// One array whose elements are long lines.
const LONG_LINES: Flood = (b"*1048576\r\n", &[b'+'; 4096]);

/// One value of 64 MiB, the size limit of a message.
const LONG_VALUE: Flood = (b"$67108864\r\n", &[b'x'; 4096]);

/// One value above the size limit of a message.
const TOO_LONG_VALUE: Flood = (b"$67108865\r\n", &[b'x'; 4096]);

/// A running server.
struct HostileRedis {
    address: String,
    state: Arc<FloodState>,
}

struct FloodState {
    /// The command whose answer has no end; for `SUBSCRIBE`, the flood is the published message.
    victim: &'static str,
    flood: Flood,
    sent: AtomicUsize,
    /// The client closed a flooded connection.
    is_closed: AtomicBool,
}

impl HostileRedis {
    fn start(victim: &'static str, flood: Flood) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sent, is_closed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let state = Arc::new(FloodState { victim, flood, sent, is_closed });
        std::thread::spawn({
            let state = state.clone();
            move || {
                for stream in listener.incoming() {
                    let state = state.clone();
                    std::thread::spawn(move || state.serve(&stream.unwrap()));
                }
            }
        });
        Self { address, state }
    }

    fn url(&self, options: &str) -> String {
        format!("redis://{}{options}", self.address)
    }

    /// Checks the client's error message, and that the client closed the connection in time.
    fn check(&self, what: &str, sentence: &str, limit: &str) {
        for word in [self.address.as_str(), "more than", limit, "look into its log"] {
            assert!(sentence.contains(word), "{what}: '{word}' is not in: {sentence}");
        }
        self.check_closed(what);
    }

    fn check_closed(&self, what: &str) {
        wait_until(|| self.state.is_closed.load(Ordering::SeqCst));
        let sent = self.state.sent.load(Ordering::SeqCst);
        assert!(
            sent <= MAX_READ_BYTES + socket_buffer_bytes(),
            "{what}: {sent} bytes were taken before the connection was closed"
        );
    }
}

impl FloodState {
    /// Answers each command of a connection, and floods at the victim command.
    fn serve(&self, mut stream: &TcpStream) {
        stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(300))).unwrap();
        let mut room = vec![0; 64 << 10];
        // The client awaits each answer and its commands are short, so each read returns one command.
        while let Ok(length @ 1..) = stream.read(&mut room) {
            let text = String::from_utf8_lossy(&room[..length]).into_owned();
            let command = text.split("\r\n").nth(2).unwrap_or_default();
            if command == self.victim && command != "SUBSCRIBE" {
                return self.flood(stream);
            }
            let answer: &[u8] = match command {
                "PING" => b"+PONG\r\n",
                "LINDEX" => b"$-1\r\n",
                "SUBSCRIBE" => b"*3\r\n$9\r\nsubscribe\r\n$5\r\nticks\r\n:1\r\n",
                _ => b"-ERR unknown command\r\n",
            };
            if stream.write_all(answer).is_err() {
                return;
            }
            if command == self.victim {
                return self.flood(stream);
            }
        }
    }

    /// Sends until the client closes the connection or the flood is used up; then waits for the close.
    fn flood(&self, mut stream: &TcpStream) {
        let (begin, again) = self.flood;
        let mut line = again.to_vec();
        if again.starts_with(b"+") {
            line.extend_from_slice(b"\r\n");
        }
        let chunk = line.repeat((64 << 10) / line.len());
        let mut is_taken = stream.write_all(begin).is_ok();
        while is_taken && self.sent.load(Ordering::SeqCst) < 2 * (MAX_READ_BYTES + socket_buffer_bytes()) {
            is_taken = stream.write_all(&chunk).is_ok();
            self.sent.fetch_add(chunk.len(), Ordering::SeqCst);
        }
        let mut byte = [0];
        while is_taken && stream.read(&mut byte).is_ok_and(|read| read > 0) {}
        self.is_closed.store(true, Ordering::SeqCst);
    }
}

#[test]
fn an_answer_without_an_end_is_an_error_that_names_the_bound() {
    for (what, flood, limit) in [
        ("nested arrays", NESTED, "16 arrays one inside the other"),
        ("announced values", ANNOUNCED, "1048576 values"),
        ("long lines", LONG_LINES, "8 MiB"),
        ("a long value", LONG_VALUE, "8 MiB"),
    ] {
        let hostile = HostileRedis::start("PING", flood);
        let error = RedisBus::connect(&hostile.url("")).expect_err("no server answers so");
        hostile.check(what, &error.to_string(), limit);
    }
}

#[test]
fn a_value_longer_than_any_message_is_reported() {
    let hostile = HostileRedis::start("PING", TOO_LONG_VALUE);
    let sentence = RedisBus::connect(&hostile.url("")).expect_err("no server answers so").to_string();
    assert!(sentence.contains(&hostile.address) && sentence.contains("up to 64 MiB"), "{sentence}");
    hostile.check_closed("a value of 64 MiB and a byte");
}

#[test]
fn answers_about_a_server_and_its_peers_are_bounded() {
    let queue = QueueConfig::new(DeliveryGuarantee::AtLeastOnce);
    for (victim, options) in [
        ("INFO", ""),
        ("CLIENT", ""),
        ("INFO", "?streams"),
        ("EVAL", ""),
        ("EVAL", "?streams"),
        ("CLUSTER", "?streams&cluster"),
        ("SENTINEL", "?sentinel=mine"),
    ] {
        let hostile = HostileRedis::start(victim, LONG_LINES);
        let opened = RedisBus::connect(&hostile.url(options)).and_then(|bus| bus.puller(TOPIC, &queue, Wait::Block));
        let sentence = match opened {
            Ok(_) => panic!("{victim} of {options}: the puller is opened"),
            Err(e) => e.to_string(),
        };
        hostile.check(victim, &sentence, "8 MiB");
    }
}

#[test]
fn an_oversized_answer_is_reported_in_the_settings() {
    let hostile = HostileRedis::start("INFO", NESTED);
    let about = RedisBus::connect(&hostile.url("")).unwrap_or_else(|e| panic!("{e}")).server_description();
    let error = about.setting("connected_clients").expect_err("it has not told");
    assert!(error.contains("16 arrays one inside the other"), "{error}");
    hostile.check_closed("INFO");
}

#[test]
fn a_subscriber_reports_an_endless_message_and_reconnects() {
    let hostile = HostileRedis::start("SUBSCRIBE", NESTED);
    let bus = RedisBus::connect(&hostile.url("")).unwrap_or_else(|e| panic!("{e}"));
    let mut subscriber = bus.subscriber(TOPIC, StartPosition::Now, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    let mut error = None;
    wait_until(|| {
        match subscriber.poll(8, &mut |event| panic!("{event:?} from an answer without an end")) {
            Err(e) => error = Some(e.to_string()),
            Ok(_) => subscriber.wait(1_000_000),
        }
        error.is_some()
    });
    hostile.check("a message", &error.unwrap_or_default(), "16 arrays one inside the other");
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
}

#[test]
fn a_publisher_disconnects_from_a_server_that_sends_unasked() {
    let hostile = HostileRedis::start("PUBLISH", (b":1\r\n:1\r\n", b":1\r\n"));
    let bus = RedisBus::connect(&hostile.url("")).unwrap_or_else(|e| panic!("{e}"));
    let opened = bus.publisher(TOPIC, &TopicConfig::new(Policy::Overwrite));
    let mut publisher = opened.unwrap_or_else(|e| panic!("{e}"));
    for stamp in 0..4 {
        publisher.publish(stamp, 16, b"tick").unwrap_or_else(|e| panic!("{e}"));
    }
    // Each answer arrived with surplus answers, which must not be taken for the answer to the next message.
    assert_eq!(publisher.reconnects(), Some(3));
}
