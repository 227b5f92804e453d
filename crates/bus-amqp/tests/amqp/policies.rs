//! Policies, which AMQP does not report but the management API does, and other programs' headers.

use lapin::types::{AMQPValue, FieldTable};
use tickpath_bus_amqp::AmqpBus;
use tickpath_bus_api::conformance::{free_port, next_foreign};
use tickpath_bus_api::{Connection, DeliveryGuarantee, Fate, SettingCost};
use tickpath_clock::{Wait, sleep_ns};

use crate::broker::{Broker, Scratch, publish_foreign_with, puller, pusher, subscriber};
use crate::dedicated_broker::DedicatedBroker;

const KIND: u8 = 16;

#[test]
fn a_policy_that_drops_or_refuses_messages_is_reported() {
    let port = free_port();
    let configuration = format!("management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {port}\n");
    let own = DedicatedBroker::start(&configuration, &["rabbitmq_management"]);
    let without_api = AmqpBus::connect(&own.url(&format!("?management={}", free_port()))).expect("it runs");
    let bus = AmqpBus::connect(&own.url(&format!("?management={port}"))).expect("it runs");
    let mut orders = pusher(&bus, "orders");
    let policy = |effect: &str| -> Option<String> {
        // The API reports new queues and policies a moment late.
        for _ in 0..600 {
            let found = bus.loss_risk("orders").unwrap_or_else(|e| panic!("{e}"));
            if found.as_deref().unwrap_or_default().contains(effect) && found.is_none() == effect.is_empty() {
                return found;
            }
            sleep_ns(50_000_000);
        }
        panic!("{:?} is reported, and not '{effect}'", bus.loss_risk("orders"))
    };
    assert_eq!(policy(""), None);
    let advice = |bus: &AmqpBus| bus.advise().pop().expect("it is always there");
    assert!(advice(&bus).cost.is_none(), "{:?}", advice(&bus));

    let set = |definition: &str| own.control(&["set_policy", "--apply-to", "queues", "few", "^orders$", definition]);
    set(r#"{"max-length": 1, "overflow": "reject-publish"}"#);
    let effect = policy("the policy 'few' refuses messages beyond 1 messages").expect("it is reported");
    let doctor = advice(&bus);
    assert!(matches!(doctor.cost, Some(SettingCost::Safety { .. })), "{doctor:?}");
    assert_eq!(doctor.value, Ok(format!("orders: {effect}")));
    orders.push(1, KIND, b"first").expect("there is room");
    let refused = (0..100).find_map(|stamp| orders.push(2 + stamp, KIND, b"one too many").err());
    let refused = refused.expect("the policy refuses it");
    assert_eq!(refused.fate(), Fate::Unknown);
    assert!(refused.to_string().contains("the policy 'few' refuses messages beyond 1 messages"), "{refused}");

    set(r#"{"message-ttl": 60000}"#);
    policy("drops messages that are not pulled within 60000 ms");

    // The policies are unknown without the API, and the sentence names the remedy.
    let why = without_api.loss_risk("orders").expect_err("there is no API").to_string();
    assert!(why.contains("rabbitmq-plugins enable rabbitmq_management") && why.contains("?management=PORT"), "{why}");
    let unknown = advice(&without_api).value.expect_err("there is no API");
    assert!(unknown.contains("does not answer"), "{unknown}");
    let mut others = pusher(&without_api, "orders");
    drop(puller(&bus, "orders", DeliveryGuarantee::AtMostOnce));
    others.push(1, KIND, b"goes by age now").expect("it has room");
}

#[test]
fn foreign_headers_are_details_from_an_exchange_of_any_name() {
    let scratch = Scratch::new("market/BTC");
    let ours = "ticks";
    let escaped = scratch.name.replace('/', "%2F");
    let bus = AmqpBus::connect(&format!("{}?name.{ours}={escaped}", Broker::get().url())).expect("it runs");
    let mut foreign_subscriber = subscriber(&bus, ours, Wait::Block);
    let mut headers = FieldTable::default();
    headers.insert("source".into(), AMQPValue::LongString("a desk".into()));
    headers.insert("try".into(), AMQPValue::LongInt(3));
    publish_foreign_with(headers, &scratch.name, &["hello"]);
    let details = r#"{"headers":{"source":"a desk","try":3}}"#;
    assert_eq!(next_foreign(&mut *foreign_subscriber), (b"hello".to_vec(), Some(details.to_owned())));
    bus.remove_topic(ours).expect("it is there");
}

#[test]
fn an_invalid_management_port_is_refused() {
    for (option, why) in
        [("management=x", "'x' is no port"), ("name.a=amq.fanout", "broker's own"), ("name.a=b@c", "%40")]
    {
        let refused = AmqpBus::connect(&format!("amqp://127.0.0.1?{option}")).expect_err("refused").to_string();
        assert!(refused.contains(why), "{refused}");
    }
}
