//! The users of an OMS: their rights, and changes of their file.

use std::fs;
use std::os::unix::fs::symlink;
use std::thread;

use tickpath_market::AccountId;
use tickpath_oms_core::ALL_ACCOUNTS;
use tickpath_oms_protocol::{Secret, UserRole};
use tickpath_oms_runtime::{AckLevel, RequestRate, SessionConfig};
use tickpath_oms_server::settings::{AccountPattern, EditError, NewUser, OmsUser, Users, UsersFile};

use super::{Files, mode};

fn pattern(text: &str) -> AccountPattern {
    text.parse().expect("a good pattern")
}

#[test]
fn a_mistake_of_a_user_is_reported_at_its_line() {
    let user = |name: &str, role: &str, sessions: &str| {
        let secret = Secret::decoy(b"key", name);
        format!(
            "[[user]]\nname = \"{name}\"\nrole = \"{role}\"\naccounts = [\"*\"]\nsessions = [{sessions}]\nsecret = \"{secret}\"\n"
        )
    };
    let users = user("trader", "trade", "0, 1, 2, 3") + &user("admin", "admin", "8, 9");
    for (from, to, expected) in [
        (
            "name = \"trader\"",
            "name = \"a,b\"",
            "2: [[user]] name: 'a,b' is no user's name; use 1 to 64 letters, digits, '.', '_', '-' or '@'",
        ),
        (
            "name = \"admin\"",
            "name = \"trader\"",
            "8: [[user]] name: 'trader' is in line 2 already; give each user its own",
        ),
        ("\"trade\"", "\"king\"", "3: [[user]] role: 'king' is not allowed; use read, trade or admin"),
        (
            "accounts = [\"*\"]",
            "accounts = [\"7x\"]",
            "4: [[user]] accounts: '7x' names no accounts; use digits, '*' for any digits and '?' for one, like 7*",
        ),
        (
            "[0, 1, 2, 3]",
            "[]",
            "5: [[user]] sessions: a user needs a session to log in; write numbers that no other user has",
        ),
        ("[0, 1, 2, 3]", "[65000]", "5: [[user]] sessions: 65000 is out of range; use 0 to 64999"),
        (
            "[0, 1, 2, 3]",
            "[0, 0]",
            "5: [[user]] sessions: session 0 is written twice; each has one user, and is listed once",
        ),
        ("[8, 9]", "[3]", "11: [[user]] sessions: session 3 is trader's; each has one user, and is listed once"),
        (
            "secret = \"SCRAM",
            "secret = \"PLAIN",
            "6: [[user]] secret: this is no secret of the form SCRAM-SHA-256$ITERATIONS:SALT$STORED:SERVER; set the user's password anew",
        ),
        (
            "secret = \"SCRAM",
            "password = \"SCRAM",
            "1: [[user]] 'secret' is missing\nusers.toml:6: [[user]] unknown key 'password'; known here: name, sessions, accounts, role, secret, kinds, rate_limit, rate_window_ns, max_order_quantity, max_notional, disabled, level, cancel_on_disconnect, rate_per_second, drop_copy, copy_users, fills_only",
        ),
    ] {
        let files = Files::new();
        files.write("users.toml", &users.replacen(from, to, 1));
        assert_eq!(files.reported(), format!("users.toml:{expected}"), "of {to}");
    }
}

