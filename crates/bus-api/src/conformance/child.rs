//! Child processes that a case starts and kills.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use tickpath_clock::{Wait, sleep_ns};

use super::fixture::Fixture;
use super::message::{TestDeadline, publish};
use super::numbered_pull::{PulledNumbers, hold, pull, try_push};
use super::role::ChildRole;
use super::scratch::{default_topic_config, queue_config, short_silence_config, surest_delivery};
use crate::{ConnectError, Connection, DeliveryGuarantee, Puller, StartPosition};

/// Line that a child writes to its standard output when it is at work, followed by its own data.
const READY: &str = "tickpath-child-is-ready";
/// Messages that a publisher sends as fast as it can.
const UNPACED_MESSAGES: u64 = 5_000;
pub(super) const HELD_MESSAGES: usize = 10;

/// Function by which a transport's tests connect to a URL.
pub type BusConnector = fn(&str) -> Result<Box<dyn Connection>, ConnectError>;

/// Environment variable with role, URL and name of a child process.
const CHILD: &str = "TICKPATH_TEST_CHILD";

/// Starts a process of this test binary that runs only its test `child_main`, which calls [`run_child`].
pub fn spawn(role: ChildRole, url: &str, name: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this binary has a path"));
    command.args(["child_main", "--exact", "--nocapture"]).env(CHILD, format!("{role:?} {url} {name}"));
    command.stdout(Stdio::piped()).spawn().expect("a child is started")
}

/// Runs a child's role; does nothing in a process that is no child.
pub fn run_child(connect: BusConnector) {
    let Ok(task) = std::env::var(CHILD) else { return };
    let [role, url, name] = task.split(' ').collect::<Vec<_>>()[..] else { panic!("no task: '{task}'") };
    let connection = connect(url).unwrap_or_else(|e| panic!("{url}: {e}"));
    run_role(&*connection, ChildRole::from_name(role).expect("a role"), name);
}

/// Plays a role on the topic or queue of this name. It ends after a minute if the process is not killed before.
fn run_role(connection: &dyn Connection, role: ChildRole, name: &str) {
    match role {
        ChildRole::Publisher => run_publisher(connection, name),
        ChildRole::Subscriber | ChildRole::NonPoller | ChildRole::Sleeper => run_subscriber(connection, role, name),
        ChildRole::Pusher => run_pusher(connection, name),
        ChildRole::Puller => run_puller(connection, name),
        ChildRole::Holder => run_holder(connection, DeliveryGuarantee::AtLeastOnce, name),
        ChildRole::AtMostOnceHolder => run_holder(connection, DeliveryGuarantee::AtMostOnce, name),
    }
}

/// A child process that does not outlive its case.
pub(super) struct RoleProcess {
    role: ChildRole,
    process: Child,
    /// Text that the child wrote after [`READY`].
    ready: Receiver<String>,
}

impl RoleProcess {
    pub fn spawn(fixture: &Fixture<'_>, role: ChildRole, name: &str) -> Self {
        let mut process = (fixture.spawn)(role, name);
        let output = process.stdout.take().expect("the child's standard output is piped");
        let (sender, ready) = sync_channel(1);
        std::thread::spawn(move || {
            // Reads to the end, so that the child never blocks on a full pipe.
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some((_, data)) = line.split_once(READY) {
                    let _ = sender.send(data.to_owned());
                }
            }
        });
        Self { role, process, ready }
    }

    /// Starts a child and waits until it is at work.
    pub fn start(fixture: &Fixture<'_>, role: ChildRole, name: &str) -> Self {
        let running = Self::spawn(fixture, role, name);
        running.until_ready();
        running
    }

    /// Waits until the child is at work; returns the text that it wrote then.
    pub fn until_ready(&self) -> String {
        let waited = self.ready.recv_timeout(Duration::from_secs(60));
        waited.unwrap_or_else(|e| panic!("the {:?} child did not get to work: {e}", self.role))
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Kills the child with a signal that it cannot catch, and waits until it has ended.
    pub fn kill(&mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("gone");
    }
}

impl Drop for RoleProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn run_publisher(connection: &dyn Connection, topic: &str) {
    let deadline = TestDeadline::new();
    let opened = connection.publisher(topic, &default_topic_config(connection));
    let mut publisher = opened.unwrap_or_else(|e| panic!("no publisher: {e}"));
    publish(&mut *publisher, 0..1);
    println!("\n{READY}");
    let mut number = 1;
    while !deadline.is_over() {
        publish(&mut *publisher, number..number + 1);
        number += 1;
        // Limits the load: a server disconnects a subscriber that falls too far behind.
        if number > UNPACED_MESSAGES {
            sleep_ns(10_000_000);
        }
    }
}

fn run_subscriber(connection: &dyn Connection, role: ChildRole, topic: &str) {
    let wait = if role == ChildRole::Sleeper { Wait::Block } else { Wait::Yield };
    let deadline = TestDeadline::new();
    let opened = connection.subscriber(topic, StartPosition::Now, wait);
    let mut subscriber = opened.unwrap_or_else(|e| panic!("no subscriber: {e}"));
    println!("\n{READY}");
    while !deadline.is_over() {
        if role == ChildRole::NonPoller {
            sleep_ns(10_000_000);
            continue;
        }
        subscriber.poll(64, &mut |_| {}).expect("polled");
        subscriber.wait(1_000_000_000);
    }
}

fn run_pusher(connection: &dyn Connection, queue: &str) {
    let deadline = TestDeadline::new();
    let opened = connection.pusher(queue, &queue_config(surest_delivery(connection)));
    let mut pusher = opened.unwrap_or_else(|e| panic!("no pusher: {e}"));
    let mut number = 0;
    while !deadline.is_over() {
        if !try_push(&mut *pusher, number) {
            sleep_ns(1_000_000);
            continue;
        }
        number += 1;
        if number == 1 {
            println!("\n{READY}");
        }
    }
}

fn run_puller(connection: &dyn Connection, queue: &str) {
    let deadline = TestDeadline::new();
    let mut puller = open_puller(connection, surest_delivery(connection), queue);
    println!("\n{READY}");
    while !deadline.is_over() {
        // A killed process cannot report its messages: the case looks at those left for the next puller.
        pull(&mut *puller, &mut PulledNumbers::default(), 7, "a child");
    }
}

fn run_holder(connection: &dyn Connection, delivery: DeliveryGuarantee, queue: &str) {
    let deadline = TestDeadline::new();
    let mut puller = open_puller(connection, delivery, queue);
    let mut taken = PulledNumbers::default();
    hold(&mut *puller, &mut taken, HELD_MESSAGES, "a child");
    let numbers: Vec<String> = taken.all().iter().map(u64::to_string).collect();
    println!("\n{READY} {}", numbers.join(" "));
    while !deadline.is_over() {
        sleep_ns(10_000_000);
    }
}

fn open_puller(connection: &dyn Connection, delivery: DeliveryGuarantee, queue: &str) -> Box<dyn Puller> {
    let opened = connection.puller(queue, &short_silence_config(delivery), Wait::Block);
    opened.unwrap_or_else(|e| panic!("no puller: {e}"))
}
