//! Shared words of a bench that was killed are removed by the next bench.

use std::process::Command;

use tickpath_lab_harness::Lab;
use tickpath_log::SharedWords;

#[test]
fn only_shared_words_of_a_killed_bench_are_removed() {
    let mut gone = Command::new("true").spawn().expect("it is there");
    gone.wait().expect("it ends");
    let [dead, living] = [gone.id(), std::process::id()].map(|pid| format!("lab-{pid}.test.transfer"));
    for name in [&dead, &living] {
        SharedWords::open(name).expect("shared memory takes a page");
    }
    let lab = Lab::new("/nonexistent".into(), &()).expect("a lab can be made");
    let left = SharedWords::all().expect("shared memory can be listed");
    assert!(!left.contains(&dead) && left.contains(&living), "{left:?}");
    drop(lab);
    SharedWords::remove(&living).expect("it is ours");
}
