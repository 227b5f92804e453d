//! Addresses of topics, by which two names of one topic are recognised.

use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::Range;
use std::path::{Path, PathBuf};

use tickpath_bus::url::{redact_logins, resolve_topic};
use tickpath_log::{LogPath, Reader, ReaderStart, Registration};

/// Returns the address of a topic, however its URL is written: topics with the same address are one topic.
pub(crate) fn topic_address(url: &str, topic: &str) -> String {
    let identity = || tickpath_bus::connect(url).ok().and_then(|bus| bus.server_description().identity);
    log_address(url, topic).unwrap_or_else(|| topic_address_at(url, identity().as_deref(), topic))
}

/// Returns the address of a topic whose server has reported its identity already.
pub(crate) fn topic_address_at(url: &str, server: Option<&str>, topic: &str) -> String {
    match (log_address(url, topic), server) {
        (Some(log), _) => log,
        (None, Some(server)) => format!("{server}/{}", resolve_topic(url, topic).1),
        (None, None) => resolve_host(&written_address(url, topic)),
    }
}

/// Returns the address of a topic as its URL writes it, whichever server has that name today.
pub(crate) fn written_address(url: &str, topic: &str) -> String {
    log_address(url, topic).unwrap_or_else(|| {
        let (url, topic) = resolve_topic(url, topic);
        format!("{}/{topic}", redact_logins(&url).trim_end_matches('/'))
    })
}

/// Returns true if two such addresses are one: written alike, or with names that resolve to the same address now.
pub(crate) fn is_same_topic(one: &str, other: &str) -> bool {
    one == other || resolve_host(one) == resolve_host(other)
}

/// Returns the address of a topic that is a log; `None` on a server.
pub(crate) fn log_address(url: &str, topic: &str) -> Option<String> {
    match url.split_once("://")? {
        ("shm", "") => Some(format!("shm://{topic}")),
        ("shm", prefix) => Some(format!("shm://{prefix}.{topic}")),
        ("file", folder) => Some(folder_address(&Path::new(folder).join(topic))),
        _ => None,
    }
}

/// Returns the path of a topic that is a log, and the sequence numbers that it holds.
pub(crate) fn held_sequences(url: &str, topic: &str) -> Option<(LogPath, Range<u64>)> {
    let path: LogPath = log_address(url, topic)?.parse().ok()?;
    let sequence = |start| Reader::open(&path, start, Registration::Unregistered).map(|log| log.sequence()).ok();
    let held = sequence(ReaderStart::Oldest)?..sequence(ReaderStart::Now)?;
    Some((path, held))
}

/// Returns a server's URL with its name resolved to an address, because one server has many names.
fn resolve_host(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, rest) = rest.split_at(end);
    let found: Vec<SocketAddr> = host.to_socket_addrs().map(Iterator::collect).unwrap_or_default();
    match found.first() {
        Some(first) if found.iter().any(|found| found.ip().is_loopback()) => {
            format!("{scheme}://localhost:{}{rest}", first.port())
        }
        Some(first) => format!("{scheme}://{first}{rest}"),
        None => url.to_owned(),
    }
}

/// Returns the address of the topic whose log has this path.
pub(crate) fn log_path_address(path: &LogPath) -> String {
    if path.is_shared_memory() { path.to_string() } else { folder_address(path.dir()) }
}

/// Returns the address of a folder, the same before and after it is created: links are followed as far as the path
/// exists.
fn folder_address(dir: &Path) -> String {
    let found = |existing: &Path| Some((existing.canonicalize().ok()?, dir.strip_prefix(existing).ok()?));
    let dir: PathBuf = match dir.ancestors().find_map(found) {
        Some((existing, rest)) => existing.components().chain(rest.components()).collect(),
        None => dir.components().collect(),
    };
    format!("file://{}", dir.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_has_one_address_before_and_after_its_creation() {
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("link"), folder.path().join("target"));
        std::fs::create_dir(&target).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let url = |folder: &Path| format!("file://{}/logs", folder.display());
        let before = topic_address(&url(&link), "ticks");
        assert_eq!(before, topic_address(&url(&target), "ticks"));
        std::fs::create_dir_all(target.join("logs/ticks")).unwrap();
        assert_eq!(before, topic_address(&url(&link), "ticks"));
    }

    #[test]
    fn a_written_address_is_kept_and_names_of_one_host_match() {
        assert_eq!(written_address("kafka://127.0.0.1:9092", "ticks"), "kafka://127.0.0.1:9092/ticks");
        assert_eq!(written_address("redis://me:secret@localhost:1/", "ticks"), "redis://localhost:1/ticks");
        assert_eq!(written_address("shm://lab", "ticks"), "shm://lab.ticks");
        for (one, other, same) in [
            ("nats://a.invalid:1/ticks", "nats://a.invalid:1/ticks", true),
            ("redis://localhost:1?streams/ticks", "redis://127.0.0.1:1?streams/ticks", true),
            ("redis://localhost:1/ticks", "redis://localhost:2/ticks", false),
            ("redis://localhost:1/ticks", "redis://localhost:1/trades", false),
        ] {
            assert_eq!(is_same_topic(one, other), same, "{one} {other}");
        }
    }

    #[test]
    fn one_topic_has_one_address() {
        for (one, other, same) in [
            (("shm://", "ticks"), ("shm://", "ticks"), true),
            (("shm://", "lab.ticks"), ("shm://lab", "ticks"), true),
            (("file:///nowhere", "ticks"), ("file:///nowhere//", "ticks"), true),
            (("redis://localhost:1", "ticks"), ("redis://localhost:1/", "ticks"), true),
            (("redis://localhost:1", "ticks"), ("redis://me:secret@localhost:1", "ticks"), true),
            (("redis://localhost:1", "ticks"), ("redis://localhost:1?streams", "ticks"), false),
            (("redis://localhost:1", "ticks"), ("redis://localhost:2", "ticks"), false),
            (("shm://", "ticks"), ("shm://", "trades"), false),
            (("shm://", "ticks"), ("file:///nowhere", "ticks"), false),
        ] {
            assert_eq!(topic_address(one.0, one.1) == topic_address(other.0, other.1), same, "{one:?} {other:?}");
        }
    }
}
