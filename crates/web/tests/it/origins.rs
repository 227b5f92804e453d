//! One host among others: its wrong passwords and its many connections keep only itself out.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use crate::port::{connect, log_in, own, shown};

const GOOD: Ipv4Addr = Ipv4Addr::LOCALHOST;
const BAD: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Connections of a port at once.
const MOST: usize = 64;

#[test]
fn wrong_passwords_keep_only_the_origin_out_that_they_come_from() {
    let (serving, house) = shown("guesses");
    let at = serving.web().expect("it was asked for");
    // All at once, and none of them read: those that are looked at keep nobody waiting.
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
    // Whether the user exists is not to be seen.
    let nobody = log_in(GOOD, at, "nobody", "right");
    assert!(nobody.starts_with("HTTP/1.1 403 ") && nobody.contains("the user or the password is wrong"), "{nobody}");
    let said = house.said();
    let told = said.iter().filter(|said| said.contains("too many wrong passwords") && said.contains("127.0.0.2"));
    assert_eq!(told.count(), 1, "{said:?}");
}

#[test]
fn a_full_port_takes_the_next_and_the_busiest_origin_loses_its_oldest() {
    let (serving, _) = shown("full");
    let at = serving.web().expect("it was asked for");
    let ask = |stream: &mut TcpStream| {
        write!(stream, "GET /page.css HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer)
    };
    // The oldest of all is somebody else's.
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
    // No more than that one: the others of this origin are served.
    let newest = many.last_mut().expect("there are some");
    assert!(ask(newest).expect("it was not its turn").starts_with("HTTP/1.1 200 "));
}
