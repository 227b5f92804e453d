//! What is lost is told, also where no publisher's number tells it.

use tickpath_bus_api::conformance::pull_stamps;
use tickpath_bus_api::{Delivery, ReceiveError};

use crate::broker::{Scratch, puller, pusher};
use crate::relay::Mode;
use crate::server::relayed;

const KIND: u8 = 16;

#[test]
fn what_is_taken_out_of_a_queue_without_an_answer_is_told() {
    let scratch = Scratch::new("taken");
    let (relay, bus) = relayed();
    pusher(&scratch.bus, &scratch.name).push_batch(1, KIND, &[&b"message"[..]; 3]).unwrap();
    let mut cut_off = puller(&bus, &scratch.name, Delivery::AtMostOnce);
    // All of them are on their way to it, and come before the answer to what it says of the first one.
    scratch.until_waiting(0);
    assert_eq!(pull_stamps(&mut *cut_off, 1).len(), 1);

    relay.set(Mode::Mute);
    match cut_off.pull(8, &mut |pulled| panic!("handed over, and perhaps still in the queue: {pulled:?}")) {
        Err(ReceiveError::Gone(sentence)) => {
            assert!(sentence.starts_with("2 messages") && sentence.contains("may be gone"), "{sentence}");
        }
        other => panic!("{other:?}"),
    }
    relay.set(Mode::Open);
    pusher(&scratch.bus, &scratch.name).push(2, KIND, b"after").unwrap();
    assert_eq!(pull_stamps(&mut *cut_off, 1), [(2, false)], "the broker had heard it, and it is told once");
    drop(cut_off);
    scratch.until_waiting(0);
}
