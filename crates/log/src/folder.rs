//! Folder of a log, opened once and checked, and the files in it by their names.
//!
//! Every user of a host may create files in `/dev/shm` and `/tmp`. So another user can claim the name of a log first:
//! with files that look like a log, with links to files of this user, or with a pipe on which an open blocks for ever.
//!
//! ```text
//!   open the folder ─────────> owner, mode
//!   openat(folder, name) ────> owner, mode, regular file ────> map, lock, write
//!     NOFOLLOW, NONBLOCK, and EXCL for a file that is made
//! ```
//!
//! A folder or file is trusted if it belongs to the user of this process or to root, and no other user can write to it.
//! The members of a group are trusted too where that is configured: by `Config::mode`, by `LogPath::shared_with`, or by
//! `TICKPATH_GROUP` in the environment. The checks use the opened descriptor and not the path, so that a rename between
//! the check and the use changes nothing.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, readlinkat, renameat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;
use tickpath_clock::SetOnce;

use crate::mapping::Access;

/// Environment variable for the group whose members share logs with this user: a number, or a name in `/etc/group`.
const GROUP: &str = "TICKPATH_GROUP";
/// Max symbolic links followed to one folder.
const MAX_LINKS: usize = 8;

/// Reason why a folder or a file is not used: another user has created it, or could change it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UntrustedPath {
    /// The folder or file belongs to another user.
    #[error(
        "{} belongs to user {owner}, and this program runs as user {user} and trusts that user and root alone; remove it, or run as user {owner}",
        .path.display()
    )]
    Owner {
        /// The folder or file.
        path: PathBuf,
        /// User id of its owner.
        owner: u32,
        /// Effective user id of this process.
        user: u32,
    },
    /// Every user of the host can write to the folder or file.
    #[error("every user can write to {}; look at what it holds, then run chmod o-w on it or remove it", .0.display())]
    WorldWritable(PathBuf),
    /// An untrusted group can write to the folder or file.
    #[error(
        "group {group} can write to {}; run chmod g-w on it, or set TICKPATH_GROUP={group} if its members are trusted",
        .path.display()
    )]
    Group {
        /// The folder or file.
        path: PathBuf,
        /// Group id.
        group: u32,
    },
    /// A symbolic link.
    #[error("{} is a symbolic link, which another user may have made; remove it", .0.display())]
    Link(PathBuf),
    /// A pipe, a folder, a device or a socket.
    #[error("{} is no regular file; remove it", .0.display())]
    NotRegularFile(PathBuf),
    /// A file with a second name, which may be any file of this user.
    #[error("{} is a hard link to a file that has another name too; remove it", .0.display())]
    HardLink(PathBuf),
}

impl From<UntrustedPath> for io::Error {
    fn from(reason: UntrustedPath) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, reason)
    }
}

/// Treatment of a symbolic link in the place of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SymlinkPolicy {
    /// Never followed: any user may have created it.
    Refused,
    /// Followed if it belongs to a trusted user.
    Checked,
}

pub(crate) struct CheckedFolder {
    folder: File,
    path: PathBuf,
    trusted: TrustedGroups,
}

impl CheckedFolder {
    /// Opens the folder at this path and checks it. The members of `group` are trusted, if it is given.
    pub fn open(path: &Path, links: SymlinkPolicy, group: Option<u32>) -> io::Result<Self> {
        let trusted = TrustedGroups { groups: [group, configured_group()?] };
        // Without a trailing slash, which would follow a link.
        let mut path: PathBuf = path.components().collect();
        for _ in 0..MAX_LINKS {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let folder = File::from(openat(CWD, &path, flags, Mode::empty())?);
            let metadata = folder.metadata()?;
            if metadata.is_dir() {
                trusted.check(&path, &metadata)?;
                return Ok(Self { folder, path, trusted });
            }
            if !metadata.is_symlink() {
                return Err(Errno::NOTDIR.into());
            }
            if links == SymlinkPolicy::Refused {
                return Err(UntrustedPath::Link(path).into());
            }
            trusted.check_owner(&path, &metadata)?;
            let target = readlinkat(&folder, "", Vec::<u8>::new())?;
            path.pop();
            path.push(OsStr::from_bytes(target.to_bytes()));
        }
        Err(Errno::LOOP.into())
    }

    /// Opens a folder in which every user may create files, as in `/dev/shm`: only the files opened in it are checked.
    fn public(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = File::from(openat(CWD, path, flags, Mode::empty())?);
        Ok(Self { folder, path: path.to_owned(), trusted: TrustedGroups { groups: [None; 2] } })
    }

    pub fn open_file(&self, name: &str, access: Access) -> io::Result<File> {
        let access = match access {
            Access::Read => OFlags::RDONLY,
            Access::Write => OFlags::RDWR,
        };
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let path = || self.path.join(name);
        let opened = openat(&self.folder, name, flags, Mode::empty()).map_err(|e| match e {
            Errno::LOOP => io::Error::from(UntrustedPath::Link(path())),
            Errno::NXIO => io::Error::from(UntrustedPath::NotRegularFile(path())),
            e => e.into(),
        });
        let file = File::from(opened?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(UntrustedPath::NotRegularFile(path()).into());
        }
        self.trusted.check(&path(), &metadata)?;
        Ok(file)
    }

