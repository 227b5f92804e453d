//! The page of the metrics and of the status of an OMS.

use tickpath_oms_protocol::Status;
use tickpath_oms_web::METRICS;

use super::{cell, check_page};

const HEAD: &str = "\
# Metrics

The figures that a running OMS gives. [The page and the metrics](../oms.md#the-page-and-the-metrics) describes the ports
and the logins, and the repository has a [dashboard for Grafana](../grafana/tickpath-oms.json).

## Metrics for Prometheus

The path `/metrics` has them. Counters restart at zero with each start of the OMS.
";

#[test]
fn the_page_of_metrics_has_every_metric_and_every_status() {
    let mut page = format!("{HEAD}\n| metric | type | meaning |\n|---|---|---|\n");
    for (name, kind, help) in METRICS {
        page += &format!("| `{name}` | {kind} | {} |\n", cell(help));
    }
    page += "\n## Status\n\n`tickpath oms status` prints these values.\n\n| name | meaning |\n|---|---|\n";
    for (name, meaning) in Status::meanings() {
        page += &format!("| `{name}` | {} |\n", cell(meaning));
    }
    check_page("metrics.md", &page);
}
