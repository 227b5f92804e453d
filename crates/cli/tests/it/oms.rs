//! `tickpath oms`: its first files, the reports about good and bad ones, and its users.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::{TempDir, tempdir};

use crate::program::{Ran, tickpath};

/// Makes a folder as `tickpath oms init` leaves it.
fn first() -> TempDir {
    let folder = tempdir().expect("a temporary folder can be made");
    let ran = oms(folder.path(), "init --folder @");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    folder
}

/// Calls `tickpath oms`; @ stands for the folder.
fn oms(folder: &Path, line: &str) -> Ran {
    tickpath(&format!("oms {}", line.replace('@', &folder.display().to_string())))
}

/// Calls `tickpath oms`, and checks its exit code and for the word in its output.
fn check(folder: &Path, line: &str, code: i32, word: &str) {
    let ran = oms(folder, line);
    let text = format!("{}{}", ran.out, ran.err);
    assert_eq!(ran.code, Some(code), "{line}: {text}");
    assert!(text.contains(word), "{line}: {word} in {text}");
}

fn change(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).expect("it is there");
    assert!(text.contains(from), "{} has no {from}", file.display());
    fs::write(file, text.replacen(from, to, 1)).expect("the folder is ours");
}

#[test]
fn init_writes_files_that_are_sound_once() {
    let folder = tempdir().expect("a temporary folder can be made");
    let deep = folder.path().join("a/b");
    let ran = oms(&deep, "init --folder @");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for user in ["trader", "admin"] {
        let file = deep.join(format!("{user}.password"));
        let password = fs::read_to_string(&file).expect("it was written");
        assert_eq!(password.trim_end().len(), 24, "{password}");
        assert!(ran.out.contains(password.trim_end()), "{}", ran.out);
        assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    }
    check(&deep, "--config @/oms.toml --check", 0, "1 venue, 2 instruments, 2 accounts, 2 users with 6 sessions\n");
    let before = fs::read(deep.join("users.toml")).expect("it was written");
    check(&deep, "init --folder @", 2, "oms.toml exists already and is not overwritten");
    assert_eq!(fs::read(deep.join("users.toml")).expect("it is there"), before);
    fs::write(folder.path().join("file"), "").expect("the folder is ours");
    check(folder.path(), "init --folder @/file", 1, "name a folder that this user may write to");
}

#[test]
fn check_lists_all_mistakes_of_all_files_with_their_lines() {
    let folder = first();
    let at = |name: &str| folder.path().join(name);
    change(&at("oms.toml"), "tcp = ", "tpc = ");
    change(&at("instruments.csv"), "BTCUSDT,1,SIM,1", "BTCUSDT,1,SIM,0");
    change(&at("accounts.csv"), "2,100,", "2,100");
    change(&at("users.toml"), "[8, 9]", "[0]");
    let ran = oms(folder.path(), "--config @/oms.toml --check");
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{}", ran.err);
    let output: Vec<&str> = ran.err.lines().collect();
    assert_eq!(output[0], "tickpath: 4 mistakes; correct them; until then the OMS uses none of these files");
    for (line, words) in output[1..].iter().zip([
        ["oms.toml:", "unknown key 'tpc'; did you mean 'tcp'?"],
        ["instruments.csv:4: ", "multiplier: '0' is no contract size"],
        ["accounts.csv:5: ", "cells, but the first line names 11 columns"],
        ["users.toml:", "session 0 is trader's"],
    ]) {
        assert!(words.iter().all(|word| line.contains(word)), "{words:?} in {line}");
    }
    assert_eq!(output.len(), 5, "{output:?}");
    // Without --check the same holds: nothing starts on files with mistakes.
    check(folder.path(), "--config @/oms.toml", 2, "4 mistakes");
    check(folder.path(), "--config @/none.toml --check", 2, "write a first one with `tickpath oms init`");
    check(folder.path(), "--config @ --check", 2, "must be a text file");
}

#[test]
fn check_warns_of_settings_that_may_not_be_intended_and_succeeds() {
    let folder = first();
    change(&folder.path().join("users.toml"), "accounts = [\"*\"]", "accounts = [\"77\"]");
    let ran = oms(folder.path(), "--config @/oms.toml --check");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("user 'trader': no account of") && ran.out.contains("is sound"), "{}{}", ran.err, ran.out);
    assert_eq!(ran.out.lines().count(), 1);
}

