//! Edits of `users.toml`: one at a time, whole or not at all. All else in the file stays as it is.
//!
//! ```text
//!   lock users.toml ─> read ─> change ─> write users.toml.new, sync it ─> rename ─> sync the folder
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use tickpath_oms_protocol::{Secret, UserRole};
use tickpath_settings::{Mistakes, SettingsError, read_text};
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, TomlError, value};

use super::pattern::AccountPattern;
use super::sessions::MAX_SESSIONS;
use super::users::{ROLES, Users, check_name};

/// Mode of files with secrets: only the user that runs the OMS may read them.
pub(super) const PRIVATE: u32 = 0o600;

/// Error of an edit. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The file cannot be read, or has mistakes.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The file cannot be locked.
    #[error("{0}: cannot be locked ({1}); it must be a file that this user may read, on a file system with locks")]
    Lock(PathBuf, io::Error),
    /// The file cannot be written.
    #[error("{0}: cannot be written ({1}); the users are as they were")]
    Write(PathBuf, io::Error),
    /// There is no such user.
    #[error("there is no user '{name}'; there are: {known}")]
    Unknown {
        /// Name that was given.
        name: String,
        /// Users that exist.
        known: String,
    },
    /// There is such a user already.
    #[error("there is a user '{0}' already; choose another name, or change that one's password with passwd")]
    Exists(String),
    /// The name is no user's name.
    #[error("{0}")]
    Name(String),
    /// The session belongs to another user.
    #[error("session {session} is {user}'s; name others, or none for the first that is free")]
    SessionTaken {
        /// Session.
        session: u16,
        /// User who has it.
        user: String,
    },
    /// The session number is too high, or given twice.
    #[error("session {0} cannot be; use numbers below 65000, each once")]
    Session(u16),
}

/// User to be added.
#[derive(Debug, Clone)]
pub struct NewUser {
    /// Name, unique.
    pub name: String,
    /// Role of the user.
    pub role: UserRole,
    /// Accounts that the user may trade for, or see.
    pub accounts: Vec<AccountPattern>,
    /// Sessions; if there are none, the first free one is taken.
    pub sessions: Vec<u16>,
    /// Secret that proofs of the password are verified with.
    pub secret: Secret,
}

/// The file of users, locked: no other process edits it until this is dropped.
pub struct UsersFile {
    file: PathBuf,
    users: Users,
    document: DocumentMut,
    /// The file as it was found, with its lock.
    found: File,
}

impl UsersFile {
    /// Waits until no other process edits the file, and reads it.
    pub fn open(file: &Path) -> Result<Self, EditError> {
        // Resolves links, so that a link to the file stays a link.
        let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let found = lock(&file).map_err(|reason| EditError::Lock(file.clone(), reason))?;
        let text = read_text(&file)?;
        let users = Users::parse(&text, &file)?;
        let mut document: DocumentMut = text.parse().map_err(|reason| as_mistake(&file, &reason))?;
        if let Some(list) = document.get_mut("user").filter(|item| item.is_array()) {
            // An inline list of tables is as good.
            *list = std::mem::take(list).into_array_of_tables().map_or_else(|as_it_was| as_it_was, Item::ArrayOfTables);
        }
        Ok(Self { file, users, document, found })
    }

    /// Adds a user. Returns its sessions.
    pub fn add(&mut self, new: &NewUser) -> Result<Vec<u16>, EditError> {
        check_name(&new.name).map_err(EditError::Name)?;
        if self.users.find(&new.name).is_some() {
            return Err(EditError::Exists(new.name.clone()));
        }
        let sessions = self.sessions_for(new)?;
        let role = ROLES.iter().find(|(_, role)| *role == new.role).map_or("read", |(word, _)| word);
        let mut table = Table::new();
        table.insert("name", value(&new.name));
        table.insert("role", value(role));
        table.insert("accounts", value(new.accounts.iter().map(ToString::to_string).collect::<Array>()));
        table.insert("sessions", value(sessions.iter().map(|&session| i64::from(session)).collect::<Array>()));
        table.insert("secret", value(new.secret.to_string()));
        table.decor_mut().set_prefix("\n");
        let all = self.document.entry("user").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        all.as_array_of_tables_mut().expect("[[user]] was read as such").push(table);
        self.reparse()?;
        Ok(sessions)
    }

