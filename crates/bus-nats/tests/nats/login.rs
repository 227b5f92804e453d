//! Logins by files: the seed of a key, or a signed token.

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;

use crate::helpers::{check_accepted, refused};
use crate::nats_server::NatsServer;

#[test]
fn a_login_by_nkey_needs_the_right_seed() {
    let dir = tempfile::tempdir().unwrap();
    let [ann, stranger] = [KeyPair::new_user(), KeyPair::new_user()];
    let server = NatsServer::start_by(&format!("authorization {{ users: [ {{ nkey: {} }} ] }}", ann.public_key()));
    let url = |file: &Path| format!("{}?nkey={}", server.url(), file.display());
    let write = |name: &str, text: String| {
        let file = dir.path().join(name);
        fs::write(&file, text).unwrap();
        file
    };
    let good = write("ann.nk", format!("# of ann\n{}\n", ann.seed().unwrap()));
    check_accepted(&url(&good));
    refused(&url(&write("stranger.nk", stranger.seed().unwrap())), &["refused the login by the file"]);
    refused(&url(&write("none.nk", "nothing".to_owned())), &["there is no seed in it"]);
    refused(&url(&dir.path().join("missing.nk")), &["missing.nk", "check 'nkey' in the URL"]);
    refused(&server.url(), &["wants a password", "?nkey=FILE"]);
}

#[test]
fn a_login_by_credentials_needs_the_right_file() {
    let dir = tempfile::tempdir().unwrap();
    let (operator, account, system) = (KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_account());
    let no_limits = "\"subs\":-1,\"data\":-1,\"payload\":-1";
    let of_account = format!(
        "\"limits\":{{{no_limits},\"imports\":-1,\"exports\":-1,\"wildcards\":true,\"conn\":-1,\"leaf\":-1}},\
         \"default_permissions\":{{\"pub\":{{}},\"sub\":{{}}}},\"type\":\"account\",\"version\":2"
    );
    let operator_token = sign(&operator, &operator, "\"type\":\"operator\",\"version\":2");
    let [account_token, system_token] = [&account, &system].map(|account| sign(&operator, account, &of_account));
    let operator_file = dir.path().join("operator.jwt");
    fs::write(&operator_file, operator_token).unwrap();
    let server = NatsServer::start_by(&format!(
        "operator: \"{}\"\nresolver: MEMORY\nsystem_account: {system}\n\
         resolver_preload: {{ {}: \"{account_token}\", {system}: \"{system_token}\" }}\n",
        operator_file.display(),
        account.public_key(),
        system = system.public_key(),
    ));
    let write = |name: &str, issuer: &KeyPair| {
        let user = KeyPair::new_user();
        let nats = format!("\"pub\":{{}},\"sub\":{{}},{no_limits},\"type\":\"user\",\"version\":2");
        let (token, seed) = (sign(issuer, &user, &nats), user.seed().unwrap());
        let file = dir.path().join(name);
        let token = format!("-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n");
        let seed = format!("-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n");
        fs::write(&file, token + &seed).unwrap();
        format!("{}?creds={}", server.url(), file.display())
    };
    check_accepted(&write("ann.creds", &account));
    refused(&write("stranger.creds", &KeyPair::new_account()), &["refused the login by the file"]);
    let none = dir.path().join("none.creds");
    fs::write(&none, "nothing").unwrap();
    refused(&format!("{}?creds={}", server.url(), none.display()), &["none.creds", "nsc generate creds"]);
}

/// Returns a token for the subject, signed by the issuer.
fn sign(issuer: &KeyPair, subject: &KeyPair, nats: &str) -> String {
    let (issued_by, of) = (issuer.public_key(), subject.public_key());
    let claims = format!(
        "{{\"jti\":\"{of}\",\"iat\":1700000000,\"iss\":\"{issued_by}\",\"name\":\"test\",\"sub\":\"{of}\",\
         \"nats\":{{{nats}}}}}"
    );
    let header = URL_SAFE_NO_PAD.encode("{\"typ\":\"JWT\",\"alg\":\"ed25519-nkey\"}");
    let signed_part = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims));
    let signature = URL_SAFE_NO_PAD.encode(issuer.sign(signed_part.as_bytes()).unwrap());
    format!("{signed_part}.{signature}")
}
