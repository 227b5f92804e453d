//! Credentials from a file or the environment, and the errors about them, which show no secret.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tickpath_venue_okx::{ApiCredentials, CredentialsError};

/// Writes a file with this text and these permissions.
fn file(folder: &Path, text: &str, mode: u32) -> PathBuf {
    let file = folder.join("okx.toml");
    fs::write(&file, text).expect("a file can be written");
    fs::set_permissions(&file, Permissions::from_mode(mode)).expect("its owner sets its permissions");
    file
}

#[test]
fn a_file_of_its_owner_alone_is_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = "key = 'kkkk-1111'\nsecret = \"ssss-2222\"\npassphrase = 'pp\"pp'\n";
    for mode in [0o600, 0o400] {
        let _ = fs::remove_file(folder.path().join("okx.toml"));
        let keys = ApiCredentials::read(&file(folder.path(), text, mode)).expect("the file is in order");
        assert_eq!(
            (keys.key.as_str(), keys.secret.as_str(), keys.passphrase.as_str()),
            ("kkkk-1111", "ssss-2222", "pp\"pp")
        );
        assert_eq!(format!("{keys:?}"), "ApiCredentials");
    }
}

#[test]
fn a_file_that_other_users_may_use_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for mode in [0o644, 0o640, 0o604, 0o660] {
        let file = file(folder.path(), "key = 'k'\nsecret = 's'\npassphrase = 'p'\n", mode);
        let refused = ApiCredentials::read(&file).expect_err("other users may use it").to_string();
        let expected =
            format!("{}: other users may use this file (mode {mode:04o}); run chmod 600 on it", file.display());
        assert_eq!(refused, expected);
    }
}

#[test]
fn a_mistake_is_named_by_its_line_and_never_quoted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (text, line) in [
        ("key = 'kkkk-1111'\nsecret = ssss-2222\npassphrase = 'p'\n", 2),
        ("key = 'kkkk-1111'\nsecret = 'ssss-2222'\npassphrase = 3333\n", 3),
        ("key = 'kkkk-1111'\nsecret = 'ssss-2222'\npassphrase = 'pppp-3333'\nssss-2222 = 1\n", 4),
        ("key = 'kkkk-1111'\n", 1),
    ] {
        let file = file(folder.path(), text, 0o600);
        let refused = ApiCredentials::read(&file).expect_err("it has a mistake");
        assert!(matches!(refused, CredentialsError::Malformed { line: found, .. } if found == line), "{refused}");
        for shown in [refused.to_string(), format!("{refused:?}")] {
            assert!(["kkkk", "ssss", "3333"].iter().all(|secret| !shown.contains(secret)), "{shown}");
        }
    }
}

#[test]
fn a_missing_file_is_named() {
    let refused = ApiCredentials::read(Path::new("no-such-file.toml")).expect_err("it is missing").to_string();
    assert!(refused.starts_with("no-such-file.toml: the credentials cannot be read ("), "{refused}");
}
