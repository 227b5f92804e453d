//! Details that other programs send beside the value of a record.

use std::time::Duration;

use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use tickpath_bus_api::StartPosition;
use tickpath_bus_api::conformance::next_foreign;

use crate::server::{ScratchName, client};

#[test]
fn keys_headers_and_tombstones_arrive_as_details() {
    let topic = ScratchName::topic("beside");
    let mut subscriber = topic.subscriber(StartPosition::Now);
    let others: BaseProducer = client().create().unwrap();
    let to = || BaseRecord::<[u8], [u8]>::to(&topic.name).partition(0);
    let headers = OwnedHeaders::new()
        .insert(Header { key: "source", value: Some("a desk") })
        .insert(Header { key: "raw", value: Some(&b"\xff"[..]) })
        .insert(Header { key: "none", value: None::<&str> });
    for record in
        [to().key(b"BTC").payload(b"1"), to().key(b"BTC"), to().payload(b"2").headers(headers), to().payload(b"3")]
    {
        others.send(record).map_err(|(e, _)| e).unwrap();
    }
    others.flush(Duration::from_secs(60)).unwrap();
    let found: Vec<_> = (0..4).map(|_| next_foreign(&mut *subscriber)).collect();
    let expected = [
        (&b"1"[..], Some(r#"{"key":"BTC"}"#)),
        (b"", Some(r#"{"key":"BTC","tombstone":true}"#)),
        (b"2", Some(r#"{"headers":{"source":"a desk","raw":{"base64":"/w=="},"none":null}}"#)),
        (b"3", None),
    ];
    assert_eq!(found, expected.map(|(bytes, details)| (bytes.to_vec(), details.map(str::to_owned))));
}