#[test]
fn rights_follow_from_role_accounts_and_own_keys() {
    let files = Files::new();
    let secret = Secret::decoy(b"key", "x");
    let user = |name: &str, rest: &str| format!("[[user]]\nname = '{name}'\nsecret = '{secret}'\n{rest}\n");
    files.write("users.toml", &[
        user("some", "role = 'trade'\naccounts = ['1', '?7', '9*']\nsessions = [5, 4]\nlevel = 'disk'\nrate_per_second = 50\ncancel_on_disconnect = true"),
        user("all", "role = 'trade'\naccounts = ['2', '**']\nsessions = [3]"),
        user("eyes", "role = 'read'\naccounts = ['2']\nsessions = [2]"),
        user("gone", "role = 'admin'\naccounts = ['*']\nsessions = [1]\ndisabled = true"),
        user("none", "role = 'admin'\naccounts = []\nsessions = [0]"),
    ].concat());
    let line = |account: u32| format!("{account},1,1,1,1,1\n");
    let lines: String = [1, 2, 7, 17, 27, 127, 9, 90].map(line).concat();
    files.write(
        "accounts.csv",
        &format!("account,max_order_quantity,max_notional,collar,max_reference_age_ns,max_position\n{lines}"),
    );
    let settings = files.read();
    let all = RequestRate::default();
    let idle = SessionConfig { rate: all, ..SessionConfig::default() };
    let some = SessionConfig {
        session: 4,
        level: AckLevel::Disk,
        cancel_on_disconnect: true,
        accounts: [1, 17, 27, 9, 90].map(AccountId).to_vec(),
        withheld: 0,
        limits: Default::default(),
        rate: RequestRate { per_second: 50, burst: 50 },
    };
    let expected = [
        SessionConfig { session: 0, ..idle.clone() },
        SessionConfig { session: 1, ..idle.clone() },
        SessionConfig { session: 2, ..idle.clone() },
        SessionConfig { session: 3, accounts: vec![ALL_ACCOUNTS], ..idle },
        some.clone(),
        SessionConfig { session: 5, ..some },
    ];
    assert_eq!(settings.trading_config().sessions, expected);
    let sees = |name: &str, account: u32| {
        settings.users.find(name).is_some_and(|user: &OmsUser| user.may_see(AccountId(account)))
    };
    assert_eq!([sees("some", 17), sees("some", 7), sees("eyes", 2), sees("eyes", 1)], [true, false, true, false]);
    assert!(sees("none", 1), "an admin sees all");
    assert_eq!(settings.users.by_session(2).map(|user| user.name.as_str()), Some("eyes"));
}

#[test]
fn a_pattern_matches_digits_and_wildcards() {
    /// Matches by definition, as the reference.
    fn stands(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), _) if stands(rest, text) => true,
            (Some((b'*', _)), Some((_, text))) => stands(pattern, text),
            (Some((c, rest)), Some((d, text))) => (c == d || *c == b'?') && stands(rest, text),
            _ => false,
        }
    }
    let mut patterns = vec![String::new()];
    for _ in 0..5 {
        let longer = patterns.iter().flat_map(|start| ["1", "2", "*", "?"].map(|letter| format!("{start}{letter}")));
        patterns = patterns.iter().cloned().chain(longer).collect();
    }
    let accounts: Vec<u32> = (0..=4222).filter(|account| account.to_string().bytes().all(|c| c <= b'2')).collect();
    for text in patterns.iter().filter(|text| !text.is_empty()) {
        for &account in &accounts {
            let expected = stands(text.as_bytes(), account.to_string().as_bytes());
            assert_eq!(pattern(text).matches(AccountId(account)), expected, "{text} and {account}");
        }
    }
    assert!("".parse::<AccountPattern>().is_err());
}

