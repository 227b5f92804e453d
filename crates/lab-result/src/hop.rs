//! One hop: a latency distribution as percentiles, and whole as an encoded histogram.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{DeserializeError, Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize};

/// A percentile that a result shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percentile {
    /// Its display form.
    pub label: &'static str,
    /// Its key in the file.
    pub key: &'static str,
    /// The share of samples at or below it.
    pub quantile: f64,
    /// The least samples that say something about it: ten beyond it, 10/(1−q).
    pub samples: u64,
}

/// The percentiles of every hop.
pub const PERCENTILES: [Percentile; 6] = [
    Percentile { label: "50%", key: "p50_ns", quantile: 0.5, samples: 20 },
    Percentile { label: "75%", key: "p75_ns", quantile: 0.75, samples: 40 },
    Percentile { label: "90%", key: "p90_ns", quantile: 0.9, samples: 100 },
    Percentile { label: "99%", key: "p99_ns", quantile: 0.99, samples: 1_000 },
    Percentile { label: "99.9%", key: "p999_ns", quantile: 0.999, samples: 10_000 },
    Percentile { label: "99.99%", key: "p9999_ns", quantile: 0.9999, samples: 100_000 },
];

/// A histogram of nanoseconds: three significant digits, up to an hour, and further if it must.
pub fn histogram() -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("these bounds are possible");
    histogram.auto(true);
    histogram
}

/// A latency distribution. A percentile without enough samples ([`Percentile::samples`]) is none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Hop {
    /// Samples, negative ones not among them.
    pub count: u64,
    /// The mean; never the only thing to look at.
    pub mean_ns: Option<f64>,
    /// The median.
    pub p50_ns: Option<u64>,
    /// The 75th percentile.
    pub p75_ns: Option<u64>,
    /// The 90th percentile.
    pub p90_ns: Option<u64>,
    /// The 99th percentile.
    pub p99_ns: Option<u64>,
    /// The 99.9th percentile.
    pub p999_ns: Option<u64>,
    /// The 99.99th percentile.
    pub p9999_ns: Option<u64>,
    /// The largest sample.
    pub max_ns: Option<u64>,
    /// The three largest samples, the largest last; zero where there are fewer.
    pub worst_ns: [u64; 3],
    /// Samples that came out negative: counted, and not in the distribution.
    pub negative: u64,
    /// By how much the worst of those came before its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub negative_max_ns: Option<u64>,
    /// The share of the samples at or beyond p99.9 that gaps of the host explain: at least so much of the tail is the
    /// host's. None without enough samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_stall_share_p999: Option<f64>,
    /// The same without the samples that gaps of the host explain, where those were told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unstalled: Option<Unstalled>,
    /// The whole distribution: an HdrHistogram in the V2 form, uncompressed, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hdr: Option<String>,
}

/// A hop without the samples that gaps of the host explain: nine tenths of such a sample passed in them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Unstalled {
    /// Samples left.
    pub count: u64,
    /// The median.
    pub p50_ns: Option<u64>,
    /// The 75th percentile.
    pub p75_ns: Option<u64>,
    /// The 90th percentile.
    pub p90_ns: Option<u64>,
    /// The 99th percentile.
    pub p99_ns: Option<u64>,
    /// The 99.9th percentile.
    pub p999_ns: Option<u64>,
    /// The 99.99th percentile.
    pub p9999_ns: Option<u64>,
    /// The largest sample left.
    pub max_ns: Option<u64>,
}

