//! `venue check` against simulated exchanges: each check is good, and each mistake is found.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tempfile::{TempDir, tempdir};

use crate::program::{Ran, tickpath};
use crate::web_exchange::WebExchange;

/// Names of the checks, in their order.
const CHECKS: [&str; 11] = [
    "clock",
    "account",
    "instrument",
    "table",
    "limits",
    "connection",
    "order",
    "amend",
    "status",
    "reconnect",
    "cancel",
];

/// An exchange, and the file of a key to it.
struct CheckedExchange {
    folder: TempDir,
    exchange: WebExchange,
    name: &'static str,
}

impl CheckedExchange {
    /// Starts an exchange with further arguments; @ stands for the folder.
    fn start(name: &'static str, arguments: &str) -> Self {
        let folder = tempdir().expect("a temporary folder");
        let arguments = arguments.replace('@', &folder.path().display().to_string());
        let exchange = WebExchange::start(&format!("exchange --as {name} --still {arguments}"));
        exchange.write_credentials(&folder.path().join("api.toml"));
        Self { folder, exchange, name }
    }

    /// Runs the check with further arguments; @ stands for the folder.
    fn check(&self, arguments: &str) -> Ran {
        let (name, private, rest) = (self.name, self.exchange.fact("private"), self.exchange.fact("rest"));
        let line = format!("venue check {name} --key @/api.toml --url {private} --rest-url {rest}{arguments}");
        tickpath(&line.replace('@', &self.folder.path().display().to_string()))
    }

    /// Fetches the table of instruments.
    fn fetch(&self, arguments: &str) {
        let (name, rest) = (self.name, self.exchange.fact("rest"));
        let line = format!("instruments fetch {name} --url {rest} --to @/instruments.csv{arguments}");
        let ran = tickpath(&line.replace('@', &self.folder.path().display().to_string()));
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    }
}

/// Returns the result of each check.
fn results(ran: &Ran) -> Vec<(&str, &str)> {
    let rows = ran.out.lines().skip(1).map(|row| row.split_whitespace());
    rows.filter_map(|mut words| Some((words.next()?, words.next()?))).collect()
}

#[test]
fn every_check_of_a_sound_account_is_good() {
    for name in ["okx", "binance"] {
        for (served, checked) in [("--no-tls", ""), ("--write-ca @/ca.pem", " --ca @/ca.pem")] {
            let venue = CheckedExchange::start(name, served);
            venue.fetch(checked);
            let ran = venue.check(&format!("{checked} --table @/instruments.csv"));
            assert_eq!((ran.code, results(&ran)), (Some(0), CHECKS.map(|name| (name, "good")).to_vec()), "{}", ran.out);
            let secret = venue.exchange.fact("secret");
            assert!(!ran.out.contains(secret) && !ran.err.contains(secret), "{}{}", ran.out, ran.err);
        }
    }
}

#[test]
fn a_wrong_key_fails_the_account_and_the_connection_alone() {
    for name in ["okx", "binance"] {
        let venue = CheckedExchange::start(name, "--no-tls");
        let file = venue.folder.path().join("api.toml");
        let text = fs::read_to_string(&file).expect("it was written");
        fs::write(&file, text.replace(venue.exchange.fact("secret"), "another")).expect("the file is ours");
        let ran = venue.check("");
        let expected = CHECKS.map(|check| match check {
            "account" | "connection" => (check, "failed"),
            "clock" | "instrument" | "limits" => (check, "good"),
            _ => (check, "skipped"),
        });
        assert_eq!((ran.code, results(&ran)), (Some(1), expected.to_vec()), "{}{}", ran.out, ran.err);
    }
}

#[test]
fn a_clock_that_is_off_and_a_table_that_differs_are_found() {
    let venue = CheckedExchange::start("okx", "--no-tls");
    venue.fetch("");
    let table = venue.folder.path().join("instruments.csv");
    let text = fs::read_to_string(&table).expect("it was fetched");
    fs::write(&table, text.replace("10001", "10009")).expect("the file is ours");
    let ran = venue.check(" --table @/instruments.csv");
    let found = results(&ran).into_iter().filter(|(_, result)| *result != "good").collect::<Vec<_>>();
    assert_eq!((ran.code, found), (Some(1), vec![("table", "failed")]), "{}", ran.out);
    assert!(ran.out.contains("BTC-USDT has the code 10009, at the exchange 10001"), "{}", ran.out);

    let folder = tempdir().expect("a temporary folder");
    let faults = folder.path().join("faults.toml");
    fs::write(&faults, "clock_drift_ms = -3000\n").expect("the folder is ours");
    let venue = CheckedExchange::start("okx", &format!("--no-tls --faults {}", faults.display()));
    let ran = venue.check("");
    assert_eq!(results(&ran)[0], ("clock", "failed"), "{}", ran.out);
    assert!(ran.code == Some(1) && ran.out.contains("synchronise this host's clock"), "{}", ran.out);
}

#[test]
fn a_bad_call_is_refused_before_anything_is_sent() {
    let folder = tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("open.toml"), "key = \"k\"\nsecret = \"s\"\npassphrase = \"p\"\n").expect("the folder is ours");
    fs::write(at("own.toml"), "key = \"k\"\nsecret = \"s\"\npassphrase = \"p\"\n").expect("the folder is ours");
    fs::set_permissions(at("own.toml"), fs::Permissions::from_mode(0o600)).expect("the file is ours");
    fs::set_permissions(at("open.toml"), fs::Permissions::from_mode(0o644)).expect("the file is ours");
    let own = at("own.toml");
    for (line, words) in [
        ("venue check nyse --key x".to_owned(), "okx, binance"),
        ("venue check okx".to_owned(), "--key"),
        (format!("venue check okx --key {}", at("none.toml")), "cannot be read"),
        (format!("venue check okx --key {}", at("open.toml")), "chmod 600"),
        (format!("venue check binance --key {own} --demo"), "--demo is for okx alone"),
        (format!("venue check okx --key {own} --url wss://new.okx.com/x"), "--rest-url"),
        (format!("venue check okx --key {own} --url ws://127.0.0.1:1/x --table {}", at("none.csv")), "no such file"),
    ] {
        let ran = tickpath(&line);
        let sentence = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{line}: {sentence}");
        assert!(sentence.contains(words) && !sentence.contains("panicked"), "{line}: no '{words}' in: {sentence}");
    }
}