    /// Opens an existing lock file: read-only, where its owner allows no more.
    pub fn open_lock(&self, name: &str) -> io::Result<File> {
        match self.open_file(name, Access::Write) {
            Err(e) if matches!(Errno::from_io_error(&e), Some(Errno::ACCESS | Errno::PERM)) => {
                self.open_file(name, Access::Read)
            }
            opened => opened,
        }
    }

    /// Opens a lock file, or creates it with this mode.
    pub fn open_or_create(&self, name: &str, mode: u32) -> io::Result<File> {
        loop {
            match self.open_lock(name) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                opened => return opened,
            }
            match self.make(name, mode) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {} // Another process was faster.
                made => return made,
            }
        }
    }

    /// Creates a file that is to be renamed once it is complete. Removes the leftover of a killed process first.
    pub fn draft(&self, name: &str, mode: u32) -> io::Result<File> {
        match self.remove(name) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => self.make(name, mode),
        }
    }

    fn make(&self, name: &str, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.folder, name, flags, Mode::from_raw_mode(mode))?))
    }

    /// Returns the metadata of a name; for a link, of the link itself.
    pub fn metadata(&self, name: &str) -> io::Result<Metadata> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        File::from(openat(&self.folder, name, flags, Mode::empty())?).metadata()
    }

    /// Renames a file, here or into another folder of the same disk.
    pub fn rename(&self, from: &str, folder: &Self, to: &str) -> io::Result<()> {
        Ok(renameat(&self.folder, from, &folder.folder, to)?)
    }

    /// Removes a file; for a link, the link itself.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.folder, name, AtFlags::empty())?)
    }

    /// Returns once the names in the folder would survive a loss of power.
    pub fn sync(&self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        File::from(openat(&self.folder, ".", flags, Mode::empty())?).sync_all()
    }
}

/// Opens or creates a file that processes of this user share, in a folder where other users may create files, too.
/// Rejects a file of another user, a link, and anything but a regular file; never blocks.
pub fn open_own_file(path: &Path) -> io::Result<File> {
    let name = path.file_name().and_then(OsStr::to_str).ok_or(io::ErrorKind::InvalidFilename)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = CheckedFolder::public(folder)?.open_or_create(name, 0o600)?;
    if file.metadata()?.nlink() > 1 {
        return Err(UntrustedPath::HardLink(path.to_owned()).into());
    }
    Ok(file)
}

/// Rejects a folder that belongs to another user, or that other users can write to.
pub fn check_own_folder(path: &Path) -> io::Result<()> {
    CheckedFolder::open(path, SymlinkPolicy::Checked, None).map(drop)
}

/// Groups whose members are trusted, besides this process's user and root.
#[derive(Clone, Copy)]
struct TrustedGroups {
    groups: [Option<u32>; 2],
}

impl TrustedGroups {
    fn check(self, path: &Path, metadata: &Metadata) -> Result<(), UntrustedPath> {
        self.check_owner(path, metadata)?;
        let (path, mode) = (path.to_owned(), metadata.mode());
        if mode & 0o002 != 0 {
            return Err(UntrustedPath::WorldWritable(path));
        }
        if mode & 0o020 != 0 && !self.has_group_of(metadata) {
            return Err(UntrustedPath::Group { path, group: metadata.gid() });
        }
        Ok(())
    }

    /// Checks the owner or the group: only a member of a group, or root, can give a file to it.
    fn check_owner(self, path: &Path, metadata: &Metadata) -> Result<(), UntrustedPath> {
        let (owner, user) = (metadata.uid(), geteuid().as_raw());
        if [0, user].contains(&owner) || self.has_group_of(metadata) {
            return Ok(());
        }
        Err(UntrustedPath::Owner { path: path.to_owned(), owner, user })
    }

    fn has_group_of(self, metadata: &Metadata) -> bool {
        self.groups.contains(&Some(metadata.gid()))
    }
}

/// Returns the group that the environment names, if any.
fn configured_group() -> io::Result<Option<u32>> {
    static FOUND: SetOnce<Result<Option<u32>, String>> = SetOnce::new();
    let found = FOUND.get_or_init(|| match std::env::var_os(GROUP) {
        Some(name) => group(&name.to_string_lossy()).map(Some),
        None => Ok(None),
    });
    found.clone().map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// Returns the id of a group, given by number or by name.
fn group(name: &str) -> Result<u32, String> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    // name:password:number:members
    let found = groups.lines().find_map(|line| match line.split(':').collect::<Vec<_>>()[..] {
        [named, _, number, ..] if named == name => number.parse().ok(),
        _ => None,
    });
    found.ok_or_else(|| format!("{GROUP}={name} names no group of /etc/group; write the group's number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_named_by_its_number_or_its_name() {
        assert_eq!(group("65534"), Ok(65_534));
        assert_eq!(group("root"), Ok(0));
        let refused = group("no such group").expect_err("there is none");
        assert!(refused.contains("TICKPATH_GROUP=no such group") && refused.contains("number"), "{refused}");
    }
}
