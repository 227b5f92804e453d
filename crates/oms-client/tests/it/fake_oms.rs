//! The OMS's side of a connection, by hand: real sockets, with every frame written by the test.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::LazyLock;
use std::time::Duration;

use socket2::SockRef;
use tempfile::TempDir;
use tickpath_clock::{Clock, HostClock};
use tickpath_market::{
    ClientOrderId, ExecutionReport, Kind as Message, NewOrder, OrderType, Price, Quantity, Request, Side,
};
use tickpath_oms_client::{Client, ClientError, ClientEvent, Config};
use tickpath_oms_protocol::{
    FrameBuffer, FrameKind, Logon, LogonReject, LogonRejectReason, MAGIC, Secret, ServerLogon, VERSION, Welcome,
    write_frame, write_frame_with_text,
};
use zerocopy::{FromBytes, IntoBytes};

/// Timeout of each wait before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);
/// The right password.
pub const PASSWORD: &str = "correct horse";
/// The journal of [`welcome`].
pub const JOURNAL: u64 = 77;

static SECRET: LazyLock<Secret> = LazyLock::new(|| Secret::from_password(PASSWORD));

/// A listener for clients.
pub struct FakeOms {
    listener: Listener,
    _folder: TempDir,
}

enum Listener {
    Unix(UnixListener, String),
    Tcp(TcpListener),
}

/// A client's connection.
pub struct FakePeer {
    socket: Box<dyn Stream>,
    inbox: FrameBuffer,
}

/// A frame that the client sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentFrame {
    pub kind: u8,
    pub number: u64,
    pub stamp: u64,
    pub payload: Vec<u8>,
    pub text: Vec<u8>,
}

trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

impl FakeOms {
    pub fn unix() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("oms.sock");
        let listener = UnixListener::bind(&path).unwrap();
        SockRef::from(&listener).set_read_timeout(Some(PATIENCE)).unwrap();
        Self { listener: Listener::Unix(listener, format!("unix://{}", path.display())), _folder: folder }
    }

    pub fn tcp() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        SockRef::from(&listener).set_read_timeout(Some(PATIENCE)).unwrap();
        Self { listener: Listener::Tcp(listener), _folder: tempfile::tempdir().unwrap() }
    }

    pub fn url(&self) -> String {
        match &self.listener {
            Listener::Unix(_, url) => url.clone(),
            Listener::Tcp(listener) => format!("tcp://{}", listener.local_addr().unwrap()),
        }
    }

    /// Returns a configuration for the user `anna`, with the right password.
    pub fn config(&self) -> Config {
        Config::new(self.url(), "anna", PASSWORD)
    }

    /// Accepts the next connection. Reads and writes have a long but finite timeout.
    pub fn accept(&self) -> FakePeer {
        fn patient(socket: SockRef) {
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.set_write_timeout(Some(PATIENCE)).unwrap();
        }
        let socket: Box<dyn Stream> = match &self.listener {
            Listener::Unix(listener, _) => {
                let (socket, _) = listener.accept().expect("somebody connects");
                patient(SockRef::from(&socket));
                Box::new(socket)
            }
            Listener::Tcp(listener) => {
                let (socket, _) = listener.accept().expect("somebody connects");
                patient(SockRef::from(&socket));
                Box::new(socket)
            }
        };
        FakePeer { socket, inbox: FrameBuffer::default() }
    }

    /// Returns whether a connection waits to be accepted.
    pub fn is_called(&self) -> bool {
        match &self.listener {
            Listener::Unix(listener, _) => listener.set_nonblocking(true).and_then(|()| listener.accept().map(drop)),
            Listener::Tcp(listener) => listener.set_nonblocking(true).and_then(|()| listener.accept().map(drop)),
        }
        .is_ok()
    }

    /// Runs both sides of a connection while it is made.
    pub fn beside<T: Send>(
        &self,
        config: Config,
        serve: impl FnOnce(FakePeer) -> T + Send,
    ) -> (Result<Client, ClientError>, T) {
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| serve(self.accept()));
            let client = Client::connect(config);
            (client, serving.join().unwrap())
        })
    }

    /// Connects a client, and returns it with its peer.
    pub fn meet(&self, config: Config, welcome: Welcome) -> (Client, FakePeer) {
        let (client, (peer, _)) = self.beside(config, |mut peer| {
            let logon = peer.let_in(welcome);
            (peer, logon)
        });
        (client.unwrap(), peer)
    }
}

impl FakePeer {
    /// Returns the client's next frame that is no heartbeat; none if the client has closed the connection.
    pub fn hear(&mut self) -> Option<SentFrame> {
        loop {
            let sent = self.hear_all()?;
            if sent.kind != FrameKind::Heartbeat.code() {
                return Some(sent);
            }
        }
    }

