//! The logon by SCRAM-SHA-256 (RFC 5802, RFC 7677): a password is proved, never sent, and the OMS proves in turn that
//! it knows the user's [`Secret`]. Only this module and that of the secret use the crate that implements SCRAM.
//!
//! ```text
//!   client-first   n,,n=USER,r=NONCE                     over TLS: p=tls-exporter,,n=USER,r=NONCE
//!   challenge      r=NONCE NONCE',s=SALT,i=ITERATIONS
//!   proof          c=biws,r=NONCE NONCE',p=PROOF         over TLS: c=BINDING,…
//!   server-final   v=SIGNATURE
//! ```
//!
//! Over TLS the proof is bound to the connection (RFC 5802, RFC 9266): both sides put into it a value that only the two
//! ends of this connection know, so a man in the middle, with any certificate, cannot pass a proof on. An unbound logon
//! over TLS is refused, so no attacker can remove the binding.
//!
//! The crate indexes its input before it checks that the parts exist, so only messages of exactly this form are passed
//! to it: all others are refused here, with extensions and other channel bindings among them.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rsasl::callback::{Context, Request, SessionCallback, SessionData};
use rsasl::config::SASLConfig;
use rsasl::mechanisms::scram::properties::ScramStoredPassword;
use rsasl::mechanisms::scram::{SCRAM_SHA256, SCRAM_SHA256_PLUS};
use rsasl::prelude::{
    ChannelBindingCallback, Mechanism, Registry, SASLClient, SASLServer, Session, SessionError, Validation,
};
use rsasl::property::{AuthId, Password};
use rsasl::validate::{NoValidation, Validate, ValidationError};
use zeroize::Zeroizing;

pub use crate::secret::{Decoys, MAX_ITERATIONS, MIN_ITERATIONS, Secret, SecretError};

/// Max characters of a user's name.
pub const MAX_USER_CHARS: usize = 64;
/// Max bytes of a nonce: ours have 24 from each side.
const MAX_NONCE_BYTES: usize = 256;
/// Max bytes of a salt in base64.
const MAX_SALT_BASE64: usize = 128;
/// GS2 headers of a logon without channel binding, and of a logon that is bound to TLS.
const UNBOUND: &str = "n,,";
const BOUND: &str = "p=tls-exporter,,";
/// Bytes of a key or signature in base64.
const SIGNATURE_BYTES: usize = 44;

/// Binding of a logon to its TLS connection: exported by both ends from their keys, [`BINDING_LABEL`], no context.
pub type Binding = [u8; BINDING_BYTES];
/// Bytes of a [`Binding`].
pub const BINDING_BYTES: usize = 32;
/// Label under which a [`Binding`] is exported (RFC 9266).
pub const BINDING_LABEL: &[u8] = b"EXPORTER-Channel-Binding";

/// Reason why a logon fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScramError {
    /// The name cannot be a user's.
    #[error(
        "a user's name has 1 to {MAX_USER_CHARS} characters, no comma, equals sign or control character among them"
    )]
    User,
    /// The bytes received are no message of this logon.
    #[error("the bytes received are no message of a SCRAM-SHA-256 logon; does the other side speak this protocol?")]
    Message,
    /// The server asks for too few or too many iterations.
    #[error(
        "the server asks for {0} iterations; {MIN_ITERATIONS} to {MAX_ITERATIONS} are answered, set the password anew"
    )]
    Iterations(u32),
    /// The client's proof is wrong.
    #[error("the user or the password is wrong")]
    Proof,
    /// The server's proof is wrong.
    #[error("the server does not know this user's secret: it is not the OMS that it claims to be; check the address")]
    Server,
}

/// The server's side of one logon.
pub struct ServerLogon {
    user: String,
    /// Channel attribute that the proof must have, in base64.
    channel: String,
    session: Session<ProofValidation, ChannelBinding>,
}

