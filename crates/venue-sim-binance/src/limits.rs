//! Limits of the exchange: request weight, connections, unfilled orders, and messages of a stream connection. Intervals
//! begin with the clock: a minute's weight is zero again at each full minute. All clients share one address.

use std::collections::{BTreeMap, VecDeque};

use crate::codes::{ApiError, Code};
use crate::json::{OrderedObject, array};
use crate::stamps::StampUnit;

const SECOND_NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 24 * 3600 * SECOND_NS;
/// Request weight of a minute.
const MAX_WEIGHT: u64 = 6_000;
/// Connects of five minutes.
const MAX_CONNECTS: u64 = 300;
/// Unfilled orders of an account in ten seconds, and in a day.
const MAX_ORDERS: [u64; 2] = [100, 200_000];
/// Credit for the first fill of an order that arrived, and of an order that rested.
const FILL_CREDIT: [u64; 2] = [1, 5];
/// Messages of a client on a stream connection in a second.
const MAX_MESSAGES: usize = 5;

/// A limit as the exchange lists it.
struct ListedLimit {
    kind: &'static str,
    interval: &'static str,
    interval_number: u64,
    limit: u64,
}

const WEIGHT: ListedLimit =
    ListedLimit { kind: "REQUEST_WEIGHT", interval: "MINUTE", interval_number: 1, limit: MAX_WEIGHT };
const ORDERS: [ListedLimit; 2] = [
    ListedLimit { kind: "ORDERS", interval: "SECOND", interval_number: 10, limit: MAX_ORDERS[0] },
    ListedLimit { kind: "ORDERS", interval: "DAY", interval_number: 1, limit: MAX_ORDERS[1] },
];
const CONNECTIONS: ListedLimit =
    ListedLimit { kind: "CONNECTIONS", interval: "MINUTE", interval_number: 5, limit: MAX_CONNECTS };

/// Use of the limits so far.
pub(crate) struct RequestLimits {
    weight: IntervalCount,
    connects: IntervalCount,
    /// By account.
    orders: BTreeMap<usize, [IntervalCount; 2]>,
}

/// Times of the latest messages on a stream connection.
#[derive(Debug, Default)]
pub(crate) struct MessageWindow {
    times: VecDeque<u64>,
}

/// A count that begins anew with each interval.
#[derive(Debug, Clone, Copy)]
struct IntervalCount {
    length_ns: u64,
    /// Number of the interval that is counted.
    interval: u64,
    count: u64,
}

impl RequestLimits {
    pub(crate) fn new() -> Self {
        Self {
            weight: IntervalCount::new(60 * SECOND_NS),
            connects: IntervalCount::new(300 * SECOND_NS),
            orders: BTreeMap::new(),
        }
    }

    /// Counts a request; refuses it if the weight of this minute is used up.
    pub(crate) fn charge(&mut self, now_ns: u64, weight: u64) -> Result<(), ApiError> {
        let used = self.weight.at(now_ns);
        *used += weight;
        if *used > MAX_WEIGHT { Err(too_many_requests(now_ns, self.weight.left_ns(now_ns))) } else { Ok(()) }
    }

    /// Counts a connect; refuses it if there were too many.
    pub(crate) fn count_connect(&mut self, now_ns: u64) -> Result<(), ApiError> {
        let connects = self.connects.at(now_ns);
        *connects += 1;
        if *connects > MAX_CONNECTS { Err(too_many_requests(now_ns, self.connects.left_ns(now_ns))) } else { Ok(()) }
    }

    /// Counts a new order; refuses it if the account has too many unfilled ones.
    pub(crate) fn count_order(&mut self, now_ns: u64, account: usize) -> Result<(), ApiError> {
        let counts = self.orders_of(account);
        for (count, listed) in counts.iter_mut().zip(ORDERS) {
            if *count.at(now_ns) >= listed.limit {
                let interval = format!("{} {}", listed.interval_number, listed.interval);
                let error = Code::TooManyOrders.about(&[&listed.limit.to_string(), &interval]);
                return Err(retry_later(error, now_ns, count.left_ns(now_ns)));
            }
        }
        counts.iter_mut().for_each(|count| *count.at(now_ns) += 1);
        Ok(())
    }

