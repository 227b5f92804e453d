//! The record of a password that an OMS keeps: enough to check a password, too little to log in with.

use std::fmt::{self, Display};
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rsasl::mechanisms::scram::tools::{derive_keys, hash_password};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

/// Min iterations that a client answers: fewer give the password away to an eavesdropper.
pub const MIN_ITERATIONS: u32 = 4_096;
/// Max iterations that a client answers: more would keep the client from its work.
pub const MAX_ITERATIONS: u32 = 1_000_000;
/// Iterations of a new secret. RFC 7677 requires 4,096 at least, and names 15,000 for a tenth of a second on a machine
/// of its day; a login here takes some milliseconds of the client, and none of the OMS.
const ITERATIONS: u32 = 15_000;
/// Bytes of a new secret's salt.
const SALT_BYTES: usize = 16;
/// Max bytes of a salt, which another program may have made.
const MAX_SALT_BYTES: usize = 64;
/// Bytes of a SHA-256 key.
pub(crate) const KEY_BYTES: usize = 32;
const NAME: &str = "SCRAM-SHA-256";

/// The SCRAM-SHA-256 secret of a user. As text it is one word: `SCRAM-SHA-256$ITERATIONS:SALT$STORED:SERVER`, its three
/// last parts in base64.
///
/// ```
/// use tickpath_oms_protocol::Secret;
///
/// let secret = Secret::from_password("correct horse");
/// assert_eq!(secret.to_string().parse(), Ok(secret));
/// ```
///
/// It is overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// Number of times that the password was hashed, from 4,096 to 1,000,000.
    pub(crate) iterations: u32,
    /// Salt that was hashed with the password.
    pub(crate) salt: Vec<u8>,
    /// Hash of the key that a client proves to have.
    pub(crate) stored_key: [u8; KEY_BYTES],
    /// Key that the server proves to have.
    pub(crate) server_key: [u8; KEY_BYTES],
}

/// Error of a text that is no [`Secret`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no secret of the form {NAME}$ITERATIONS:SALT$STORED:SERVER; set the user's password anew")]
pub struct SecretError;

impl Secret {
    /// Makes the secret of a password, with a random salt.
    pub fn from_password(password: &str) -> Self {
        let mut salt = [0; SALT_BYTES];
        getrandom::fill(&mut salt).expect("the operating system has random bytes");
        Self::derived(password, &salt, ITERATIONS)
    }

    /// Makes a secret of the usual form that no password fits, the same each time for this key and name. Where
    /// strangers may ask for names, [`Decoys`] has the forms of the real secrets.
    pub fn decoy(key: &[u8], user: &str) -> Self {
        Self::synthetic(&hashed(key, user.as_bytes(), 1)[..], SecretForm::USUAL)
    }

    /// Makes a secret of this form that no password fits.
    fn synthetic(seed: &[u8], form: SecretForm) -> Self {
        let (first, second) = derive_keys::<Sha256>(seed);
        let (third, seed) = derive_keys::<Sha256>(&second);
        let (stored_key, server_key) = derive_keys::<Sha256>(&seed);
        let salt = [&first[..], &third[..]].concat()[..form.salt_bytes].to_vec();
        Self { iterations: form.iterations, salt, stored_key: stored_key.into(), server_key: server_key.into() }
    }

    fn form(&self) -> SecretForm {
        SecretForm { iterations: self.iterations, salt_bytes: self.salt.len() }
    }

    pub(crate) fn derived(password: &str, salt: &[u8], iterations: u32) -> Self {
        let salted = hashed(password.as_bytes(), salt, iterations);
        let (mut client_key, server_key) = derive_keys::<Sha256>(&salted[..]);
        let stored_key = Sha256::digest(&client_key[..]).into();
        client_key[..].zeroize();
        Self { iterations, salt: salt.to_vec(), stored_key, server_key: server_key.into() }
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.salt.zeroize();
        self.stored_key.zeroize();
        self.server_key.zeroize();
    }
}

/// The parts of a secret that a challenge shows, beside the salt itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SecretForm {
    iterations: u32,
    salt_bytes: usize,
}

impl SecretForm {
    /// Form of [`Secret::from_password`].
    const USUAL: Self = Self { iterations: ITERATIONS, salt_bytes: SALT_BYTES };
}

/// Secrets of users who do not exist, so that a stranger cannot tell which users do: the same each time for a name, in
/// the forms of the real secrets and as often, also where some were imported with other iterations or salts. A server
/// must make a decoy for every logon, needed or not, or the time of a logon reveals which users exist.
///
/// ```
/// use tickpath_oms_protocol::{Decoys, Secret};
///
/// let users = [Secret::from_password("correct horse")];
/// let decoys = Decoys::new(&users);
/// assert_eq!(decoys.of("nobody"), decoys.of("nobody"));
/// ```
pub struct Decoys {
    /// Secret of the server. With another key all decoys change, which distinguishes them from real secrets.
    key: Zeroizing<[u8; KEY_BYTES]>,
    /// Each form of the real secrets, with the number of secrets that have it.
    forms: Vec<(SecretForm, u32)>,
}

