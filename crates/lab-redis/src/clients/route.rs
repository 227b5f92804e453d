//! Routes to the server: directly over TCP, directly over a Unix socket, or over TCP at a distance; and their round
//! trips.

use super::server::{SetGetServer, url_at};
use super::settings::Settings;
use tickpath_lab_harness::proxy::{self, Proxy};
use tickpath_lab_harness::{Lab, LabError};

/// The added round trips where the settings name none.
const NO_ADDED_RTT: &[f64] = &[0.0];

/// A route to the server.
pub(super) struct ServerRoute {
    /// `tcp` or `unix`.
    pub transport: &'static str,
    pub url: String,
    /// The requested round trip, in milliseconds.
    pub rtt_ms: f64,
    pub measured_rtt_ns: f64,
    /// The network's part of the round trip, for which clients wait: zero on a single machine without a proxy.
    pub network_ns: f64,
    /// The proxy's overhead on a round trip beside its delay.
    pub proxy_cost_ns: Option<f64>,
    /// The proxy, which ends with this value.
    _proxy: Option<Proxy>,
}

impl ServerRoute {
    /// Returns all routes of the settings: TCP first, a Unix socket last.
    pub fn all(lab: &Lab<'_>, settings: &Settings, target: &SetGetServer) -> Result<Vec<Self>, LabError> {
        lab.step("clients: measuring the round trip", 2.0 + 2.0 * settings.rtts_ms.len() as f64)?;
        let mut routes = Vec::new();
        if let Some((url, address)) = target.tcp() {
            routes.extend(Self::over_tcp(lab, settings, target, url, &address)?);
        }
        if let Some(url) = target.unix().filter(|_| settings.rtts_ms.is_empty()) {
            let measured_rtt_ns = target.unix_round_trip_ns(lab, settings.cpus[0])?;
            routes.push(Self::direct("unix", url, measured_rtt_ns, 0.0));
        }
        Ok(routes)
    }

    /// Returns the TCP routes: without a proxy for a round trip of zero, and with a proxy for every other.
    fn over_tcp(
        lab: &Lab<'_>,
        settings: &Settings,
        target: &SetGetServer,
        url: &str,
        address: &str,
    ) -> Result<Vec<Self>, LabError> {
        let wanted: &[f64] = if settings.rtts_ms.is_empty() { NO_ADDED_RTT } else { &settings.rtts_ms };
        let direct_ns = proxy::round_trip_ns(lab, address, settings.cpus[0])?;
        let far_ns = if target.is_scratch() { 0.0 } else { direct_ns };
        let direct = wanted.contains(&0.0).then(|| Self::direct("tcp", url, direct_ns, far_ns));
        let delays: Vec<f64> = wanted.iter().copied().filter(|rtt_ms| *rtt_ms > 0.0).collect();
        if delays.is_empty() {
            return Ok(direct.into_iter().collect());
        }
        let cpu = settings.proxy_cpu.unwrap_or(settings.cpus[1]);
        let start = |rtt_ms: f64| Proxy::start_on(lab, address, rtt_ms, Some(cpu));
        let proxies = delays.into_iter().map(start).collect::<Result<Vec<_>, _>>()?;
        let cost = proxy::measure_ping_times(lab, address, &start(0.0)?, &proxies, settings.cpus[0])?;
        let proxy_cost_ns = Some(cost.proxy_cost_ns());
        let delayed = proxies.into_iter().zip(cost.through_ns).map(|(proxy, measured_rtt_ns)| Self {
            transport: "tcp",
            url: url_at(url, proxy.address()),
            rtt_ms: proxy.rtt_ms(),
            measured_rtt_ns,
            network_ns: far_ns + proxy.rtt_ms() * 1e6,
            proxy_cost_ns,
            _proxy: Some(proxy),
        });
        Ok(direct.into_iter().chain(delayed).collect())
    }

    fn direct(transport: &'static str, url: &str, measured_rtt_ns: f64, network_ns: f64) -> Self {
        let url = url.to_owned();
        Self { transport, url, rtt_ms: 0.0, measured_rtt_ns, network_ns, proxy_cost_ns: None, _proxy: None }
    }
}
