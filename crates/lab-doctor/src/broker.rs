//! The brokers: settings that cost time or lose messages, as their transports report them. Read only.

use tickpath_bus::{Advice, ServerDescription, SettingCost, Transport, connect, server_prefixes, transport_of};

use crate::finding::Finding;

/// Checks the broker of a URL.
pub fn broker(url: &str) -> Vec<Finding> {
    let Some(transport) = transport_of(url).filter(|transport| transport.is_server()) else {
        let why = format!("this is no broker's URL; use {}HOST:PORT", server_prefixes());
        return vec![Finding::unknown("broker", why)];
    };
    match connect(url) {
        Ok(connection) => {
            let about = connection.server_description();
            let advised = (transport.advise)(&about).into_iter().chain(connection.advise()).map(finding);
            std::iter::once(broker_finding(url, &about, transport)).chain(advised).collect()
        }
        Err(why) => vec![Finding::unknown("broker", why.to_string())],
    }
}

/// Returns the finding of the broker's version and address; unknown, with the reason, if it reports no setting at all.
fn broker_finding(url: &str, about: &ServerDescription, transport: &Transport) -> Finding {
    let untold = about.settings.values().find_map(|told| told.as_ref().err());
    let version = match (&about.version, untold) {
        (Some(version), _) => version.as_str(),
        (None, Some(why)) if about.settings.values().all(Result::is_err) => {
            return Finding::unknown(transport.name, why.clone());
        }
        (None, _) => "unknown version",
    };
    let place = url.split_once("://").map_or(url, |(_, rest)| rest);
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    Finding::good(transport.name, format!("{version} at {}", place.split('?').next().unwrap_or_default()))
}

fn finding(Advice { setting: name, value, cost }: Advice) -> Finding {
    match (value, cost) {
        (Err(why), _) => Finding::unknown(name, why),
        (Ok(value), None) => Finding::good(name, value),
        (Ok(value), Some(SettingCost::Latency { why, remedy })) => Finding::latency(name, value, why, remedy),
        (Ok(value), Some(SettingCost::Safety { why, remedy })) => Finding::safety(name, value, why, remedy),
    }
}
