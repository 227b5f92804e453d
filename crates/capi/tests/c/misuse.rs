//! Expected answers to every misuse in `abuse.c`, and in `asks.c` for a session with an OMS.

/// Expected results: the misuse, the status, and a part of the sentence.
type ExpectedErrors = [(&'static str, i32, &'static str)];

/// Results of `abuse.c`.
pub(crate) const OF_THE_BUS: &ExpectedErrors = &[
    ("version", OK, ""),
    ("no error yet", OK, ""),
    ("null bus, publisher", INVALID, "tp_bus is null"),
    ("null bus, subscriber", INVALID, "tp_bus is null"),
    ("null bus, pusher", INVALID, "tp_bus is null"),
    ("null bus, puller", INVALID, "tp_bus is null"),
    ("null bus, remove", INVALID, "tp_bus is null"),
    ("null bus, remove queue", INVALID, "tp_bus is null"),
    ("null bus, waiting", INVALID, "tp_bus is null"),
    ("null publisher, publish", INVALID, "tp_publisher is null"),
    ("null publisher, batch", INVALID, "tp_publisher is null"),
    ("null publisher, resend", INVALID, "tp_publisher is null"),
    ("null publisher, idle", INVALID, "tp_publisher is null"),
    ("null subscriber, poll", INVALID, "tp_subscriber is null"),
    ("null subscriber, wait", INVALID, "tp_subscriber is null"),
    ("null subscriber, token", INVALID, "tp_subscriber is null"),
    ("null subscriber, publisher", INVALID, "tp_subscriber is null"),
    ("null pusher, push", INVALID, "tp_pusher is null"),
    ("null pusher, batch", INVALID, "tp_pusher is null"),
    ("null pusher, resend", INVALID, "tp_pusher is null"),
    ("null puller, pull", INVALID, "tp_puller is null"),
    ("null puller, acknowledge", INVALID, "tp_puller is null"),
    ("null puller, give back", INVALID, "tp_puller is null"),
    ("null puller, wait", INVALID, "tp_puller is null"),
    ("close nothing", OK, ""),
    ("close no publisher", OK, ""),
    ("close no subscriber", OK, ""),
    ("close no pusher", OK, ""),
    ("close no puller", OK, ""),
    ("broken pipes without a server", OK, ""),
    ("broken pipes with a server", OK, ""),
    ("null url", INVALID, "url is null"),
    ("null out", INVALID, "out is null"),
    ("bad url", INVALID, "names no transport"),
    ("url of other text", INVALID, "url is no UTF-8"),
    ("handle of a bad url", OK, ""),
    ("null topic", INVALID, "topic is null"),
    ("bad topic", INVALID, "'a/b' is no topic name"),
    ("null out of a topic", INVALID, "out is null"),
    ("bad topic, subscriber", INVALID, "'a/b' is no topic name"),
    ("size of nothing", INVALID, "is 0 bytes, which is too small"),
    ("size too small", INVALID, "too small; set its field size to sizeof(tp_publisher_config)"),
    ("size of the future", INVALID, "more than this library knows"),
    ("unknown policy", INVALID, "9 is no tp_policy"),
    ("age on a log", UNSUPPORTED, "remove messages by their age"),
    ("unknown start", INVALID, "9 is no tp_start"),
    ("no token", INVALID, "token is null"),
    ("empty token", INVALID, "start with TP_START_NOW or TP_START_OLDEST"),
    ("bad token", INVALID, "'yesterday' is no resume token"),
    ("unknown wait", INVALID, "9 is no tp_wait"),
    ("subscriber size too small", INVALID, "tp_subscriber_config is 4 bytes"),
    ("unknown delivery", INVALID, "9 is no tp_delivery"),
    ("foreign kind", INVALID, "the foreign_kind 3 is none"),
    ("counted deliveries on a log", UNSUPPORTED, "count how often a message was delivered"),
    ("unknown wait of a puller", INVALID, "9 is no tp_wait"),
    ("queue size of the future", INVALID, "tp_queue_config is 41 bytes"),
    ("kind 15", INVALID, "the kind 15 is reserved; use"),
    ("null data", INVALID, "data is null, and len is 4"),
    ("length below zero", TOO_LARGE, "was len below 0?"),
    ("long message", TOO_LARGE, "a message of 2097152 bytes does not fit"),
    ("null batch", INVALID, "the pointer to 2 slices is null"),
    ("null done", INVALID, "done is null"),
    ("null data in a batch", INVALID, "data is null, and len is 4"),
    ("done of that batch", OK, ""),
    ("long message in a batch", TOO_LARGE, "does not fit"),
    ("fates of that batch", OK, ""),
    ("batch", OK, ""),
    ("fates of a batch", OK, ""),
    ("second publisher", HAS_PUBLISHER, "already has a writer"),
    ("empty message", OK, ""),
    ("resend of nothing", OK, ""),
    ("null callback", INVALID, "on_event is null"),
    ("null count", INVALID, "count is null"),
    ("small token", TOO_LARGE, "does not fit in 4 bytes"),
    ("null token", INVALID, "token is null"),
    ("publisher is this process", OK, ""),
    ("poll in a callback", IN_USE, "this tp_subscriber is in use, by the call that runs this callback"),
    ("close in a callback", IN_USE, "give each thread its own handle"),
    ("one event was there", OK, ""),
    ("null callback of a puller", INVALID, "on_pulled is null"),
    ("give back on a log", OTHER, "takes no single message back"),
    ("null waiting", INVALID, "waiting is null"),
    ("nobody subscribed", NO_SUBSCRIBER, "has no subscriber"),
    ("full topic", TOPIC_FULL, "the topic is full"),
    ("bus in a fork", FORKED, "this tp_bus was opened before the process was forked"),
    ("publish in a fork", FORKED, "this tp_publisher was opened before the process was forked"),
    ("poll in a fork", FORKED, "this tp_subscriber was opened before the process was forked"),
    ("close in a fork", FORKED, "it is the parent's: leave it"),
    ("poll of its own in a fork", OK, ""),
    ("publish behind a fork", OK, ""),
    ("sentence stays", OK, ""),
];

