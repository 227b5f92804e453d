//! A hostile server, which asks for more memory than any broker needs.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use tickpath_bus_amqp::AmqpBus;

/// AMQP class of connection methods, and two of them.
const CONNECTION: u16 = 10;
const START: u16 = 10;
const TUNE: u16 = 30;
const TUNE_OK: u16 = 31;

#[test]
fn a_server_does_not_choose_the_length_of_frames_alone() {
    // Unlimited, the largest number, RabbitMQ's default, and the accepted limit.
    for (proposed, agreed) in [(0, 8192), (u32::MAX, 8192), (131_072, 8192), (8192, 8192)] {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("amqp://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || tune(&listener.accept().unwrap().0, proposed));
        AmqpBus::connect(&url).expect_err("the server hangs up");
        assert_eq!(server.join().unwrap(), agreed, "{proposed} bytes were proposed");
    }
}

/// Proposes a frame size to the client, and returns the one that it agrees to.
fn tune(mut stream: &TcpStream, frame_bytes: u32) -> u32 {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut greeting = [0; 8];
    stream.read_exact(&mut greeting).unwrap();
    // Version of AMQP, no properties, one login mechanism, and one locale.
    let start = [&[0, 9][..], &[0; 4], &[0, 0, 0, 5], b"PLAIN", &[0, 0, 0, 5], b"en_US"].concat();
    stream.write_all(&frame(START, &start)).unwrap();
    let _login = method(stream);
    let tuning = [&2047u16.to_be_bytes()[..], &frame_bytes.to_be_bytes(), &10u16.to_be_bytes()].concat();
    stream.write_all(&frame(TUNE, &tuning)).unwrap();
    loop {
        let answer = method(stream);
        if answer[..4] == [CONNECTION.to_be_bytes(), TUNE_OK.to_be_bytes()].concat() {
            return u32::from_be_bytes([answer[6], answer[7], answer[8], answer[9]]);
        }
    }
}

/// Encodes a frame with a connection method.
fn frame(method: u16, arguments: &[u8]) -> Vec<u8> {
    let length = u32::try_from(4 + arguments.len()).expect("it is short");
    let head = [&[1, 0, 0][..], &length.to_be_bytes(), &CONNECTION.to_be_bytes(), &method.to_be_bytes()].concat();
    [&head[..], arguments, &[0xce]].concat()
}

/// Returns the content of the next frame: class, method and arguments.
fn method(mut stream: &TcpStream) -> Vec<u8> {
    let mut head = [0; 7];
    stream.read_exact(&mut head).unwrap();
    let length = u32::from_be_bytes([head[3], head[4], head[5], head[6]]) as usize;
    let mut rest = vec![0; length + 1];
    stream.read_exact(&mut rest).unwrap();
    rest.truncate(length);
    rest
}
