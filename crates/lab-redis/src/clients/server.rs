//! The server under test, a scratch server or a user's: its address, its software, and our keys on it.

use std::io;
use std::ops::Range;
use std::os::unix::net::UnixStream;

use redis::{Connection, RedisResult};

use super::settings::Settings;
use crate::address::BenchAddress;
use tickpath_lab_harness::{Lab, LabError, host, proxy};
use tickpath_lab_result::{Software, median};
use tickpath_lab_tools::redis::{ScratchServer, ServerSettings};
use tickpath_lab_tools::redis_stats::{ANSWER_TIMEOUT, connect, no_answer, other_clients};

/// Keys per command.
const BATCH: u64 = 1_000;

/// A server, and a connection to it that is not measured.
pub(super) struct SetGetServer {
    connection: Connection,
    /// The prefix of the keys.
    pub keys: String,
    /// The number of keys that may exist.
    claimed_keys: u64,
    /// Its URL over TCP.
    tcp: Option<String>,
    /// Its Unix socket's URL, in the form that every client knows.
    unix: Option<String>,
    pub software: Software,
    pub notes: Vec<String>,
    /// The scratch server, which ends with this value; `None` for a user's server.
    scratch: Option<ScratchServer>,
}

impl SetGetServer {
    /// Opens the server of the settings, or a scratch server.
    pub fn open(lab: &Lab<'_>, settings: &Settings) -> Result<Self, LabError> {
        let (scratch, tcp, unix) = match &settings.target {
            Some(url) => (None, is_tcp(url).then(|| url.clone()), unix_socket_url(url)),
            None => {
                let server = scratch(lab, settings)?;
                let (tcp, unix) = (server.url(), server.unix_url().as_deref().and_then(unix_socket_url));
                (Some(server), Some(tcp), unix)
            }
        };
        let url = settings.target.as_ref().or(tcp.as_ref()).expect("a scratch server listens on TCP");
        let (software, others) = (lab.software(url), other_clients(lab, url));
        let url = tcp.as_ref().or(unix.as_ref()).expect("it was checked");
        let mut connection = connect(url.as_str()).map_err(|e| no_answer(&name(url), &e))?;
        redis::cmd("PING").exec(&mut connection).map_err(|e| no_answer(&name(url), &e))?;
        let notes = others.filter(|_| scratch.is_none()).into_iter().collect();
        let keys = format!("tickpath:{}:k", lab.name);
        Ok(Self { connection, keys, claimed_keys: 0, tcp, unix, software, notes, scratch })
    }

    /// Returns the server's name in results, without the address of a scratch server, which has no meaning.
    pub fn name(&self, transport: &str) -> String {
        let url = if transport == "unix" { &self.unix } else { &self.tcp };
        match (&self.scratch, url) {
            (None, Some(url)) => name(url),
            _ if transport == "unix" => "redis+unix://".to_owned(),
            _ => "redis://".to_owned(),
        }
    }

    pub fn is_scratch(&self) -> bool {
        self.scratch.is_some()
    }

    /// Returns its URL over TCP, and its `HOST:PORT`.
    pub fn tcp(&self) -> Option<(&str, String)> {
        self.tcp.as_deref().and_then(|url| Some((url, BenchAddress::parse(url).ok()?.endpoint())))
    }

    pub fn unix(&self) -> Option<&str> {
        self.unix.as_deref()
    }

    /// Returns the median of several PINGs over the Unix socket from a CPU, in nanoseconds.
    pub fn unix_round_trip_ns(&self, lab: &Lab<'_>, cpu: usize) -> Result<f64, LabError> {
        let path = self.unix().and_then(|url| url.strip_prefix("unix://")).unwrap_or_default();
        let clock = lab.clock;
        let measure = move || -> io::Result<Vec<f64>> {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
            proxy::ping(&stream, &clock)
        };
        let times = host::on_cpu(cpu, measure)?.map_err(|e| no_answer(path, &e.into()))?;
        Ok(median(times).unwrap_or(f64::NAN))
    }

