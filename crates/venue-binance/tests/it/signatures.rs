//! Signatures against the vectors of the exchange's documentation.

use tickpath_venue_binance::{CredentialsError, RequestSigner};

use crate::driver::{API_KEY, PRIVATE_KEY, SECRET_KEY, credentials};

pub fn sign(secret: &str, payload: &str) -> String {
    let mut signature = String::new();
    RequestSigner::new(credentials(secret)).expect("a key").sign(payload, &mut signature);
    signature
}

#[test]
fn a_secret_key_signs_as_the_documentation_of_the_websocket_api_does() {
    let payload = format!(
        "apiKey={API_KEY}&newOrderRespType=ACK&price=52000.00&quantity=0.01000000&recvWindow=100&side=SELL\
         &symbol=BTCUSDT&timeInForce=GTC&timestamp=1645423376532&type=LIMIT"
    );
    let expected = "cc15477742bd704c29492d96c7ead9414dfd8e0ec4a00f947bb5bb454ddbd08a";
    assert_eq!(sign(SECRET_KEY, &payload), expected);
}

#[test]
fn a_private_key_signs_as_the_documentation_of_fix_does() {
    let payload = "A\u{1}EXAMPLE\u{1}SPOT\u{1}1\u{1}20240627-11:17:25.223";
    let expected = "4MHXelVVcpkdwuLbl6n73HQUXUf1dse2PCgT1DYqW9w8AVZ1RACFGM+5UdlGPrQHrgtS3CvsRURC1oj73j8gCA==";
    assert_eq!(sign(PRIVATE_KEY, payload), expected);
}

#[test]
fn the_form_of_the_secret_selects_the_algorithm() {
    for (secret, has_session) in [(PRIVATE_KEY, true), (SECRET_KEY, false)] {
        assert_eq!(RequestSigner::new(credentials(secret)).expect("a key").has_session(), has_session);
    }
}

#[test]
fn a_private_key_that_cannot_sign_is_refused() {
    for secret in [
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIGb\n-----END ENCRYPTED PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIIJEYWtG\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nnot base64\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----",
    ] {
        let refused = RequestSigner::new(credentials(secret)).err();
        assert!(matches!(refused, Some(CredentialsError::PrivateKey)), "{secret}");
    }
    assert!(matches!(RequestSigner::new(credentials(" ")).err(), Some(CredentialsError::NoSecret)));
}
