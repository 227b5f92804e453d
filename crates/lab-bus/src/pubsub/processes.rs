//! The two processes of `pubsub`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use tickpath_bus::{
    BatchError, Gap as Loss, Message, PublishError, Publisher, StartPosition, Subscriber, SubscriptionEvent, connect,
};
use tickpath_clock::{Clock, GapDetector, HostClock, Lateness, Pacer, Wait, cpu_ns, relax};

use super::role::{
    ColdPublishResult, KIND, PublisherResult, PublisherRole, SubscriberResult, SubscriberRole, topic_config,
};
use tickpath_lab_harness::quiet_timer::QuietTimer;
use tickpath_lab_harness::samples::{preallocated_rows, save, save_gaps};
use tickpath_lab_harness::targets::is_log;
use tickpath_lab_harness::{LabError, Parent, ProcessRole};

impl ProcessRole for PublisherRole {
    const NAME: &'static str = "publisher";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        let clock = HostClock::get()?;
        if self.cold {
            return cold_publisher(self, &clock, parent);
        }
        let connection = connect(&self.target)?;
        let _ = connection.remove_topic(&self.topic);
        let mut topic = connection.publisher(&self.topic, &topic_config(&self.policy, self.size)?)?;
        self.thread.apply()?;
        let mut rows = preallocated_rows(if self.rate.is_some() { self.count as usize } else { 0 });
        parent.ready();
        if parent.receive().is_none() {
            return Ok(());
        }
        let published = match self.rate {
            Some(rate) => publish_paced(self, rate, &clock, topic.as_mut(), &mut rows, &parent.stop_flag())?,
            None => publish_full_speed(self, &clock, topic.as_mut(), &parent.stop_flag())?,
        };
        save(&self.out, &rows)?;
        parent.result(&published);
        Ok(())
    }
}

impl ProcessRole for SubscriberRole {
    const NAME: &'static str = "subscriber";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        let clock = HostClock::get()?;
        let wait = self.thread.wait()?;
        let connection = connect(&self.target)?;
        let subscribe = |_| connection.subscriber(&self.topic, StartPosition::Now, wait);
        let mut topics = (0..self.readers).map(subscribe).collect::<Result<Vec<_>, _>>()?;
        topics.iter_mut().for_each(|topic| topic.set_warm_up(self.thread.warm));
        self.thread.apply()?;
        let mut rows = preallocated_rows(if self.stamps { self.count as usize * self.readers } else { 0 });
        let before_ns = cpu_ns(std::process::id());
        // Polling a server's answers is a system call.
        let mut gaps = GapDetector::new(clock).with_kernel_calls(!is_log(&self.target));
        parent.ready();
        let (trackers, last, waited) = receive(self, &clock, wait, &mut topics, &mut rows, &mut gaps, parent)?;
        let cpu_ns = cpu_ns(std::process::id()).saturating_sub(before_ns);
        let waited_ns = waited.zip(gaps.waited_ns()).map_or(0, |(before, after)| after - before);
        save(&self.out, &rows)?;
        save_gaps(&self.out.with_extension("gaps"), &gaps.into_gaps())?;
        let reconnects = topics.iter().map(|topic| topic.reconnects()).sum();
        let mut received =
            SubscriberResult { waited_ns, cpu_ns, reconnects, ..SequenceTracker::received(&trackers, last) };
        topics.iter().for_each(|topic| received.count_withheld(&**topic));
        parent.result(&received);
        Ok(())
    }
}

/// Empty turns between two warm-up runs of the receiver's own code.
const WARM_UP_EVERY: u32 = 1024;

/// Max messages per turn of a counting reader.
const MAX_PER_TURN: usize = 256;

/// The time that the broker and the subscriber have after the last send for messages in flight: longer than any
/// stall of the host. A subscriber that has received everything does not wait.
const DRAIN_TIMEOUT_NS: i64 = 10_000_000_000;

/// Runs a publisher that connects only on the parent's command to send. `count` is the number of its single message.
fn cold_publisher(role: &PublisherRole, clock: &HostClock, parent: &Parent) -> Result<(), LabError> {
    role.thread.apply()?;
    let config = topic_config(&role.policy, role.size)?;
    let mut payload = vec![0; role.size];
    payload[8..16].copy_from_slice(&role.count.to_le_bytes());
    parent.ready();
    if parent.receive().is_none() {
        return Ok(());
    }
    let go = clock.ticks();
    let connection = connect(&role.target)?;
    let mut topic = connection.publisher(&role.topic, &config)?;
    let connected = clock.ticks();
    payload[..8].copy_from_slice(&connected.to_le_bytes());
    let published = topic.publish(go, KIND, &payload);
    published.map_err(|e| LabError::Failed(format!("publishing failed: {e}")))?;
    parent.result(&ColdPublishResult { go, connected, published: clock.ticks() });
    Ok(())
}

