//! The tables of the checks and of the other denials in `docs/risk-checks.md` equal those generated here.

use tickpath_oms_risk::{Denial, checks_table};

const PAGE: &str = include_str!("../../../../docs/risk-checks.md");

/// Returns the table of the page between the two markers of this name.
fn on_page(name: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(&format!("<!-- {name} -->\n")).expect("the table begins somewhere");
    rest.split_once(&format!("<!-- /{name} -->")).expect("the table ends somewhere").0
}

#[test]
fn the_page_has_the_table_of_the_checks() {
    assert_eq!(on_page("checks"), checks_table(), "put this between the markers:\n{}", checks_table());
}

#[test]
fn the_page_has_each_denial_that_is_no_check() {
    let before = Denial::ALL.iter().filter(|denial| denial.code() < Denial::DiskFailed.code());
    let rows: String = before.map(|denial| format!("| {} | {denial:?} | {denial} |\n", denial.code())).collect();
    let table = format!("| code | denial | why, and what to do |\n|---|---|---|\n{rows}");
    assert_eq!(on_page("requests"), table, "put this between the markers:\n{table}");
}

#[test]
fn each_row_names_a_denial_and_each_check_has_one_row() {
    let table = checks_table();
    let codes: Vec<u16> =
        table.lines().skip(2).map(|row| row.split('|').nth(1).unwrap().trim().parse().unwrap()).collect();
    for (place, &code) in codes.iter().enumerate() {
        let denial = Denial::from_code(code).expect("the code is known");
        assert!(table.contains(&format!("| {code} | {denial:?} |")), "{denial:?}");
        assert!(!codes[..place].contains(&code), "{denial:?} stands there twice");
    }
    let measured = Denial::ALL.iter().filter(|denial| denial.code() >= Denial::DiskFailed.code());
    assert_eq!(measured.count(), codes.len(), "a check that is not in the table, or a row without a check");
}