/// Results of `asks.c`.
pub(crate) const OF_A_SESSION: &ExpectedErrors = &[
    ("null orders, submit", INVALID, "tp_orders is null"),
    ("id of that submit", OK, ""),
    ("null orders, cancel", INVALID, "tp_orders is null"),
    ("null orders, replace", INVALID, "tp_orders is null"),
    ("null orders, poll", INVALID, "tp_orders is null"),
    ("count of that poll", OK, ""),
    ("null orders, wait", INVALID, "tp_orders is null"),
    ("close no orders", OK, ""),
    ("null config", INVALID, "url is null"),
    ("null out", INVALID, "out is null"),
    ("size of nothing", INVALID, "too small; set its field size to sizeof(tp_orders_config)"),
    ("size of the future", INVALID, "more than this library knows"),
    ("null user", INVALID, "user is null"),
    ("null password", INVALID, "password is null"),
    ("url of a bus", INVALID, "'shm://oms' is no address of an OMS"),
    ("url of other text", INVALID, "url is no UTF-8"),
    ("nobody there", CONNECT, "no OMS answers at unix:///nowhere/oms.sock"),
    ("unknown since", INVALID, "9 is no tp_since"),
    ("has_session of 2", INVALID, "has_session is 2"),
    ("highest session", INVALID, "65535 is no session"),
    ("session of another user", CONNECT, "session 8 is not this user's"),
    ("wrong password", CONNECT, "the OMS refused"),
    ("handle of a wrong password", OK, ""),
    ("null order", INVALID, "order is null"),
    ("id of a null order", OK, ""),
    ("null cancel", INVALID, "cancel is null"),
    ("null replace", INVALID, "replace is null"),
    ("size of an order", INVALID, "tp_new_order is 8 bytes"),
    ("no side", INVALID, "0 is no tp_side; use one of the header's names, which are 1, 2"),
    ("unknown order type", INVALID, "2 is no tp_order_type"),
    ("market order with a price", INVALID, "a market order has no price"),
    ("unknown time in force", INVALID, "2 is no tp_time_in_force; use one of the header's names, which are 0, 1, 3, 4"),
    ("unknown position effect", INVALID, "3 is no tp_position_effect"),
    ("cancel of nothing", INVALID, "a cancel names one order"),
    ("cancel of two", INVALID, "a cancel names one order"),
    ("size of a cancel", INVALID, "tp_cancel_order is 1 bytes"),
    ("replace of nothing", INVALID, "a replace names one order"),
    ("size of a replace", INVALID, "tp_replace_order is 1 bytes"),
    ("no place for an id", OK, ""),
    ("id of the program's own", OK, ""),
    ("it is that one", OK, ""),
    ("null count", INVALID, "count is null"),
    ("null events", INVALID, "events is null"),
    ("count of null events", OK, ""),
    ("size of no event", INVALID, "tp_order_event is 0 bytes"),
    ("size of a later event", INVALID, "more than this library knows"),
    ("no room at all", OK, ""),
    ("submit in a fork", FORKED, "this tp_orders was opened before the process was forked"),
    ("poll in a fork", FORKED, "this tp_orders was opened before the process was forked"),
    ("wait in a fork", FORKED, "this tp_orders was opened before the process was forked"),
    ("close in a fork", FORKED, "it is the parent's: leave it"),
    ("poll behind a fork", OK, ""),
    ("poll of what was taken over", ENDED, "another logon has taken the session over; this session is over"),
    ("all was told before", OK, ""),
    ("submit to what was taken over", ENDED, "this session is over: close it, and open another one"),
    ("wait for what was taken over", OK, ""),
    ("close what was taken over", OK, ""),
    ("poll of the new one", OK, ""),
    ("it is connected", OK, ""),
];

// Values from the header, which never change.
const OK: i32 = 0;
const INVALID: i32 = 1;
const UNSUPPORTED: i32 = 2;
const CONNECT: i32 = 3;
const HAS_PUBLISHER: i32 = 4;
const TOPIC_FULL: i32 = 7;
const NO_SUBSCRIBER: i32 = 8;
const TOO_LARGE: i32 = 9;
const IN_USE: i32 = 13;
const FORKED: i32 = 14;
const OTHER: i32 = 16;
const ENDED: i32 = 17;

/// Compares a program's output with its table, line by line.
pub(crate) fn check(says: &ExpectedErrors, output: &str) {
    let mut lines = output.lines();
    for (what, status, part) in says {
        let line = lines.next().unwrap_or_else(|| panic!("nothing was said of '{what}':\n{output}"));
        let sentence = line.strip_prefix(&format!("{what}: {status} "));
        let is_told = sentence.is_some_and(|sentence| sentence.contains(part));
        assert!(is_told, "'{what}: {status} …{part}…' was to be said, not '{line}'");
    }
    assert_eq!(lines.next(), None, "more was said");
}
