//! Models of the lanes between two processes: a ring that fills and wraps around, with a sleeper on either side, rung
//! by `lane_stream.rs` over a bell. At most four preemptions, unless `LOOM_MAX_PREEMPTIONS` is set.

use std::io::{self, Read, Write};

use ::loom::model::Builder;
use ::loom::sync::{Arc, Condvar, Mutex};
use ::loom::thread;

use crate::lane_stream::LaneStream;
use crate::lanes::{BYTES, LanePair};
use crate::region::Region;

/// Records that fill the ring: one of its four lines stays free.
const FULL: u64 = 3;

/// Sends a line and a half, around the ring's end, into a full ring, one with room, and one of longer records.
#[test]
fn a_lane_delivers_all_bytes_in_order() {
    for (lengths, received_before) in [(&[16, 16, 16][..], 0), (&[16, 16, 16], 2), (&[96, 16], 0)] {
        bounded(move || {
            let (mut sender, mut receiver) = lanes();
            let mut words = (1..).flat_map(|word: u8| [word; 8]);
            let (mut sent, mut received) = (Vec::new(), Vec::new());
            for &length in lengths {
                let record: Vec<u8> = words.by_ref().take(length).collect();
                assert_eq!(sender.write(&record), Ok(length));
                sent.extend(record);
            }
            (0..received_before).for_each(|_| receive(&mut receiver, &mut received));
            let receiving = thread::spawn(move || {
                (0..4).for_each(|_| receive(&mut receiver, &mut received));
                (receiver, received)
            });
            let mut rest: Vec<u8> = words.take(96).collect();
            sent.extend(&rest);
            rest.drain(..sender.write(&rest).expect("a sound lane"));
            let (mut receiver, mut received) = receiving.join().expect("the receiver's checks hold");
            while !rest.is_empty() {
                receive(&mut receiver, &mut received);
                rest.drain(..sender.write(&rest).expect("a sound lane"));
            }
            while receiver.has_news() {
                receive(&mut receiver, &mut received);
            }
            assert_eq!(received, sent);
        });
    }
}

/// One side sends two messages, the other sleeps until it has received them.
#[test]
fn a_sleeping_receiver_is_woken() {
    bounded(|| {
        let (mut sender, mut receiver) = sides();
        let receiving = thread::spawn(move || {
            let mut received = Vec::new();
            while received.len() < 32 {
                receive_or_sleep(&mut receiver, &mut received);
            }
            received
        });
        for number in 0..2 {
            assert_eq!(sender.write(&message(number)).expect("there is room"), 16);
        }
        assert_eq!(receiving.join().expect("the receiver wakes up"), [message(0), message(1)].concat());
    });
}

/// One side receives the records that filled the ring, the other sleeps until all its bytes have found room.
#[test]
fn a_sender_that_waits_for_room_is_woken() {
    bounded(|| {
        let (mut sender, mut receiver) = sides();
        (0..FULL).for_each(|number| assert_eq!(sender.write(&message(number)).expect("there is room"), 16));
        let sending = thread::spawn(move || send_all(&mut sender, &message(FULL)));
        let mut received = Vec::new();
        for _ in 0..FULL {
            receive_now(&mut receiver, &mut received);
        }
        sending.join().expect("the sender wakes up");
        receive_now(&mut receiver, &mut received);
        assert_eq!(received, (0..=FULL).flat_map(message).collect::<Vec<u8>>());
    });
}

/// Both sides sleep when they can do nothing, on a full ring.
#[test]
fn both_sides_of_a_full_ring_wake_each_other() {
    bounded(|| {
        let (mut sender, mut receiver) = sides();
        (0..FULL).for_each(|number| assert_eq!(sender.write(&message(number)).expect("there is room"), 16));
        let sending = thread::spawn(move || send_all(&mut sender, &message(FULL)));
        let mut received = Vec::new();
        while received.len() < 16 * (FULL as usize + 1) {
            receive_or_sleep(&mut receiver, &mut received);
        }
        assert_eq!(received, (0..=FULL).flat_map(message).collect::<Vec<u8>>());
        sending.join().expect("the sender wakes up");
    });
}

fn bounded(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(4));
    builder.check(model);
}

/// Builds the two ends of two lanes.
fn lanes() -> (LanePair, LanePair) {
    let (first, second) = (Region::without_races(BYTES), Region::without_races(BYTES));
    (LanePair::new(first.clone(), second.clone()), LanePair::new(second, first))
}

/// Builds the two ends of two lanes, with a bell at each.
fn sides() -> (LaneStream<BellSocket>, LaneStream<BellSocket>) {
    let (sender, receiver) = lanes();
    let (first, second) = (Arc::new(RingCount::default()), Arc::new(RingCount::default()));
    let socket = BellSocket { own: first.clone(), peer: second.clone() };
    (LaneStream::new(socket, sender), LaneStream::new(BellSocket { own: second, peer: first }, receiver))
}

fn receive(receiver: &mut LanePair, received: &mut Vec<u8>) {
    let mut room = [0; 128];
    let bytes = receiver.read(&mut room).expect("a sound lane");
    received.extend_from_slice(&room[..bytes]);
}

/// Receives without waiting; returns true if bytes were there.
fn receive_now(receiver: &mut LaneStream<BellSocket>, received: &mut Vec<u8>) -> bool {
    let mut room = [0; 128];
    match receiver.read(&mut room) {
        Ok(bytes) => {
            received.extend_from_slice(&room[..bytes]);
            true
        }
        Err(e) => {
            assert_eq!(e.kind(), io::ErrorKind::WouldBlock);
            false
        }
    }
}

fn receive_or_sleep(receiver: &mut LaneStream<BellSocket>, received: &mut Vec<u8>) {
    if !receive_now(receiver, received) {
        sleep(receiver);
    }
}

/// Sends all bytes as a client does: it receives before it sends, and checks its bell before the room.
fn send_all(sender: &mut LaneStream<BellSocket>, mut rest: &[u8]) {
    loop {
        assert!(!receive_now(sender, &mut Vec::new()), "the other side sends nothing");
        match sender.write(rest) {
            Ok(sent) => rest = &rest[sent..],
            Err(e) => assert_eq!(e.kind(), io::ErrorKind::WouldBlock),
        }
        if rest.is_empty() {
            return;
        }
        sleep(sender);
    }
}

fn sleep(side: &mut LaneStream<BellSocket>) {
    if side.announce_sleep() {
        side.socket().own.wait();
    }
    side.withdraw_sleep();
    side.mark_socket_readable();
}

/// A socket that carries only rings.
struct BellSocket {
    own: Arc<RingCount>,
    peer: Arc<RingCount>,
}

/// Rings that were not taken yet.
#[derive(Default)]
struct RingCount {
    rings: Mutex<usize>,
    rung: Condvar,
}

impl RingCount {
    fn wait(&self) {
        let mut rings = self.rings.lock().expect("no thread panics with it");
        while *rings == 0 {
            rings = self.rung.wait(rings).expect("no thread panics with it");
        }
    }
}

impl Read for BellSocket {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match std::mem::take(&mut *self.own.rings.lock().expect("no thread panics with it")) {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            rings => Ok(rings),
        }
    }
}

impl Write for BellSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        *self.peer.rings.lock().expect("no thread panics with it") += bytes.len();
        self.peer.rung.notify_one();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns two words that differ from those of every other message.
fn message(number: u64) -> [u8; 16] {
    [number as u8 + 1; 16]
}
