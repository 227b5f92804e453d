//! Losses and redeliveries of queues, and that they are reported.

use tickpath_bus_api::conformance::{pull_stamps, resume_process, suspend_process, wait_until};
use tickpath_bus_api::{Connection, DeliveryGuarantee, QueueConfig, ReceiveError};
use tickpath_bus_redis::RedisBus;
use tickpath_clock::{Wait, sleep_ns};

use crate::fault_proxy::{CommandFault, RedisFaultProxy};
use crate::queues::{QUEUE, RedisQueueFixture, check_empty, is_gone, next_error, push};

#[test]
fn acknowledging_to_a_server_with_older_data_succeeds_or_fails_openly() {
    for mut bench in RedisQueueFixture::at_least_once() {
        let brief = QueueConfig { silence_ns: 1_000_000_000, ..bench.config() };
        let (mut pusher, mut puller) = (bench.pusher(), bench.puller_with(&brief, Wait::Block));
        push(&mut *pusher, 0..4);
        assert_eq!(pull_stamps(&mut *puller, 2), [(0, false), (1, false)], "{bench}");
        bench.server.run_command(&["SAVE"]).unwrap();
        puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        assert_eq!(pull_stamps(&mut *puller, 2), [(2, false), (3, false)], "{bench}");
        bench.server.kill();
        bench.server.restart();
        let acknowledged = puller.acknowledge();
        let error = next_error(&mut *puller);
        assert!(error.to_string().contains("may come again"), "{bench}: {error}");
        assert!(is_gone(error), "{bench}");
        let mut other = bench.puller_with(&brief, Wait::Block);
        if bench.way.is_empty() {
            // A list cannot tell the old messages from those at their indices now.
            let error = acknowledged.expect_err("they come again");
            assert!(matches!(error, ReceiveError::NotAcknowledged(_)), "{bench}: {error}");
            assert!(error.to_string().contains("2 messages"), "{bench}: {error}");
            let mut again = pull_stamps(&mut *other, 4);
            again.sort_unstable();
            assert_eq!(again, [(0, true), (1, true), (2, false), (3, false)], "{bench}");
        } else {
            acknowledged.unwrap_or_else(|e| panic!("{bench}: {e}"));
            assert_eq!(pull_stamps(&mut *other, 2), [(0, true), (1, true)], "{bench}");
        }
        other.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        check_empty(&mut *other);
    }
}

#[test]
fn a_puller_deletes_no_other_messages_on_a_server_with_older_data() {
    let mut bench = RedisQueueFixture::at_least_once().remove(0);
    let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Block));
    push(&mut *pusher, 0..2);
    let mut tags = Vec::new();
    assert_eq!(puller.pull(1, &mut |pulled| tags.push(pulled.tag)).unwrap(), 1);
    bench.server.run_command(&["SAVE"]).unwrap();
    // This message's index is the next message's after it was given back.
    let mut other = bench.puller(Wait::Block);
    puller.give_back(tags[0]).unwrap();
    assert_eq!(pull_stamps(&mut *other, 1), [(0, true)]);
    assert_eq!(pull_stamps(&mut *puller, 1), [(1, false)]);
    bench.server.kill();
    bench.server.restart();
    let error = puller.acknowledge().expect_err("another message lies in its place");
    assert!(matches!(error, ReceiveError::NotAcknowledged(_)), "{error}");
    assert!(is_gone(next_error(&mut *puller)));
    let mut again = pull_stamps(&mut *puller, 2);
    again.sort_unstable();
    assert_eq!(again, [(0, true), (1, false)]);
}

