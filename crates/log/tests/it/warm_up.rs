//! Logs for the warm-up: like real logs, but apart from them.

use tickpath_log::{Next, ReaderStart, WarmUpLog};

use crate::{ALL_POLICIES, Dice, ScratchLog, payload, read_on, seed};

/// However wrong the guess, and however far behind the ring's readers, they find every message unchanged.
#[test]
fn reclaimed_cache_lines_hold_no_frame() {
    let mut dice = Dice::new(seed());
    for scratch in ALL_POLICIES.iter().flat_map(|&p| [ScratchLog::shared(p, 3), ScratchLog::on_disk(p, 3)]) {
        let mut writer = scratch.writer();
        let mut reader = scratch.reader(ReaderStart::Now);
        let (mut read, mut number) = (0, 0);
        while number < 2_000 {
            for turn in 0..dice.below(40) as u32 {
                writer.reclaim_lines(dice.below(5_000) as usize, turn);
            }
            let next = payload(number, dice.below(3_000) as usize);
            number += u64::from(writer.publish(number, 16, &next).is_ok());
            if dice.below(2) == 0 || number - read > 1 {
                read = read_on(&mut reader, read);
                assert_eq!(read, number);
            }
        }
        drop(writer);
        assert_eq!(scratch.writer().sequence(), number, "it is taken up where it ended");
    }
}

#[test]
fn a_warm_up_log_leaves_no_trace() {
    for scratch in ALL_POLICIES.iter().flat_map(|&p| [ScratchLog::shared(p, 3), ScratchLog::on_disk(p, 3)]) {
        let mut writer = scratch.writer();
        let mut reader = scratch.reader(ReaderStart::Now);
        let [mut of_writer, mut of_reader] =
            [writer.warm_up_log(), reader.warm_up_log()].map(|made| made.expect("memory"));
        for number in 0..500 {
            if number % 10 == 0 {
                let next = writer.sequence();
                assert_eq!(read_on(&mut reader, next), next, "nothing of a rehearsal is in the log");
                writer.publish(number, 16, &payload(next, 30)).expect("the reader has read all");
                assert_eq!(read_on(&mut reader, next), next + 1);
            }
            for WarmUpLog { writer, reader } in [&mut of_writer, &mut of_reader] {
                let bytes = payload(number, (number * 7 % WarmUpLog::MAX_PAYLOAD as u64) as usize);
                assert_eq!(writer.publish(number, 17, &bytes).expect("it takes all"), number);
                match reader.next().expect("it is sound") {
                    Next::Message(m) => assert_eq!((m.sequence, m.stamp, m.payload), (number, number, &bytes[..])),
                    other => panic!("{other:?} where message {number} is"),
                }
                assert_eq!(reader.next().expect("it is sound"), Next::Empty);
            }
            writer.warm_up(100);
        }
        assert_eq!(reader.readers().len(), 1);
    }
}
