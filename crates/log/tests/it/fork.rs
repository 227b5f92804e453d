//! Forked children: they have a copy of every writer and reader on the same memory, and must leave it alone.

use std::os::unix::fs::FileExt;

use tickpath_clock::Calibration;
use tickpath_log::{LogPublishError, LogReadError, OverflowPolicy, QueueDelivery, Reader, ReaderStart, Writer};

use crate::{ALL_POLICIES, ScratchLog, payload, pull, read_on};

#[test]
fn a_fork_does_not_publish() {
    for policy in ALL_POLICIES {
        let scratch = ScratchLog::shared(policy, 2);
        let mut writer = scratch.writer();
        let mut reader = scratch.reader(ReaderStart::Now);
        let publish = |writer: &mut Writer| writer.publish(0, 16, &payload(0, 9));
        assert!(in_a_fork(|| matches!(publish(&mut writer), Err(LogPublishError::Forked))));
        assert!(in_a_fork(
            || matches!(writer.publish_batch(0, 16, &[b"x"]), Err(e) if matches!(e.error, LogPublishError::Forked))
        ));
        assert!(in_a_fork(|| matches!(writer.check_room(9), Err(LogPublishError::Forked))));
        // Behind the tail, as if the writer had continued meanwhile.
        let data = std::fs::OpenOptions::new().write(true).open(scratch.data()).expect("the log is there");
        data.write_all_at(&[7; 1000], 4096 + 2000).expect("a page");
        let before = std::fs::read(scratch.data()).expect("the log is there");
        assert!(in_a_fork(|| {
            (0..100).for_each(|turn| writer.reclaim_lines(3000, turn));
            true
        }));
        assert!(before == std::fs::read(scratch.data()).expect("the log is there"));
        publish(&mut writer).expect("the writer itself goes on");
        assert_eq!(read_on(&mut reader, 0), 1);
    }
}

#[test]
fn a_fork_does_not_recreate_a_log() {
    for file in ["data", "writer.lock"] {
        let scratch = ScratchLog::shared(OverflowPolicy::Overwrite, 2);
        let mut writer = scratch.writer();
        std::fs::remove_file(scratch.data().with_file_name(file)).expect("the log is there");
        assert!(writer.is_removed());
        let (config, clock) = (scratch.config.clone(), Calibration::nanoseconds());
        assert!(in_a_fork(|| writer.is_forked() && writer.recreate(&config, &clock).is_err()));
        assert!(!scratch.data().with_file_name(file).exists(), "{file}");
        writer.recreate(&config, &clock).expect("no other process has it open");
        assert!(!writer.is_removed() && !writer.is_forked());
    }
}

#[test]
fn a_fork_does_not_move_the_cursor() {
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    let mut writer = scratch.writer();
    let mut reader = scratch.reader(ReaderStart::Now);
    (0..10).for_each(|number| assert!(writer.publish(0, 16, &payload(number, 9)).is_ok()));
    let is_refused = |reader: &mut Reader| {
        let next = matches!(reader.next(), Err(LogReadError::Forked));
        next && matches!(reader.drain(9, |_| ()), Err(LogReadError::Forked))
    };
    assert!(in_a_fork(|| is_refused(&mut reader)));
    assert_eq!(reader.readers()[0].cursor, 0);
    assert_eq!(read_on(&mut reader, 0), 10, "the reader itself goes on");
}

#[test]
fn a_fork_does_not_use_a_queue() {
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    let mut writer = scratch.queue();
    let mut puller = scratch.puller(QueueDelivery::AtLeastOnce);
    assert!(in_a_fork(|| matches!(writer.publish(0, 16, b"x"), Err(LogPublishError::Forked))));
    for number in 0..2 {
        writer.publish(0, 16, &payload(number, 9)).expect("there is room");
    }
    assert_eq!(pull(&mut puller, 1), [(0, false)]);
    assert!(in_a_fork(|| {
        let refused = matches!(puller.pull(9, |_| ()), Err(LogReadError::Forked));
        puller.acknowledge();
        refused
    }));
    drop(puller);
    let mut puller = scratch.puller(QueueDelivery::AtLeastOnce);
    assert_eq!(pull(&mut puller, 9), [(0, true), (1, false)], "the fork has acknowledged nothing");
}

/// Seconds after which a stalled child is killed.
const MAX_SECONDS: u32 = 60;

/// Returns true if `work` does in a child, which is killed if it hangs. It must neither panic nor print: other threads
/// may have held locks. It may allocate, because the C library handles forks.
pub fn in_a_fork(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs `work` alone, which needs no lock of another thread, and ends without running anything of
    // the parent's.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: without a handler the signal ends this process.
        unsafe { libc::alarm(MAX_SECONDS) };
        let good = work();
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(if good { 0 } else { 1 }) };
    }
    assert!(child > 0, "no fork: {}", std::io::Error::last_os_error());
    let mut status = 0;
    // SAFETY: the process is a child of this test, and `status` a valid place for its end.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}