    /// Gives an account the credit for the first fill of an order.
    pub(crate) fn credit_fill(&mut self, now_ns: u64, account: usize, is_maker: bool) {
        for count in self.orders_of(account) {
            let count = count.at(now_ns);
            *count = count.saturating_sub(FILL_CREDIT[usize::from(is_maker)]);
        }
    }

    /// Returns the weight used in this minute.
    pub(crate) fn used_weight(&mut self, now_ns: u64) -> u64 {
        *self.weight.at(now_ns)
    }

    /// Returns the unfilled orders of an account in ten seconds and in a day.
    pub(crate) fn order_counts(&mut self, now_ns: u64, account: usize) -> [u64; 2] {
        let [seconds, day] = self.orders_of(account);
        [*seconds.at(now_ns), *day.at(now_ns)]
    }

    /// Returns the limits that a request has touched, as its answer lists them; those of orders for an account that has
    /// placed one.
    pub(crate) fn usage_json(&mut self, now_ns: u64, account: Option<usize>) -> String {
        let mut items = Vec::new();
        if let Some(account) = account {
            items.extend(self.order_usage(now_ns, account));
        }
        items.push(WEIGHT.json(Some(self.used_weight(now_ns))));
        array(items)
    }

    /// Returns the limits of orders with their use by an account.
    pub(crate) fn order_usage(&mut self, now_ns: u64, account: usize) -> Vec<String> {
        let counts = self.order_counts(now_ns, account);
        ORDERS.iter().zip(counts).map(|(listed, count)| listed.json(Some(count))).collect()
    }

    fn orders_of(&mut self, account: usize) -> &mut [IntervalCount; 2] {
        let new = [IntervalCount::new(10 * SECOND_NS), IntervalCount::new(DAY_NS)];
        self.orders.entry(account).or_insert(new)
    }
}

impl MessageWindow {
    /// Counts a message; returns whether it is within the limit of a second.
    pub(crate) fn admits(&mut self, now_ns: u64) -> bool {
        while self.times.front().is_some_and(|time| now_ns.saturating_sub(*time) >= SECOND_NS) {
            self.times.pop_front();
        }
        self.times.push_back(now_ns);
        self.times.len() <= MAX_MESSAGES
    }
}

impl ListedLimit {
    fn json(&self, count: Option<u64>) -> String {
        let object = OrderedObject::new()
            .text("rateLimitType", self.kind)
            .text("interval", self.interval)
            .plain("intervalNum", self.interval_number)
            .plain("limit", self.limit);
        match count {
            Some(count) => object.plain("count", count).finish(),
            None => object.finish(),
        }
    }
}

impl IntervalCount {
    const fn new(length_ns: u64) -> Self {
        Self { length_ns, interval: 0, count: 0 }
    }

    /// Returns the count of the interval of this time.
    fn at(&mut self, now_ns: u64) -> &mut u64 {
        let interval = now_ns / self.length_ns;
        if interval != self.interval {
            (self.interval, self.count) = (interval, 0);
        }
        &mut self.count
    }

    fn left_ns(&self, now_ns: u64) -> u64 {
        self.length_ns - now_ns % self.length_ns
    }
}

/// Returns all limits, as the exchange's information lists them.
pub(crate) fn listed_limits() -> String {
    let [seconds, day] = &ORDERS;
    array([&WEIGHT, seconds, day, &CONNECTIONS].map(|listed| listed.json(None)))
}

/// Returns the refusal of a request beyond the weight of its minute, which may be sent again after this time.
pub(crate) fn too_many_requests(now_ns: u64, wait_ns: u64) -> ApiError {
    retry_later(Code::TooMuchWeight.about(&[&MAX_WEIGHT.to_string()]), now_ns, wait_ns)
}

fn retry_later(error: ApiError, now_ns: u64, wait_ns: u64) -> ApiError {
    let unit = StampUnit::Millisecond;
    let data = OrderedObject::new()
        .plain("serverTime", unit.of(now_ns))
        .plain("retryAfter", unit.of(now_ns.saturating_add(wait_ns)))
        .finish();
    error.with_data(data).with_retry_after(wait_ns.div_ceil(SECOND_NS))
}
