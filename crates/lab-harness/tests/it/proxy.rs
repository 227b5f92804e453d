//! The delaying proxy between real sockets: it forwards every byte, in order, up to the end of the connection.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use tickpath_clock::HostClock;
use tickpath_lab_harness::proxy::serve;

/// Read timeout, so that a connection that hangs fails the test.
const PATIENCE: Duration = Duration::from_secs(20);

const SEED: u64 = 20_170_101;

#[test]
fn bytes_and_the_end_of_stream_pass_in_order() {
    for (connections, delay_ns, chunks, most_bytes) in [
        (1, 0, 1, 1),
        (1, 0, 200, 10),
        (1, 1_000_000, 200, 10),
        (1, 3_000_000, 3, 2_000_000),
        (20, 500_000, 20, 5_000),
        (100, 0, 3, 100),
    ] {
        check(connections, delay_ns, chunks, most_bytes);
    }
}

#[test]
fn the_end_of_the_server_reaches_the_client() {
    let server = listen(|mut stream| stream.write_all(b"bye").expect("the proxy takes it"));
    let mut client = connect(through(server, 1_000_000));
    let mut received = String::new();
    client.read_to_string(&mut received).expect("the end comes");
    assert_eq!(received, "bye");
}

#[test]
fn a_missing_server_closes_the_connection() {
    // Port 1: a port found to be free could be taken by another test meanwhile.
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    let mut client = connect(through(nobody, 0));
    match client.read(&mut [0; 16]) {
        Ok(bytes) => assert_eq!(bytes, 0, "nobody is there to send something"),
        Err(e) => assert_ne!(e.kind(), io::ErrorKind::WouldBlock, "the connection stays open, and nobody answers"),
    }
}

/// Opens connections side by side; each sends chunks of random sizes to an echo server, then ends its direction.
fn check(connections: u64, delay_ns: u64, chunks: usize, most_bytes: u64) {
    let proxy = through(listen(echo), delay_ns);
    let talks: Vec<_> = (0..connections)
        .map(|number| {
            let sent = chunks_of(SEED + number, chunks, most_bytes);
            thread::spawn(move || (number, talk(proxy, &sent), sent.concat()))
        })
        .collect();
    for talk in talks {
        let (number, received, sent) = talk.join().expect("the talk comes to its end");
        let case = format!("seed {}, delay {delay_ns} ns, {chunks} chunks of up to {most_bytes} B", SEED + number);
        assert_eq!(received.len(), sent.len(), "{case}");
        assert!(received == sent, "{case}: the bytes differ");
    }
}

/// Sends all chunks and ends its own direction; meanwhile reads until the other direction ends.
fn talk(proxy: SocketAddr, sent: &[Vec<u8>]) -> Vec<u8> {
    let stream = connect(proxy);
    thread::scope(|scope| {
        let hearing = scope.spawn(|| {
            let mut received = Vec::new();
            (&stream).read_to_end(&mut received).expect("the end comes");
            received
        });
        for chunk in sent {
            (&stream).write_all(chunk).expect("the proxy takes it");
        }
        stream.shutdown(Shutdown::Write).expect("it is open");
        hearing.join().expect("hearing comes to its end")
    })
}

fn echo(stream: TcpStream) {
    let returned = io::copy(&mut &stream, &mut &stream);
    assert!(returned.is_ok(), "the echo failed: {returned:?}");
    stream.shutdown(Shutdown::Write).expect("it is open");
}

/// Starts a server that handles each connection in this way; returns its address.
fn listen(each: fn(TcpStream)) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it has an address");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.expect("a connection can be taken");
            thread::spawn(move || each(stream));
        }
    });
    address
}

/// Starts a proxy in front of the server; returns its address.
fn through(server: SocketAddr, delay_ns: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it has an address");
    let clock = HostClock::get().expect("the host has a clock");
    thread::spawn(move || serve(&listener, server, delay_ns, clock));
    address
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("the proxy listens");
    stream.set_nodelay(true).expect("a TCP socket can");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket can");
    stream.set_write_timeout(Some(PATIENCE)).expect("a socket can");
    stream
}

fn chunks_of(seed: u64, chunks: usize, most_bytes: u64) -> Vec<Vec<u8>> {
    let mut state = seed | 1;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..chunks)
        .map(|_| {
            let bytes = 1 + random() % most_bytes;
            (0..bytes).map(|_| random() as u8).collect()
        })
        .collect()
}
