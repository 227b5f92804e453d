//! Models of the lanes between two processes: a ring that fills and wraps around, with a sleeper on either side. The
//! ringing is the code of `lane_stream.rs`, over a bell instead of a socket. At most four preemptions, unless
//! `LOOM_MAX_PREEMPTIONS` says otherwise.

use std::io::{self, Read, Write};

use ::loom::model::Builder;
use ::loom::sync::{Arc, Condvar, Mutex};
use ::loom::thread;

use crate::laned::Laned;
use crate::lanes::{BYTES, Lanes};
use crate::region::Region;

/// Records that fill the ring: one of its four lines stays free.
const FULL: u64 = 3;

/// Sends a line and a half, around the ring's end, to a receiver: the ring is full, or has room; its records are lines,
/// or a line and a half, too.
#[test]
fn what_is_said_in_a_lane_is_heard_whole_and_in_order() {
    for (lengths, heard_before) in [(&[16, 16, 16][..], 0), (&[16, 16, 16], 2), (&[96, 16], 0)] {
        bounded(move || {
            let (mut speaker, mut listener) = lanes();
            let mut words = (1..).flat_map(|word: u8| [word; 8]);
            let (mut said, mut heard) = (Vec::new(), Vec::new());
            for &length in lengths {
                let record: Vec<u8> = words.by_ref().take(length).collect();
                assert_eq!(speaker.write(&record), Ok(length));
                said.extend(record);
            }
            (0..heard_before).for_each(|_| hear(&mut listener, &mut heard));
            let listens = thread::spawn(move || {
                (0..4).for_each(|_| hear(&mut listener, &mut heard));
                (listener, heard)
            });
            let mut rest: Vec<u8> = words.take(96).collect();
            said.extend(&rest);
            rest.drain(..speaker.write(&rest).expect("a sound lane"));
            let (mut listener, mut heard) = listens.join().expect("the listener's checks hold");
            while !rest.is_empty() {
                hear(&mut listener, &mut heard);
                rest.drain(..speaker.write(&rest).expect("a sound lane"));
            }
            while listener.has_news() {
                hear(&mut listener, &mut heard);
            }
            assert_eq!(heard, said);
        });
    }
}

/// One side sends two messages, the other sleeps until it has received them.
#[test]
fn who_sleeps_is_rung_for_news() {
    bounded(|| {
        let (mut speaker, mut listener) = sides();
        let listens = thread::spawn(move || {
            let mut heard = Vec::new();
            while heard.len() < 32 {
                hear_or_sleep(&mut listener, &mut heard);
            }
            heard
        });
        for number in 0..2 {
            assert_eq!(speaker.write(&message(number)).expect("there is room"), 16);
        }
        assert_eq!(listens.join().expect("the listener wakes up"), [message(0), message(1)].concat());
    });
}

/// One side receives the records that filled the ring, the other sleeps until all its bytes have found room.
#[test]
fn who_waits_for_room_is_rung() {
    bounded(|| {
        let (mut speaker, mut listener) = sides();
        (0..FULL).for_each(|number| assert_eq!(speaker.write(&message(number)).expect("there is room"), 16));
        let speaks = thread::spawn(move || say_all(&mut speaker, &message(FULL)));
        let mut heard = Vec::new();
        for _ in 0..FULL {
            hear_now(&mut listener, &mut heard);
        }
        speaks.join().expect("the speaker wakes up");
        hear_now(&mut listener, &mut heard);
        assert_eq!(heard, (0..=FULL).flat_map(message).collect::<Vec<u8>>());
    });
}

/// Both sides sleep when they can do nothing, on a full ring.
#[test]
fn both_sides_of_a_full_ring_wake_each_other() {
    bounded(|| {
        let (mut speaker, mut listener) = sides();
        (0..FULL).for_each(|number| assert_eq!(speaker.write(&message(number)).expect("there is room"), 16));
        let speaks = thread::spawn(move || say_all(&mut speaker, &message(FULL)));
        let mut heard = Vec::new();
        while heard.len() < 16 * (FULL as usize + 1) {
            hear_or_sleep(&mut listener, &mut heard);
        }
        assert_eq!(heard, (0..=FULL).flat_map(message).collect::<Vec<u8>>());
        speaks.join().expect("the speaker wakes up");
    });
}

fn bounded(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(4));
    builder.check(model);
}

/// Builds the two ends of two lanes.
fn lanes() -> (Lanes, Lanes) {
    let (here, there) = (Region::without_races(BYTES), Region::without_races(BYTES));
    (Lanes::new(here.clone(), there.clone()), Lanes::new(there, here))
}

/// Builds the two ends of two lanes, with a bell at each.
fn sides() -> (Laned<Socket>, Laned<Socket>) {
    let (speaker, listener) = lanes();
    let (here, there) = (Arc::new(Bell::default()), Arc::new(Bell::default()));
    let socket = Socket { ours: here.clone(), theirs: there.clone() };
    (Laned::new(socket, speaker), Laned::new(Socket { ours: there, theirs: here }, listener))
}

fn hear(listener: &mut Lanes, heard: &mut Vec<u8>) {
    let mut room = [0; 128];
    let bytes = listener.read(&mut room).expect("a sound lane");
    heard.extend_from_slice(&room[..bytes]);
}

/// Receives without waiting; returns true if bytes were there.
fn hear_now(listener: &mut Laned<Socket>, heard: &mut Vec<u8>) -> bool {
    let mut room = [0; 128];
    match listener.read(&mut room) {
        Ok(bytes) => {
            heard.extend_from_slice(&room[..bytes]);
            true
        }
        Err(e) => {
            assert_eq!(e.kind(), io::ErrorKind::WouldBlock);
            false
        }
    }
}

fn hear_or_sleep(listener: &mut Laned<Socket>, heard: &mut Vec<u8>) {
    if !hear_now(listener, heard) {
        sleep(listener);
    }
}

/// Sends all bytes as a client does: it receives before it sends, and checks its bell before the room.
fn say_all(speaker: &mut Laned<Socket>, mut rest: &[u8]) {
    loop {
        assert!(!hear_now(speaker, &mut Vec::new()), "nobody speaks to who speaks");
        match speaker.write(rest) {
            Ok(said) => rest = &rest[said..],
            Err(e) => assert_eq!(e.kind(), io::ErrorKind::WouldBlock),
        }
        if rest.is_empty() {
            return;
        }
        sleep(speaker);
    }
}

fn sleep(side: &mut Laned<Socket>) {
    if side.sleeps() {
        side.socket().ours.wait();
    }
    side.wakes();
    side.look_at_socket();
}

/// A socket that carries only rings.
struct Socket {
    ours: Arc<Bell>,
    theirs: Arc<Bell>,
}

/// Rings that were not taken yet.
#[derive(Default)]
struct Bell {
    rings: Mutex<usize>,
    rung: Condvar,
}

impl Bell {
    fn wait(&self) {
        let mut rings = self.rings.lock().expect("nobody panics with it");
        while *rings == 0 {
            rings = self.rung.wait(rings).expect("nobody panics with it");
        }
    }
}

impl Read for Socket {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match std::mem::take(&mut *self.ours.rings.lock().expect("nobody panics with it")) {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            rings => Ok(rings),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        *self.theirs.rings.lock().expect("nobody panics with it") += bytes.len();
        self.theirs.rung.notify_one();
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
