//! An exchange in a process of its own, and lines to it that use its protocol frame by frame.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::process::{Resource, Rlimit, setrlimit};
use tempfile::TempDir;
use tickpath_clock::{HostClock, sleep_ns};
use tickpath_market::{CancelOrder, ClientOrderId, ExecutionReport, Kind, Request, Side};
use tickpath_venue_native::wire::{HEARTBEAT, LOGON, LineWelcome, REFUSED, WELCOME};
use tickpath_venue_native::{FrameChannel, LineSocket};
use tickpath_venue_sim::{Settings, VenueControl, run};
use zerocopy::FromBytes;

use crate::script::order;

/// Checks before a test gives up, and the pause between two: a minute in total.
const LOOKS: u32 = 60_000;
const PAUSE_NS: u64 = 1_000_000;

/// Environment variables with the folder of the process and its limit of open files.
const FOLDER: &str = "TICKPATH_TEST_EXCHANGE";
const FILES: &str = "TICKPATH_TEST_FILES";

/// Runs the exchange in a process that a test has started; does nothing otherwise.
#[test]
fn exchange_process() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    if let Some(files) = std::env::var(FILES).ok().and_then(|files| files.parse().ok()) {
        let limit = Rlimit { current: Some(files), maximum: Some(files) };
        setrlimit(Resource::Nofile, limit).expect("a limit can be lowered");
    }
    let settings = Settings::read(&Path::new(&folder).join("exchange.toml")).unwrap_or_else(|wrong| panic!("{wrong}"));
    let clock = HostClock::get().expect("a clock");
    let ran = run(clock, settings, &VenueControl::default(), &mut |event| println!("\n@{event}"));
    ran.unwrap_or_else(|e| panic!("{e}"));
}

/// Folder of an exchange.
pub struct ExchangeFolder {
    folder: TempDir,
}

impl ExchangeFolder {
    /// Makes an exchange of two symbols, with more lines in its file.
    pub fn new(more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let socket = folder.path().join("exchange.sock");
        let text = format!(
            "venue = 3\njournal = 'journal'\ninstruments = 'table.csv'\nlisten = ['unix://{}']\n{more}",
            socket.display()
        );
        fs::write(folder.path().join("exchange.toml"), text).expect("the folder is ours");
        fs::write(folder.path().join("table.csv"), "symbol,number,venue\nA,0,3\nB,1,3\n").expect("the folder is ours");
        Self { folder }
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).expect("the folder is ours");
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn socket(&self) -> PathBuf {
        self.path("exchange.sock")
    }

    pub fn start(&self) -> Process {
        self.start_with(&[])
    }

    /// Starts the exchange with a limit of open files.
    pub fn start_with_files(&self, files: u64) -> Process {
        self.start_with(&[(FILES, files.to_string())])
    }

    fn start_with(&self, env: &[(&str, String)]) -> Process {
        let mut this = Command::new(std::env::current_exe().expect("this program has a path"));
        this.args(["sockets::exchange_process", "--exact", "--nocapture"]).env(FOLDER, self.folder.path());
        this.envs(env.iter().map(|(name, value)| (name, value)));
        let mut child = this.stdout(Stdio::piped()).spawn().expect("this program starts again");
        let (out, output) = (child.stdout.take().expect("it is piped"), Arc::new(Mutex::new(Vec::new())));
        let sink = output.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                sink.lock().expect("nobody panics with it").push(line);
            }
        });
        let process = Process { child, output };
        process.await_words("@listening on ");
        process
    }
}

/// Process of an exchange, killed on drop.
pub struct Process {
    child: Child,
    output: Arc<Mutex<Vec<String>>>,
}

impl Process {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns all log lines so far.
    pub fn output(&self) -> Vec<String> {
        self.output.lock().expect("nobody panics with it").clone()
    }

    pub fn count(&self, words: &str) -> usize {
        self.output().iter().filter(|line| line.contains(words)).count()
    }

