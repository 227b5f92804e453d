//! API keys: read from a file of their owner, or from the environment, and never shown.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tickpath_feed_binance::ApiKey;

/// Reads a key from a file with this text and these permissions.
fn read(text: &str, mode: u32) -> Result<ApiKey, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("binance.toml");
    fs::write(&file, text).expect("the folder is ours");
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("the file is ours");
    ApiKey::read(&file).map_err(|error| error.to_string())
}

#[test]
fn a_key_is_read_from_a_file_of_its_owner() {
    let key: ApiKey = "KeyOfATest".parse().expect("a key");
    assert_eq!(read("key = 'KeyOfATest'\n", 0o600), Ok(key.clone()));
    assert_eq!(read("key = 'KeyOfATest'\nsecret = 'x'\n", 0o600), Ok(key));
    for (text, mode, words) in [
        ("key = 'KeyOfATest'", 0o640, "mode 640"),
        ("secret = 'x'", 0o600, "'key' is missing"),
        ("key = 'Key of a test'", 0o600, "letters and digits only"),
        ("key = 'KeyOfATest'\nkeys = 1", 0o600, "unknown key 'keys'"),
    ] {
        let error = read(text, mode).expect_err(text);
        assert!(error.contains(words), "{error}");
        assert!(!error.contains("KeyOfATest"), "{error}");
    }
}

#[test]
fn a_missing_variable_is_named() {
    let error = ApiKey::from_variable("TICKPATH_NO_SUCH_KEY").expect_err("the variable is not set");
    assert!(error.to_string().contains("TICKPATH_NO_SUCH_KEY is not set"), "{error}");
}