impl ServerLogon {
    /// Takes the client's first message, finds its user's secret (one of [`Decoys`] for an unknown user), and returns
    /// the challenge for the client. A logon over TLS must be bound to its connection, any other logon cannot be.
    pub fn begin(
        client_first: &[u8],
        binding: Option<&Binding>,
        find: impl FnOnce(&str) -> Secret,
    ) -> Result<(Self, Vec<u8>), ScramError> {
        let header = if binding.is_some() { "p=tls-exporter" } else { "n" };
        let [rest, acting_for, user, nonce] = parts(client_first, [header, "", "n=", "r="])?;
        if !(rest.is_empty() && acting_for.is_empty() && is_user(user) && is_nonce(nonce)) {
            return Err(ScramError::Message);
        }
        let known = ServerCredentials { user: user.to_owned(), secret: find(user) };
        let server =
            SASLServer::<ProofValidation, _>::with_cb(config(known, binding), ChannelBinding(binding.copied()));
        let session = server.start_suggested(mechanism(binding).mechanism).map_err(|_| ScramError::Message)?;
        let mut logon = Self { user: user.to_owned(), channel: channel(binding), session };
        let challenge = step(&mut logon.session, Some(client_first)).map_err(|_| ScramError::Message)?;
        Ok((logon, challenge))
    }

    /// Returns the user that the client claims to be. Only [`Self::verify`] proves the claim.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Checks the client's proof, and returns the server's proof for the client.
    pub fn verify(mut self, proof: &[u8]) -> Result<Vec<u8>, ScramError> {
        let [bound, nonce, signature] = parts(proof, ["c=", "r=", "p="])?;
        if !(bound == self.channel && is_nonce(nonce) && signature.len() == SIGNATURE_BYTES) {
            return Err(ScramError::Message);
        }
        // A wrong proof ends the exchange like a good proof: only the validation differs.
        let server_final = step(&mut self.session, Some(proof)).map_err(|_| ScramError::Proof)?;
        self.session.validation().map(|()| server_final).ok_or(ScramError::Proof)
    }
}

impl fmt::Debug for ServerLogon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerLogon").field("user", &self.user).finish_non_exhaustive()
    }
}

/// The client's side of one logon.
pub struct ClientLogon {
    session: Session<NoValidation, ChannelBinding>,
    /// The challenge was answered, so the server's proof comes next; any other message is out of order.
    answered: bool,
}

impl ClientLogon {
    /// Begins a logon, and returns the client's first message. The password is taken byte by byte, as
    /// [`Secret::from_password`] takes it; over TLS the proof is bound to the connection.
    pub fn new(user: &str, password: &str, binding: Option<&Binding>) -> Result<(Self, Vec<u8>), ScramError> {
        if !is_user(user) {
            return Err(ScramError::User);
        }
        let password = Zeroizing::new(password.to_owned());
        let claimed = ClientCredentials { user: user.to_owned(), password, is_bound: binding.is_some() };
        let client = SASLClient::with_cb(config(claimed, binding), ChannelBinding(binding.copied()));
        let mechanism = mechanism(binding).mechanism;
        let mut session = client.start_suggested([&mechanism]).map_err(|_| ScramError::User)?;
        let first = step(&mut session, None).map_err(|_| ScramError::User)?;
        Ok((Self { session, answered: false }, first))
    }

    /// Returns the proof that answers the server's challenge. The time it takes grows with the secret's iterations.
    pub fn answer(&mut self, challenge: &[u8]) -> Result<Vec<u8>, ScramError> {
        let [nonce, salt, iterations] = parts(challenge, ["r=", "s=", "i="])?;
        if self.answered || !is_nonce(nonce) || !(1..=MAX_SALT_BASE64).contains(&salt.len()) {
            return Err(ScramError::Message);
        }
        let iterations = iterations.parse().map_err(|_| ScramError::Message)?;
        if !(MIN_ITERATIONS..=MAX_ITERATIONS).contains(&iterations) {
            return Err(ScramError::Iterations(iterations));
        }
        self.answered = true;
        step(&mut self.session, Some(challenge)).map_err(|_| ScramError::Message)
    }

    /// Checks the server's proof. A server without a valid proof must not be trusted.
    pub fn check(mut self, server_final: &[u8]) -> Result<(), ScramError> {
        let [signature] = parts(server_final, ["v="])?;
        if !self.answered || signature.len() != SIGNATURE_BYTES {
            return Err(ScramError::Message);
        }
        step(&mut self.session, Some(server_final)).map(drop).map_err(|_| ScramError::Server)
    }
}