/// Why a hop does not give its histogram back.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// The hop has percentiles only.
    #[error("the hop has no 'hdr'; curves need a result that kept its histograms, so measure again")]
    Missing,
    /// The text is not base64.
    #[error("'hdr' is not base64 ({0}); the file was changed after it was written, so measure again")]
    Base64(#[from] base64::DecodeError),
    /// The bytes are not an uncompressed V2 histogram of the length that they state.
    #[error("'hdr' is no uncompressed V2 histogram; encode it so, or measure again")]
    Form,
    /// The bytes do not decode.
    #[error("'hdr' does not decode ({0}); the file was changed after it was written, so measure again")]
    Decode(#[from] DeserializeError),
    /// The histogram is of another distribution.
    #[error("'hdr' holds {found} samples and 'count' says {count}; the file was changed, so measure again")]
    Count {
        /// Samples in the histogram.
        found: u64,
        /// Samples that the hop states.
        count: u64,
    },
}

impl Hop {
    /// Takes a distribution. `worst` are the three largest samples in any order; `unstalled` is the same distribution
    /// without the samples that gaps of the host explain; `negative` samples are in neither.
    pub fn from_histogram(
        histogram: &Histogram<u64>,
        unstalled: Option<&Histogram<u64>>,
        negative: u64,
        worst: [u64; 3],
    ) -> Self {
        let mut worst_ns = worst;
        worst_ns.sort_unstable();
        let max_ns = exact_max(histogram, worst_ns[2]);
        let [p50_ns, p75_ns, p90_ns, p99_ns, p999_ns, p9999_ns] = known_percentiles(histogram, max_ns);
        Self {
            count: histogram.len(),
            mean_ns: (!histogram.is_empty()).then(|| rounded(histogram.mean(), 3)),
            p50_ns,
            p75_ns,
            p90_ns,
            p99_ns,
            p999_ns,
            p9999_ns,
            max_ns,
            worst_ns,
            negative,
            negative_max_ns: None,
            host_stall_share_p999: unstalled.and_then(|rest| stall_share(histogram, rest)),
            unstalled: unstalled.map(|rest| Unstalled::from_histogram(rest, max_ns)),
            hdr: encode(histogram),
        }
    }

    /// The distribution again, for curves and for percentiles that the file does not hold.
    pub fn histogram(&self) -> Result<Histogram<u64>, HistogramError> {
        let bytes = STANDARD.decode(self.hdr.as_ref().ok_or(HistogramError::Missing)?)?;
        check_length(&bytes)?;
        let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice())?;
        if histogram.len() != self.count {
            return Err(HistogramError::Count { found: histogram.len(), count: self.count });
        }
        Ok(histogram)
    }

    /// The percentiles in the order of [`PERCENTILES`].
    pub fn percentiles(&self) -> [Option<u64>; 6] {
        [self.p50_ns, self.p75_ns, self.p90_ns, self.p99_ns, self.p999_ns, self.p9999_ns]
    }

    /// The nearest rank of each of [`PERCENTILES`], however few the samples; none without a histogram or a sample.
    pub fn nearest_ranks(&self) -> Option<[u64; 6]> {
        let histogram = self.histogram().ok().filter(|histogram| !histogram.is_empty())?;
        let max = self.max_ns.unwrap_or(u64::MAX);
        Some(PERCENTILES.map(|percentile| histogram.value_at_quantile(percentile.quantile).min(max)))
    }
}

impl Unstalled {
    /// The percentiles in the order of [`PERCENTILES`].
    pub fn percentiles(&self) -> [Option<u64>; 6] {
        [self.p50_ns, self.p75_ns, self.p90_ns, self.p99_ns, self.p999_ns, self.p9999_ns]
    }

    fn from_histogram(histogram: &Histogram<u64>, raw_max_ns: Option<u64>) -> Self {
        let max_ns = exact_max(histogram, 0).map(|max| max.min(raw_max_ns.unwrap_or(max)));
        let [p50_ns, p75_ns, p90_ns, p99_ns, p999_ns, p9999_ns] = known_percentiles(histogram, max_ns);
        Self { count: histogram.len(), p50_ns, p75_ns, p90_ns, p99_ns, p999_ns, p9999_ns, max_ns }
    }
}

/// The histogram rounds its maximum up to three digits; the worst sample is exact if it is the one in the last bucket.
fn exact_max(histogram: &Histogram<u64>, worst: u64) -> Option<u64> {
    let rounded = histogram.max();
    let max = if worst >= histogram.lowest_equivalent(rounded) { worst } else { rounded };
    (!histogram.is_empty()).then_some(max)
}

fn known_percentiles(histogram: &Histogram<u64>, max_ns: Option<u64>) -> [Option<u64>; 6] {
    PERCENTILES.map(|percentile| {
        let enough = histogram.len() >= percentile.samples;
        enough.then(|| histogram.value_at_quantile(percentile.quantile).min(max_ns.unwrap_or(u64::MAX)))
    })
}

/// Returns the share of the tail that was left out as the host's: in `raw` and not in `unstalled`.
fn stall_share(raw: &Histogram<u64>, unstalled: &Histogram<u64>) -> Option<f64> {
    let Percentile { quantile, samples, .. } = PERCENTILES[4];
    if raw.len() < samples {
        return None;
    }
    let tail = raw.value_at_quantile(quantile);
    let all = raw.count_between(tail, u64::MAX);
    let left = unstalled.count_between(tail, u64::MAX);
    Some(rounded(all.saturating_sub(left) as f64 / all as f64, 4))
}

/// More decimals than a measurement has would only make the file longer, and not every JSON reader keeps them.
fn rounded(value: f64, decimals: i32) -> f64 {
    let scale = 10f64.powi(decimals);
    (value * scale).round() / scale
}

fn encode(histogram: &Histogram<u64>) -> Option<String> {
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(histogram, &mut bytes).ok()?;
    Some(STANDARD.encode(bytes))
}

/// The decoder reserves whatever length the header states; a header that lies must not reach it.
fn check_length(bytes: &[u8]) -> Result<(), HistogramError> {
    const HEADER_BYTES: usize = 40;
    const UNCOMPRESSED_V2: [u8; 4] = [0x1c, 0x84, 0x93, 0x13];
    let stated = match bytes {
        [a, b, c, d, e, f, g, h, ..] if [*a, *b, *c, *d] == UNCOMPRESSED_V2 => u32::from_be_bytes([*e, *f, *g, *h]),
        _ => return Err(HistogramError::Form),
    };
    let held = bytes.len().checked_sub(HEADER_BYTES);
    if held == Some(stated as usize) { Ok(()) } else { Err(HistogramError::Form) }
}
