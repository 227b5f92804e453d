//! The page of reject codes.

use tickpath_oms_protocol::LogonRejectReason;
use tickpath_venue_sim::RejectReason;

use super::check_page;

const HEAD: &str = "\
# Reject codes

Codes in reports of venues and in refused logons. The codes by which the OMS itself denies a request are on the page of
the [risk checks](../risk-checks.md); the codes of report types and order states are in the [messages](messages.md).
";

#[test]
fn the_page_of_codes_has_every_reject_reason() {
    let mut page = format!(
        "{HEAD}\n## Rejects of the simulated exchange\n\nThe `reason` of a report whose type is `rejected` or \
         `cancel_rejected`. Other venues have codes of their own, which `rejects` in `oms.toml` maps to actions.\n\n\
         | code | name | meaning and remedy |\n|---|---|---|\n"
    );
    for reason in RejectReason::ALL {
        page += &format!("| {} | `{reason:?}` | {reason} |\n", reason.code());
    }
    page += "\n## Refused logons\n\nThe OMS sends the code with a sentence that gives the reason and the remedy.\n\n";
    page += "| code | name |\n|---|---|\n";
    for reason in (1..=u16::MAX).map_while(LogonRejectReason::from_code) {
        page += &format!("| {} | `{reason:?}` |\n", reason.code());
    }
    check_page("codes.md", &page);
}