impl fmt::Debug for ClientLogon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientLogon").field("answered", &self.answered).finish_non_exhaustive()
    }
}

/// Channel binding of the connection, for the crate.
struct ChannelBinding(Option<Binding>);

impl ChannelBindingCallback for ChannelBinding {
    fn get_cb_data(&self, name: &str) -> Option<&[u8]> {
        self.0.as_ref().filter(|_| name == "tls-exporter").map(|binding| &binding[..])
    }
}

/// The user that the server found, with its secret.
struct ServerCredentials {
    user: String,
    secret: Secret,
}

/// Validation by which a client has proved to be the user.
struct ProofValidation;

impl Validation for ProofValidation {
    type Value = ();
}

impl SessionCallback for ServerCredentials {
    fn callback(&self, _: &SessionData, context: &Context, request: &mut Request) -> Result<(), SessionError> {
        if context.get_ref::<AuthId>() == Some(&self.user) {
            let Secret { iterations, salt, stored_key, server_key } = &self.secret;
            request.satisfy::<ScramStoredPassword>(&ScramStoredPassword::new(
                *iterations,
                salt,
                stored_key,
                server_key,
            ))?;
        }
        Ok(())
    }

    /// Confirms the user; called only after a good proof.
    fn validate(&self, _: &SessionData, context: &Context, validate: &mut Validate<'_>) -> Result<(), ValidationError> {
        if context.get_ref::<AuthId>() == Some(&self.user) {
            validate.finalize::<ProofValidation>(());
        }
        Ok(())
    }
}

/// The user and password that the client claims.
struct ClientCredentials {
    user: String,
    /// Overwritten when the logon is over.
    password: Zeroizing<String>,
    is_bound: bool,
}

impl SessionCallback for ClientCredentials {
    fn enable_channel_binding(&self) -> bool {
        self.is_bound
    }

    fn callback(&self, _: &SessionData, _: &Context, request: &mut Request) -> Result<(), SessionError> {
        request.satisfy::<AuthId>(&self.user)?.satisfy::<Password>(self.password.as_bytes())?;
        Ok(())
    }
}

fn mechanism(binding: Option<&Binding>) -> &'static Mechanism {
    if binding.is_some() { &SCRAM_SHA256_PLUS } else { &SCRAM_SHA256 }
}

/// Returns the channel attribute of a proof.
fn channel(binding: Option<&Binding>) -> String {
    STANDARD.encode(binding.map_or(UNBOUND.into(), |binding| [BOUND.as_bytes(), binding].concat()))
}

fn config(callback: impl SessionCallback + 'static, binding: Option<&Binding>) -> Arc<SASLConfig> {
    static ONLY: [[Mechanism; 1]; 2] = [[SCRAM_SHA256], [SCRAM_SHA256_PLUS]];
    let only = Registry::with_mechanisms(&ONLY[usize::from(binding.is_some())]);
    SASLConfig::builder()
        .with_registry(only)
        .with_callback(callback)
        .expect("a configuration of one mechanism is sound")
}

fn step<V: Validation>(
    session: &mut Session<V, ChannelBinding>,
    input: Option<&[u8]>,
) -> Result<Vec<u8>, SessionError> {
    let mut out = Vec::new();
    session.step(input, &mut out).map(|_| out)
}

/// Returns the values of a message's attributes, if it has exactly those with these names, in this order.
fn parts<'a, const N: usize>(message: &'a [u8], names: [&str; N]) -> Result<[&'a str; N], ScramError> {
    let mut parts = std::str::from_utf8(message).map_err(|_| ScramError::Message)?.split(',');
    let mut values = [""; N];
    for (value, name) in values.iter_mut().zip(names) {
        *value = parts.next().and_then(|part| part.strip_prefix(name)).ok_or(ScramError::Message)?;
    }
    if parts.next().is_some() { Err(ScramError::Message) } else { Ok(values) }
}

fn is_user(name: &str) -> bool {
    let sound = |c: char| !(c == ',' || c == '=' || c.is_control());
    (1..=MAX_USER_CHARS).contains(&name.chars().count()) && name.chars().all(sound)
}

fn is_nonce(nonce: &str) -> bool {
    (1..=MAX_NONCE_BYTES).contains(&nonce.len()) && nonce.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',')
}
