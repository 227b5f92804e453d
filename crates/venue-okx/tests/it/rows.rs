//! Rows about orders and fills, as OKX writes them.

/// Number of the OMS in all tests, and the account of its orders.
pub const OMS: u64 = 5;
pub const ACCOUNT: u32 = 7;

/// Returns the name of an order at OKX.
pub fn name(order: u64) -> String {
    format!("tp{OMS:06x}{ACCOUNT:08x}{order:016x}")
}

/// A row of the orders channel, or of REST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderRow {
    fields: Vec<(&'static str, String)>,
}

impl OrderRow {
    /// Returns a limit order to buy 2 at 100 in BTC-USDT that rests.
    pub fn live(order: u64) -> Self {
        let fields = [
            ("accFillSz", "0"),
            ("algoClOrdId", ""),
            ("algoId", ""),
            ("amendResult", ""),
            ("amendSource", ""),
            ("avgPx", "0"),
            ("cancelSource", ""),
            ("category", "normal"),
            ("ccy", ""),
            ("clOrdId", ""),
            ("code", "0"),
            ("cTime", "1654084334977"),
            ("execType", ""),
            ("fee", "0"),
            ("feeCcy", "BTC"),
            ("fillFee", "0"),
            ("fillFeeCcy", ""),
            ("fillNotionalUsd", ""),
            ("fillPx", ""),
            ("fillSz", "0"),
            ("fillPnl", "0"),
            ("fillTime", ""),
            ("instId", "BTC-USDT"),
            ("instType", "SPOT"),
            ("lever", "0"),
            ("msg", ""),
            ("notionalUsd", "200"),
            ("ordId", ""),
            ("ordType", "limit"),
            ("pnl", "0"),
            ("posSide", ""),
            ("px", "100"),
            ("rebate", "0"),
            ("reduceOnly", "false"),
            ("reqId", ""),
            ("side", "buy"),
            ("attachAlgoClOrdId", ""),
            ("source", ""),
            ("state", "live"),
            ("stpId", ""),
            ("stpMode", ""),
            ("sz", "2"),
            ("tag", ""),
            ("tdMode", "cash"),
            ("tgtCcy", ""),
            ("attachAlgoOrds", ""),
            ("tradeId", ""),
            ("lastPx", "100"),
            ("uTime", "1654084353264"),
            ("linkedAlgoOrd", ""),
        ];
        let row = Self { fields: fields.map(|(key, value)| (key, value.to_owned())).to_vec() };
        row.with("clOrdId", &name(order)).with("ordId", &(1_000_000 + order).to_string())
    }

    /// Returns the order after a fill of `size`, with `cumulative` filled so far.
    pub fn filled(self, trade_id: u64, size: &str, cumulative: &str) -> Self {
        let state = if self.get("sz") == cumulative { "filled" } else { "partially_filled" };
        self.with("state", state)
            .with("tradeId", &trade_id.to_string())
            .with("fillSz", size)
            .with("accFillSz", cumulative)
            .with("fillPx", "99.5")
            .with("fillFee", "-0.0015")
            .with("fillFeeCcy", "BTC")
            .with("execType", "T")
            .with("fillTime", "1654084353263")
    }

    /// Returns the order after a cancel with this cause.
    pub fn canceled(self, source: &str) -> Self {
        self.with("state", "canceled").with("cancelSource", source)
    }

    /// Returns the row with another value.
    pub fn with(mut self, key: &str, value: &str) -> Self {
        let (_, found) = self.fields.iter_mut().find(|(name, _)| *name == key).expect("the row has the key");
        value.clone_into(found);
        self
    }

    /// Returns a value.
    pub fn get(&self, key: &str) -> &str {
        &self.fields.iter().find(|(name, _)| *name == key).expect("the row has the key").1
    }

    /// Returns the keys with their values as JSON.
    pub fn values(&self) -> Vec<(&'static str, String)> {
        let json = |(key, value): &(&'static str, String)| match *key {
            "attachAlgoOrds" => (*key, "[]".to_owned()),
            "linkedAlgoOrd" => (*key, r#"{"algoId":""}"#.to_owned()),
            key => (key, format!("\"{value}\"")),
        };
        self.fields.iter().map(json).collect()
    }

    /// Returns the row as JSON.
    pub fn json(&self) -> String {
        let fields: Vec<String> = self.values().iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        format!("{{{}}}", fields.join(","))
    }

    /// Returns the row as a push of the orders channel.
    pub fn push(&self) -> String {
        push(&[self.json()])
    }
}

/// Returns a push of the orders channel with these rows.
pub fn push(rows: &[String]) -> String {
    let rows = rows.join(",");
    format!(r#"{{"arg":{{"channel":"orders","instType":"ANY","uid":"614488474791936"}},"data":[{rows}]}}"#)
}

/// Returns a row of REST's list of fills: a buy at 99.5 in BTC-USDT.
pub fn fill_row(order: u64, trade_id: u64, size: &str) -> String {
    let (name, venue_id) = (name(order), 1_000_000 + order);
    format!(
        r#"{{"side":"buy","fillSz":"{size}","fillPx":"99.5","fee":"-0.0015","ordId":"{venue_id}","instType":"SPOT","instId":"BTC-USDT","clOrdId":"{name}","posSide":"net","billId":"{trade_id}","tag":"","fillTime":"1654084353263","execType":"T","tradeId":"{trade_id}","feeCcy":"BTC","ts":"1654084353264"}}"#
    )
}

/// Returns an answer of REST with these rows.
pub fn rest_rows(rows: &[String]) -> String {
    format!(r#"{{"code":"0","msg":"","data":[{}]}}"#, rows.join(","))
}