/// Publishes one message at each intended time.
fn publish_paced(
    role: &PublisherRole,
    rate: f64,
    clock: &HostClock,
    topic: &mut dyn Publisher,
    rows: &mut Vec<[u64; 3]>,
    stop: &AtomicBool,
) -> Result<PublisherResult, LabError> {
    let calibration = clock.calibration();
    let mut pacer = Pacer::new(*clock, role.thread.wait()?);
    let allowance_ns = (1e9 / rate).max(10_000.0) as u64;
    let mut lateness = Lateness::default();
    let mut payload = vec![0; role.size];
    let start = clock.ticks() + calibration.ticks_of_ns(1_000_000);
    let mut refused = 0;
    // Lateness of each send in nanoseconds, without the delay due to the host or to the call before it.
    let mut own = vec![1u32; role.count as usize];
    own.clear();
    let mut free = start;
    let (mut planned_ns, mut turns, mut sent, mut broke_off) = (0, 0u32, 0, None);
    let (mut nowhere, mut spare_rows) = (DiscardingPublisher, Vec::with_capacity(1));
    for (number, due_ns) in (0..role.count).zip(role.arrivals.times_ns(rate)) {
        let intended = start + calibration.ticks_of_ns(due_ns);
        let Ok(actual) = pacer.until_with_work(intended, |rest| {
            if role.thread.warm {
                topic.idle();
                turns = turns.wrapping_add(1);
                if turns.is_multiple_of(WARM_UP_EVERY) {
                    // Warm-up of the publisher's own code, like the receiver's below.
                    let _ = publish_stamped(&mut nowhere, clock, &mut payload, &mut spare_rows, (0, 0), number, stop);
                    spare_rows.clear();
                    let _ = rows.spare_capacity_mut().first_mut().map(|next| next.write([0; 3]));
                }
            }
            rest.perform();
            Ok::<_, std::convert::Infallible>(false)
        });
        let put = fail_if_stopped(stop)
            .and_then(|()| publish_stamped(topic, clock, &mut payload, rows, (intended, actual), number, stop));
        let (more, done) = match put {
            Ok(put) => put,
            Err(why) => {
                broke_off = Some(why.to_string());
                break;
            }
        };
        (planned_ns, sent) = (due_ns, number + 1);
        refused += more;
        // A call that took longer than the interval counts as the target's time: `one_way` includes it.
        let late_ns = pacer.own_lateness_ns(intended.max(free), actual);
        free = done;
        lateness.count(late_ns, allowance_ns);
        own.push(u32::try_from(late_ns).unwrap_or(u32::MAX));
    }
    save_gaps(&role.out.with_extension("gaps"), &pacer.into_gaps())?;
    own.sort_unstable();
    let own_p99_ns = own.get(own.len() * 99 / 100).copied().unwrap_or(0);
    let (last, reconnects) = (rows.last().map_or(start, |row| row[1]), topic.reconnects());
    let late_share = lateness.share();
    Ok(PublisherResult { sent, refused, first: start, last, planned_ns, late_share, own_p99_ns, reconnects, broke_off })
}

/// Publishes a message with its intended and actual time and records the row. Returns the number of times that the
/// topic was full and the completion time; real and warm-up messages share this function, so that warm-up warms the
/// real code.
#[inline(never)]
fn publish_stamped(
    topic: &mut dyn Publisher,
    clock: &HostClock,
    payload: &mut [u8],
    rows: &mut Vec<[u64; 3]>,
    (intended, actual): (u64, u64),
    number: u64,
    stop: &AtomicBool,
) -> Result<(u64, u64), LabError> {
    payload[..8].copy_from_slice(&actual.to_le_bytes());
    payload[8..16].copy_from_slice(&number.to_le_bytes());
    let refused = publish_retrying(topic, intended, payload, stop)?;
    let done = clock.ticks();
    rows.push([intended, actual, done]);
    Ok((refused, done))
}

/// The publisher of warm-up messages: discards them.
struct DiscardingPublisher;

