//! Addresses of lines.

use tickpath_venue_native::LineAddress;

#[test]
fn addresses_are_read_and_written() {
    for (url, written) in [
        ("unix:///run/exchange.sock", "unix:///run/exchange.sock"),
        ("tcp://127.0.0.1:7701", "tcp://127.0.0.1:7701"),
        ("tcp://exchange.example:7701/", "tcp://exchange.example:7701"),
        ("tcp://[::1]:7701", "tcp://[::1]:7701"),
    ] {
        assert_eq!(url.parse::<LineAddress>().unwrap().to_string(), written);
    }
    let long = format!("unix:///{}", "x".repeat(200));
    for url in ["", "exchange", "tcp://host", "tcp://:1", "tcp://host:65536", "unix://here", "shm://oms", &long] {
        let error = url.parse::<LineAddress>().unwrap_err().to_string();
        assert!(error.contains("use tcp://HOST:PORT or unix:///PATH"), "{error}");
    }
}
