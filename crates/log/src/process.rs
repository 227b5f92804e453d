//! Identity of a process: its id, and checksums that distinguish it from other processes that have or had that id.

use std::{fmt, fs, io};

/// A process id for display. Zero is a process of another container, which shares the files but no process ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessId(pub u32);

impl ProcessId {
    /// Returns true if the process has an id here, so that it could be signalled.
    pub fn is_local(self) -> bool {
        self.0 != 0
    }

    /// Formats the process with its role: `writer 7`, or `writer in another container`.
    pub fn with_role(self, role: &str) -> String {
        if self.is_local() { format!("{role} {}", self.0) } else { format!("{role} in another container") }
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_local() { write!(f, "process {}", self.0) } else { f.write_str("a process in another container") }
    }
}

/// Max bits of a process id.
const PID_BITS: u32 = 22;
const BEGAN_BITS: u32 = 16;
const IMAGE_BITS: u32 = 15;

/// A process, and the program that it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessIdentity {
    pub pid: u32,
    /// Start time of the process, as a checksum.
    began: u32,
    /// Start of the program's stack, which changes with each `exec`, as a checksum; 0 if this process may not read it.
    image: u32,
}

impl ProcessIdentity {
    /// Bits of [`Self::word`].
    pub const BITS: u32 = PID_BITS + BEGAN_BITS + IMAGE_BITS;

    /// Returns this process. The id alone identifies it where its `/proc` is unreadable, or is another container's.
    pub fn current() -> Self {
        let pid = std::process::id();
        match Self::read("/proc/self/stat") {
            Ok(Some(found)) if found.pid == pid => found,
            _ => Self { pid, began: 0, image: 0 },
        }
    }

    /// Returns true if the id alone identifies the process.
    fn is_bare(self) -> bool {
        (self.began, self.image) == (0, 0)
    }

    pub fn word(self) -> u64 {
        let Self { pid, began, image } = self;
        (u64::from(image) << BEGAN_BITS | u64::from(began)) << PID_BITS | u64::from(pid) & mask(PID_BITS)
    }

    /// Unpacks a word, which may be forged.
    pub fn from_word(word: u64) -> Self {
        let [pid, began, image] = [
            word & mask(PID_BITS),
            word >> PID_BITS & mask(BEGAN_BITS),
            word >> (PID_BITS + BEGAN_BITS) & mask(IMAGE_BITS),
        ]
        .map(|part| part as u32);
        Self { pid, began, image }
    }

    /// Returns false if the process has ended, runs another program by now, or lives in another container than `us`,
    /// this process. Where `/proc` is unreadable, it lives as long as a process has its id.
    pub fn is_alive(self, us: Self) -> bool {
        if self.pid == us.pid {
            return self == us || self.is_bare() || us.is_bare();
        }
        let found = if us.is_bare() { Ok(None) } else { Self::read(&format!("/proc/{}/stat", self.pid)) };
        match found {
            Ok(Some(now)) if now.pid == self.pid && !self.is_bare() => {
                now.began == self.began && (now.image == self.image || now.image == 0)
            }
            Ok(Some(now)) if now.pid == self.pid => true,
            Err(e) if e.kind() == io::ErrorKind::InvalidData => false,
            _ => pid_exists(self.pid),
        }
    }

    /// Reads a `stat` file; `InvalidData` if the process has ended and is a zombie.
    fn read(path: &str) -> io::Result<Option<Self>> {
        let stat = fs::read(path)?;
        Self::parse(&String::from_utf8_lossy(&stat)).transpose()
    }

    /// Parses a `stat` file; none for any other text, an error for a process that has ended.
    fn parse(stat: &str) -> Option<io::Result<Self>> {
        let pid = stat.split_ascii_whitespace().next()?.parse().ok()?;
        // The name before it may contain any character.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - STATE).copied();
        // The first thread may have ended alone.
        let has_ended = matches!(field(STATE)?, "Z" | "X") && field(THREADS)?.parse::<u32>().ok()? < 2;
        if has_ended {
            return Some(Err(io::ErrorKind::InvalidData.into()));
        }
        let image = match field(STACK)? {
            "0" => 0,
            // Zero means unreadable.
            stack => (sum(stack) >> (32 - IMAGE_BITS)).max(1),
        };
        Some(Ok(Self { pid, began: sum(field(BEGAN)?) >> (32 - BEGAN_BITS), image }))
    }
}

/// Returns true if a process has this id, also if it may not be signalled.
fn pid_exists(pid: u32) -> bool {
    let named = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    named.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// Numbers of fields in `/proc/PID/stat`, as proc(5) counts them.
const STATE: usize = 3;
const THREADS: usize = 20;
const BEGAN: usize = 22;
const STACK: usize = 28;

fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

fn sum(text: &str) -> u32 {
    crc32c::crc32c(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_without_an_id_is_in_another_container() {
        assert_eq!(ProcessId(7).to_string(), "process 7");
        assert_eq!(ProcessId(0).to_string(), "a process in another container");
    }

    #[test]
    fn a_word_names_its_process() {
        let current = ProcessIdentity::current();
        assert!(current.is_alive(current) && current.image != 0, "{current:?}");
        assert_eq!(ProcessIdentity::from_word(current.word()), current);
        let max = ProcessIdentity { pid: 0x3f_ffff, began: 0xffff, image: 0x7fff };
        assert_eq!((max.word(), ProcessIdentity::from_word(max.word())), ((1 << ProcessIdentity::BITS) - 1, max));
        for other in [
            ProcessIdentity { began: current.began ^ 1, ..current },
            ProcessIdentity { image: current.image ^ 0x4000, ..current },
        ] {
            assert!(!other.is_alive(current), "{other:?} is not {current:?}");
        }
        // Without more information, an id alone identifies a process.
        let bare = ProcessIdentity { pid: current.pid, began: 0, image: 0 };
        assert!(bare.is_alive(current) && current.is_alive(bare));
        let parent = ProcessIdentity { pid: std::os::unix::process::parent_id(), began: 0, image: 0 };
        assert!(parent.is_alive(current) && parent.is_alive(bare));
        let absent = ProcessIdentity { pid: 0x3f_ffff, began: 0, image: 0 };
        assert!(!absent.is_alive(current) && !absent.is_alive(bare));
    }

    #[test]
    fn a_zombie_process_is_dead() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat starts");
        // `spawn` may return while the child is inside exec, where its image changes: a reply comes after the exec.
        child.stdin.as_mut().unwrap().write_all(b"?").expect("cat reads");
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).expect("cat answers");
        let pid = child.id();
        let now = || ProcessIdentity::read(&format!("/proc/{pid}/stat"));
        let (begun, current) = (now().unwrap().expect("it waits for us"), ProcessIdentity::current());
        assert!(begun.is_alive(current));
        drop(child.stdin.take());
        // SAFETY: the struct is plain numbers, for which zeros are valid.
        let mut status: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the child is this process's, and `status` a valid place for its status; it stays a zombie by WNOWAIT.
        let waited = unsafe { libc::waitid(libc::P_PID, pid, &mut status, libc::WEXITED | libc::WNOWAIT) };
        assert_eq!((waited, now().map_err(|e| e.kind())), (0, Err(io::ErrorKind::InvalidData)));
        assert!(!begun.is_alive(current));
        assert!(child.wait().expect("it has ended").success());
        assert!(!begun.is_alive(current));
    }
}
