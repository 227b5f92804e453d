//! The ports of an OMS that does not run, and raw requests to them.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use tickpath_log::LogPath;
use tickpath_oms_protocol::{Secret, UserRole};
use tickpath_oms_web::{Config, DisplayNames, Endpoint, PageUser, PageUserLookup, Rights, RunningEndpoints, serve};

/// Max wait on a socket.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two users, whose password is `right`: an admin, and a trader of account 1 with session 3. A test may remove them.
#[derive(Default)]
pub struct TestDirectory {
    gone: Mutex<Vec<String>>,
    output: Mutex<Vec<String>>,
}

impl TestDirectory {
    /// Removes a user from now on.
    pub fn dismiss(&self, user: &str) {
        self.gone.lock().expect("nobody panics with it").push(user.to_owned());
    }

    /// Returns the messages to the operator.
    pub fn said(&self) -> Vec<String> {
        self.output.lock().expect("nobody panics with it").clone()
    }
}

/// Hashed only once, because hashing takes long.
static SECRET: LazyLock<Secret> = LazyLock::new(|| Secret::from_password("right"));

impl PageUserLookup for TestDirectory {
    fn find(&self, name: &str) -> Option<PageUser> {
        if self.gone.lock().expect("nobody panics with it").iter().any(|gone| gone == name) {
            return None;
        }
        let (role, rights) = match name {
            "admin" => (UserRole::Admin, Rights::all()),
            "trader" => (UserRole::Trade, Rights::of(vec![3], |account| account.0 == 1)),
            _ => return None,
        };
        Some(PageUser { secret: SECRET.clone(), role, rights })
    }

    fn secrets(&self) -> Vec<Secret> {
        vec![SECRET.clone()]
    }

    fn owners(&self) -> BTreeMap<u16, String> {
        BTreeMap::from([(3, "trader".to_owned()), (8, "admin".to_owned())])
    }
}

/// Returns a configuration with both ports on this address; no OMS of the name runs.
pub fn config(test: &str, endpoint: &Endpoint, fixture: &Arc<TestDirectory>) -> Config {
    let folder = std::env::temp_dir().join(format!("tickpath-page-{test}-{}", std::process::id()));
    let heard = fixture.clone();
    Config {
        metrics: Some(endpoint.clone()),
        web: Some(endpoint.clone()),
        hosts: vec!["desk.example".to_owned()],
        names: DisplayNames {
            oms: format!("web-{test}-{}", std::process::id()),
            symbols: BTreeMap::from([(1, "BTCUSDT".to_owned())]),
            ..DisplayNames::default()
        },
        oms: format!("unix://{}", folder.join("oms.sock").display()),
        journal: LogPath::folder(folder),
        users: fixture.clone(),
        notify: Arc::new(move |output: &str| {
            heard.output.lock().expect("nobody panics with it").push(output.to_owned());
        }),
        cpu: None,
    }
}

/// Returns any port of loopback, without TLS.
pub fn any() -> Endpoint {
    Endpoint { address: SocketAddr::from(([127, 0, 0, 1], 0)), tls: None }
}

/// Starts the ports of an OMS that does not run.
pub fn shown(test: &str) -> (RunningEndpoints, Arc<TestDirectory>) {
    let fixture = Arc::new(TestDirectory::default());
    (serve(&config(test, &any(), &fixture)).expect("any port will do"), fixture)
}

/// Sends a request, and returns the whole answer.
pub fn ask(address: SocketAddr, request: &str, body: &str) -> String {
    ask_from(Ipv4Addr::LOCALHOST, address, request, body)
}

/// Sends a request from another address of this host, and returns the whole answer.
pub fn ask_from(from: Ipv4Addr, address: SocketAddr, request: &str, body: &str) -> String {
    let mut stream = connect(from, address);
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    write!(stream, "{request}{length}Connection: close\r\n\r\n{body}").expect("it can be asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers, and ends");
    answer
}

/// Connects from an address of this host.
pub fn connect(from: Ipv4Addr, address: SocketAddr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((from, 0)))?;
        socket.connect(address).await?.into_std()
    });
    let stream = stream.expect("somebody listens");
    stream.set_nonblocking(false).expect("a socket can wait");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream
}

/// Returns the headers of a request from the page itself.
pub fn own(at: SocketAddr) -> String {
    format!("Host: {at}\r\nOrigin: http://{at}\r\nContent-Type: application/json\r\n")
}

/// Logs in from an address of this host, and returns the whole answer.
pub fn log_in(from: Ipv4Addr, at: SocketAddr, user: &str, password: &str) -> String {
    let body = format!(r#"{{"user":"{user}","password":"{password}"}}"#);
    ask_from(from, at, &format!("POST /login HTTP/1.1\r\n{}", own(at)), &body)
}

/// Returns cookie and token of a login's answer, as headers of a request.
pub fn proofs(answer: &str) -> (String, String) {
    let part = |from: &str, to: &str| {
        let found = answer.split_once(from).and_then(|(_, rest)| rest.split_once(to));
        found.unwrap_or_else(|| panic!("no {from} in {answer}")).0.to_owned()
    };
    (
        format!("Cookie: {}\r\n", part("set-cookie: ", ";")),
        format!("X-Tickpath-Token: {}\r\n", part("\"token\":\"", "\"")),
    )
}
