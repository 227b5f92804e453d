//! Checks of a connect, before any order may leave: the account of the key, and the codes of the instruments. A wrong
//! account would make orders of the journal seem absent, and a wrong code would trade another instrument.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;

use serde::Deserialize;
use tickpath_settings::bind_account;
use tickpath_web_client::{HttpRequest, HttpResponse};

use crate::signed_rest::{RestCall, RestFailure, RestLimit, SignedRest, read_rows};
use crate::traded_instruments::TradedInstruments;

const ACCOUNT_PATH: &str = "/api/v5/account/config";

/// Types of instruments, as OKX lists them; an instrument's own follows from its name. Options are listed by family
/// alone, and are not compared.
const TYPES: [&str; 3] = ["SPOT", "SWAP", "FUTURES"];

/// Failures of a check.
#[derive(Debug)]
pub(crate) enum CheckFailure {
    Rest(RestFailure),
    /// The sentence that ends the connect.
    Wrong(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum CheckStep {
    /// The account, compared with the one in this file.
    Account(PathBuf),
    /// The codes of the instruments of this type.
    Codes(&'static str),
}

/// The checks of a connect, one after another.
#[derive(Debug)]
pub(crate) struct ConnectCheck {
    steps: VecDeque<CheckStep>,
    call: Option<RestCall>,
}

#[derive(Deserialize)]
struct AccountRow<'a> {
    uid: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedInstrument<'a> {
    #[serde(borrow)]
    inst_id: &'a str,
    #[serde(default)]
    inst_id_code: u64,
}

impl ConnectCheck {
    /// Plans the checks. Without a file nothing is checked.
    pub fn begin(account_file: Option<PathBuf>, instruments: &TradedInstruments) -> Self {
        let mut steps = VecDeque::new();
        if let Some(file) = account_file {
            steps.push_back(CheckStep::Account(file));
            let has_code = |listed: &&str| {
                instruments.iter().any(|instrument| instrument.code != 0 && type_of(&instrument.name) == Some(listed))
            };
            steps.extend(TYPES.into_iter().filter(has_code).map(CheckStep::Codes));
        }
        Self { steps, call: None }
    }

    /// Takes the next step. Returns whether all is checked.
    pub fn advance(&mut self, rest: &mut SignedRest, instruments: &TradedInstruments) -> Result<bool, CheckFailure> {
        let Some(step) = self.steps.front() else { return Ok(true) };
        let Some(call) = &mut self.call else {
            let path = match step {
                CheckStep::Account(_) => ACCOUNT_PATH.to_owned(),
                CheckStep::Codes(listed) => format!("/api/v5/public/instruments?instType={listed}"),
            };
            self.call = rest.start(RestLimit::Rare, HttpRequest::get(&path));
            return Ok(false);
        };
        let Some(answer) = rest.finish(call) else { return Ok(false) };
        self.call = None;
        let answer = answer.map_err(CheckFailure::Rest)?;
        match step {
            CheckStep::Account(file) => {
                let account = account_of(&answer, rest.is_demo()).map_err(CheckFailure::Rest)?;
                bind_account(file, &account).map_err(|e| CheckFailure::Wrong(e.to_string()))?;
            }
            CheckStep::Codes(listed) => check_codes(&answer, instruments, listed)?,
        }
        self.steps.pop_front();
        Ok(self.steps.is_empty())
    }
}

/// Returns the account of the key, as a file keeps it. Demo trading has accounts of its own.
fn account_of(answer: &HttpResponse, is_demo: bool) -> Result<String, RestFailure> {
    let rows: Vec<AccountRow<'_>> = read_rows(answer)?;
    let unreadable = || RestFailure::Passing(format!("{ACCOUNT_PATH} has no row with a uid"));
    let row = rows.first().ok_or_else(unreadable)?;
    Ok(format!("{} {}", if is_demo { "okx-demo" } else { "okx" }, row.uid))
}

fn check_codes(answer: &HttpResponse, instruments: &TradedInstruments, listed: &str) -> Result<(), CheckFailure> {
    let rows: Vec<ListedInstrument<'_>> = read_rows(answer).map_err(CheckFailure::Rest)?;
    let codes: HashMap<&str, u64> = rows.iter().map(|row| (row.inst_id, row.inst_id_code)).collect();
    for instrument in instruments.iter().filter(|instrument| type_of(&instrument.name) == Some(listed)) {
        // An instrument that OKX does not list is suspended or gone: OKX refuses its orders.
        let Some(&code) = codes.get(instrument.name.as_str()).filter(|code| **code != 0) else { continue };
        if instrument.code != 0 && instrument.code != code {
            return Err(CheckFailure::Wrong(format!(
                "{} has code {code} at OKX, {} in the table: fetch it anew",
                instrument.name, instrument.code
            )));
        }
    }
    Ok(())
}

/// Returns the type of an instrument by its name; none for an option.
fn type_of(name: &str) -> Option<&'static str> {
    match (name.matches('-').count(), name.ends_with("-SWAP")) {
        (0 | 1, _) => Some("SPOT"),
        (2, true) => Some("SWAP"),
        (2, false) => Some("FUTURES"),
        _ => None,
    }
}