#[test]
fn check_prints_when_the_day_ends_next() {
    let folder = first();
    let section = "[day]\nends = \"17:00\"\ntime_zone = \"America/Chicago\"\n[firm]\n";
    change(&folder.path().join("oms.toml"), "[firm]\n", section);
    let ran = oms(folder.path(), "--config @/oms.toml --check");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        ran.out.contains("; its day ends next at 20") && ran.out.contains(" 17:00 America/Chicago ("),
        "{}",
        ran.out
    );
    assert_eq!(ran.out.lines().count(), 1);
}

#[test]
fn users_are_added_and_disabled_and_change_their_passwords() {
    let folder = first();
    let at = folder.path();
    fs::write(at.join("new.password"), "correct horse\r\nbattery staple\n").expect("the folder is ours");
    let password = "--password-file @/new.password";
    check(
        at,
        &format!("user add --config @/oms.toml --accounts 1,7* {password} anna"),
        0,
        "may log in to session 4; a running OMS",
    );
    let rest = "--role read --accounts * --sessions 6,7";
    check(at, &format!("user add --config @/oms.toml {rest} {password} bert"), 0, "to sessions 6,7; a running OMS");
    check(at, "user disable --config @/oms.toml anna", 0, "'anna' may no longer log in");
    let listed = oms(at, "user list --config @/oms.toml").out;
    let rows: Vec<String> = listed.lines().map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let expected = [
        "name role accounts sessions state",
        "trader trade * 0,1,2,3 enabled",
        "admin admin * 8,9 enabled",
        "anna trade 1,7* 4 disabled",
        "bert read * 6,7 enabled",
    ];
    assert_eq!(rows, expected);
    check(at, "user enable --config @/oms.toml anna", 0, "'anna' may log in");
    let secret = || fs::read_to_string(at.join("users.toml")).expect("it is there");
    let before = secret();
    check(at, &format!("user passwd --config @/oms.toml {password} anna"), 0, "has a new password");
    assert_ne!(secret(), before, "a secret has a salt of its own");
    assert!(!secret().contains("correct horse"));
    check(at, "--config @/oms.toml --check", 0, "4 users with 9 sessions");
}

#[test]
fn a_password_comes_from_standard_input() {
    let folder = first();
    let [file, users] = ["oms.toml", "users.toml"].map(|name| folder.path().join(name));
    let before = fs::read(&users).expect("it is there");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
    command.args(["oms", "user", "passwd", "trader", "--config"]).arg(&file);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the binary starts");
    child.stdin.take().expect("it is a pipe").write_all(b"correct horse\n").expect("it is read");
    assert!(child.wait().expect("the child is ours").success());
    assert_ne!(fs::read(&users).expect("it is there"), before);
}

#[test]
fn a_bad_user_command_is_bad_usage_and_changes_nothing() {
    let folder = first();
    let at = folder.path();
    fs::write(at.join("empty"), "\n").expect("the folder is ours");
    fs::write(at.join("long"), "x".repeat(1025)).expect("the folder is ours");
    let before = fs::read(at.join("users.toml")).expect("it is there");
    let (config, password) = ("--config @/oms.toml", "--password-file @/trader.password");
    for (line, word) in [
        (format!("user add {config} {password} anna"), "--accounts"),
        (format!("user add {config} {password} --accounts 7x anna"), "'7x' names no accounts"),
        (format!("user add {config} {password} --accounts 7 --role king anna"), "use read, trade or admin"),
        (format!("user add {config} {password} --accounts 7 --sessions 9 anna"), "session 9 is admin's"),
        (format!("user add {config} {password} --accounts 7 --sessions 65000 anna"), "numbers below 65000"),
        (format!("user add {config} {password} --accounts 7 --sessions 5,5 anna"), "each once"),
        (format!("user add {config} {password} --accounts 7 trader"), "there is a user 'trader' already"),
        (format!("user add {config} {password} --accounts 7 an,na"), "is no user's name"),
        (format!("user add {config} --accounts 7 anna"), "standard input: the password is empty"),
        (format!("user passwd {config} --password-file @/empty trader"), "is empty; write it in the first line"),
        (format!("user passwd {config} --password-file @/long trader"), "the password exceeds 1024 bytes"),
        (format!("user passwd {config} --password-file @/none trader"), "none: No such file"),
        (format!("user passwd {config} {password} anna"), "there is no user 'anna'; there are: trader, admin"),
        (format!("user disable {config} anna"), "there is no user 'anna'"),
        ("user list --config @/none.toml".to_owned(), "write a first one with `tickpath oms init`"),
        (format!("user add {config} {password} --accounts 7 --password x anna"), "--password"),
        ("fly".to_owned(), "fly"),
    ] {
        check(at, &line, 2, word);
    }
    assert_eq!(fs::read(at.join("users.toml")).expect("it is there"), before);
}
