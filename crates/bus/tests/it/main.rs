//! Which transport a URL names.

use tickpath_bus::{Policy, connect};

#[test]
fn a_url_names_its_transport() {
    let dir = std::env::temp_dir();
    for url in ["shm://", "shm://bus-test", &format!("file://{}", dir.display())] {
        let connection = connect(url).unwrap_or_else(|e| panic!("{url}: {e}"));
        assert_eq!(connection.capabilities().policies, Policy::ALL, "{url}");
    }
}

#[test]
fn a_url_that_names_none_is_refused_with_what_to_write_instead() {
    for (url, words) in [
        ("", "names no transport; use shm://, shm://PREFIX, file:///FOLDER or redis://HOST:PORT"),
        ("ticks", "'ticks' names no transport"),
        ("://", "names no transport"),
        ("shm:/ticks", "names no transport"),
        ("SHM://ticks", "names no transport"),
        ("http://localhost", "names no transport"),
        ("shm://a b", "'a b' is no topic name; use 1 to"),
        ("shm://.hidden", "is no topic name; use 1 to"),
        ("file://relative/path", "is no absolute path; write file:///"),
        ("file:///", "is no absolute path; write file:///"),
        ("redis://", "use redis://[USER:PASSWORD@]HOST:PORT[/DATABASE]"),
        ("redis://host:port", "use redis://[USER:PASSWORD@]HOST:PORT[/DATABASE]"),
        ("redis://host/database", "use redis://[USER:PASSWORD@]HOST:PORT[/DATABASE]"),
        (
            "redis://127.0.0.1:1",
            "redis://127.0.0.1:1: refused the connection; start redis-server, or check host and port",
        ),
    ] {
        let error = connect(url).err().unwrap_or_else(|| panic!("{url} is taken")).to_string();
        assert!(error.contains(words), "{url}: {error}");
    }
}
