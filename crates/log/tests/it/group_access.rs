//! Users who share a log: by the mode of its files, and by a named group.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};

use tickpath_clock::Calibration;
use tickpath_log::{
    Config, LogOpenError, LogPath, OverflowPolicy, QueueDelivery, QueuePuller, Reader, ReaderStart, Registration,
    Writer,
};

use crate::ScratchLog;
use crate::other_users::RemovedPath;
use crate::process::{ChildProcess, print_number};

const STRANGER: u32 = 65_534;
const GROUP: u32 = 65_533;

/// Runs the role of a child: sends whether it may read, 1 or 0.
pub fn child(place: &LogPath) {
    let read = Reader::open(place, ReaderStart::Oldest, Registration::Registered);
    print_number(u64::from(read.is_ok()));
}

#[test]
fn a_mode_for_a_group_names_the_group_of_this_process() {
    let mut scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    let _cleaned = RemovedPath(scratch.place().dir().to_owned());
    scratch.config.mode = 0o660;
    drop(scratch.queue());
    share(scratch.place(), None);
    drop(scratch.queue());
    let refused = read(scratch.place()).expect_err("a reader has named no group").to_string();
    assert!(refused.contains("group") && refused.contains("can write to"), "{refused}");
    scratch.config.mode = 0o600;
    let refused = Writer::open(&scratch.config, &Calibration::nanoseconds()).err().expect("it wants no group");
    assert!(matches!(refused, LogOpenError::Distrusted { .. }), "{refused}");
    read(&scratch.place().clone().shared_with(rustix::process::getegid().as_raw())).expect("it is named");
}

#[test]
fn members_of_a_named_group_may_own_a_log() {
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    let _cleaned = RemovedPath(scratch.place().dir().to_owned());
    drop(scratch.queue());
    if !rustix::process::geteuid().is_root() {
        // Only root can make files in another user's name; without a name they belong to this user.
        read(scratch.place()).expect("it is this user's");
        return;
    }
    share(scratch.place(), Some((STRANGER, GROUP)));
    let shared = scratch.place().clone().shared_with(GROUP);
    assert!(read(scratch.place()).is_err() && read(&scratch.place().clone().shared_with(GROUP - 1)).is_err());
    read(&shared).expect("its owner is a member");
    QueuePuller::open(&shared, QueueDelivery::AtLeastOnce).expect("its owner is a member");
    let config = Config { path: shared.clone(), ..scratch.config.clone() };
    Writer::open_queue(&config, &Calibration::nanoseconds()).expect("its owner is a member");
    for (group, expected) in [("65533", 1), ("65532", 0)] {
        let environment = [("TICKPATH_GROUP", group)];
        let mut child = ChildProcess::start_with("group reader", scratch.place(), OverflowPolicy::Fail, &environment);
        assert_eq!(child.lines.next_number(), Some(expected), "TICKPATH_GROUP={group}");
    }
    let data = scratch.data();
    fs::set_permissions(&data, Permissions::from_mode(0o666)).expect("root may");
    let refused = read(&shared).expect_err("everybody can write to it").to_string();
    assert!(refused.contains("every user can write to"), "{refused}");
    shared.remove().expect("its owner is a member");
}

#[test]
fn a_world_writable_mode_is_refused() {
    let mut scratch = ScratchLog::shared(OverflowPolicy::Overwrite, 2);
    scratch.config.mode = 0o666;
    let refused = Writer::open(&scratch.config, &Calibration::nanoseconds()).err().expect("any user could change it");
    assert!(refused.to_string().contains("the mode 0666 lets every user"), "{refused}");
    assert!(!scratch.place().dir().exists(), "nothing was made");
}

fn read(place: &LogPath) -> Result<(), LogOpenError> {
    Reader::open(place, ReaderStart::Oldest, Registration::Registered).map(drop)
}

/// Lets a group write to a log, whatever the umask of this process; changes owner and group if they are given.
fn share(place: &LogPath, owner: Option<(u32, u32)>) {
    let files = fs::read_dir(place.dir()).expect("it is there").map(|file| file.expect("it is there").path());
    for path in files.chain([place.dir().to_owned()]) {
        if let Some((user, group)) = owner {
            chown(&path, Some(user), Some(group)).expect("root may");
        }
        let mode = if path.is_dir() { 0o770 } else { 0o660 };
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("root may, and so may the owner");
    }
}