    /// Returns the client's next frame.
    pub fn hear_all(&mut self) -> Option<SentFrame> {
        loop {
            if let Some(frame) = self.inbox.next().expect("the client sends frames") {
                let (payload, text) = (frame.payload.to_vec(), frame.text.to_vec());
                return Some(SentFrame { kind: frame.kind, number: frame.sequence, stamp: frame.stamp, payload, text });
            }
            let bytes = self.socket.read(self.inbox.free_space()).expect("the client says something in time");
            if bytes == 0 {
                return None;
            }
            self.inbox.advance(bytes);
        }
    }

    pub fn say_bytes(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("the client takes it in time");
    }

    /// Sends bytes to a client that may be gone; returns false if it is.
    pub fn try_say(&mut self, bytes: &[u8]) -> bool {
        self.socket.write_all(bytes).is_ok()
    }

    pub fn say(&mut self, kind: u8, number: u64, stamp: u64, message: &[u8]) {
        let mut out = Vec::new();
        write_frame(&mut out, kind, number, stamp, message);
        self.say_bytes(&out);
    }

    pub fn say_text(&mut self, kind: FrameKind, message: &[u8], text: &[u8]) {
        let mut out = Vec::new();
        write_frame_with_text(&mut out, kind.code(), 0, 0, message, text);
        self.say_bytes(&out);
    }

    /// Sends the reports with these numbers.
    pub fn report(&mut self, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            self.say(Message::ExecutionReport.code(), number, 0, report(number).as_bytes());
        }
    }

    /// Sends a report with this number, which need not be the next.
    pub fn report_raw(&mut self, number: u64) {
        self.say(Message::ExecutionReport.code(), number, 0, ExecutionReport::default().as_bytes());
    }

    /// Sends a heartbeat with the number of requests taken.
    pub fn beat(&mut self, next_request: u64) {
        self.say(FrameKind::Heartbeat.code(), next_request, 0, &[]);
    }

    pub fn refuse(&mut self, refusal: LogonRejectReason, why: &str) {
        let refused = LogonReject { code: refusal.code(), reserved: [0; 6] };
        self.say_text(FrameKind::Refused, refused.as_bytes(), why.as_bytes());
    }

    /// Receives a logon.
    pub fn logon(&mut self) -> (Logon, Vec<u8>) {
        let sent = self.hear().expect("a logon");
        let logon = Logon::read_from_bytes(&sent.payload).expect("a whole logon");
        assert_eq!((sent.kind, logon.magic, logon.version), (FrameKind::Logon.code(), MAGIC, VERSION));
        (logon, sent.text)
    }

    /// Receives a logon with its proof, checked with this secret; returns the server's final message if the proof is
    /// good.
    pub fn prove(&mut self, secret: &Secret) -> (Logon, Option<Vec<u8>>) {
        let (logon, client_first) = self.logon();
        let (scram, challenge) = ServerLogon::begin(&client_first, None, |user| {
            assert_eq!(user, "anna");
            secret.clone()
        })
        .unwrap();
        self.say_text(FrameKind::Challenge, &[], &challenge);
        let proof = self.hear().expect("a proof");
        assert_eq!(proof.kind, FrameKind::Proof.code());
        (logon, scram.verify(&proof.text).ok())
    }

    /// Receives a logon with its proof, and requires the right password.
    pub fn prove_right(&mut self) -> (Logon, Vec<u8>) {
        let (logon, server_final) = self.prove(&SECRET);
        (logon, server_final.expect("the right password"))
    }

    /// Accepts the client if it knows the password.
    pub fn let_in(&mut self, welcome: Welcome) -> Logon {
        let (logon, server_final) = self.prove_right();
        self.say_text(FrameKind::Welcome, welcome.as_bytes(), &server_final);
        logon
    }

    /// Rejects the client if it does not know the password.
    pub fn check_password(&mut self) {
        let (_, server_final) = self.prove(&SECRET);
        assert!(server_final.is_none());
        self.refuse(LogonRejectReason::Password, "the user 'anna' or the password is wrong; check both");
    }

    /// Returns the numbers of the next requests.
    pub fn requests(&mut self, count: usize) -> Vec<u64> {
        let mut request = |_| self.hear().filter(|sent| Request::read(sent.kind, &sent.payload).is_ok());
        (0..count).map(|turn| request(turn).expect("a request").number).collect()
    }
}

/// Returns a welcome to session 3.
pub fn welcome(next_request: u64, next_report: u64) -> Welcome {
    Welcome {
        version: 1,
        session: 3,
        journal: JOURNAL,
        next_request,
        next_report,
        live_report: next_report,
        heartbeat_ms: 60_000,
        ..Welcome::default()
    }
}

