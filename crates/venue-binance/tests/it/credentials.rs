//! Credentials from files and from the environment; they are shown nowhere.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use tempfile::TempDir;
use tickpath_venue_binance::{ApiCredentials, BinanceLine, BinanceLineConfig, RequestSigner};

use crate::driver::{API_KEY, Driver, PRIVATE_KEY, SECRET_KEY, config, credentials};
use crate::exchange::{Reply, ScriptedExchange};

/// Writes a file with this mode into a folder of its own.
fn file(text: &str, mode: u32) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("binance.toml");
    fs::write(&path, text).expect("a file");
    fs::set_permissions(&path, Permissions::from_mode(mode)).expect("it is ours");
    (folder, path)
}

#[test]
fn a_file_that_only_its_owner_reads_has_the_credentials() {
    let text = format!("key = '{API_KEY}'\nsecret = '''\n{PRIVATE_KEY}'''\n");
    for mode in [0o600, 0o400] {
        let (_folder, path) = file(&text, mode);
        let read = ApiCredentials::read(&path).expect("credentials");
        assert_eq!((read.key.as_str(), read.passphrase.as_str()), (API_KEY, ""));
        assert!(RequestSigner::new(read).expect("a key").has_session());
    }
}

#[test]
fn a_file_that_others_read_is_refused_with_the_remedy() {
    let text = format!("key = '{API_KEY}'\nsecret = '{SECRET_KEY}'\n");
    for mode in [0o640, 0o604, 0o660, 0o644] {
        let (_folder, path) = file(&text, mode);
        let why = ApiCredentials::read(&path).expect_err("exposed").to_string();
        assert!(why.contains(&format!("mode {mode:04o}")) && why.contains("chmod 600"), "{why}");
        assert!(!why.contains(SECRET_KEY) && !why.contains(API_KEY), "{why}");
    }
}

#[test]
fn mistakes_of_a_file_are_named_without_its_secrets() {
    for (text, words) in [
        (format!("key = '{API_KEY}'"), "'secret' is missing"),
        (format!("key = '{API_KEY}'\nsecret = 7"), "secret: must be text"),
        (format!("key = '{API_KEY}'\nsecrat = '{SECRET_KEY}'"), "did you mean 'secret'?"),
        (format!("key = 'a b'\nsecret = '{SECRET_KEY}'"), "letters and digits only"),
        (format!("key = '{API_KEY}'\nsecret = ' '"), "is empty"),
        (format!("key = '{API_KEY}\nsecret = '{SECRET_KEY}'"), "no TOML"),
    ] {
        let (_folder, path) = file(&text, 0o600);
        let why = ApiCredentials::read(&path).expect_err("a mistake").to_string();
        assert!(why.contains(words), "{why}");
        assert!(!why.contains(SECRET_KEY) && !why.contains(API_KEY), "{why}");
    }
    let absent = ApiCredentials::read(&PathBuf::from("no/such/file.toml")).expect_err("no file").to_string();
    assert!(absent.contains("no/such/file.toml") && absent.contains("cannot be read"), "{absent}");
}

#[test]
fn the_environment_has_the_credentials() {
    let read = |name: &'static str| match name {
        "BINANCE_API_KEY" => Some(API_KEY.to_owned()),
        "BINANCE_API_SECRET" => Some(SECRET_KEY.to_owned()),
        _ => None,
    };
    assert_eq!(ApiCredentials::from_variables(&read).expect("credentials"), credentials(SECRET_KEY));
    let why = ApiCredentials::from_variables(&|_| None).expect_err("nothing is set").to_string();
    assert!(why.contains("BINANCE_API_KEY"), "{why}");
}

#[test]
fn no_debug_text_and_no_reason_of_a_loss_shows_a_secret() {
    let exchange = ScriptedExchange::start();
    let text = format!("{:?}", config(&exchange));
    assert!(text.contains("hidden") && !text.contains(API_KEY) && !text.contains("MC4CAQ"), "{text}");
    let signer = format!("{:?}", RequestSigner::new(credentials(SECRET_KEY)).expect("a key"));
    assert!(!signer.contains(SECRET_KEY), "{signer}");

    exchange.reply("session.logon", Reply::refused(401, -2015, "Invalid API-key, IP, or permissions for action."));
    let mut driver = Driver::new(config(&exchange));
    driver.begin_connect();
    let why = driver.until_lost();
    assert!(why.contains("refuses the logon: -2015: Invalid API-key"), "{why}");
    let logon = exchange.of_method("session.logon").pop().expect("a logon");
    assert!(!why.contains(API_KEY) && !why.contains(&logon.param("signature")), "{why}");
}

#[test]
fn a_line_without_usable_credentials_is_not_made() {
    let exchange = ScriptedExchange::start();
    let secret = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----";
    let config = BinanceLineConfig { credentials: credentials(secret), ..config(&exchange) };
    let why = BinanceLine::new(config).err().expect("no key").to_string();
    assert!(why.contains("Ed25519") && !why.contains("MIIE"), "{why}");
}
