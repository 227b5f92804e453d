//! Addresses that are refused, and keys that nothing shows.

use tickpath_web_client::{HttpRequest, HttpsClient, WebClientError, WebSocketClient, WebSocketConfig};

use crate::server::Certificates;

#[test]
fn addresses_that_name_no_server_are_refused_without_their_keys() {
    for (url, word) in [
        ("", "it is no URL"),
        ("wss://", "it is no URL"),
        ("wss://exa mple.com/?key=SECRET", "it is no URL"),
        ("exchange.example", "another scheme, or none"),
        ("https://exchange.example/?key=SECRET", "another scheme, or none"),
        ("wss://:443/", "does not name a server"),
        ("wss://trader:SECRET@exchange.example/", "it has a user"),
        ("wss://exchange.example?key=SECRET", "does not begin with '/'"),
        ("wss://exchange.example:65536/", "up to 65535"),
        ("wss://exchange.example:/", "up to 65535"),
        ("ws://exchange.example/?key=SECRET", "not encrypted"),
        ("ws://192.0.2.1/", "not encrypted"),
    ] {
        let refused = WebSocketClient::new(WebSocketConfig::new(url)).expect_err(url).to_string();
        assert!(refused.contains(word) && refused.contains("wss://"), "{url}: {refused}");
        assert!(!refused.contains("SECRET"), "{refused}");
    }
    for url in ["wss://exchange.example", "https://exchange.example/api", "https://exchange.example/?key=SECRET"] {
        let refused = HttpsClient::new(url, None).expect_err(url).to_string();
        assert!(refused.contains("https://HOST[:PORT]") && !refused.contains("SECRET"), "{refused}");
    }
    let refused = HttpsClient::new("http://exchange.example", None).expect_err("it is not encrypted");
    assert!(matches!(refused, WebClientError::Unencrypted(_)), "{refused}");
}

#[test]
fn files_without_authorities_are_refused() {
    let certificates = Certificates::make();
    let missing = certificates.ca().with_file_name("missing.pem");
    let mut config = WebSocketConfig::new("wss://exchange.example/");
    config.ca = Some(missing.clone());
    let refused = WebSocketClient::new(config).expect_err("there is no file").to_string();
    assert!(refused.contains("missing.pem") && refused.contains("PEM file"), "{refused}");
    let refused = HttpsClient::new("https://exchange.example", Some(&missing)).expect_err("there is no file");
    assert!(refused.to_string().contains("missing.pem"), "{refused}");
}

#[test]
fn headers_with_forbidden_characters_are_refused_by_name() {
    for (name, value) in [("X-Key", "SECRET\r\nX-Other: 1"), ("X Key", "SECRET"), ("", "SECRET")] {
        let mut config = WebSocketConfig::new("ws://127.0.0.1/");
        config.headers.push((name.to_owned(), value.to_owned()));
        let refused = WebSocketClient::new(config).expect_err("it is no header").to_string();
        assert!(refused.contains(&format!("'{name}'")) && !refused.contains("SECRET"), "{refused}");
    }
}

#[test]
fn nothing_shows_the_key_of_a_url_or_the_value_of_a_header() {
    let headers = vec![("X-Key".to_owned(), "SECRET".to_owned())];
    let mut config = WebSocketConfig::new("wss://exchange.example:8443/ws/btcusdt@trade?listenKey=SECRET");
    config.headers = headers.clone();
    let certificates = Certificates::make();
    config.ca = Some(certificates.ca());
    let shown_config = format!("{config:?}");
    let client = WebSocketClient::new(config).expect("a good configuration");
    assert_eq!(client.address(), "wss://exchange.example:8443/ws/btcusdt@trade");
    let request = HttpRequest { headers, body: "SECRET".to_owned(), ..HttpRequest::get("/order?signature=SECRET") };
    for (shown, word) in
        [(shown_config, "X-Key"), (format!("{client:?}"), "btcusdt@trade"), (format!("{request:?}"), "X-Key")]
    {
        assert!(shown.contains(word) && !shown.contains("SECRET"), "{shown}");
    }
}

#[test]
fn clients_can_move_to_another_thread() {
    fn check<T: Send>() {}
    check::<WebSocketClient>();
    check::<HttpsClient>();
    check::<tickpath_web_client::PendingResponse>();
}