    /// Sets another password of a user.
    pub fn set_secret(&mut self, name: &str, secret: &Secret) -> Result<(), EditError> {
        self.table(name)?.insert("secret", value(secret.to_string()));
        self.reparse()
    }

    /// Disables a user, or enables it again.
    pub fn set_disabled(&mut self, name: &str, disabled: bool) -> Result<(), EditError> {
        let table = self.table(name)?;
        match disabled {
            true => table.insert("disabled", value(true)),
            false => table.remove("disabled"),
        };
        self.reparse()
    }

    /// Returns the users as they would be saved.
    pub fn users(&self) -> &Users {
        &self.users
    }

    /// Writes the file: after a crash at any moment it is whole, the old one or the new one.
    pub fn save(self) -> Result<(), EditError> {
        let new = self.file.with_added_extension("new");
        let wrong = |file: &Path, reason| EditError::Write(file.to_owned(), reason);
        write_private(&new, &self.document.to_string(), &self.found).map_err(|reason| wrong(&new, reason))?;
        let renamed = fs::rename(&new, &self.file).and_then(|()| sync_folder_of(&self.file));
        renamed.map_err(|reason| wrong(&self.file, reason))
    }

    fn sessions_for(&self, new: &NewUser) -> Result<Vec<u16>, EditError> {
        if new.sessions.is_empty() {
            let free = (0..MAX_SESSIONS).find(|&session| self.users.by_session(session).is_none());
            return free.map(|session| vec![session]).ok_or(EditError::Session(MAX_SESSIONS));
        }
        for (index, &session) in new.sessions.iter().enumerate() {
            if session >= MAX_SESSIONS || new.sessions[..index].contains(&session) {
                return Err(EditError::Session(session));
            }
            if let Some(user) = self.users.by_session(session) {
                return Err(EditError::SessionTaken { session, user: user.name.clone() });
            }
        }
        Ok(new.sessions.clone())
    }

    fn table(&mut self, name: &str) -> Result<&mut Table, EditError> {
        let index = self.users.list.iter().position(|user| user.name == name);
        let all = self.document.get_mut("user").and_then(Item::as_array_of_tables_mut);
        let table = all.zip(index).and_then(|(all, index)| all.get_mut(index));
        table.ok_or_else(|| {
            let names: Vec<&str> = self.users.list.iter().map(|user| user.name.as_str()).collect();
            EditError::Unknown { name: name.to_owned(), known: names.join(", ") }
        })
    }

    /// Reads the edited text again, as the OMS will.
    fn reparse(&mut self) -> Result<(), EditError> {
        self.users = Users::parse(&self.document.to_string(), &self.file)?;
        Ok(())
    }
}

/// Converts an error of the second TOML parser to a mistake of the file.
fn as_mistake(file: &Path, reason: &TomlError) -> SettingsError {
    let mut mistakes = Mistakes::new(file);
    mistakes.add(1, reason.message());
    mistakes.into()
}

/// Locks the file that has this name: the holder of the lock before may have put another file in its place.
fn lock(file: &Path) -> io::Result<File> {
    loop {
        let found = File::open(file)?;
        found.lock()?;
        let (held, named) = (found.metadata()?, fs::metadata(file)?);
        if (held.dev(), held.ino()) == (named.dev(), named.ino()) {
            return Ok(found);
        }
    }
}

/// Writes a file that only its owner may read, and syncs it; removes a file that a crash has left there. The owner is
/// that of the file to be replaced, because an administrator may edit what belongs to the OMS's user.
fn write_private(file: &Path, text: &str, old: &File) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(reason) if reason.kind() != io::ErrorKind::NotFound => return Err(reason),
        _ => {}
    }
    let mut new = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(file)?;
    let owner = |file: &File| file.metadata().map(|data| (data.uid(), data.gid()));
    let (uid, gid) = owner(old)?;
    if owner(&new)? != (uid, gid) {
        fchown(&new, Some(uid), Some(gid))?;
    }
    new.write_all(text.as_bytes())?;
    new.sync_all()
}

pub(super) fn sync_folder_of(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

pub(super) fn is_readable_by_others(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|data| data.mode() & 0o077 != 0)
}