impl Decoys {
    /// Bytes of the key.
    pub const KEY_BYTES: usize = KEY_BYTES;

    /// Makes decoys beside these secrets, with a new key.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        Self::with_key(Self::draw_key(), secrets)
    }

    /// Draws a key, for a server that keeps it.
    pub fn draw_key() -> Zeroizing<[u8; Self::KEY_BYTES]> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        getrandom::fill(&mut key[..]).expect("the operating system has random bytes");
        key
    }

    /// Makes decoys beside these secrets, with a key that an earlier start has drawn.
    pub fn with_key<'a>(key: Zeroizing<[u8; Self::KEY_BYTES]>, secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut decoys = Self { key, forms: Vec::new() };
        decoys.update(secrets);
        decoys
    }

    /// Takes over the forms of these secrets. A name keeps its decoy, unless a change of the forms affects it.
    pub fn update<'a>(&mut self, secrets: impl IntoIterator<Item = &'a Secret>) {
        self.forms.clear();
        for form in secrets.into_iter().map(Secret::form) {
            match self.forms.iter_mut().find(|(known, _)| *known == form) {
                Some((_, count)) => *count += 1,
                None => self.forms.push((form, 1)),
            }
        }
        if self.forms.is_empty() {
            self.forms.push((SecretForm::USUAL, 1));
        }
    }

    /// Returns the decoy of a name.
    pub fn of(&self, user: &str) -> Secret {
        let seed = hashed(&self.key[..], user.as_bytes(), 1);
        // Chooses the form that the name draws first; a form is drawn the earlier, the more secrets have it. A form
        // that is added or removed changes the decoys of its own names only.
        let drawn = |&(form, count): &(SecretForm, u32)| {
            let SecretForm { iterations, salt_bytes } = form;
            let label = [&seed[..], &iterations.to_le_bytes(), &(salt_bytes as u64).to_le_bytes()].concat();
            let draw = Sha256::digest(&label).iter().take(6).fold(0_u64, |draw, byte| draw << 8 | u64::from(*byte));
            let part = (draw as f64 + 1.0) / (1_u64 << 48) as f64;
            (-part.ln() / f64::from(count), form)
        };
        let first = self.forms.iter().map(drawn).min_by(|one, other| one.0.total_cmp(&other.0));
        Secret::synthetic(&seed[..], first.map_or(SecretForm::USUAL, |(_, form)| form))
    }
}

/// Omits the key.
impl fmt::Debug for Decoys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoys").finish_non_exhaustive()
    }
}

/// Omits the keys.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}

/// Writes the whole secret, for the file of the users.
impl Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [salt, stored, server] =
            [&self.salt, &self.stored_key[..], &self.server_key].map(|key| Zeroizing::new(STANDARD.encode(key)));
        write!(f, "{NAME}${}:{}${}:{}", self.iterations, salt.as_str(), stored.as_str(), server.as_str())
    }
}

impl FromStr for Secret {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        let read = || {
            let (iterations, rest) = text.strip_prefix(NAME)?.strip_prefix('$')?.split_once(':')?;
            let (salt, keys) = rest.split_once('$')?;
            let (stored, server) = keys.split_once(':')?;
            let iterations = iterations.parse().ok().filter(|it| (MIN_ITERATIONS..=MAX_ITERATIONS).contains(it))?;
            let salt = STANDARD.decode(salt).ok().filter(|salt| (1..=MAX_SALT_BYTES).contains(&salt.len()))?;
            let key = |text| Zeroizing::new(STANDARD.decode(text).ok()?).as_slice().try_into().ok();
            Some(Self { iterations, salt, stored_key: key(stored)?, server_key: key(server)? })
        };
        read().ok_or(SecretError)
    }
}

fn hashed(password: &[u8], salt: &[u8], iterations: u32) -> Zeroizing<[u8; KEY_BYTES]> {
    let mut out = Default::default();
    hash_password::<Sha256>(password, iterations, salt, &mut out);
    let hashed = Zeroizing::new(out.into());
    out[..].zeroize();
    hashed
}

#[cfg(test)]
mod tests {
    use super::*;
    use rsasl::mechanisms::scram::tools::compute_signatures;

    /// The example of RFC 7677, section 3.
    #[test]
    fn a_secret_matches_the_example_of_rfc_7677() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let secret = Secret::derived("pencil", &salt, 4096);
        let text = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$\
                    WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
        assert_eq!(secret.to_string(), text);
        let (mut of_client, mut of_server) = Default::default();
        compute_signatures::<Sha256>(
            &secret.stored_key.into(),
            &secret.server_key.into(),
            "user",
            b"rOprNGfwEbeRWgbNEkqO",
            b"%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
            b"W22ZaJ0SNY7soEsUEjb6gQ==",
            b"4096",
            b"biws",
            &mut of_client,
            &mut of_server,
        );
        assert_eq!(STANDARD.encode(of_server), "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        let proof = STANDARD.decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=").unwrap();
        let client_key: Vec<u8> = proof.iter().zip(of_client).map(|(proof, signature)| proof ^ signature).collect();
        assert_eq!(Sha256::digest(client_key)[..], secret.stored_key);
    }
}