impl Publisher for DiscardingPublisher {
    fn publish(&mut self, _: u64, _: u8, _: &[u8]) -> Result<(), PublishError> {
        Ok(())
    }

    fn publish_batch(&mut self, _: u64, _: u8, _: &[&[u8]]) -> Result<(), BatchError> {
        Ok(())
    }

    fn reconnects(&self) -> Option<u64> {
        None
    }
}

/// Publishes at full speed, in batches that share a stamp.
fn publish_full_speed(
    role: &PublisherRole,
    clock: &HostClock,
    topic: &mut dyn Publisher,
    stop: &AtomicBool,
) -> Result<PublisherResult, LabError> {
    let mut payloads = vec![0; role.size * role.batch];
    let first = clock.ticks();
    let (mut sent, mut refused, mut broke_off) = (0, 0, None);
    while sent < role.count && broke_off.is_none() {
        let batch = (role.count - sent).min(role.batch as u64) as usize;
        let stamp = clock.ticks();
        for (number, payload) in (sent..).zip(payloads.chunks_exact_mut(role.size)) {
            payload[..8].copy_from_slice(&stamp.to_le_bytes());
            payload[8..16].copy_from_slice(&number.to_le_bytes());
        }
        let put = fail_if_stopped(stop).and_then(|()| {
            if batch == 1 {
                return publish_retrying(topic, stamp, &payloads[..role.size], stop);
            }
            let slices: Vec<&[u8]> = payloads.chunks_exact(role.size).take(batch).collect();
            publish_batch_retrying(topic, stamp, &slices, stop)
        });
        match put {
            Ok(more) => (sent, refused) = (sent + batch as u64, refused + more),
            Err(why) => broke_off = Some(why.to_string()),
        }
    }
    let (last, reconnects) = (clock.ticks(), topic.reconnects());
    Ok(PublisherResult { sent, refused, first, last, reconnects, broke_off, ..PublisherResult::default() })
}

/// Publishes one message, retrying while the topic is full; returns the number of retries.
fn publish_retrying(topic: &mut dyn Publisher, stamp: u64, payload: &[u8], stop: &AtomicBool) -> Result<u64, LabError> {
    let mut refused = 0;
    loop {
        match topic.publish(stamp, KIND, payload) {
            Ok(()) => return Ok(refused),
            Err(PublishError::Full) => {
                refused += 1;
                fail_if_stopped(stop)?;
                relax();
            }
            Err(e) => return Err(LabError::Failed(format!("publishing failed: {e}"))),
        }
    }
}

fn publish_batch_retrying(
    topic: &mut dyn Publisher,
    stamp: u64,
    payloads: &[&[u8]],
    stop: &AtomicBool,
) -> Result<u64, LabError> {
    let (mut done, mut refused) = (0, 0);
    loop {
        match topic.publish_batch(stamp, KIND, &payloads[done..]) {
            Ok(()) => return Ok(refused),
            Err(BatchError { done: more, error: PublishError::Full, .. }) => {
                (done, refused) = (done + more, refused + 1);
                fail_if_stopped(stop)?;
                relax();
            }
            Err(e) => return Err(LabError::Failed(format!("publishing failed: {}", e.error))),
        }
    }
}

/// Fails if the parent process is gone, so that its publisher ends too.
fn fail_if_stopped(stop: &AtomicBool) -> Result<(), LabError> {
    match stop.load(Ordering::Relaxed) {
        true => Err(LabError::Failed("the bench was stopped".to_owned())),
        false => Ok(()),
    }
}

/// Received sequence numbers of one subscription.
#[derive(Default)]
pub(super) struct SequenceTracker {
    received: u64,
    reordered: u64,
    duplicated: u64,
    next: u64,
    /// Skipped numbers, which may still arrive late.
    skipped: BTreeSet<u64>,
}

impl SequenceTracker {
    /// Counts a message: returns 1, or 0 for a duplicate.
    #[inline(always)]
    pub fn message(&mut self, number: u64) -> u64 {
        self.received += 1;
        if number == self.next {
            self.next += 1;
            1
        } else {
            self.out_of_order(number)
        }
    }

    #[cold]
    fn out_of_order(&mut self, number: u64) -> u64 {
        if number > self.next {
            self.skipped.extend(self.next..number);
            self.next = number + 1;
        } else if self.skipped.remove(&number) {
            self.reordered += 1;
        } else {
            self.duplicated += 1;
            return 0;
        }
        1
    }

    /// Records a reported gap: the missed numbers will not arrive.
    pub fn gap(&mut self, missed: u64) {
        self.next += missed;
    }

