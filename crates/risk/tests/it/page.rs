//! `docs/risk-checks.md` has the table of the checks as it is made here.

use tickpath_risk::{Denial, checks_table};

const PAGE: &str = include_str!("../../../../docs/risk-checks.md");
const BEGIN: &str = "<!-- checks -->\n";
const END: &str = "<!-- /checks -->";

#[test]
fn the_page_has_the_table_of_the_checks() {
    let (_, rest) = PAGE.split_once(BEGIN).expect("the table begins somewhere");
    let (table, _) = rest.split_once(END).expect("the table ends somewhere");
    assert_eq!(table, checks_table(), "put this between the markers:\n{}", checks_table());
}

#[test]
fn each_row_names_a_denial_and_each_check_stands_there_once() {
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
