//! A hostile server, whose first line has no end. The client must fail with an error that names the limit, and close
//! the connection before much was sent.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tickpath_bus_api::conformance::{socket_buffer_bytes, wait_until};
use tickpath_bus_nats::NatsBus;

/// The most that the client may read of the first line, in bytes.
const MAX_READ_BYTES: usize = 8 << 20;

#[test]
fn a_first_line_without_an_end_is_an_error_that_names_the_bound() {
    for (begin, again) in [("INFO {\"server_id\":\"", "x"), ("INFO {", "\"a\":1,\n"), ("", "+OK ")] {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sent, is_closed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        std::thread::spawn({
            let (sent, is_closed) = (sent.clone(), is_closed.clone());
            move || {
                for stream in listener.incoming() {
                    flood(&stream.unwrap(), begin, again, &sent);
                    is_closed.store(true, Ordering::SeqCst);
                }
            }
        });
        let sentence = NatsBus::connect(&format!("nats://{address}")).expect_err("no server greets so").to_string();
        for word in [address.as_str(), "more than 1 MiB", "look into its log"] {
            assert!(sentence.contains(word), "'{word}' is not in: {sentence}");
        }
        wait_until(|| is_closed.load(Ordering::SeqCst));
        let sent = sent.load(Ordering::SeqCst);
        assert!(
            sent <= MAX_READ_BYTES + socket_buffer_bytes(),
            "{sent} bytes were taken before the connection was closed"
        );
    }
}

/// Sends until the client has closed the connection, or everything is sent; then waits for the close.
fn flood(mut stream: &TcpStream, begin: &str, again: &str, sent: &AtomicUsize) {
    stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(300))).unwrap();
    let chunk = again.repeat((64 << 10) / again.len());
    let mut is_taken = stream.write_all(begin.as_bytes()).is_ok();
    while is_taken && sent.load(Ordering::SeqCst) < 2 * (MAX_READ_BYTES + socket_buffer_bytes()) {
        is_taken = stream.write_all(chunk.as_bytes()).is_ok();
        sent.fetch_add(chunk.len(), Ordering::SeqCst);
    }
    let mut byte = [0];
    while is_taken && stream.read(&mut byte).is_ok_and(|read| read > 0) {}
}
