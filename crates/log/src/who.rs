//! A process as others find it again: by its id, and by what tells it from whoever else has, had or will have that id.

use std::{fmt, fs, io};

/// A process for people. Zero is one that has no number here: it lives in another container, which shares the files and not the
/// numbers of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process(pub u32);

impl Process {
    /// Whether it is one that can be signalled from here, if at all.
    pub fn is_here(self) -> bool {
        self.0 != 0
    }

    /// By its role: `writer 7`, or `writer in another container`.
    pub fn called(self, role: &str) -> String {
        if self.is_here() { format!("{role} {}", self.0) } else { format!("{role} in another container") }
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_here() { write!(f, "process {}", self.0) } else { f.write_str("a process in another container") }
    }
}

/// No process id has more bits.
const PID_BITS: u32 = 22;
const BEGAN_BITS: u32 = 16;
const IMAGE_BITS: u32 = 15;

/// A process, and the program that it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Who {
    pub pid: u32,
    /// When the process began, as a checksum.
    began: u32,
    /// Where the stack of its program begins, which is another place after each `exec`, as a checksum. 0 if that is not for us
    /// to know.
    image: u32,
}

impl Who {
    /// Bits of [`Self::word`].
    pub const BITS: u32 = PID_BITS + BEGAN_BITS + IMAGE_BITS;

    /// This process. Where its own `/proc` cannot be read, or is another container's, its id alone names it.
    pub fn here() -> Self {
        let pid = std::process::id();
        match Self::read("/proc/self/stat") {
            Ok(Some(here)) if here.pid == pid => here,
            _ => Self { pid, began: 0, image: 0 },
        }
    }

    /// Named by its id alone.
    fn is_bare(self) -> bool {
        (self.began, self.image) == (0, 0)
    }

    /// As one word.
    pub fn word(self) -> u64 {
        let Self { pid, began, image } = self;
        (u64::from(image) << BEGAN_BITS | u64::from(began)) << PID_BITS | u64::from(pid) & mask(PID_BITS)
    }

    /// Whom a word names. Whoever wrote it may have made it up.
    pub fn of(word: u64) -> Self {
        let [pid, began, image] = [
            word & mask(PID_BITS),
            word >> PID_BITS & mask(BEGAN_BITS),
            word >> (PID_BITS + BEGAN_BITS) & mask(IMAGE_BITS),
        ]
        .map(|part| part as u32);
        Self { pid, began, image }
    }

    /// False if it has ended, or runs another program by now; also if it lives where this process, `us`, does not see it, as in
    /// another container. What cannot be read is no proof of an end: then it lives as long as somebody has its id.
    pub fn lives(self, us: Self) -> bool {
        if self.pid == us.pid {
            return self == us || self.is_bare() || us.is_bare();
        }
        let told = if us.is_bare() { Ok(None) } else { Self::read(&format!("/proc/{}/stat", self.pid)) };
        match told {
            Ok(Some(now)) if now.pid == self.pid && !self.is_bare() => {
                now.began == self.began && (now.image == self.image || now.image == 0)
            }
            Ok(Some(now)) if now.pid == self.pid => true,
            Err(e) if e.kind() == io::ErrorKind::InvalidData => false,
            _ => is_taken(self.pid),
        }
    }

    /// The process of such a file; `InvalidData` if it has ended and only waits for its parent to hear of it.
    fn read(path: &str) -> io::Result<Option<Self>> {
        let told = fs::read(path)?;
        let told = String::from_utf8_lossy(&told);
        Self::parse(&told).transpose()
    }

    /// None of what is no such file; an error of a process that has ended.
    fn parse(told: &str) -> Option<io::Result<Self>> {
        let pid = told.split_ascii_whitespace().next()?.parse().ok()?;
        // Before it is a name, which may hold anything.
        let (_, told) = told.rsplit_once(')')?;
        let fields: Vec<&str> = told.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - STATE).copied();
        // The first thread may have ended alone.
        let has_ended = matches!(field(STATE)?, "Z" | "X") && field(THREADS)?.parse::<u32>().ok()? < 2;
        if has_ended {
            return Some(Err(io::ErrorKind::InvalidData.into()));
        }
        let image = match field(STACK)? {
            "0" => 0,
            // Zero is taken.
            stack => (sum(stack) >> (32 - IMAGE_BITS)).max(1),
        };
        Some(Ok(Self { pid, began: sum(field(BEGAN)?) >> (32 - BEGAN_BITS), image }))
    }
}

/// Whether some process has this id, also one that nobody may signal.
fn is_taken(pid: u32) -> bool {
    let named = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    named.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// Numbers of fields in `/proc/PID/stat`, as its manual counts them.
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
    fn a_process_without_a_number_is_in_another_container() {
        assert_eq!(Process(7).to_string(), "process 7");
        assert_eq!(Process(0).to_string(), "a process in another container");
    }

    #[test]
    fn a_word_names_its_process() {
        let here = Who::here();
        assert!(here.lives(here) && here.image != 0, "{here:?}");
        assert_eq!(Who::of(here.word()), here);
        let most = Who { pid: 0x3f_ffff, began: 0xffff, image: 0x7fff };
        assert_eq!((most.word(), Who::of(most.word())), ((1 << Who::BITS) - 1, most));
        for other in [Who { began: here.began ^ 1, ..here }, Who { image: here.image ^ 0x4000, ..here }] {
            assert!(!other.lives(here), "{other:?} is not {here:?}");
        }
        // Where nobody can tell more, an id alone does.
        let bare = Who { pid: here.pid, began: 0, image: 0 };
        assert!(bare.lives(here) && here.lives(bare));
        let parent = Who { pid: std::os::unix::process::parent_id(), began: 0, image: 0 };
        assert!(parent.lives(here) && parent.lives(bare));
        let nobody = Who { pid: 0x3f_ffff, began: 0, image: 0 };
        assert!(!nobody.lives(here) && !nobody.lives(bare));
    }

    #[test]
    fn who_has_ended_does_not_live_though_its_parent_has_not_heard() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat starts");
        // `spawn` returns while the child may still be inside exec, where its image changes: an answer is from behind it.
        child.stdin.as_mut().unwrap().write_all(b"?").expect("cat reads");
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).expect("cat answers");
        let pid = child.id();
        let now = || Who::read(&format!("/proc/{pid}/stat"));
        let (begun, here) = (now().unwrap().expect("it waits for us"), Who::here());
        assert!(begun.lives(here));
        drop(child.stdin.take());
        // SAFETY: zeros are a value of it: numbers.
        let mut told: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the child is ours, and `told` a valid place for its end; nobody hears of that by this.
        let waited = unsafe { libc::waitid(libc::P_PID, pid, &mut told, libc::WEXITED | libc::WNOWAIT) };
        assert_eq!((waited, now().map_err(|e| e.kind())), (0, Err(io::ErrorKind::InvalidData)));
        assert!(!begun.lives(here));
        assert!(child.wait().expect("it has ended").success());
        assert!(!begun.lives(here));
    }
}
