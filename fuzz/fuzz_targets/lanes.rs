//! Lanes between two processes, one of which writes anything into its memory: the other reads and writes no more than it
//! asked for, or refuses the lane.
//!
//! Input: a list of what is done: an operation, a place or a length, and eight bytes of a value.

#![no_main]

use std::fs::File;
use std::os::unix::fs::FileExt;

use libfuzzer_sys::fuzz_target;
use tickpath_log::Lanes;
use tickpath_oms_protocol::Inbox;

/// Bytes of the memory of a lane.
const BYTES: u64 = 4096 + (256 << 10);

fuzz_target!(|input: &[u8]| {
    let (mut oms, [theirs, ours]) = Lanes::make().expect("memory");
    let memory = File::from(theirs.try_clone().expect("a descriptor"));
    let mut client = Lanes::join([theirs, ours]).expect("they are sound");
    let said = vec![0xa5; 20_000];
    let (mut inbox, mut room) = (Inbox::default(), vec![0; 20_000]);
    for step in input.chunks_exact(11) {
        let length = usize::from(u16::from_le_bytes([step[1], step[2]])) % said.len();
        let done = match step[0] % 8 {
            // A word of the head, or any bytes of the ring.
            0 => memory.write_all_at(&step[3..], length as u64 % 40 * 8).map(|()| 0).map_err(drop),
            1 => memory.write_all_at(&step[3..], length as u64 * 13 % (BYTES - 8)).map(|()| 0).map_err(drop),
            2 => oms.write(&said[..length]).map_err(drop),
            3 => client.write(&said[..length]).map_err(drop),
            4 => client.read(&mut room[..length]).map_err(drop),
            5 => Ok(usize::from(oms.has_room()) + usize::from(oms.must_ring_for_room())),
            6 => Ok(usize::from(oms.sleeps()) + usize::from(oms.must_ring_for_news())),
            _ => oms.read(&mut room[..length]).map_err(drop),
        };
        // Whoever broke its lane has lost its session.
        let Ok(done) = done else { return };
        assert!(done <= length.max(2), "more than was asked for");
        if step[0] % 8 > 6 {
            let mut heard = &room[..done];
            while !heard.is_empty() {
                let place = inbox.room();
                let taken = heard.len().min(place.len());
                place[..taken].copy_from_slice(&heard[..taken]);
                inbox.filled(taken);
                heard = &heard[taken..];
                loop {
                    match inbox.next() {
                        Ok(Some(_)) => {}
                        Ok(None) => break,
                        Err(_) => return,
                    }
                }
            }
        }
    }
});
