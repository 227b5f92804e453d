//! The password of an exchange's lines: proved by SCRAM-SHA-256 before the logon, never sent. [`wire`](crate::wire)
//! shows the frames.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use tickpath_oms_protocol::{ClientLogon, ScramError, Secret, ServerLogon};
use zeroize::Zeroizing;

/// The user name in the proof: an exchange has one password for all its lines.
const USER: &str = "line";

/// A password from a file.
#[derive(Clone, PartialEq, Eq)]
pub struct LinePassword(Zeroizing<String>);

/// Errors of a file without a password.
#[derive(Debug, thiserror::Error)]
pub enum LinePasswordError {
    /// The file cannot be read.
    #[error("{}: the password cannot be read ({}); name a file that this user may read", .0.display(), .1)]
    Unreadable(PathBuf, io::Error),
    /// The first line is empty.
    #[error("{}: the first line is empty; write the password there", .0.display())]
    Empty(PathBuf),
}

/// The exchange's data to check a password: enough to check a proof, too little to make one.
#[derive(Debug)]
pub struct PasswordCheck(Secret);

/// State of a proof on the client's side.
pub(crate) enum PasswordProof {
    AwaitingChallenge(ClientLogon),
    /// A thread of its own hashes for some milliseconds, because a line never waits.
    Hashing(JoinHandle<Result<(ClientLogon, Vec<u8>), ScramError>>),
    /// The proof is sent; the exchange's own proof has not arrived.
    Sent(ClientLogon),
}

impl LinePassword {
    /// Reads the first line of a file.
    pub fn read(file: &Path) -> Result<Self, LinePasswordError> {
        let text = fs::read_to_string(file).map(Zeroizing::new);
        let text = text.map_err(|reason| LinePasswordError::Unreadable(file.to_owned(), reason))?;
        let password = text.lines().next().filter(|line| !line.is_empty());
        let password = password.ok_or_else(|| LinePasswordError::Empty(file.to_owned()))?;
        Ok(Self(Zeroizing::new(password.to_owned())))
    }

    /// Hashes the password, which takes some milliseconds.
    pub fn check(&self) -> PasswordCheck {
        PasswordCheck(Secret::from_password(&self.0))
    }

    /// Begins a proof, and returns SCRAM's client-first.
    pub(crate) fn begin_proof(&self) -> Result<(ClientLogon, Vec<u8>), ScramError> {
        ClientLogon::new(USER, &self.0, None)
    }
}

impl fmt::Debug for LinePassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

impl PasswordCheck {
    /// Takes SCRAM's client-first, and returns the challenge.
    pub fn challenge(&self, client_first: &[u8]) -> Result<(ServerLogon, Vec<u8>), ScramError> {
        ServerLogon::begin(client_first, None, |_| self.0.clone())
    }
}

impl PasswordProof {
    /// Begins to hash the answer to a challenge.
    pub fn answer(mut logon: ClientLogon, challenge: Vec<u8>) -> io::Result<Self> {
        let work = move || logon.answer(&challenge).map(|proof| (logon, proof));
        std::thread::Builder::new().name("line-proof".into()).spawn(work).map(Self::Hashing)
    }
}
