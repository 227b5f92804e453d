//! Two sessions whose connection is cut: in any place, in the middle of a resend, again and again.

use proptest::collection::vec;
use proptest::prelude::*;

use super::end::SECOND_NS;
use super::pair::{Pair, Side};

/// Something that happens to a pair.
#[derive(Debug, Clone, Copy)]
enum Action {
    Send(Side),
    /// At most so many bytes arrive.
    Deliver(Side, usize),
    Cut,
    WaitMs(u64),
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Acceptor), Just(Side::Initiator)]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => side().prop_map(Action::Send),
        8 => (side(), prop_oneof![1usize..50, 1usize..2_000]).prop_map(|(side, bytes)| Action::Deliver(side, bytes)),
        1 => Just(Action::Cut),
        1 => (1u64..20_000).prop_map(Action::WaitMs),
    ]
}

#[test]
fn messages_pass_in_both_directions() {
    let mut pair = Pair::logged_on(|_| {});
    for _ in 0..3 {
        pair.send(Side::Acceptor);
        pair.send(Side::Initiator);
    }
    pair.run();
    pair.check();
    assert_eq!(pair.initiator.delivered, ["80", "81", "82"]);
}

#[test]
fn two_sides_that_both_miss_messages_recover_both() {
    for (max_resend, next_expected) in [(0, false), (2, false), (0, true), (2, true)] {
        let mut pair = Pair::logged_on(|config| {
            (config.max_resend, config.next_expected) = (max_resend, next_expected);
        });
        for _ in 0..5 {
            pair.send(Side::Acceptor);
            pair.send(Side::Initiator);
        }
        pair.cut();
        pair.connect();
        pair.run();
        pair.check();
        assert_eq!(pair.sent_by_acceptor.len() + pair.sent_by_initiator.len(), 10);
    }
}

#[test]
fn messages_that_are_sent_while_both_sides_recover_keep_their_order() {
    let mut pair = Pair::logged_on(|config| config.limits.resend_output = 1);
    for _ in 0..5 {
        pair.send(Side::Acceptor);
        pair.send(Side::Initiator);
    }
    pair.cut();
    pair.connect();
    for _ in 0..20 {
        pair.send(Side::Acceptor);
        pair.send(Side::Initiator);
        pair.deliver(Side::Acceptor, 200);
        pair.deliver(Side::Initiator, 300);
        pair.poll();
    }
    pair.run();
    pair.check();
    assert!(pair.sent_by_acceptor.len() > 5, "the logon completes while bytes are delivered");
}

#[test]
fn a_connection_that_is_lost_in_the_middle_of_a_resend_loses_and_repeats_nothing() {
    for bytes in (0..3_000).step_by(61) {
        let mut pair = Pair::logged_on(|_| {});
        for _ in 0..20 {
            pair.send(Side::Acceptor);
        }
        pair.cut();
        pair.connect();
        // The Logon and the request arrive whole, then a part of the resend.
        pair.deliver(Side::Initiator, usize::MAX);
        pair.deliver(Side::Acceptor, usize::MAX);
        pair.deliver(Side::Initiator, usize::MAX);
        pair.deliver(Side::Acceptor, bytes);
        pair.cut();
        pair.connect();
        pair.run();
        pair.check();
    }
}

#[test]
fn a_reset_in_the_middle_of_a_recovery_starts_anew() {
    let mut pair = Pair::logged_on(|_| {});
    for _ in 0..5 {
        pair.send(Side::Acceptor);
    }
    pair.cut();
    pair.connect();
    pair.deliver(Side::Initiator, usize::MAX);
    pair.deliver(Side::Acceptor, usize::MAX);
    let now_ns = pair.now_ns;
    pair.initiator.out.clear();
    assert!(pair.initiator.session.is_recovering(), "the request is lost");
    pair.initiator.call(|session, io| session.restart_numbers(now_ns, io));
    pair.run();
    assert!(!pair.initiator.session.is_recovering(), "messages before the reset do not come any more");
    pair.sent_by_acceptor.clear();
    pair.send(Side::Acceptor);
    pair.send(Side::Initiator);
    pair.run();
    pair.check();
    assert_eq!(pair.acceptor.session.numbers().next_in, 3);
}

#[test]
fn both_sides_may_reset_at_once() {
    let mut pair = Pair::logged_on(|_| {});
    pair.send(Side::Acceptor);
    pair.run();
    let now_ns = pair.now_ns;
    pair.acceptor.call(|session, io| session.restart_numbers(now_ns, io));
    pair.initiator.call(|session, io| session.restart_numbers(now_ns, io));
    pair.run();
    pair.send(Side::Initiator);
    pair.send(Side::Acceptor);
    pair.run();
    pair.check();
    assert_eq!(pair.acceptor.session.numbers().next_in, 3);
}

#[test]
fn a_silent_pair_exchanges_heartbeats() {
    let mut pair = Pair::logged_on(|config| config.heartbeat_s = 5);
    for _ in 0..100 {
        pair.wait(SECOND_NS);
        pair.run();
    }
    pair.check();
    let sent = pair.acceptor.session.numbers().next_out;
    assert!((20..30).contains(&sent), "{sent} messages in 100 s");
}

proptest! {
    #[test]
    fn each_message_arrives_once_and_in_order_whatever_is_cut(
        actions in vec(action(), 0..120),
        max_resend in prop_oneof![Just(0u64), 1u64..5],
        resend_output in prop_oneof![Just(1usize), Just(300), Just(1 << 20)],
        held_messages in prop_oneof![Just(0usize), Just(3), Just(1_000)],
        next_expected: bool,
    ) {
        let mut pair = Pair::logged_on(|config| {
            (config.max_resend, config.next_expected) = (max_resend, next_expected);
            (config.limits.resend_output, config.limits.held_messages) = (resend_output, held_messages);
            // Bytes may be in flight for minutes here.
            config.max_latency_s = None;
        });
        for action in actions {
            match action {
                Action::Send(side) => pair.send(side),
                Action::Deliver(side, bytes) => {
                    pair.deliver(side, bytes);
                }
                Action::Cut => {
                    pair.cut();
                    pair.connect();
                }
                Action::WaitMs(ms) => pair.wait(ms * 1_000_000),
            }
            if pair.has_ended() {
                pair.cut();
                pair.connect();
            }
        }
        pair.cut();
        pair.connect();
        pair.run();
        pair.check();
        for end in [&pair.acceptor, &pair.initiator] {
            let mut ends = end.events.iter().filter(|event| event.starts_with("end "));
            prop_assert!(ends.all(|event| event == "end Silence" || event == "end LogonTimeout"), "{:?}", end.events);
        }
    }
}
