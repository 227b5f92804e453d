//! The repetitions of clients in one setting: best, worst and spread.

use tickpath_result::Run;

/// The repetitions of one client in one setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The client.
    pub client: String,
    /// `tcp` or `unix`.
    pub transport: String,
    /// The round trip that was asked for, in milliseconds.
    pub rtt_ms: f64,
    /// Workers.
    pub workers: u64,
    /// Pairs a second once connected.
    pub throughput: Spread,
    /// Pairs a second, the time to connect among it.
    pub with_connect: Spread,
}

/// How far repetitions lie apart, in pairs a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The best one.
    pub best: f64,
    /// The worst one.
    pub worst: f64,
    /// The standard deviation of the sample; zero of one.
    pub deviation: f64,
    /// The deviation as a share of the mean.
    pub deviation_percent: f64,
}

/// Sums up the valid runs, in the order in which each setting first came.
pub fn summary(runs: &[Run]) -> Vec<Summary> {
    let mut settings: Vec<Setting> = Vec::new();
    let mut rates: Vec<[Vec<f64>; 2]> = Vec::new();
    for run in runs.iter().filter(|run| run.valid) {
        let (Some(setting), Some(rate)) = (Setting::of(run), run.throughput_per_s) else { continue };
        let index = settings.iter().position(|known| *known == setting).unwrap_or_else(|| {
            settings.push(setting);
            rates.push(Default::default());
            rates.len() - 1
        });
        rates[index][0].push(rate);
        rates[index][1].extend(run.figures.get("throughput_with_connect_per_s"));
    }
    let summed = settings.into_iter().zip(&rates).filter_map(|(setting, [throughput, with_connect])| {
        let (throughput, with_connect) = (Spread::of(throughput)?, Spread::of(with_connect)?);
        let Setting { client, transport, rtt_ms, workers } = setting;
        Some(Summary { client, transport, rtt_ms, workers, throughput, with_connect })
    });
    summed.collect()
}

/// What tells runs apart, but for their repetition.
#[derive(Debug, Clone, PartialEq)]
struct Setting {
    client: String,
    transport: String,
    rtt_ms: f64,
    workers: u64,
}

impl Setting {
    /// None of a run of another workload.
    fn of(run: &Run) -> Option<Self> {
        Some(Self {
            client: run.client.clone(),
            transport: run.params.text("transport")?,
            rtt_ms: run.params.0.get("rtt_ms")?.as_f64()?,
            workers: run.params.0.get("workers")?.as_u64()?,
        })
    }
}

impl Spread {
    /// None of nothing.
    fn of(rates: &[f64]) -> Option<Self> {
        let best = rates.iter().copied().max_by(f64::total_cmp)?;
        let worst = rates.iter().copied().min_by(f64::total_cmp)?;
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        let deviation = (squares / (rates.len() - 1).max(1) as f64).sqrt();
        let deviation_percent = if mean > 0.0 { 100.0 * deviation / mean } else { 0.0 };
        Some(Self { best, worst, deviation, deviation_percent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A valid run that reached so many pairs a second, half as many with its time to connect.
    fn run((client, workers): (&str, u64), repeat: u32, rate: f64) -> Run {
        let mut run = Run { client: client.to_owned(), repeat, valid: true, ..Run::default() };
        run.params.set("transport", "tcp");
        run.params.set("rtt_ms", 0.0);
        run.params.set("workers", workers);
        run.throughput_per_s = Some(rate);
        run.figures.insert("throughput_with_connect_per_s".to_owned(), rate / 2.0);
        run
    }

    #[test]
    fn repetitions_become_best_worst_and_deviation() {
        let rates = [(1, 900.0), (2, 1_000.0), (3, 1_100.0)];
        let mut runs: Vec<Run> = rates.iter().map(|&(repeat, rate)| run(("redis-py", 1), repeat, rate)).collect();
        runs.push(Run { valid: false, ..run(("redis-py", 1), 4, 5.0) });
        runs.push(run(("redis-py-asyncio", 100), 1, 7.0));
        let summed = summary(&runs);
        let [first, second] = &summed[..] else { panic!("two settings: {summed:?}") };
        let spread = Spread { best: 1_100.0, worst: 900.0, deviation: 100.0, deviation_percent: 10.0 };
        assert_eq!((first.client.as_str(), first.workers, first.throughput), ("redis-py", 1, spread));
        assert_eq!((first.with_connect.best, first.with_connect.deviation_percent), (550.0, 10.0));
        assert_eq!((second.workers, second.throughput.deviation), (100, 0.0));
    }
}
