//! Lanes without a name: each side receives what the other sends, and damages only its own half.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};

use proptest::collection::vec;
use proptest::prelude::*;
use rustix::mm::{MapFlags, ProtFlags};
use tickpath_log::LanePair;

/// Bytes of the memory of a lane, and where its ring begins.
const BYTES: usize = 4096 + RING;
const RING: usize = 256 << 10;

fn pair() -> (LanePair, LanePair) {
    let (oms, fds) = LanePair::create().expect("memory");
    (oms, LanePair::join(fds).expect("they are sound"))
}

fn all(lanes: &mut LanePair) -> Vec<u8> {
    let (mut heard, mut room) = (Vec::new(), [0; 5000]);
    loop {
        match lanes.read(&mut room).expect("a sound lane") {
            0 => return heard,
            bytes => heard.extend_from_slice(&room[..bytes]),
        }
    }
}

proptest! {
    #[test]
    fn what_is_said_is_heard_in_order_whatever_the_pieces(
        pieces in vec((1usize..40_000, 8usize..20_000), 1..60),
    ) {
        let (mut oms, mut client) = pair();
        let (mut said, mut heard, mut next) = (Vec::new(), Vec::new(), 0u8);
        for (length, room) in pieces {
            let piece: Vec<u8> = (0..length).map(|_| { next = next.wrapping_add(7); next }).collect();
            let mut rest = &piece[..];
            while !rest.is_empty() {
                let taken = client.write(rest).expect("a sound lane");
                rest = &rest[taken..];
                let mut room = vec![0; room];
                let bytes = oms.read(&mut room).expect("a sound lane");
                heard.extend_from_slice(&room[..bytes]);
            }
            said.extend(piece);
        }
        heard.extend(all(&mut oms));
        prop_assert!(said == heard, "not the same");
        prop_assert!(!oms.has_news());
    }

    #[test]
    fn memory_that_says_anything_is_refused_or_read_and_never_more(
        words in vec((0usize..20, prop_oneof![0u64..600_000, any::<u64>()]), 1..60),
        bytes in vec(any::<u8>(), 0..40_000),
    ) {
        let (mut oms, [theirs, _ours]) = LanePair::create().expect("memory");
        let file = File::from(theirs);
        let mut room = [0; 4120];
        for (word, value) in words {
            let place = [0, 64, 128, 192].get(word).copied().unwrap_or_else(|| 4096 + 8 * (word as u64 - 4));
            rustix::io::pwrite(&file, &value.to_le_bytes(), place).expect("it is the client's");
            let read = oms.read(&mut room).map(|bytes| bytes <= room.len());
            let written = oms.write(&bytes).map(|said| said <= bytes.len());
            prop_assert!(read.unwrap_or(true) && written.unwrap_or(true));
        }
    }
}

#[test]
fn a_full_lane_accepts_nothing_and_rings_when_there_is_room() {
    let (mut oms, mut client) = pair();
    let mut said = 0;
    while let bytes @ 1.. = oms.write(&[7; 10_000]).expect("a sound lane") {
        said += bytes;
    }
    assert!(said > RING * 9 / 10 && said < RING, "{said}");
    assert!(!oms.has_room() && client.must_wake_sender());
    assert_eq!(all(&mut client).len(), said);
    assert!(oms.has_room());
    assert_eq!(oms.write(b"more"), Ok(4));
    assert!(!client.must_wake_sender());
    assert_eq!(all(&mut client), b"more");
}

#[test]
fn one_read_of_an_endless_ring_ends() {
    let (mut oms, [theirs, _ours]) = LanePair::create().expect("memory");
    let mut ring = vec![0u8; RING];
    ring.chunks_mut(64).for_each(|record| record[0] = 1);
    rustix::io::pwrite(File::from(theirs), &ring, 4096).expect("it is the client's");
    let mut room = vec![0; RING];
    for _ in 0..9 {
        assert_eq!(oms.read(&mut room), Ok(RING / 4 / 64), "a byte a line, of a quarter of the ring");
    }
}

#[test]
fn a_sleeping_side_is_rung() {
    let (oms, mut client) = pair();
    assert!(!client.must_wake_receiver());
    assert!(oms.announce_sleep() && client.must_wake_receiver());
    client.write(b"a").expect("there is room");
    assert!(!oms.announce_sleep(), "there is news");
    oms.withdraw_sleep();
    assert!(!client.must_wake_receiver());
}

#[test]
fn a_side_cannot_truncate_a_lane_or_write_to_the_other() {
    let (_oms, [theirs, ours]) = LanePair::create().expect("memory");
    for memory in [&theirs, &ours] {
        for bytes in [0, BYTES as u64 - 1, BYTES as u64 + 4096] {
            assert!(rustix::fs::ftruncate(memory, bytes).is_err());
        }
        assert!(rustix::fs::fcntl_add_seals(memory, rustix::fs::SealFlags::WRITE).is_err());
    }
    let reports = File::from(ours.try_clone().expect("a descriptor"));
    assert!((&reports).write_all(b"x").is_err());
    assert!(map(&ours, ProtFlags::READ | ProtFlags::WRITE).is_err());
    assert!(map(&ours, ProtFlags::READ).is_ok());
    let swapped = LanePair::join([ours, theirs]);
    assert!(swapped.is_err(), "the lane of reports cannot be written");
}

#[test]
fn unsealed_memory_is_not_joined() {
    let open = || -> OwnedFd { tempfile::tempfile().expect("a file").into() };
    assert!(LanePair::join([open(), open()]).is_err());
}

#[expect(unsafe_code, reason = "whether the kernel allows it is what is asked")]
fn map(memory: impl AsFd, protection: ProtFlags) -> rustix::io::Result<()> {
    // SAFETY: a new mapping at an address of the kernel's choice, which is never accessed.
    unsafe { rustix::mm::mmap(std::ptr::null_mut(), BYTES, protection, MapFlags::SHARED, memory, 0) }.map(drop)
}