#[test]
fn messages_lost_in_flight_at_most_once_are_reported() {
    for bench in RedisQueueFixture::all().into_iter().filter(|bench| bench.delivery == DeliveryGuarantee::AtMostOnce) {
        for sleeps in [false, true] {
            let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Block));
            push(&mut *pusher, 0..3);
            assert_eq!(pull_stamps(&mut *puller, 1), [(0, false)], "{bench}");
            suspend_process(bench.server.pid());
            if sleeps {
                puller.wait(1_000_000);
            }
            let pulled = puller.pull(8, &mut |pulled| panic!("{pulled:?} from a server that is halted"));
            resume_process(bench.server.pid());
            let error = pulled.expect_err("nobody knows what it took out");
            let limit_text = if sleeps { "up to 1 messages" } else { "up to 8 messages" };
            assert!(error.to_string().contains(limit_text), "{bench}: {error}");
            assert!(is_gone(error), "{bench}");
            // The loss is reported once.
            push(&mut *pusher, 20..21);
            let mut received = Vec::new();
            wait_until(|| {
                let pulled = puller.pull(8, &mut |pulled| received.push(pulled.message.stamp));
                pulled.unwrap_or_else(|e| panic!("{bench}: {e}"));
                received.last() == Some(&20)
            });
        }
    }
}

#[test]
fn a_connection_cut_before_any_request_loses_nothing() {
    for bench in RedisQueueFixture::all().into_iter().filter(|bench| bench.delivery == DeliveryGuarantee::AtMostOnce) {
        let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Block));
        push(&mut *pusher, 0..6);
        for stamp in 0..6 {
            assert_eq!(pull_stamps(&mut *puller, 1), [(stamp, false)], "{bench}");
            bench.server.cut_connections();
            if stamp % 2 == 0 {
                puller.wait(1_000_000);
            }
        }
    }
}

#[test]
fn a_stream_removed_under_its_puller_acknowledges_nothing() {
    for bench in RedisQueueFixture::all().into_iter().filter(|bench| !bench.way.is_empty()) {
        for sleeps in [false, true] {
            let (mut pusher, mut puller) = (bench.pusher(), bench.puller(Wait::Block));
            push(&mut *pusher, 0..3);
            assert_eq!(pull_stamps(&mut *puller, 2).len(), 2, "{bench}");
            bench.server.run_command(&["FLUSHALL"]).unwrap();
            push(&mut *pusher, 10..11);
            if bench.delivery == DeliveryGuarantee::AtLeastOnce {
                let error = puller.acknowledge().expect_err("the server has none of them");
                assert!(matches!(error, ReceiveError::NotAcknowledged(_)), "{bench}: {error}");
                assert!(error.to_string().contains("2 messages"), "{bench}: {error}");
            }
            if sleeps {
                puller.wait(1_000_000_000);
            }
            assert!(is_gone(next_error(&mut *puller)), "{bench}");
            assert_eq!(pull_stamps(&mut *puller, 1), [(10, false)], "{bench}");
            puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
            check_empty(&mut *puller);
        }
    }
}

#[test]
fn each_puller_reports_a_recreated_stream_once() {
    for bench in RedisQueueFixture::all().into_iter().filter(|bench| !bench.way.is_empty()) {
        let mut pullers = [Wait::Yield, Wait::Block, Wait::Block].map(|wait| bench.puller(wait));
        pullers.iter_mut().for_each(|puller| check_empty(&mut **puller));
        bench.bus.remove_queue(QUEUE).unwrap();
        // The first puller recreates the queue before the others ask.
        assert!(is_gone(next_error(&mut *pullers[0])), "{bench}");
        wait_until(|| {
            assert_eq!(pullers[0].pull(8, &mut |pulled| panic!("{pulled:?}")).unwrap(), 0, "{bench}");
            pullers[0].reconnects() == Some(1)
        });
        for puller in &mut pullers[1..] {
            assert!(is_gone(next_error(&mut **puller)), "{bench}");
        }
        let looks = bench.server.calls("xinfo");
        wait_until(|| {
            pullers.iter_mut().for_each(|puller| check_empty(&mut **puller));
            bench.server.calls("xinfo") >= looks + 9
        });
        push(&mut *bench.pusher(), 0..3);
        let mut received: Vec<(u64, bool)> =
            pullers.iter_mut().flat_map(|puller| pull_stamps(&mut **puller, 1)).collect();
        received.sort_unstable();
        assert_eq!(received, [(0, false), (1, false), (2, false)], "{bench}");
    }
}

