//! Another user of the host takes the name of a log first, or makes a file in its folder. Its files are not used, no
//! file of this user is changed through them, and no open waits for them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, Mode, mkfifoat};
use tickpath_clock::Calibration;
use tickpath_log::{
    Config, Counters, CountersReader, LogOpenError, LogPath, OverflowPolicy, QueueDelivery, QueuePuller, Reader,
    ReaderStart, Registration, SharedWords, Writer, force_remove, owner, queue_backlog, remove_stale,
};

use crate::ScratchLog;

/// Id of another user. Only root can make files in its name.
const STRANGER: u32 = 65_534;

const ALL: [&str; 11] = [
    "write",
    "write untrusted",
    "join",
    "push",
    "read",
    "look",
    "read untrusted",
    "look untrusted",
    "pull",
    "wait",
    "owner",
];

/// The files of a queue, each with the ways to a log that open it.
const FILES: [(&str, &[&str]); 5] = [
    ("data", &ALL),
    ("control", &["write", "write untrusted", "join", "push", "read", "read untrusted", "pull", "wait"]),
    ("queue", &["push", "pull", "wait"]),
    ("writer.lock", &["write", "write untrusted", "join", "push"]),
    ("readers.lock", &["read", "read untrusted", "pull"]),
];

/// An attack of another user on a file of a log, with the words of the error.
type Attack = (fn(&Path), &'static str);

const ATTACKS: [Attack; 5] = [
    (open_to_all, "every user can write to"),
    (open_to_a_group, "can write to"),
    (link, "is a symbolic link"),
    (pipe, "is no regular file"),
    (give_away, "belongs to user 65534"),
];

#[test]
fn a_log_of_this_user_is_opened_in_each_way() {
    let scratch = queue();
    for (way, refusal) in ways(&scratch.config) {
        assert_eq!(refusal, None, "{way}");
    }
}

#[test]
fn a_file_of_another_user_or_writable_by_one_is_refused() {
    for (attack, words) in attacks() {
        for (file, users) in FILES {
            let scratch = queue();
            let _cleaned = RemovedPath(scratch.place().dir().to_owned());
            let path = scratch.place().dir().join(file);
            attack(&path);
            let config = scratch.config.clone();
            let found = bounded(move || ways(&config));
            for (way, refusal) in found.into_iter().filter(|(way, _)| users.contains(way)) {
                let refusal = refusal.unwrap_or_else(|| panic!("{way}: {file} was taken, which {words}"));
                assert!(refusal.contains(words), "{way}, {file}: {refusal}");
                assert!(refusal.contains(&path.display().to_string()), "{way}, {file}: {refusal}");
            }
        }
    }
}

#[test]
fn a_folder_of_another_user_or_writable_by_one_is_refused() {
    for (attack, words) in attacks() {
        let scratch = queue();
        let dir = scratch.place().dir().to_owned();
        let _cleaned = RemovedPath(dir.clone());
        if words == "is no regular file" {
            continue;
        }
        attack(&dir);
        if words != "is a symbolic link" {
            // As a user with write access would: files that look like a log, and belong to this user.
            let mode = fs::metadata(&dir).expect("it is there").permissions().mode() & 0o777;
            fs::set_permissions(&dir, Permissions::from_mode(mode | 0o100)).expect("it is ours, or we are root");
        }
        for (way, refusal) in ways(&scratch.config) {
            let refusal = refusal.unwrap_or_else(|| panic!("{way}: a folder was taken that {words}"));
            assert!(refusal.contains(words) && refusal.contains(dir.to_str().expect("a text")), "{way}: {refusal}");
        }
        let held = |file: &str| dir.join(file).exists();
        assert!(scratch.place().remove().is_err() && remove_stale(scratch.place()).is_err(), "{words}");
        assert!(FILES.iter().all(|(file, _)| held(file)), "nothing was removed where a folder {words}");
    }
}

/// The original attack: `control.new` is a link, and the log's writer truncates the file behind it.
#[test]
fn a_link_in_the_place_of_a_draft_leads_nowhere() {
    for draft in ["control.new", "data.new", "queue.new"] {
        for is_strangers in [false, true] {
            let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
            let dir = scratch.place().dir().to_owned();
            let _cleaned = RemovedPath(dir.clone());
            let elsewhere = tempfile::tempdir().expect("a temporary folder can be made");
            let precious = elsewhere.path().join("precious");
            fs::write(&precious, b"an order journal").expect("it can be written");
            fs::create_dir(&dir).expect("it is new");
            symlink(&precious, dir.join(draft)).expect("the folder is ours");
            if is_strangers && chown(&dir, Some(STRANGER), None).is_err() {
                continue;
            }
            let made = Writer::open_queue(&scratch.config, &Calibration::nanoseconds());
            assert_eq!(made.is_ok(), !is_strangers, "{draft}");
            assert_eq!(fs::read(&precious).expect("it is there"), b"an order journal", "{draft}");
        }
    }
}

/// A link in shared memory with a topic's name leads to a journal: removing the topic must not remove the journal.
#[test]
fn a_link_in_the_place_of_a_folder_is_removed_alone() {
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    let link = scratch.place().dir().to_owned();
    let _cleaned = RemovedPath(link.clone());
    let journal = ScratchLog::on_disk(OverflowPolicy::Keep, 0);
    drop(journal.writer());
    symlink(journal.place().dir(), &link).expect("it is new");
    assert!(scratch.place().remove().is_err());
    assert!(remove_stale(scratch.place()).is_err());
    assert!(journal.place().exists() && link.exists());
    force_remove(scratch.place()).expect("it is our link");
    assert!(fs::symlink_metadata(&link).is_err(), "the link has gone");
    journal.reader(ReaderStart::Oldest);
    journal.writer();
}

/// A folder of this user's log may lie elsewhere; a link of another user to it is not followed.
#[test]
fn on_a_disk_a_link_is_followed_if_it_is_this_users() {
    let scratch = ScratchLog::on_disk(OverflowPolicy::Keep, 0);
    drop(scratch.writer());
    let dir = scratch.place().dir();
    fs::rename(dir, dir.with_file_name("elsewhere")).expect("it is ours");
    symlink("elsewhere", dir).expect("nothing is there now");
    scratch.reader(ReaderStart::Oldest);
    scratch.writer();
    if lchown(dir, Some(STRANGER), None).is_ok_and(|()| rustix::process::geteuid().is_root()) {
        let refused = Reader::open(scratch.place(), ReaderStart::Oldest, Registration::Registered);
        let refused = refused.err().expect("another user has made the link").to_string();
        assert!(refused.contains("belongs to user 65534"), "{refused}");
    }
}

#[test]
fn counters_and_words_of_another_user_are_refused() {
    for (attack, words) in attacks() {
        let place = ScratchLog::shared(OverflowPolicy::Fail, 2).place().clone();
        let _cleaned = RemovedPath(place.dir().to_owned());
        let counters = Counters::open(&place, 1, &[("orders".to_owned(), 1)]).expect("there is no other writer");
        attack(&place.dir().join("words"));
        let read = bounded({
            let place = place.clone();
            move || CountersReader::open(&place).err().map(|e| e.to_string())
        });
        let refusal = read.unwrap_or_else(|| panic!("counters were read though the file {words}"));
        assert!(refusal.contains(words), "{refusal}");
        drop(counters);

        let name = format!("test-{}-own", std::process::id());
        let path = PathBuf::from(format!("/dev/shm/tickpath.{name}.words"));
        let _cleaned = RemovedPath(path.clone());
        drop(SharedWords::open(&name).expect("it is new"));
        attack(&path);
        let refused = bounded(move || SharedWords::open(&name).err().map(|e| e.to_string()));
        let refusal = refused.unwrap_or_else(|| panic!("bare words were mapped though the file {words}"));
        assert!(refusal.contains(words), "{refusal}");
    }
}

/// Tries each way to open a log; returns the words of each error.
fn ways(config: &Config) -> Vec<(&'static str, Option<String>)> {
    let (place, clock) = (&config.path, Calibration::nanoseconds());
    type OpenCall = fn(&LogPath, &Config, &Calibration) -> Result<(), LogOpenError>;
    let way: [OpenCall; ALL.len()] = [
        |_, config, clock| Writer::open(config, clock).map(drop),
        |_, config, clock| Writer::open_untrusted(config, clock).map(drop),
        |_, config, clock| Writer::open_existing(config, clock).map(drop),
        |_, config, clock| Writer::open_queue(config, clock).map(drop),
        |place, _, _| Reader::open(place, ReaderStart::Oldest, Registration::Registered).map(drop),
        |place, _, _| Reader::open(place, ReaderStart::Oldest, Registration::Unregistered).map(drop),
        |place, _, _| Reader::open_untrusted(place, ReaderStart::Oldest).map(drop),
        |place, _, _| Reader::observe_untrusted(place).map(drop),
        |place, _, _| QueuePuller::open(place, QueueDelivery::AtLeastOnce).map(drop),
        |place, _, _| queue_backlog(place).map(drop),
        |place, _, _| owner(place).map(drop),
    ];
    let open = |way: fn(&LogPath, &Config, &Calibration) -> Result<(), LogOpenError>| {
        way(place, config, &clock).err().map(|e| e.to_string())
    };
    ALL.into_iter().zip(way.map(open)).collect()
}

/// Makes a queue without any process at it.
fn queue() -> ScratchLog {
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    drop(scratch.queue());
    scratch
}

/// Returns the attacks that this user can perform: files of another user can only be made by root.
fn attacks() -> impl Iterator<Item = Attack> {
    let is_root = rustix::process::geteuid().is_root();
    ATTACKS.into_iter().filter(move |(_, words)| is_root || !words.contains("belongs"))
}

fn open_to_all(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o666)).expect("it is ours");
}

fn open_to_a_group(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o660)).expect("it is ours");
}

fn give_away(path: &Path) {
    chown(path, Some(STRANGER), None).expect("root may");
}

/// Moves a file aside, and puts a link to it in its place.
fn link(path: &Path) {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".behind");
    fs::rename(path, &aside).expect("it is ours");
    symlink(&aside, path).expect("nothing is there now");
}

fn pipe(path: &Path) {
    fs::remove_file(path).expect("it is ours");
    mkfifoat(CWD, path, Mode::from_raw_mode(0o600)).expect("nothing is there now");
}

/// Returns the result of `ask`; panics if it takes longer than 60 s.
fn bounded<T: Send + 'static>(ask: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = channel();
    thread::spawn(move || tell.send(ask()));
    told.recv_timeout(Duration::from_secs(60)).expect("an open must not wait for another user")
}

/// A path that is removed at a test's end, with the file that an attack has moved aside.
pub struct RemovedPath(pub PathBuf);

impl Drop for RemovedPath {
    fn drop(&mut self) {
        let mut aside = self.0.as_os_str().to_owned();
        aside.push(".behind");
        for path in [self.0.clone(), aside.into()] {
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
    }
}
