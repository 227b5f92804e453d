//! `tickpath oms --config FILE`: an OMS as a server, until a signal stops it.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use anyhow::Context;
use sd_notify::NotifyState;
use serde_json::json;
use signal_hook::consts::signal::SIGHUP;
use signal_hook::flag;
use tickpath_clock::{Clock, HostClock, LogoutCleanup, sleep_ns};
use tickpath_log::{Config as LogConfig, LogPath, OverflowPolicy, Reader, ReaderStart, Registration, Writer};
use tickpath_oms_protocol::{Secret, UserRole};
use tickpath_oms_server::settings::{MonitoringSettings, Settings, Users};
use tickpath_oms_server::{CopyTopicThreads, LogWriter, ServerConfig};
use tickpath_oms_web::{Endpoint, PageTlsFiles, PageUser, PageUserLookup, Rights, RunningEndpoints};

use crate::oms_files::session_owners;
use tickpath_cli_terminal::outcome::{CliOutcome, stop_on_signals};
use tickpath_cli_terminal::print::print_note;

/// Max events that wait to be written; events beyond it are only counted.
const MAX_WAITING_EVENTS: usize = 4096;
/// Attempts to open a topic that another process is just making, and the pause between two attempts.
const MAX_OPEN_ATTEMPTS: u32 = 100;
const OPEN_RETRY_NS: u64 = 10_000_000;

/// Runs the OMS. The first signal to end stops it in order, the second ends the process at once; a SIGHUP makes it
/// read its files again.
pub fn run(settings: &Settings) -> anyhow::Result<CliOutcome> {
    let clock = HostClock::get()?;
    let (events, received) = sync_channel(MAX_WAITING_EVENTS);
    let (config, mut server) = (settings.config(), settings.server(events));
    let ticks = settings.ticks.as_deref().map(|topic| open_reference_prices(topic, &clock)).transpose()?;
    let stop = stop_on_signals().context("cannot listen for signals")?;
    flag::register(SIGHUP, server.reload.clone()).context("cannot listen for signals")?;
    let lines = LogWriter { oms: settings.name.clone(), form: settings.monitoring.log, write: print_note };
    for warning in settings.warnings(LogoutCleanup::here()) {
        lines.write_event("warning", &[], &warning);
    }
    let page = start_page(settings, &mut server, &lines)?;
    let copies = CopyTopicThreads::start(settings, &lines, &clock)?;
    let writer = lines.clone();
    let written = std::thread::Builder::new().name("oms-lines".into()).spawn(move || writer.write(&received))?;
    let ready = || {
        copies.start_publishing();
        lines.write_event("ready", &[], "ready");
        // A failure is ignored: without systemd there is no socket to notify.
        let _ = sd_notify::notify(&[NotifyState::Ready]);
    };
    let ended = tickpath_oms_server::run(clock, &config, &server, ticks, &stop, ready);
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
    drop(page);
    drop(copies);
    // The server holds the last sender, so the writing thread ends.
    drop(server);
    let _ = written.join();
    ended?;
    lines.write_event("stopped", &[], "stopped in good order");
    Ok(CliOutcome::Success)
}

/// Starts the metrics and the page, where the settings ask for them.
fn start_page(
    settings: &Settings,
    server: &mut ServerConfig,
    lines: &LogWriter,
) -> anyhow::Result<Option<RunningEndpoints>> {
    let MonitoringSettings { metrics, web, hosts, .. } = &settings.monitoring;
    if metrics.is_none() && web.is_none() {
        return Ok(None);
    }
    if web.is_some() && server.unix.is_none() {
        server.unix = page_socket(&settings.journal);
    }
    let page_lines = lines.clone();
    let serving = tickpath_oms_web::serve(&tickpath_oms_web::Config {
        metrics: metrics.map(|address| endpoint(settings, address)),
        web: web.map(|address| endpoint(settings, address)),
        hosts: hosts.clone(),
        names: crate::top::names(settings, &settings.users),
        journal: LogPath::folder(&settings.journal),
        oms: oms_url(settings, server),
        users: Arc::new(PageUserDirectory::new(settings)),
        notify: Arc::new(move |line: &str| page_lines.write_event("page", &[], line)),
        cpu: settings.core.other_cpu,
    })?;
    let metrics = serving.metrics_url().map(|url| ("metrics", url));
    let page = serving.web_url().map(|url| ("page", url));
    for (what, url) in metrics.into_iter().chain(page) {
        lines.write_event(what, &[("place", json!(url))], &format!("{what} at {url}"));
    }
    Ok(Some(serving))
}

