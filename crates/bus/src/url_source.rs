//! URLs and passwords kept out of arguments, which any user of a host can read for all its processes.
//!
//! | written | is |
//! |---|---|
//! | `env:NAME` | the URL that the environment variable holds |
//! | `@FILE` | the URL in the file |
//! | `SCHEME://USER@HOST?password=env:NAME` | that URL, with the password from the environment |
//! | `SCHEME://USER@HOST?password=file:PATH` | that URL, with the password from the file |
//! | `redis://HOST?sentinel=NAME&sentinel-password=env:NAME` | the same for the password of the sentinels |
//!
//! The first line of a file counts.

use tickpath_bus_api::ConnectError;
use tickpath_bus_api::url::{PASSWORD_OPTION, SENTINEL_PASSWORD_OPTION};

/// Returns the complete URL. A URL that holds everything itself stays unchanged.
pub fn resolve_url(text: &str) -> Result<String, ConnectError> {
    let url = match text.split_once(':') {
        Some(("env", name)) => environment_variable(name)?,
        _ => match text.strip_prefix('@') {
            Some(file) => first_line(file)?,
            None => text.to_owned(),
        },
    };
    insert_passwords(url)
}

/// Inserts the passwords, if the URL names where they are.
fn insert_passwords(url: String) -> Result<String, ConnectError> {
    let Some((place, options)) = url.split_once('?') else { return Ok(url) };
    let (mut place, mut others) = (place.to_owned(), Vec::new());
    for option in options.split('&') {
        let (name, source) = option.split_once('=').unwrap_or((option, ""));
        match name {
            PASSWORD_OPTION => place = insert_login(&place, &read_password(name, source)?)?,
            SENTINEL_PASSWORD_OPTION => others.push(format!("{name}={}", encode(&read_password(name, source)?))),
            _ => others.push(option.to_owned()),
        }
    }
    let mark = if others.is_empty() { "" } else { "?" };
    Ok(format!("{place}{mark}{}", others.join("&")))
}

/// Returns the password at the place that the option of this name gives.
fn read_password(name: &str, source: &str) -> Result<String, ConnectError> {
    match source.split_once(':') {
        Some(("env", variable)) => environment_variable(variable),
        Some(("file", file)) => first_line(file),
        // The value may be the password itself, so that no error repeats it.
        _ => Err(refused(&format!("behind '{name}=' stands env:NAME or file:PATH, and not the password"))),
    }
}

/// Returns a URL up to its options, with this password.
fn insert_login(place: &str, password: &str) -> Result<String, ConnectError> {
    let (scheme, rest) = place.split_once("://").ok_or_else(|| refused("a URL begins with a scheme"))?;
    let (user, servers) = rest.rsplit_once('@').unwrap_or(("", rest));
    if user.contains(':') {
        return Err(refused("there is a password in the URL already, and 'password=' names another one"));
    }
    Ok(format!("{scheme}://{user}:{}@{servers}", encode(password)))
}

fn environment_variable(name: &str) -> Result<String, ConnectError> {
    std::env::var(name).map_err(|e| {
        refused(&format!("the environment variable '{name}' cannot be used ({e}); export it, or name another"))
    })
}

fn first_line(file: &str) -> Result<String, ConnectError> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| refused(&format!("{file} cannot be read ({e}); name a file with the value in its first line")))?;
    match text.lines().next().map(str::trim_end).filter(|line| !line.is_empty()) {
        Some(line) => Ok(line.to_owned()),
        None => Err(refused(&format!("{file} has nothing in its first line; write the value there"))),
    }
}

/// Encodes all but letters and digits as `%20` and the like.
fn encode(text: &str) -> String {
    let shown = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(shown).collect()
}

fn refused(what: &str) -> ConnectError {
    ConnectError::Url(what.to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn passwords_and_urls_are_read_from_files() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "s@c:r?t \nmore").unwrap();
        let path = file.path().display();
        for (text, url) in [
            ("redis://h:1".to_owned(), "redis://h:1"),
            ("redis://ann:x@h?streams".to_owned(), "redis://ann:x@h?streams"),
            (format!("redis://ann@h:1/2?password=file:{path}&streams"), "redis://ann:s%40c%3Ar%3Ft@h:1/2?streams"),
            (
                format!("redis://h?sentinel=m&sentinel-password=file:{path}&password=file:{path}"),
                "redis://:s%40c%3Ar%3Ft@h?sentinel=m&sentinel-password=s%40c%3Ar%3Ft",
            ),
            (format!("nats://h,g?tls&password=file:{path}"), "nats://:s%40c%3Ar%3Ft@h,g?tls"),
            (format!("amqp://ann@h?password=file:{path}"), "amqp://ann:s%40c%3Ar%3Ft@h"),
        ] {
            assert_eq!(resolve_url(&text).unwrap(), url, "{text}");
        }
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "redis://ann:secret@h").unwrap();
        assert_eq!(resolve_url(&format!("@{}", file.path().display())).unwrap(), "redis://ann:secret@h");
    }

    #[test]
    fn a_missing_source_is_named_and_no_password_is_repeated() {
        for (text, word) in [
            ("env:TICKPATH_TEST_NOT_SET", "TICKPATH_TEST_NOT_SET"),
            ("@/no/such/file", "/no/such/file"),
            ("redis://h?password=secret", "env:NAME or file:PATH"),
            ("redis://h?streams&password", "env:NAME or file:PATH"),
            ("redis://h?sentinel=m&sentinel-password=secret", "env:NAME or file:PATH"),
            ("redis://h?password=file:/no/such/file", "/no/such/file"),
            ("redis://ann:secret@h?password=file:/dev/null", "nothing in its first line"),
        ] {
            let refused = resolve_url(text).unwrap_err();
            assert!(refused.is_usage() && refused.to_string().contains(word), "{text}: {refused}");
            assert!(!refused.to_string().contains("secret"), "{refused}");
        }
    }
}
