//! Signatures that another implementation has computed: HMAC of Python's standard library.

use serde_json::json;
use tickpath_clock::utc_ns;
use tickpath_web_client::HttpRequest;

use crate::stage::{KEY, PASSPHRASE, Stage, body_of};

/// Opens an exchange whose clock shows this time.
fn stage_at(ms: i64) -> Stage {
    let now_ms = i64::try_from(utc_ns() / 1_000_000).expect("it is a time of this age");
    Stage::with(|faults| faults.clock_drift_ms = ms - now_ms)
}

#[test]
fn the_signature_of_a_login_is_that_of_other_implementations() {
    let mut stage = stage_at(1_538_054_050_500);
    let socket = stage.socket("/ws/v5/private");
    let sign = "+LdIr8lkkvhr5hoA3g9TMC0+uQJ849ftAcocA/ouu4M=";
    let argument = json!({"apiKey": KEY, "passphrase": PASSPHRASE, "timestamp": "1538054050", "sign": sign});
    stage.send(socket, &json!({"op": "login", "args": [argument]}));
    let answer = stage.take(socket, |message| !message["event"].is_null());
    assert_eq!(answer["event"], "login", "{answer}");
}

#[test]
fn the_signatures_of_rest_are_those_of_other_implementations() {
    let order = r#"{"instId":"BTC-USDT","tdMode":"cash","side":"buy","ordType":"limit","px":"50","sz":"1"}"#;
    let mut stage = stage_at(1_607_418_538_000);
    for (method, path, body, sign) in [
        ("GET", "/api/v5/account/balance?ccy=BTC", "", "HiZhvSfMtWJA3uUIVXV3a/bSXNPCWvYFXoGCVS8V4zY="),
        ("POST", "/api/v5/trade/order", order, "64d4CeMngc1WzjSJkuNDYIxJ6pFHv2BO5/6WOnivWMY="),
    ] {
        let headers = [
            ("OK-ACCESS-KEY", KEY),
            ("OK-ACCESS-SIGN", sign),
            ("OK-ACCESS-TIMESTAMP", "2020-12-08T09:08:57.715Z"),
            ("OK-ACCESS-PASSPHRASE", PASSPHRASE),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let (path_and_query, body) = (path.to_owned(), body.to_owned());
        let response = stage.fetch(HttpRequest { method, path_and_query, headers, body });
        assert_eq!((response.status, &body_of(&response)["code"]), (200, &json!("0")), "{path}");
    }
}