/// Returns an order with this id.
pub fn order(id: u64) -> Request {
    Request::New(NewOrder {
        client_order_id: ClientOrderId(id),
        price: "100".parse::<Price>().unwrap(),
        quantity: "1".parse::<Quantity>().unwrap(),
        side: Side::Buy.code(),
        order_type: OrderType::Limit.code(),
        ..NewOrder::default()
    })
}

/// Returns the report with this number.
pub fn report(number: u64) -> ExecutionReport {
    ExecutionReport { client_order_id: ClientOrderId(number + 1000), ..ExecutionReport::default() }
}

/// Polls until `enough` accepts the events so far.
pub fn until(client: &mut Client, what: &str, mut enough: impl FnMut(&[ClientEvent]) -> bool) -> Vec<ClientEvent> {
    let (clock, mut events) = (HostClock::get().unwrap(), Vec::new());
    let from = clock.ticks();
    while !enough(&events) {
        client.wait(PATIENCE.as_nanos() as u64);
        client.poll(|event| events.push(event)).unwrap_or_else(|e| panic!("waiting for {what}: {e}; {events:?}"));
        let passed = clock.ns_between(from, clock.ticks()) as u128;
        assert!(passed < PATIENCE.as_nanos(), "never: {what}; {events:?}");
    }
    events
}

/// Polls until the client has ended.
pub fn until_over(client: &mut Client) -> (Vec<ClientEvent>, ClientError) {
    let (clock, mut events) = (HostClock::get().unwrap(), Vec::new());
    let from = clock.ticks();
    loop {
        client.wait(PATIENCE.as_nanos() as u64);
        if let Err(why) = client.poll(|event| events.push(event)) {
            return (events, why);
        }
        let passed = clock.ns_between(from, clock.ticks()) as u128;
        assert!(passed < PATIENCE.as_nanos(), "never over; {events:?}");
    }
}

/// Polls until this many reports have arrived.
pub fn reports(client: &mut Client, count: usize) -> Vec<ClientEvent> {
    until(client, &format!("{count} reports"), |events| {
        events.iter().filter(|event| matches!(event, ClientEvent::Report { .. })).count() >= count
    })
}

/// Polls until the connection is lost.
pub fn lost(client: &mut Client) -> Vec<ClientEvent> {
    until(client, "a loss", |events| events.iter().any(|event| matches!(event, ClientEvent::Disconnected { .. })))
}

/// Polls until there is a connection.
pub fn back(client: &mut Client) -> Vec<ClientEvent> {
    until(client, "a connection", |events| events.iter().any(|event| matches!(event, ClientEvent::Connected(_))))
}

/// Returns events in short form, for comparisons.
pub fn event_keys(events: &[ClientEvent]) -> Vec<String> {
    let word = |event: &ClientEvent| match event {
        ClientEvent::Connected(_) => "connected".to_owned(),
        ClientEvent::Disconnected { .. } => "disconnected".to_owned(),
        ClientEvent::Failed { .. } => "failed".to_owned(),
        ClientEvent::OtherJournal { before, now } => format!("journal {before} {now}"),
        ClientEvent::Resent { from, to } => format!("again {from} {to}"),
        ClientEvent::Report { number, report: heard, .. } => {
            assert_eq!(*heard, report(*number));
            format!("report {number}")
        }
        ClientEvent::Denied { number, .. } => format!("denied {number}"),
        ClientEvent::Gap { from, to } => format!("gap {from} {to}"),
        ClientEvent::Duplicate { number } => format!("double {number}"),
        ClientEvent::NotTaken { number, request } => format!("not taken {number} {}", request.client_order_id().0),
        ClientEvent::InDoubt { number, request } => format!("in doubt {number} {}", request.client_order_id().0),
        ClientEvent::Forgotten { from, to } => format!("forgotten {from} {to}"),
        ClientEvent::Detail { number, .. } => format!("detail {number}"),
        ClientEvent::Copied { number, session, .. } => format!("copied {number} of {session}"),
        ClientEvent::CommandAnswered(answer) => format!("word {answer:?}"),
        ClientEvent::Extension { extension, .. } => format!("client id {}", extension.text_id),
        ClientEvent::OrderRow { session, .. } => format!("row {session}"),
        ClientEvent::InstrumentRow(row) => format!("instrument {}", row.symbol),
        ClientEvent::KillSwitches(list) => format!("switches {list}"),
        ClientEvent::Answered(status) => format!("answered {}", status.map_or(0, |status| status.pid)),
    };
    events.iter().map(word).collect()
}
