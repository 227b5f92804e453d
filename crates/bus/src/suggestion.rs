//! Suggestion for a URL that names no transport.

use crate::transports::TRANSPORTS;

/// Returns the URL that was probably meant: a misspelt or missing scheme is corrected, a login is not repeated.
pub fn suggest_url(url: &str) -> Option<String> {
    let (scheme, rest) = match url.split_once(":/") {
        Some((scheme, rest)) => (Some(scheme.to_lowercase()), rest.trim_start_matches('/')),
        None => (None, url),
    };
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    let found = match scheme {
        Some(scheme) => closest_scheme(&scheme),
        None => {
            let host = place.split(['/', '?', ',']).next().unwrap_or_default();
            let port: u16 = host.rsplit_once(':')?.1.parse().ok()?;
            TRANSPORTS.iter().find(|transport| transport.port == Some(port)).map(|transport| transport.schemes[0])
        }
    }?;
    let slash = if ["file", "redis+unix"].contains(&found) && !place.starts_with('/') { "/" } else { "" };
    Some(format!("{found}://{slash}{place}"))
}

fn closest_scheme(scheme: &str) -> Option<&'static str> {
    let distance = |name: &str| strsim::osa_distance(name, scheme);
    let schemes = TRANSPORTS.iter().flat_map(|transport| transport.schemes);
    let name = *schemes.min_by_key(|name| distance(name))?;
    (distance(name) <= name.len().max(scheme.len()) / 3).then_some(name)
}
