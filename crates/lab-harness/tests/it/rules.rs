//! Rules for every workload, on invented runs.

use tickpath_lab_harness::rules::note_reconnects;
use tickpath_lab_result::Run;

#[test]
fn reconnects_of_either_end_are_counted_or_noted_as_unknown() {
    let nothing: &[&str] = &[];
    for (sender, receiver, count, notes) in [
        (Some(0), Some(0), None, nothing),
        (Some(1), Some(0), Some(1.0), &["the sender's connection was lost and made again once"]),
        (
            Some(2),
            Some(1),
            Some(3.0),
            &[
                "the sender's connection was lost and made again 2 times",
                "the receiver's connection was lost and made again once",
            ],
        ),
        (None, Some(0), None, &["the sender's client does not report reconnects"]),
    ] {
        let mut run = Run { valid: true, ..Run::default() };
        note_reconnects(&mut run, "sender", sender);
        note_reconnects(&mut run, "receiver", receiver);
        assert_eq!((run.figures.get("reconnects").copied(), run.valid), (count, true), "{run:?}");
        assert_eq!(run.notes, notes, "{sender:?}, {receiver:?}");
    }
}
