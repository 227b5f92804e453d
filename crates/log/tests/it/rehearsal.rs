//! Logs to rehearse on: like the real ones, and nothing to do with them.

use tickpath_log::{Next, Rehearsal, Start};

use crate::{ALL_POLICIES, Scratch, payload, read_on};

#[test]
fn a_rehearsal_leaves_no_trace() {
    for scratch in ALL_POLICIES.iter().flat_map(|&p| [Scratch::shared(p, 3), Scratch::on_disk(p, 3)]) {
        let mut writer = scratch.writer();
        let mut reader = scratch.reader(Start::Now);
        let [mut of_writer, mut of_reader] = [writer.rehearsal(), reader.rehearsal()].map(|made| made.expect("memory"));
        for number in 0..500 {
            if number % 10 == 0 {
                let next = writer.sequence();
                assert_eq!(read_on(&mut reader, next), next, "nothing of a rehearsal is in the log");
                writer.publish(number, 16, &payload(next, 30)).expect("the reader has read all");
                assert_eq!(read_on(&mut reader, next), next + 1);
            }
            for Rehearsal { writer, reader } in [&mut of_writer, &mut of_reader] {
                let bytes = payload(number, (number * 7 % Rehearsal::MAX_PAYLOAD as u64) as usize);
                assert_eq!(writer.publish(number, 17, &bytes).expect("it takes all"), number);
                match reader.next().expect("it is sound") {
                    Next::Message(m) => assert_eq!((m.sequence, m.stamp, m.payload), (number, number, &bytes[..])),
                    other => panic!("{other:?} where message {number} is"),
                }
                assert_eq!(reader.next().expect("it is sound"), Next::Empty);
            }
            writer.keep_warm(100);
        }
        assert_eq!(reader.readers().len(), 1);
    }
}