#[test]
fn a_stream_recreated_during_an_outage_is_reported_once() {
    for bench in RedisQueueFixture::all().into_iter().filter(|bench| !bench.way.is_empty()) {
        let mut puller = bench.puller(Wait::Block);
        push(&mut *bench.pusher(), 0..1);
        assert_eq!(pull_stamps(&mut *puller, 1), [(0, false)], "{bench}");
        puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        bench.server.cut_connections();
        bench.bus.remove_queue(QUEUE).unwrap();
        drop(bench.puller(Wait::Yield));
        assert!(is_gone(next_error(&mut *puller)), "{bench}");
        push(&mut *bench.pusher(), 1..2);
        assert_eq!(pull_stamps(&mut *puller, 1), [(1, false)], "{bench}");
        puller.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        check_empty(&mut *puller);
    }
}

#[test]
fn a_message_prefetched_before_a_long_silence_is_delivered_once() {
    for bench in RedisQueueFixture::at_least_once() {
        let (mut pusher, mut silent) = (bench.pusher(), bench.hasty_puller());
        push(&mut *pusher, 0..1);
        silent.wait(60_000_000_000);
        // The silent puller is not polled meanwhile, so the other takes it for dead.
        let mut other = bench.hasty_puller();
        assert_eq!(pull_stamps(&mut *other, 1), [(0, true)], "{bench}");
        other.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        check_empty(&mut *silent);
        silent.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        drop(other);
        // A message that no other puller wants reaches it late, too.
        push(&mut *pusher, 1..2);
        silent.wait(60_000_000_000);
        sleep_ns(150_000_000);
        assert_eq!(pull_stamps(&mut *silent, 1)[0].0, 1, "{bench}");
        silent.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
        check_empty(&mut *silent);
    }
}

#[test]
fn a_late_acknowledgement_counts() {
    for bench in RedisQueueFixture::at_least_once() {
        let brief = QueueConfig { silence_ns: 1_000_000_000, ..bench.config() };
        let (mut pusher, mut puller) = (bench.pusher(), bench.puller_with(&brief, Wait::Block));
        push(&mut *pusher, 0..1);
        assert_eq!(pull_stamps(&mut *puller, 1), [(0, false)], "{bench}");
        suspend_process(bench.server.pid());
        std::thread::scope(|scope| {
            let acknowledging = scope.spawn(|| puller.acknowledge());
            // Longer than half of the silence limit.
            sleep_ns(700_000_000);
            resume_process(bench.server.pid());
            acknowledging.join().unwrap().unwrap_or_else(|e| panic!("{bench}: it comes to nobody again: {e}"));
        });
        let mut other = bench.puller_with(&brief, Wait::Block);
        for _ in 0..3 {
            check_empty(&mut *other);
            other.wait(200_000_000);
        }
        assert_eq!(bench.bus.count_waiting(QUEUE).unwrap(), Some(0), "{bench}");
    }
}

#[test]
fn a_puller_with_a_long_silence_limit_loses_nothing_to_a_short_one() {
    for bench in RedisQueueFixture::at_least_once() {
        let (mut pusher, mut patient, mut hasty) = (bench.pusher(), bench.puller(Wait::Block), bench.hasty_puller());
        push(&mut *pusher, 0..3);
        assert_eq!(pull_stamps(&mut *patient, 3).len(), 3, "{bench}");
        // Several times the silence limit of the hasty puller, which polls all the while.
        for _ in 0..3 {
            check_empty(&mut *hasty);
            hasty.wait(200_000_000);
        }
        patient.acknowledge().unwrap_or_else(|e| panic!("{bench}: they are its own: {e}"));
        check_empty(&mut *hasty);
        assert_eq!(bench.bus.count_waiting(QUEUE).unwrap(), Some(0), "{bench}");
        // A message in flight at the hasty puller is protected only for its own silence limit.
        push(&mut *pusher, 3..4);
        assert_eq!(pull_stamps(&mut *hasty, 1), [(3, false)], "{bench}");
        assert_eq!(pull_stamps(&mut *bench.hasty_puller(), 1), [(3, true)], "{bench}");
    }
}