    pub fn await_words(&self, words: &str) {
        until(|| self.count(words) > 0, || format!("'{words}'; output: {:?}", self.output()));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a logon as bytes on the wire; the identity is present from version 2 on.
pub fn logon(version: u16, journal: u64, oms: u64, (next_request, next_report): (u64, u64)) -> Vec<u8> {
    let mut bytes = b"TICKLINE".to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend([0; 6]);
    for number in [journal, 1, next_request, next_report] {
        bytes.extend(number.to_le_bytes());
    }
    if version >= 2 {
        bytes.extend(oms.to_le_bytes());
    }
    bytes
}

/// A line and the messages that it received.
pub struct RawLine {
    channel: FrameChannel,
    journal: u64,
    pub welcome: Option<LineWelcome>,
    pub refused: Option<String>,
    pub is_closed: bool,
    pub reports: Vec<ExecutionReport>,
    pub heartbeats: u64,
    /// Number of reports before this connection.
    before: u64,
    next_request: u64,
    /// All requests below this number are taken.
    taken: u64,
}

impl RawLine {
    /// Opens a connection that sends nothing.
    pub fn silent(site: &ExchangeFolder) -> Self {
        let stream = UnixStream::connect(site.socket()).expect("it listens");
        stream.set_nonblocking(true).expect("it can be");
        let channel = FrameChannel::new(HostClock::get().expect("a clock"), LineSocket::Unix(stream));
        let (welcome, refused, reports) = (None, None, Vec::new());
        let (is_closed, heartbeats, before, next_request, taken) = (false, 0, 0, 0, 0);
        Self { channel, journal: 0, welcome, refused, is_closed, reports, heartbeats, before, next_request, taken }
    }

    /// Opens a line with the numbers of this journal, for an OMS of this identity, under this name in the log.
    pub fn named(site: &ExchangeFolder, journal: u64, oms: u64, name: &[u8]) -> Self {
        Self::logging_on(site, (2, journal, oms), (0, 0), name)
    }

    /// Opens a line named `desk` and waits for its welcome.
    pub fn up(site: &ExchangeFolder, journal: u64, oms: u64) -> Self {
        let mut wire = Self::named(site, journal, oms, b"desk");
        wire.await_welcome();
        wire
    }

    /// Opens a line of version 1 and waits for its welcome.
    pub fn old(site: &ExchangeFolder, journal: u64) -> Self {
        let mut wire = Self::logging_on(site, (1, journal, 0), (0, 0), b"old desk");
        wire.await_welcome();
        wire
    }

    /// Opens the same line again, as an OMS of this identity, from its present numbers.
    pub fn again(&self, site: &ExchangeFolder, version: u16, oms: u64) -> Self {
        let numbers = (self.next_request, self.next_report());
        let mut wire = Self::logging_on(site, (version, self.journal, oms), numbers, b"desk");
        wire.await_welcome();
        let welcome = wire.welcome.expect("just there");
        assert_eq!((welcome.knows_requests, welcome.knows_reports), (1, 1), "the exchange knows the line");
        assert_eq!(welcome.next_request, self.next_request, "it has all requests");
        wire
    }

    fn logging_on(
        site: &ExchangeFolder,
        (version, journal, oms): (u16, u64, u64),
        numbers: (u64, u64),
        name: &[u8],
    ) -> Self {
        let mut wire = Self::silent(site);
        (wire.journal, wire.next_request, wire.taken, wire.before) = (journal, numbers.0, numbers.0, numbers.1);
        wire.channel.queue(LOGON, 0, 0, &logon(version, journal, oms, numbers), name);
        wire.channel.flush();
        wire
    }

    pub fn await_welcome(&mut self) {
        until(
            || {
                self.turn();
                assert_eq!(self.refused, None, "it is refused");
                self.welcome.is_some()
            },
            || "the welcome".to_owned(),
        );
    }

    /// Waits for the refusal and returns its sentence.
    pub fn await_refusal(&mut self) -> String {
        until(
            || {
                self.turn();
                assert!(self.welcome.is_none(), "it is let in");
                self.refused.is_some()
            },
            || "the refusal".to_owned(),
        );
        self.refused.clone().expect("just there")
    }

    /// Sends a request and waits until it is taken. Returns the later reports.
    pub fn ask(&mut self, request: &Request) -> Vec<ExecutionReport> {
        let from = self.reports.len();
        let sent = self.channel.send(request.kind().code(), self.next_request, 0, request.as_bytes());
        assert!(sent, "the exchange is there");
        self.next_request += 1;
        until(
            || {
                self.turn();
                self.taken == self.next_request
            },
            || "the end of a request".to_owned(),
        );
        self.reports[from..].to_vec()
    }

    /// Sends a buy or a sale of 5.
    pub fn order(&mut self, side: Side, id: u64, price: i64) -> Vec<ExecutionReport> {
        self.ask(&Request::New(order(side, id, 5, price)))
    }

    pub fn cancel(&mut self, id: u64) -> Vec<ExecutionReport> {
        let (client_order_id, original) = (ClientOrderId(1_000 + id), ClientOrderId(id));
        self.ask(&Request::Cancel(CancelOrder { client_order_id, original, ..CancelOrder::default() }))
    }

    /// Confirms all reports, and waits until the exchange has received the confirmation: it answers a later request.
    pub fn confirm(&mut self) {
        self.turn();
        self.channel.queue(HEARTBEAT, self.next_report(), 0, &[], &[]);
        self.channel.flush();
        self.cancel(999);
        self.turn();
        self.channel.queue(HEARTBEAT, self.next_report(), 0, &[], &[]);
        self.channel.flush();
    }

    pub fn turn(&mut self) {
        self.channel.flush();
        if self.channel.read().is_err() {
            self.is_closed = true;
        }
        while let Some(frame) = self.channel.next().expect("only frames come") {
            match frame.kind {
                WELCOME => self.welcome = Some(frame.message()),
                REFUSED => self.refused = Some(String::from_utf8_lossy(frame.text).into_owned()),
                HEARTBEAT => {
                    self.heartbeats += 1;
                    self.taken = self.taken.max(frame.sequence);
                }
                kind if kind == Kind::ExecutionReport.code() => {
                    let report = ExecutionReport::read_from_bytes(frame.payload).expect("a report");
                    self.reports.push(report);
                }
                kind => panic!("a frame of kind {kind}"),
            }
        }
    }

    /// Sends a heartbeat.
    pub fn beat(&mut self) {
        self.channel.queue(HEARTBEAT, 0, 0, &[], &[]);
        self.channel.flush();
    }

    fn next_report(&self) -> u64 {
        self.before + self.reports.len() as u64
    }
}

/// Returns type, order, reason and price of each report.
pub fn summaries(reports: &[ExecutionReport]) -> Vec<(u8, u64, u16, i64)> {
    reports.iter().map(|report| (report.exec_type, report.order_id.0, report.reason, report.price.0)).collect()
}

/// Polls until the condition holds, with a time limit.
pub fn until(mut is_so: impl FnMut() -> bool, what: impl Fn() -> String) {
    for _ in 0..LOOKS {
        if is_so() {
            return;
        }
        sleep_ns(PAUSE_NS);
    }
    panic!("it never came to {}", what());
}
