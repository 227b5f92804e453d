//! HTTP requests: on kept connections, ahead of answers, in pieces, over TLS.

use std::io::Write;

use tickpath_web_client::{HttpRequest, HttpsClient};

use crate::raw::{connect, read_answer, read_head, read_to_end};
use crate::running::{LARGE, Running};

#[test]
fn requests_share_a_connection_and_may_be_sent_ahead() {
    let server = Running::start(false);
    let mut tcp = connect(&server);
    for round in 0..3 {
        let both = "GET /a?x=1 HTTP/1.1\r\nX-KEY: 7\r\n\r\nPOST /b HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}";
        tcp.write_all(both.as_bytes()).expect("the server reads");
        for expected in ["GET /a x=1 7 ", "POST /b  none {}"] {
            let (head, body) = read_answer(&mut tcp);
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && !head.contains("close"), "{round}: {head}");
            assert_eq!(body, expected, "{round}");
        }
    }
}

#[test]
fn a_request_is_whole_in_whatever_pieces_it_arrives() {
    let server = Running::start(false);
    let mut tcp = connect(&server);
    let body = "b".repeat(1 << 20);
    let head = format!("PUT /p HTTP/1.1\r\nX-Key: k\r\nContent-Length: {}\r\n\r\n", body.len());
    for byte in head.as_bytes() {
        tcp.write_all(&[*byte]).expect("the server reads");
    }
    for piece in body.as_bytes().chunks(100_000) {
        tcp.write_all(piece).expect("the server reads");
    }
    let (_, echo) = read_answer(&mut tcp);
    assert!(echo == format!("PUT /p  k {body}"), "{} bytes", echo.len());
}

#[test]
fn the_connection_ends_behind_an_answer_if_either_side_asks_for_it() {
    let server = Running::start(false);
    for request in [
        "GET /a HTTP/1.0\r\n\r\n",
        "GET /a HTTP/1.1\r\nConnection: close\r\n\r\n",
        "GET /a HTTP/1.1\r\nConnection: x, Close\r\n\r\n",
        "GET /close HTTP/1.1\r\n\r\n",
    ] {
        let mut tcp = connect(&server);
        tcp.write_all(request.as_bytes()).expect("the server reads");
        let answer = String::from_utf8(read_to_end(&mut tcp)).expect("an answer is text");
        assert!(answer.contains("\r\nConnection: close\r\n") && answer.contains("GET /"), "{request}: {answer}");
    }
}

#[test]
fn answers_have_a_body_only_where_http_allows_it() {
    let server = Running::start(false);
    let mut tcp = connect(&server);
    for (request, status, has_length) in [
        ("HEAD /a HTTP/1.1\r\n\r\n", "HTTP/1.1 200 ", true),
        ("GET /empty HTTP/1.1\r\n\r\n", "HTTP/1.1 204 ", false),
        ("GET /bad-header HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 ", true),
    ] {
        tcp.write_all(request.as_bytes()).expect("the server reads");
        let head = read_head(&mut tcp);
        assert!(head.starts_with(status) && head.contains("Content-Length") == has_length, "{request}: {head}");
        assert!(!head.to_ascii_lowercase().contains("x-worse"), "{head}");
    }
}

#[test]
fn a_client_that_expects_it_is_asked_for_the_body() {
    let server = Running::start(false);
    let mut tcp = connect(&server);
    tcp.write_all(b"POST /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n").expect("the server reads");
    assert_eq!(read_head(&mut tcp), "HTTP/1.1 100 Continue\r\n\r\n");
    tcp.write_all(b"body").expect("the server reads");
    assert_eq!(read_answer(&mut tcp).1, "POST /a  none body");
}

#[test]
fn a_client_of_either_name_trusts_the_authority() {
    for tls in [true, false] {
        let server = Running::start(tls);
        let scheme = if tls { "https" } else { "http" };
        for host in ["localhost", "127.0.0.1"] {
            let ca = tls.then(|| server.ca());
            let client = HttpsClient::new(&format!("{scheme}://{host}:{}", server.port), ca.as_deref());
            let client = client.expect("a good URL");
            let headers = vec![("X-Key".to_owned(), "7".to_owned())];
            let body = "{}".to_owned();
            let request = HttpRequest { method: "POST", headers, body, ..HttpRequest::get("/o?a=b") };
            let response = client.fetch(request).expect("the server answers");
            assert_eq!((response.status, response.body), (200, b"POST /o a=b 7 {}".to_vec()));
            let large = client.fetch(HttpRequest::get("/large")).expect("the server answers");
            assert_eq!(large.body.len(), LARGE);
        }
    }
}