/// Returns a port of the page or the metrics: with TLS where other hosts can reach it, if the file has a certificate.
fn endpoint(settings: &Settings, address: SocketAddr) -> Endpoint {
    let tls = settings.listen.tls.as_ref().filter(|_| !address.ip().is_loopback());
    let tls = tls.map(|tls| PageTlsFiles { certificate: tls.certificate.clone(), key: tls.key.clone() });
    Endpoint { address, tls }
}

/// Returns the URL by which the page's admins log in.
fn oms_url(settings: &Settings, server: &ServerConfig) -> String {
    if let Some(path) = &server.unix {
        return format!("unix://{}", path.display());
    }
    let Some(tcp) = settings.listen.tcp else { return String::new() };
    let ip = match tcp.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let address = SocketAddr::new(ip, tcp.port());
    match &settings.listen.tls {
        Some(tls) => format!("tls://{address}?ca={}", tls.certificate.display()),
        None => format!("tcp://{address}"),
    }
}

/// Returns a socket for the page's own admins, in a folder beside the journal that only this user may enter; none if
/// there can be no such folder. Without the socket admins would log in over TLS, where this host need not trust the
/// certificate's authority, nor be called by its names.
fn page_socket(journal: &Path) -> Option<PathBuf> {
    /// Bytes of a Unix socket's path, its end included.
    const MAX_SOCKET_PATH: usize = 108;
    let mut folder = journal.as_os_str().to_owned();
    folder.push(".page");
    let folder = PathBuf::from(folder);
    let socket = folder.join("oms.sock");
    if socket.as_os_str().len() >= MAX_SOCKET_PATH {
        return None;
    }
    fs::create_dir_all(folder.parent()?).ok()?;
    // The folder of an earlier start is reused, if only this user may enter it.
    let _ = DirBuilder::new().mode(0o700).create(&folder);
    let found = fs::symlink_metadata(&folder).ok()?;
    let is_private = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0;
    is_private.then_some(socket)
}

/// The users of the page: those of the OMS's users file, which is read again when it has changed.
struct PageUserDirectory {
    file: PathBuf,
    cached: Mutex<(UsersFileVersion, Arc<Users>)>,
}

/// Time of a file's last write, and its length; none if the file does not exist.
type UsersFileVersion = Option<(SystemTime, u64)>;

impl PageUserDirectory {
    fn new(settings: &Settings) -> Self {
        let file = settings.users_file.clone();
        // Without a known time the first lookup reads the file again, for changes since the settings were read.
        Self { file, cached: Mutex::new((None, Arc::new(settings.users.clone()))) }
    }

    /// Returns the current users. A file with a mistake changes nothing, and the OMS reports the mistake; nor does one
    /// without a user, which is being written.
    fn users(&self) -> Arc<Users> {
        let mut cached = self.cached.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let found = fs::metadata(&self.file).ok();
        let changed = found.and_then(|found| Some((found.modified().ok()?, found.len())));
        if changed != cached.0 {
            cached.0 = changed;
            if let Ok(users) = Users::read(&self.file)
                && !users.list.is_empty()
            {
                cached.1 = Arc::new(users);
            }
        }
        cached.1.clone()
    }
}

impl PageUserLookup for PageUserDirectory {
    fn find(&self, name: &str) -> Option<PageUser> {
        let users = self.users();
        let user = users.find(name).filter(|user| !user.disabled)?;
        let rights = if user.role == UserRole::Admin {
            Rights::all()
        } else {
            let accounts = user.accounts.clone();
            Rights::of(user.sessions.clone(), move |account| accounts.iter().any(|pattern| pattern.matches(account)))
        };
        Some(PageUser { secret: user.secret.clone(), role: user.role, rights })
    }

    fn secrets(&self) -> Vec<Secret> {
        self.users().list.iter().map(|user| user.secret.clone()).collect()
    }

    fn owners(&self) -> BTreeMap<u16, String> {
        session_owners(&self.users())
    }
}

/// Opens a reader of reference prices. A missing topic is made here; its publisher takes it over later.
fn open_reference_prices(topic: &str, clock: &HostClock) -> anyhow::Result<Reader> {
    let place = LogPath::shared_memory(topic)?;
    let mut tries = 0;
    loop {
        if !place.exists() {
            // Another process may make the topic at the same moment, which does no harm.
            drop(Writer::open(&LogConfig::topic(place.clone(), OverflowPolicy::Overwrite), clock.calibration()));
        }
        match Reader::open(&place, ReaderStart::Oldest, Registration::Registered) {
            Ok(reader) => return Ok(reader),
            Err(e) if tries == MAX_OPEN_ATTEMPTS => return Err(e.into()),
            Err(_) => sleep_ns(OPEN_RETRY_NS),
        }
        tries += 1;
    }
}