#[test]
fn an_edit_of_users_keeps_the_rest_of_the_file() {
    let files = Files::new();
    let before = files.text("users.toml");
    files.change("users.toml", "\"trade\"", "\"trade\" # day shift");
    files.write("users.toml.new", "what a crash has left");
    let new = |name: &str, sessions: &[u16]| NewUser {
        name: name.to_owned(),
        role: UserRole::Read,
        accounts: vec![pattern("7*")],
        sessions: sessions.to_vec(),
        secret: Secret::decoy(b"key", "y"),
    };
    let mut users = files.users();
    assert_eq!(users.add(&new("first", &[])).expect("a session is free"), [4]);
    assert_eq!(users.add(&new("second", &[6, 5])).expect("they are free"), [6, 5]);
    users.set_disabled("trader", true).expect("it is there");
    users.set_secret("admin", &Secret::decoy(b"key", "z")).expect("it is there");
    users.save().expect("the folder is ours");

    let (after, read) = (files.text("users.toml"), files.read().users);
    let lost = |line: &&str| !after.contains(*line) && !line.starts_with("role") && !line.starts_with("secret");
    assert_eq!(before.lines().filter(lost).count(), 0, "{after}");
    assert!(after.contains("\"trade\" # day shift"), "{after}");
    assert!(read.find("trader").is_some_and(|user| user.disabled));
    assert!(read.find("second").is_some_and(|user| user.role == UserRole::Read && user.accounts == [pattern("7*")]));
    assert_eq!(mode(&files.at("users.toml")), 0o600);
    assert!(!files.at("users.toml.new").exists());
    files.users().set_disabled("trader", false).expect("it is there");
    assert!(files.read().users.find("trader").is_some_and(|user| user.disabled), "what is not saved did not happen");

    let mut users = files.users();
    for (result, expected) in [
        (
            users.add(&new("first", &[])).map(drop),
            "there is a user 'first' already; choose another name, or change that one's password with passwd",
        ),
        (
            users.add(&new("a b", &[])).map(drop),
            "'a b' is no user's name; use 1 to 64 letters, digits, '.', '_', '-' or '@'",
        ),
        (
            users.add(&new("third", &[7, 9])).map(drop),
            "session 9 is admin's; name others, or none for the first that is free",
        ),
        (users.add(&new("third", &[7, 7])).map(drop), "session 7 cannot be; use numbers below 65000, each once"),
        (users.add(&new("third", &[65000])).map(drop), "session 65000 cannot be; use numbers below 65000, each once"),
        (users.set_disabled("third", true), "there is no user 'third'; there are: trader, admin, first, second"),
    ] {
        assert_eq!(result.expect_err("it cannot be").to_string(), expected);
    }
}

#[test]
fn users_may_be_absent_inline_or_behind_a_link() {
    let files = Files::new();
    let secret = Secret::decoy(b"key", "x");
    let new =
        NewUser { name: "a".into(), role: UserRole::Trade, accounts: vec![], sessions: vec![], secret: secret.clone() };
    for text in [
        "# nobody yet\n".to_owned(),
        format!("user = [{{ name = 'b', role = 'read', accounts = [], sessions = [1], secret = '{secret}' }}]\n"),
    ] {
        files.write("real.toml", &text);
        let _ = fs::remove_file(files.at("users.toml"));
        symlink("real.toml", files.at("users.toml")).expect("the folder is ours");
        let mut users = files.users();
        assert_eq!(users.add(&new).expect("there is room"), [0]);
        users.save().expect("the folder is ours");
        assert!(fs::symlink_metadata(files.at("users.toml")).expect("it is there").is_symlink());
        assert!(files.read().users.find("a").is_some_and(|user| user.secret == secret));
    }
    files.write("users.toml", "user = 3");
    let wrong = UsersFile::open(&files.at("users.toml")).err().map(|error| matches!(error, EditError::Settings(_)));
    assert_eq!(wrong, Some(true), "a file with mistakes is not changed");
}

#[test]
fn concurrent_edits_lose_nothing() {
    const THREADS: usize = 4;
    const EACH: usize = 8;
    let files = Files::new();
    let secret = Secret::decoy(b"key", "x");
    let add = |name: String| {
        let accounts = vec![pattern("*")];
        let mut users = files.users();
        let new = NewUser { name, role: UserRole::Trade, accounts, sessions: vec![], secret: secret.clone() };
        users.add(&new).expect("the name is new");
        users.save().expect("the folder is ours");
    };
    thread::scope(|scope| {
        for t in 0..THREADS {
            scope.spawn(move || (0..EACH).for_each(|n| add(format!("user-{t}-{n}"))));
        }
        // A concurrent reader always finds a complete file.
        for _ in 0..100 {
            assert!(Users::read(&files.at("users.toml")).expect("it is whole").find("admin").is_some());
        }
    });
    assert_eq!(files.read().users.list.len(), 2 + THREADS * EACH);
}
