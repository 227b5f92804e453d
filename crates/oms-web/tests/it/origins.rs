//! A host among others: its wrong passwords and its many connections lock only itself out.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;

use crate::port::{connect, log_in, own, shown};

/// Two hosts. All of loopback is a single origin, so these are addresses of a network of the test's own.
const GOOD: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const BAD: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// Max connections of a port.
const MOST: usize = 64;

/// Runs a test again in a network namespace that has both addresses; returns true inside it.
fn is_in_own_network(test: &str) -> bool {
    const MARK: &str = "TICKPATH_TEST_NETWORK";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let mut unshare = Command::new("unshare");
    unshare.arg("--net");
    if !rustix::process::geteuid().is_root() {
        unshare.arg("--map-root-user");
    }
    let script = format!(
        "PATH=$PATH:/usr/sbin:/sbin; ip link set lo up && ip addr add {GOOD}/32 dev lo && ip addr add {BAD}/32 dev lo && exec \"$0\" --exact {test}"
    );
    let this = std::env::current_exe().expect("a test has a file");
    let ran = unshare.args(["sh", "-c", &script]).arg(this).env(MARK, "1").output();
    let ran = ran.expect("there is unshare; install it with: apt-get install util-linux iproute2");
    let line = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && line.contains("1 passed"), "{line}");
    false
}

#[test]
fn wrong_passwords_lock_out_only_their_origin() {
    if !is_in_own_network("origins::wrong_passwords_lock_out_only_their_origin") {
        return;
    }
    let (serving, oms) = shown("guesses");
    let at = serving.web().expect("it was asked for");
    // All at once, and without reading the answers: the checks must not delay other hosts.
    let body = r#"{"user":"trader","password":"wrong"}"#;
    let length = body.len();
    let guesses: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = connect(BAD, at);
            let head = format!("POST /login HTTP/1.1\r\n{}Content-Length: {length}\r\n", own(at));
            write!(stream, "{head}Connection: close\r\n\r\n{body}").expect("it can be asked");
            stream
        })
        .collect();
    for _ in 0..10 {
        let answer = log_in(GOOD, at, "trader", "right");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    let answers: Vec<String> = guesses
        .into_iter()
        .map(|mut stream| {
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("it answers, and ends");
            answer
        })
        .collect();
    let count = |status: &str| answers.iter().filter(|answer| answer.starts_with(status)).count();
    assert!(count("HTTP/1.1 403 ") >= 5 && count("HTTP/1.1 429 ") >= 1, "{answers:?}");
    assert_eq!(count("HTTP/1.1 403 ") + count("HTTP/1.1 429 "), answers.len(), "{answers:?}");
    assert!(answers.iter().any(|answer| answer.contains("retry-after: ")), "{answers:?}");
    // The answer does not reveal whether the user exists.
    let nobody = log_in(GOOD, at, "nobody", "right");
    assert!(nobody.starts_with("HTTP/1.1 403 ") && nobody.contains("the user or the password is wrong"), "{nobody}");
    let line = oms.said();
    let sentence = line.iter().filter(|line| line.contains("too many wrong passwords") && line.contains("192.0.2.2"));
    assert_eq!(sentence.count(), 1, "{line:?}");
}

#[test]
fn a_full_port_evicts_the_oldest_of_the_busiest_origin() {
    if !is_in_own_network("origins::a_full_port_evicts_the_oldest_of_the_busiest_origin") {
        return;
    }
    let (serving, _) = shown("full");
    let at = serving.web().expect("it was asked for");
    let ask = |stream: &mut TcpStream| {
        write!(stream, "GET /page.css HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer)
    };
    // The oldest of all belongs to the other host.
    let mut first = connect(GOOD, at);
    let mut many: Vec<TcpStream> = (1..MOST).map(|_| connect(BAD, at)).collect();
    let mut last = connect(GOOD, at);
    assert!(ask(&mut last).expect("the next is taken").starts_with("HTTP/1.1 200 "));
    assert!(ask(&mut first).expect("it was not in the way").starts_with("HTTP/1.1 200 "));
    let mut rest = Vec::new();
    match many[0].read_to_end(&mut rest) {
        Ok(_) => assert!(rest.is_empty(), "nobody asked"),
        Err(e) => assert_eq!(e.kind(), ErrorKind::ConnectionReset, "the busiest origin lost its oldest"),
    }
    // Only the oldest was closed: the others of this origin are served.
    let newest = many.last_mut().expect("there are some");
    assert!(ask(newest).expect("it was not its turn").starts_with("HTTP/1.1 200 "));
}