    /// Sums the counts of all subscriptions; `last` is the time of the last message.
    pub fn received(trackers: &[Self], last: u64) -> SubscriberResult {
        let sum = |of: fn(&Self) -> u64| trackers.iter().map(of).sum();
        SubscriberResult {
            received: sum(|tracker| tracker.received),
            reordered: sum(|tracker| tracker.reordered),
            duplicated: sum(|tracker| tracker.duplicated),
            last,
            ..SubscriberResult::default()
        }
    }
}

/// Receives until all messages are there, or no more arrive after the publisher has ended. Returns the time of the last
/// news, and the thread's wait for its CPU at the first news.
#[allow(clippy::too_many_arguments, reason = "the loop of the process, whose parts these are")]
fn receive(
    role: &SubscriberRole,
    clock: &HostClock,
    wait: Wait,
    topics: &mut [Box<dyn Subscriber>],
    rows: &mut Vec<[u64; 3]>,
    gaps: &mut GapDetector<HostClock>,
    parent: &Parent,
) -> Result<(Vec<SequenceTracker>, u64, Option<u64>), LabError> {
    let mut trackers: Vec<SequenceTracker> = topics.iter().map(|_| SequenceTracker::default()).collect();
    let expected = role.count * topics.len() as u64;
    let mut copy = vec![0; 16 << 20];
    let (mut quiet, mut last_news) = (QuietTimer::new(clock, DRAIN_TIMEOUT_NS), 0);
    let (mut done, mut waited, mut turns) = (0, None, 0u32);
    let (payload, mut spare_rows) = ([0; 64], Vec::with_capacity(1));
    let spare = Message { sequence: None, stamp: 0, kind: KIND, payload: &payload, id: None };
    while done < expected {
        let mut found = 0;
        for (topic, tracker) in topics.iter_mut().zip(&mut trackers) {
            let limit = if role.stamps { 1 } else { MAX_PER_TURN };
            let polled = topic.poll(limit, &mut |event| match event {
                SubscriptionEvent::Message(message) if role.stamps => {
                    done += record_message(&message, clock, &mut copy, rows, tracker)
                }
                SubscriptionEvent::Message(message) => done += tracker.message(read_u64(message.payload, 8)),
                SubscriptionEvent::Gap(Loss::Missed(missed)) => {
                    tracker.gap(missed);
                    done += missed;
                }
                // The subscription itself counts reconnects; a foreign message is not part of this run.
                SubscriptionEvent::Gap(Loss::Reconnected) | SubscriptionEvent::Foreign(_) => {}
            });
            found += polled.map_err(|e| LabError::Failed(format!("receiving failed: {e}")))?;
        }
        if found > 0 {
            gaps.busy_turn();
            quiet.restart();
            if last_news == 0 {
                waited = gaps.waited_ns();
            }
            last_news = clock.ticks();
            continue;
        }
        if wait == Wait::Busy && topics.len() == 1 && role.stamps {
            turns = turns.wrapping_add(1);
            if role.thread.warm && turns.is_multiple_of(WARM_UP_EVERY) {
                // Warm-up of the receiver's own code with a spare message and spare rows: its slow start after a
                // silence is not the transport's time.
                record_message(&spare, clock, &mut copy, &mut spare_rows, &mut SequenceTracker::default());
                spare_rows.clear();
                gaps.busy_turn();
            } else {
                gaps.empty_turn();
            }
        }
        // A message for a reader behind the others would not wake a thread that sleeps on the first reader.
        if trackers.iter().all(|one| one.next == trackers[0].next) {
            topics[0].wait(10_000_000);
        } else {
            Wait::Yield.idle();
        }
        if quiet.is_over_after(wait, parent) {
            break;
        }
    }
    Ok((trackers, last_news, waited))
}

/// Records a message that the receiver stamps; returns 1, or 0 for a duplicate. One function for real and warm-up
/// messages: a copy would not keep the other copy warm.
#[inline(never)]
fn record_message(
    message: &Message<'_>,
    clock: &HostClock,
    copy: &mut [u8],
    rows: &mut Vec<[u64; 3]>,
    tracker: &mut SequenceTracker,
) -> u64 {
    let bytes = message.payload.len();
    copy[..bytes].copy_from_slice(message.payload);
    rows.push([message.stamp, read_u64(copy, 0), clock.ticks()]);
    tracker.message(read_u64(copy, 8))
}

pub(super) fn read_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
