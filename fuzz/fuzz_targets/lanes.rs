//! Lanes between two processes, one of which writes anything into its memory: the other reads and writes no more than
//! it asked for, or refuses the lane.
//!
//! Input: a list of what is done: an operation, a place or a length, and eight bytes of a value.

#![no_main]

use std::fs::File;
use std::os::unix::fs::FileExt;

use libfuzzer_sys::fuzz_target;
use tickpath_log::LanePair;
use tickpath_oms_protocol::FrameBuffer;

/// Bytes of the memory of a lane.
const BYTES: u64 = 4096 + (256 << 10);

fuzz_target!(|input: &[u8]| {
    let (mut oms, [theirs, ours]) = LanePair::create().expect("memory");
    let memory = File::from(theirs.try_clone().expect("a descriptor"));
    let mut client = LanePair::join([theirs, ours]).expect("they are sound");
    let payload = vec![0xa5; 20_000];
    let (mut frames, mut room) = (FrameBuffer::default(), vec![0; 20_000]);
    for step in input.chunks_exact(11) {
        let length = usize::from(u16::from_le_bytes([step[1], step[2]])) % payload.len();
        let done = match step[0] % 8 {
            // A word of the head, or any bytes of the ring.
            0 => memory.write_all_at(&step[3..], length as u64 % 40 * 8).map(|()| 0).map_err(drop),
            1 => memory.write_all_at(&step[3..], length as u64 * 13 % (BYTES - 8)).map(|()| 0).map_err(drop),
            2 => oms.write(&payload[..length]).map_err(drop),
            3 => client.write(&payload[..length]).map_err(drop),
            4 => client.read(&mut room[..length]).map_err(drop),
            5 => Ok(usize::from(oms.has_room()) + usize::from(oms.must_wake_sender())),
            6 => Ok(usize::from(oms.announce_sleep()) + usize::from(oms.must_wake_receiver())),
            _ => oms.read(&mut room[..length]).map_err(drop),
        };
        // A side that has broken its lane has lost its session.
        let Ok(done) = done else { return };
        assert!(done <= length.max(2), "more than was asked for");
        if step[0] % 8 > 6 {
            let mut received = &room[..done];
            while !received.is_empty() {
                let space = frames.free_space();
                let taken = received.len().min(space.len());
                space[..taken].copy_from_slice(&received[..taken]);
                frames.advance(taken);
                received = &received[taken..];
                loop {
                    match frames.next() {
                        Ok(Some(_)) => {}
                        Ok(None) => break,
                        Err(_) => return,
                    }
                }
            }
        }
    }
});