#[test]
fn a_returned_message_comes_at_once_under_any_silence_limit() {
    for bench in RedisQueueFixture::at_least_once() {
        let endless = QueueConfig { silence_ns: u64::MAX, ..bench.config() };
        let mut pullers = [(); 2].map(|()| bench.puller_with(&endless, Wait::Block));
        push(&mut *bench.pusher(), 0..1);
        assert_eq!(pull_stamps(&mut *pullers[0], 1), [(0, false)], "{bench}");
        let [dropped, mut other] = pullers;
        drop(dropped);
        assert_eq!(pull_stamps(&mut *other, 1), [(0, true)], "{bench}");
        other.acknowledge().unwrap_or_else(|e| panic!("{bench}: {e}"));
    }
}

#[test]
fn requests_of_a_lost_connection_take_no_late_effect() {
    let bench = RedisQueueFixture::at_least_once().remove(1);
    let brief = QueueConfig { silence_ns: 3_000_000_000, ..bench.config() };
    let wire = RedisFaultProxy::to(bench.server.port(), "\r\nXDEL\r\n", CommandFault::Delayed);
    let bus = RedisBus::connect(&format!("{}?streams", wire.url())).unwrap();
    let mut puller = bus.puller(QUEUE, &brief, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    let mut other = bench.puller_with(&brief, Wait::Block);
    push(&mut *bench.pusher(), 0..1);
    assert_eq!(pull_stamps(&mut *puller, 1), [(0, false)]);
    std::thread::scope(|scope| {
        let acknowledging = scope.spawn(|| puller.acknowledge());
        // The acknowledgement is in flight for longer than this puller may be silent.
        assert_eq!(pull_stamps(&mut *other, 1), [(0, true)]);
        assert!(wire.is_command_seen());
        let error = acknowledging.join().unwrap().expect_err("it is the other one's");
        assert!(
            matches!(&error, ReceiveError::NotAcknowledged(sentence) if sentence.contains("1 messages")),
            "{error}"
        );
    });
    wire.release();
    // Commands that have arrived by now are done after the answer to PING.
    bench.server.run_command(&["PING"]).unwrap();
    assert_eq!(
        bench.server.run_command(&["XLEN", QUEUE]),
        Ok(redis::Value::Int(1)),
        "the other one has it, and may fall"
    );
    drop(other);
    assert_eq!(pull_stamps(&mut *bench.puller_with(&brief, Wait::Block), 1), [(0, true)]);
}

#[test]
fn a_return_to_a_list_without_an_answer_happens_once() {
    for sleeps in [false, true] {
        // A list with at-most-once delivery.
        let bench = RedisQueueFixture::all().remove(0);
        let wire = RedisFaultProxy::to(bench.server.port(), "RPUSH", CommandFault::Unanswered);
        let bus = RedisBus::connect(&wire.url()).unwrap();
        let mut puller = bus.puller(QUEUE, &bench.config(), Wait::Block).unwrap_or_else(|e| panic!("{e}"));
        let mut pusher = bench.pusher();
        // Enough short messages that the puller takes several at once from now on.
        push(&mut *pusher, 0..30);
        assert_eq!(pull_stamps(&mut *puller, 30).len(), 30);
        bench.push_foreign("theirs");
        push(&mut *pusher, 30..32);
        if sleeps {
            puller.wait(1_000_000_000);
        }
        wait_until(|| match puller.pull(64, &mut |pulled| panic!("{pulled:?} lies behind what is not ours")) {
            Err(error) => error.to_string().contains("what another program has pushed"),
            Ok(_) => {
                puller.wait(1_000_000);
                false
            }
        });
        assert!(wire.is_command_seen(), "sleeps: {sleeps}");
        let mut client = bench.server.client();
        let kept: Vec<Vec<u8>> = redis::cmd("LRANGE").arg(QUEUE).arg(0).arg(-1).query(&mut client).unwrap();
        assert_eq!((kept.len(), kept.last()), (3, Some(&b"theirs".to_vec())), "sleeps: {sleeps}");
        assert_eq!(bench.server.keys(), 1, "sleeps: {sleeps}: nothing else is left beside the list");
    }
}
