//! Users of an OMS of a run.

use std::ops::Range;
use std::path::{Path, PathBuf};

use tickpath_oms_protocol::Secret;

use super::login::BenchLogin;
use tickpath_lab_harness::LabError;

/// Prefix of the URL of a Unix socket that hands out lanes.
pub(crate) const LANES_SCHEME: &str = "shm+";

/// The measured client's user.
pub(crate) const USER: &str = "bench";

/// Writes the users, each with its sessions, who share this account and a password. The run's folder is readable by its
/// owner only.
pub(crate) fn write_users(folder: &Path, account: u32, users: &[(&str, Range<u16>)]) -> Result<PathBuf, LabError> {
    let (file, password_file) = (folder.join("users.toml"), password_file(folder));
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes for everybody");
    let password: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let secret = Secret::from_password(&password);
    let user = |(name, sessions): &(&str, Range<u16>)| {
        let sessions: Vec<u16> = sessions.clone().collect();
        format!(
            "[[user]]\nname = \"{name}\"\nrole = \"trade\"\naccounts = [\"{account}\"]\nsessions = {sessions:?}\n\
             secret = \"{secret}\"\n\n"
        )
    };
    let text: String = users.iter().map(user).collect();
    for (file, text) in [(&file, &text), (&password_file, &password)] {
        std::fs::write(file, text).map_err(|e| LabError::file(file, e))?;
    }
    Ok(file)
}

pub(crate) fn login_at(folder: &Path, url: String) -> BenchLogin {
    BenchLogin { url, user: USER.to_owned(), password_file: password_file(folder), session: None }
}

fn password_file(folder: &Path) -> PathBuf {
    folder.join("password")
}
