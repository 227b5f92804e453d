//! The accounts of a simulated exchange: from a file, or the demo account.

use std::fmt::Write;
use std::path::Path;
use std::str::FromStr;

use tickpath_exchanges::OrderExchange;
use tickpath_market::Quantity;
use tickpath_settings::Section;
use tickpath_venue_sim_web::{SimAccount, SimInstrument};

use tickpath_cli_terminal::args::CliUsageError;

/// Amounts of the demo account, of each currency of prices and of each other currency.
const DEMO_AMOUNTS: (i64, i64) = (1_000_000, 1_000);
/// Amount of each currency that the market's own account has.
const MARKET_AMOUNT: i64 = 1_000_000_000;

/// A currency and an amount.
struct Balance(String, Quantity);

/// Returns the account that is there without a file. It is the same at each start, so that clients keep their settings.
pub fn demo_account(instruments: &[SimInstrument]) -> SimAccount {
    let (of_prices, of_others) = DEMO_AMOUNTS;
    let is_quote = |currency: &str| instruments.iter().any(|instrument| instrument.quote == currency);
    let amount = |currency: &str| if is_quote(currency) { of_prices } else { of_others };
    SimAccount {
        name: "demo".to_owned(),
        api_key: "TickpathDemoKey0000000000000001".to_owned(),
        secret: "TickpathDemoSecret00000000000001".to_owned(),
        passphrase: "TickpathDemo1".to_owned(),
        balances: balances(instruments, amount),
    }
}

/// Returns the account that trades with the quotes. No client knows its key, which is random.
pub fn market_account(instruments: &[SimInstrument]) -> SimAccount {
    SimAccount {
        name: "market".to_owned(),
        api_key: random_text(),
        secret: random_text(),
        passphrase: random_text(),
        balances: balances(instruments, |_| MARKET_AMOUNT),
    }
}

/// Reads the accounts of a file, at least one.
pub fn read_accounts(file: &Path, protocol: OrderExchange) -> Result<Vec<SimAccount>, CliUsageError> {
    let read = tickpath_settings::read(file, |top| {
        let mut accounts: Vec<SimAccount> = Vec::new();
        top.sections("account", |section| {
            let account = read_account(section, protocol);
            if accounts.iter().any(|other| other.api_key == account.api_key) {
                section.add_mistake("key", "another account has this key; give each its own");
            }
            accounts.push(account);
        });
        if accounts.is_empty() {
            top.add_section_mistake("there is no [[account]]; clients log in to one");
        }
        accounts
    });
    read.map_err(|e| CliUsageError(e.to_string()))
}

fn read_account(section: &mut Section<'_>, protocol: OrderExchange) -> SimAccount {
    if protocol == OrderExchange::Okx {
        section.require("passphrase");
    }
    let balances: Vec<Balance> = section.list("balances").unwrap_or_default();
    SimAccount {
        name: section.require_text("name"),
        api_key: section.require_text("key"),
        secret: section.require_text("secret"),
        passphrase: section.text("passphrase").unwrap_or_default(),
        balances: balances.into_iter().map(|Balance(currency, amount)| (currency, amount)).collect(),
    }
}

/// Returns a balance in each currency of the instruments.
fn balances(instruments: &[SimInstrument], amount: impl Fn(&str) -> i64) -> Vec<(String, Quantity)> {
    let mut currencies: Vec<&String> =
        instruments.iter().flat_map(|instrument| [&instrument.base, &instrument.quote]).collect();
    currencies.sort_unstable();
    currencies.dedup();
    currencies.into_iter().map(|currency| (currency.clone(), Quantity::from_whole(amount(currency)))).collect()
}

fn random_text() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}

impl FromStr for Balance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(' ').filter(|(currency, _)| !currency.is_empty());
        let (currency, amount) = parts.ok_or_else(|| format!("'{text}' is no balance; write it like USDT 1000"))?;
        let amount = amount.trim().parse::<Quantity>().map_err(|why| format!("'{text}': {why}"))?;
        if amount < Quantity::ZERO {
            return Err(format!("'{text}': a balance is not below zero; write it like USDT 1000"));
        }
        Ok(Self(currency.to_owned(), amount))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns the accounts of a file with this text, or its mistakes without the folder.
    fn read(text: &str, protocol: OrderExchange) -> Result<Vec<SimAccount>, String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("keys.toml");
        fs::write(&file, text).expect("the folder is ours");
        let prefix = format!("{}/", folder.path().display());
        read_accounts(&file, protocol).map_err(|e| e.to_string().replace(&prefix, ""))
    }

    const KEYS: &str =
        "[[account]]\nname = \"a\"\nkey = \"k\"\nsecret = \"s\"\nbalances = [\"USDT 10.5\", \"BTC 1\"]\n";

    #[test]
    fn accounts_have_their_keys_and_balances() {
        let accounts = read(KEYS, OrderExchange::Binance).expect("the file is sound");
        let SimAccount { name, api_key, secret, passphrase, balances } = &accounts[0];
        assert_eq!([name, api_key, secret, passphrase], ["a", "k", "s", ""]);
        let expected = [("USDT", "10.5"), ("BTC", "1")];
        assert_eq!(balances.len(), expected.len());
        for ((currency, amount), (name, text)) in balances.iter().zip(expected) {
            assert_eq!((currency.as_str(), amount.to_string().as_str()), (name, text));
        }
    }

    #[test]
    fn a_mistake_is_reported_at_its_line() {
        for (text, expected) in [
            (String::new(), "keys.toml:1: there is no [[account]]; clients log in to one"),
            (KEYS.to_owned(), "keys.toml:1: [[account]] 'passphrase' is missing"),
            (
                KEYS.replace("USDT 10.5", "USDT").replace("key", "passphrase = \"p\"\nkey"),
                "keys.toml:6: [[account]] balances: 'USDT' is no balance; write it like USDT 1000",
            ),
            (
                format!("{KEYS}passphrase = \"p\"\n{KEYS}passphrase = \"p\"\n"),
                "keys.toml:9: [[account]] key: another account has this key; give each its own",
            ),
        ] {
            assert_eq!(read(&text, OrderExchange::Okx).expect_err("it has a mistake"), expected, "of {text}");
        }
    }

    #[test]
    fn the_accounts_of_the_market_are_unlike_each_other() {
        let (one, other) = (market_account(&[]), market_account(&[]));
        assert_eq!((one.api_key.len(), one.secret.len()), (32, 32));
        assert!(one.api_key != other.api_key && one.secret != other.secret, "both are random");
    }
}
