//! Counters of the OMS: each request by its hops, each message to a client by its code, and current amounts.

use tickpath_market::{ExecType, Side};
use tickpath_oms_core::Denial;
use tickpath_oms_runtime::meter::MeterReader;

use crate::{SECOND, Scene, cancel, limit, poll, settle};

#[test]
fn counters_count_events_and_restart_at_zero() {
    let mut scene = Scene::new();
    // A simulation publishes no counters; this test reads them.
    scene.config.seed = None;
    let (mut oms, mut venue) = (scene.oms(), scene.venue());
    let mut client = scene.client(0);
    let mut meters = MeterReader::for_oms(&scene.config.lanes.name).expect("a good name");
    let first = meters.read().expect("the OMS counts");
    assert_eq!((first.pid, first.requests(), first.gauge("working")), (Some(std::process::id()), 0, 0));
    scene.tick(99, 101);
    settle(&mut oms, &mut venue);
    // One millisecond in flight, none inside: no time passes here while there is work.
    for id in 1..=3 {
        client.send(limit(Side::Buy, id, 90, 1));
        scene.clock.advance(1_000_000);
        poll(&mut oms);
    }
    client.send(limit(Side::Buy, 3, 90, 1));
    client.send(cancel(9, 1));
    settle(&mut oms, &mut venue);
    scene.clock.advance(SECOND);
    settle(&mut oms, &mut venue);
    idle(&scene, &mut oms);
    let reading = meters.read().expect("the OMS counts");
    assert_eq!(reading.requests(), 5);
    let [t0_t1, t1_t2, t0_t2, handed @ ..] = &reading.hops[..] else { panic!("hops: {reading:?}") };
    assert!(handed.iter().all(|hop| hop.count() == 0), "no other thread sends: {reading:?}");
    assert_eq!((t0_t1.count(), t1_t2.count(), t0_t2.count()), (5, 5, 5));
    assert_eq!((t0_t1.sum_ns, t1_t2.sum_ns, t0_t2.sum_ns), (3_000_000, 0, 3_000_000));
    let median = t0_t1.quantile(0.5).expect("there are some");
    assert!((937_000..1_063_000).contains(&median), "{median} ns are not a millisecond");
    assert_eq!(reading.denials, [(Denial::DuplicateClientOrderId.code(), 1)]);
    let count_of =
        |what: ExecType| reading.reports.iter().find(|(code, _)| *code == what.code()).map(|(_, count)| *count);
    assert_eq!(
        (count_of(ExecType::PendingNew), count_of(ExecType::New), count_of(ExecType::Canceled)),
        (Some(3), Some(3), Some(1))
    );
    assert_eq!((reading.gauge("working"), reading.gauge("done"), reading.gauge("denied_requests")), (2, 1, 1));
    assert!(reading.gauge("journal_records") > 10 && reading.gauge("journal_bytes") > 1_000, "{reading:?}");
    let [line] = &reading.venues[..] else { panic!("one venue") };
    assert_eq!((line.venue, line.is_up, line.waiting), (1, true, 0));

    drop(oms);
    assert!(meters.read().is_err(), "nobody counts");
    let mut oms = scene.oms();
    idle(&scene, &mut oms);
    let again = meters.read().expect("it counts again");
    assert!(again.epoch > reading.epoch, "another start has another number");
    assert_eq!((again.requests(), again.gauge("working")), (0, 2), "counts begin anew, orders go on");
}

#[test]
fn a_venue_that_is_down_is_counted_with_its_waiting_requests() {
    let mut scene = Scene::new();
    scene.config.seed = None;
    let (mut oms, mut venue) = (scene.oms(), scene.venue());
    let mut client = scene.client(0);
    let mut meters = MeterReader::for_oms(&scene.config.lanes.name).expect("a good name");
    scene.tick(99, 101);
    settle(&mut oms, &mut venue);
    drop(venue);
    scene.clock.advance(SECOND);
    idle(&scene, &mut oms);
    client.send(limit(Side::Buy, 1, 90, 1));
    idle(&scene, &mut oms);
    let reading = meters.read().expect("the OMS counts");
    let [line] = &reading.venues[..] else { panic!("one venue") };
    assert_eq!((line.is_up, line.waiting, reading.gauge("queued")), (false, 1, 1));
    let of = |kind: &str| reading.notices.iter().find(|(name, _)| name == kind).map(|(_, count)| *count);
    assert_eq!((of("venue_down"), of("disk_failed")), (Some(1), Some(0)));
}

/// Advances the time by a second with enough idle turns for the OMS to update its amounts.
fn idle(scene: &Scene, oms: &mut tickpath_oms_runtime::layout::Inline<tickpath_clock::SimulatedClock>) {
    scene.clock.advance(SECOND);
    for _ in 0..64 {
        poll(oms);
    }
}
