//! The files of a first OMS, which runs with them as they are.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tickpath_oms_protocol::Secret;

use super::edit::{PRIVATE, sync_folder_of};

const LOGINS: [&str; 2] = ["trader", "admin"];
const READABLE: u32 = 0o644;

/// Reason why the first files were not made. The files of a failed attempt to write are removed.
#[derive(Debug, thiserror::Error)]
pub enum OmsInitError {
    /// A file is there already.
    #[error("{0} exists already and is not overwritten; name another folder")]
    Exists(PathBuf),
    /// A file cannot be written.
    #[error("{0}: cannot be written ({1}); name a folder that this user may write to")]
    Write(PathBuf, io::Error),
}

/// Files and logins that were made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitialFiles {
    /// All files; the first is `oms.toml`.
    pub files: Vec<PathBuf>,
    /// User, password, and the file that holds the password, of each login.
    pub logins: Vec<(String, String, PathBuf)>,
}

/// Writes `oms.toml` and the files that it names into a folder, with a password for each user. Overwrites nothing.
pub fn init(folder: &Path, mut password: impl FnMut() -> String) -> Result<InitialFiles, OmsInitError> {
    let logins = LOGINS.map(|user| (user.to_owned(), password(), folder.join(format!("{user}.password"))));
    let secret = |text: String, (user, password, _): &(String, String, PathBuf)| {
        text.replace(&format!("{{{user}}}"), &Secret::from_password(password).to_string())
    };
    let users = logins.iter().fold(include_str!("users.toml").to_owned(), secret);
    let mut files = vec![
        (folder.join("oms.toml"), include_str!("oms.toml").to_owned(), READABLE),
        (folder.join("users.toml"), users, PRIVATE),
        (folder.join("instruments.csv"), include_str!("instruments.csv").to_owned(), READABLE),
        (folder.join("accounts.csv"), include_str!("accounts.csv").to_owned(), READABLE),
        (folder.join("symbols.csv"), include_str!("symbols.csv").to_owned(), READABLE),
    ];
    files.extend(logins.iter().map(|(_, password, file)| (file.clone(), format!("{password}\n"), PRIVATE)));
    if let Some((file, ..)) = files.iter().find(|(file, ..)| fs::symlink_metadata(file).is_ok()) {
        return Err(OmsInitError::Exists(file.clone()));
    }
    fs::create_dir_all(folder).map_err(|reason| OmsInitError::Write(folder.to_owned(), reason))?;
    for (index, (file, text, mode)) in files.iter().enumerate() {
        if let Err(reason) = write(file, text, *mode) {
            // An incomplete set of files is useless, and would block the next attempt.
            files[..index].iter().for_each(|(made, ..)| drop(fs::remove_file(made)));
            return Err(OmsInitError::Write(file.clone(), reason));
        }
    }
    let synced = sync_folder_of(&files[0].0);
    synced.map_err(|reason| OmsInitError::Write(folder.to_owned(), reason))?;
    Ok(InitialFiles { files: files.into_iter().map(|(file, ..)| file).collect(), logins: logins.into() })
}

fn write(file: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut made = OpenOptions::new().write(true).create_new(true).mode(mode).open(file)?;
    let written = made.write_all(text.as_bytes()).and_then(|()| made.sync_all());
    written.inspect_err(|_| drop(fs::remove_file(file)))
}