    /// Checks that the first `count` keys do not exist; from then on they are ours, and deleted at the end.
    pub fn claim_keys(&mut self, count: u64) -> Result<(), LabError> {
        for numbers in batches(count) {
            let existing = self.on_keys("EXISTS", numbers).map_err(|e| no_answer("the server", &e))?;
            if existing > 0 {
                return Err(LabError::Failed(format!(
                    "the server has keys of another bench that begin with {}; delete them, or try again: the next run \
                     uses another name",
                    self.keys
                )));
            }
        }
        self.claimed_keys = count;
        Ok(())
    }

    /// Deletes the first `count` keys, so that every repetition creates them again.
    pub fn delete_keys(&mut self, count: u64) -> Result<(), LabError> {
        batches(count)
            .try_for_each(|numbers| self.on_keys("DEL", numbers).map(|_| ()))
            .map_err(|e| no_answer("the server", &e))
    }

    fn on_keys(&mut self, command: &str, numbers: Range<u64>) -> RedisResult<u64> {
        let mut command = redis::cmd(command);
        for number in numbers {
            command.arg(format!("{}:{number}", self.keys));
        }
        command.query(&mut self.connection)
    }
}

impl Drop for SetGetServer {
    fn drop(&mut self) {
        if self.scratch.is_none() {
            // A server that is gone took its keys with it, or keeps them out of reach.
            let _ = self.delete_keys(self.claimed_keys);
        }
    }
}

fn is_tcp(url: &str) -> bool {
    BenchAddress::parse(url).is_ok_and(|address| address.socket().is_none())
}

/// Returns a URL's login and database at another address.
pub(super) fn url_at(url: &str, address: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("redis", url));
    let end = rest.find('/').unwrap_or(rest.len());
    let login = rest[..end].rfind('@').map_or("", |at| &rest[..=at]);
    format!("{scheme}://{login}{address}{}", &rest[end..])
}

fn scratch(lab: &Lab<'_>, settings: &Settings) -> Result<ScratchServer, LabError> {
    let wanted = ServerSettings { cpu: Some(settings.cpus[1]), unix_socket: true, ..ServerSettings::default() };
    ScratchServer::require(lab, &wanted, "   (or name a server with --target redis://HOST:PORT)")
}

/// Returns a socket's URL in the form that redis-py, go-redis and the crate redis share.
fn unix_socket_url(url: &str) -> Option<String> {
    BenchAddress::parse(url).ok()?.socket().map(|path| format!("unix://{}", path.display()))
}

/// Returns the display name of a URL, without a password.
fn name(url: &str) -> String {
    BenchAddress::parse(url).map(|address| address.name()).unwrap_or_default()
}

fn batches(count: u64) -> impl Iterator<Item = Range<u64>> {
    (0..count).step_by(BATCH as usize).map(move |first| first..count.min(first + BATCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_normalised_for_every_client() {
        for (url, tcp, unix) in [
            ("redis://127.0.0.1:6379", true, None),
            ("redis://ann:secret@host:1/2", true, None),
            ("redis+unix:///run/redis.sock", false, Some("unix:///run/redis.sock")),
            ("redis://host:1?streams", false, None),
            ("redis+unix:///run/redis.sock?streams", false, None),
            ("rediss://host:1", false, None),
            ("nats://host:1", false, None),
            ("host:1", false, None),
        ] {
            assert_eq!((is_tcp(url), unix_socket_url(url).as_deref()), (tcp, unix), "{url}");
            assert_eq!(BenchAddress::parse(url).is_ok(), tcp || unix.is_some(), "{url}");
        }
    }

    #[test]
    fn names_hold_no_password_and_moved_urls_keep_it() {
        for (url, shown, elsewhere) in [
            ("redis://host:1", "redis://host:1", "redis://127.0.0.1:9"),
            ("redis://ann:s%40cret@host:1/2", "redis://host:1", "redis://ann:s%40cret@127.0.0.1:9/2"),
            ("redis://[::1]:7000", "redis://[::1]:7000", "redis://127.0.0.1:9"),
        ] {
            assert_eq!(name(url), shown, "{url}");
            assert_eq!(url_at(url, "127.0.0.1:9"), elsewhere, "{url}");
        }
    }

    #[test]
    fn batches_cover_every_key_once() {
        for count in [0, 1, BATCH - 1, BATCH, BATCH + 1, 5 * BATCH] {
            let keys: Vec<u64> = batches(count).flatten().collect();
            assert_eq!(keys, (0..count).collect::<Vec<_>>(), "{count} keys");
        }
    }
}
