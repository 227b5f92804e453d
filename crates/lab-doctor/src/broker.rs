//! The brokers: settings that cost time or lose messages, as their transports report them. Read only.

use tickpath_bus::{Advice, ServerDescription, SettingCost, Transport, connect, server_prefixes, transport_of};

use crate::finding::Finding;

/// Checks the broker of a URL.
pub fn broker(url: &str) -> Vec<Finding> {
    let Some(transport) = transport_of(url).filter(|transport| transport.is_server()) else {
        let why = format!("this is no broker's URL; use {}HOST:PORT", server_prefixes());
        return vec![Finding::unknown(why).named("broker")];
    };
    match connect(url) {
        Ok(connection) => {
            let about = connection.server_description();
            let advised = (transport.advise)(&about).into_iter().chain(connection.advise()).map(finding);
            std::iter::once(broker_finding(url, &about, transport)).chain(advised).collect()
        }
        Err(why) => vec![Finding::unknown(why.to_string()).named("broker")],
    }
}

/// Returns the finding of the broker's version and address; unknown, with the reason, if it reports no setting at all.
fn broker_finding(url: &str, about: &ServerDescription, transport: &Transport) -> Finding {
    let unknown = about.settings.values().find_map(|setting| setting.as_ref().err());
    let version = match (&about.version, unknown) {
        (Some(version), _) => version.as_str(),
        (None, Some(why)) if about.settings.values().all(Result::is_err) => {
            return Finding::unknown(why.as_str()).named(transport.name);
        }
        (None, _) => "unknown version",
    };
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.rsplit_once('@').map_or(authority, |(_, authority)| authority);
    let address = authority.split('?').next().unwrap_or_default();
    Finding::good(format!("{version} at {address}")).named(transport.name)
}

fn finding(Advice { setting: name, value, cost }: Advice) -> Finding {
    let finding = match (value, cost) {
        (Err(why), _) => Finding::unknown(why),
        (Ok(value), None) => Finding::good(value),
        (Ok(value), Some(SettingCost::Latency { why, remedy })) => Finding::latency(value, why, remedy),
        (Ok(value), Some(SettingCost::Safety { why, remedy })) => Finding::safety(value, why, remedy),
    };
    finding.named(name)
}
