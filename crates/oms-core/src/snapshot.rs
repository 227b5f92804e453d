//! Snapshot of a core: its scalar fields, its lists, and its trading configuration.
//!
//! An item of an earlier layout is a prefix of the present item: the fields that the layout had keep their places, and
//! newer fields follow.

use std::collections::BTreeSet;

use tickpath_oms_risk::{
    ACCOUNT_BYTES, ContractSize, EARLIER_ACCOUNT_BYTES, EARLIER_INSTRUMENT_BYTES, INSTRUMENT_BYTES, SESSION_BYTES,
    has_optional_fields,
};
use tickpath_oms_slots::{SnapshotError, SnapshotReader, SnapshotWriter};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::aliases::OrderAliases;
use crate::boot_clock::{BootClock, TickRate};
use crate::core::{CORE_VERSION, Core};
use crate::counts::CoreCounts;
use crate::digest::OutputDigest;
use crate::extensions::Extensions;
use crate::id_source::IdSource;
use crate::order_store::Config;
use crate::recent::RecentOrder;
use crate::retry_rules::RetryRules;
use crate::trading_config::{
    AccountEntry, FirmState, RateWindow, SessionEntry, SymbolEntry, TradingConfig, TradingTotals,
};
use crate::triggers::PendingTrigger;
use crate::{
    AccountLimits, Digest, FirmLimits, Instrument, KILL_ACCOUNT, KILL_ALL, KILL_DISK, KILL_SESSION, KILL_SYMBOL,
    SessionRules,
};

/// Scalar fields of the core.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SavedCore {
    key: u64,
    last_request: u64,
    epoch: u64,
    boot_id: [u8; 16],
    ns_of_tick: u64,
    counts: CoreCounts,
    digest: Digest,
}

/// Scalar fields that core version 3 lacked.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SavedCoreMore {
    started: u64,
    utc_ns: u64,
    has_unpriced: u64,
}

/// An [`AccountEntry`] in a snapshot.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SavedAccount {
    value: i128,
    traded: i128,
    window: RateWindow,
    limits: [u8; ACCOUNT_BYTES],
    orders: u32,
    has_limits: u8,
    killed: u8,
    reserved: u16,
    more: [u8; EARLIER_ACCOUNT_BYTES - ACCOUNT_BYTES],
    fills: u64,
    messages_today: u64,
    rest: [u8; size_of::<AccountLimits>() - EARLIER_ACCOUNT_BYTES],
}

/// A [`SymbolEntry`] in a snapshot.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SavedSymbol {
    instrument: [u8; INSTRUMENT_BYTES],
    multiplier: i64,
    has_instrument: u8,
    killed: u8,
    exponent: i8,
    quantity_exponent: u8,
    reserved: [u8; 4],
    more: [u8; EARLIER_INSTRUMENT_BYTES - INSTRUMENT_BYTES],
    window: RateWindow,
    price: i64,
    rest: [u8; size_of::<Instrument>() - EARLIER_INSTRUMENT_BYTES],
}

/// Flags of [`SavedSession::flags`].
const ALL: u32 = 1;
const KILLED: u32 = 2;

/// A [`SessionEntry`] in a snapshot; its account bits follow those of the session before.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SavedSession {
    rules: [u8; SESSION_BYTES],
    flags: u32,
    words: u32,
    more: [u8; size_of::<SessionRules>() - SESSION_BYTES],
    window: RateWindow,
}

/// The [`FirmState`] in a snapshot.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SavedFirm {
    value: i128,
    traded: i128,
    limits: FirmLimits,
    window: RateWindow,
    fills: u64,
    orders: u32,
    is_limited: u32,
    reserved: u64,
}

/// A [`RecentOrder`] of an account in a snapshot.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SavedRecentOrder {
    order: RecentOrder,
    account: u64,
}

impl Core {
    /// Writes the core's snapshot to `emit`, in pieces. A core loaded from it gives the same state and outputs as this
    /// core for the same further inputs.
    pub fn save(&self, emit: &mut dyn FnMut(&[u8])) {
        let mut save = SnapshotWriter::begin(emit, CORE_VERSION);
        save.write_item(&SavedCore {
            key: self.orders.config.key,
            last_request: self.ids.last_request,
            epoch: self.ids.epoch,
            boot_id: self.clock.boot_id,
            ns_of_tick: self.clock.rate.0,
            counts: self.counts,
            digest: self.output_digest.0,
        });
        self.orders.save(&mut save);
        self.trading.save(&mut save);
        self.venues.save(&mut save);
        self.positions.save(&mut save);
        save.write_list(&self.gaps);
        let BootClock { started, utc_ns, .. } = self.clock;
        let has_unpriced = self.positions.has_unpriced.into();
        save.write_list(&[SavedCoreMore { started, utc_ns, has_unpriced }]);
        self.trading.save_more(&mut save);
        self.positions.save_more(&mut save);
        save.write_list(&self.triggers.values().copied().collect::<Vec<_>>());
        self.unknown_reports.save(&mut save);
        self.aliases.save(&mut save);
        self.retries.save(&mut save);
        self.extensions.save(&mut save);
    }

    /// Loads a core from the bytes of [`Self::save`]; `fill` fills a buffer, or returns false at the end of the bytes.
    /// The core is laid out for `expected_orders` more orders, and keeps the saved key.
    pub fn load(expected_orders: usize, fill: &mut dyn FnMut(&mut [u8]) -> bool) -> Result<Self, SnapshotError> {
        let mut load = SnapshotReader::begin(fill)?;
        let state: SavedCore = load.read_item()?;
        let mut core = Self::new(Config { expected_orders, key: state.key });
        core.orders.load(&mut load)?;
        core.trading.load(&mut load)?;
        core.venues.load(&mut load)?;
        core.positions.load(&mut load)?;
        core.gaps = load.read_list()?;
        core.ids = IdSource { epoch: state.epoch, last_request: state.last_request };
        (core.clock.boot_id, core.clock.rate) = (state.boot_id, TickRate(state.ns_of_tick));
        (core.counts, core.output_digest) = (state.counts, OutputDigest(state.digest));
        if !load.lacks_lists() {
            let [more] = load.read_list::<SavedCoreMore>()?[..] else { return Err(SnapshotError::Damaged) };
            (core.clock.started, core.clock.utc_ns) = (more.started, more.utc_ns);
            core.positions.has_unpriced = more.has_unpriced != 0;
            core.trading.load_more(&mut load)?;
            core.positions.load_more(&mut load)?;
            let triggers = load.read_list::<PendingTrigger>()?.into_iter();
            core.triggers = triggers.map(|trigger| (trigger.slot, trigger)).collect();
            core.unknown_reports.load(&mut load)?;
            core.trading.has_optional_limits |= core.positions.has_limits();
            core.aliases = OrderAliases::load(&mut load)?;
            core.retries = RetryRules::load(&mut load)?;
            if load.has_extensions() {
                core.extensions = Extensions::load(&mut load)?;
            }
        } else {
            core.positions.has_unpriced = true;
        }
        core.rebuild_self_match();
        Ok(core)
    }
}

impl TradingConfig {
    pub(crate) fn save(&self, save: &mut SnapshotWriter<'_>) {
        save.write_item(&[u8::from(self.killed), u8::from(self.disk_failed)]);
        save.write_list(&self.accounts.iter().map(SavedAccount::of).collect::<Vec<_>>());
        save.write_list(&self.symbols.iter().map(SavedSymbol::of).collect::<Vec<_>>());
        let sessions = self.sessions.iter().map(|row| {
            let (rules, more, []) = split(&row.rules);
            let flags = u32::from(row.all_accounts) * ALL + u32::from(row.killed) * KILLED;
            SavedSession { rules, flags, words: row.accounts.len() as u32, more, window: row.window }
        });
        save.write_list(&sessions.collect::<Vec<_>>());
        save.write_list(&self.sessions.iter().flat_map(|row| row.accounts.iter().copied()).collect::<Vec<_>>());
    }

    pub(crate) fn load(&mut self, load: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        let [killed, disk_failed]: [u8; 2] = load.read_item()?;
        (self.killed, self.disk_failed) = (killed != 0, disk_failed != 0);
        self.accounts = load.read_list::<SavedAccount>()?.iter().map(SavedAccount::row).collect();
        self.symbols = load.read_list::<SavedSymbol>()?.iter().map(SavedSymbol::row).collect();
        let (sessions, words) = (load.read_list::<SavedSession>()?, load.read_list::<u64>()?);
        let mut words = words.into_iter();
        let row = |saved: &SavedSession| {
            let rules: SessionRules = joined(&[&saved.rules, &saved.more]);
            SessionEntry {
                rules,
                has_optional_limits: has_optional_fields(&rules, SESSION_BYTES),
                window: saved.window,
                killed: saved.flags & KILLED != 0,
                denied_kinds: 0,
                all_accounts: saved.flags & ALL != 0,
                accounts: words.by_ref().take(saved.words as usize).collect(),
            }
            .with_denied_kinds()
        };
        self.sessions = sessions.iter().map(row).collect();
        self.switches = self.active_switches();
        Ok(())
    }

    /// Collects the kill switches that are on from the tables.
    fn active_switches(&self) -> BTreeSet<(u8, u32)> {
        let firm = [(KILL_ALL, self.killed), (KILL_DISK, self.disk_failed)];
        let firm = firm.into_iter().map(|(scope, is_on)| ((scope, 0), is_on));
        let accounts = (0..).zip(&self.accounts).map(|(target, row)| ((KILL_ACCOUNT, target), row.killed));
        let symbols = (0..).zip(&self.symbols).map(|(target, row)| ((KILL_SYMBOL, target), row.killed));
        let sessions = (0..).zip(&self.sessions).map(|(target, row)| ((KILL_SESSION, target), row.killed));
        let all = firm.chain(accounts).chain(symbols).chain(sessions);
        all.filter(|(_, is_on)| *is_on).map(|(switch, _)| switch).collect()
    }

    /// Saves the fields that core version 3 lacked.
    pub(crate) fn save_more(&self, save: &mut SnapshotWriter<'_>) {
        let FirmState { limits, is_limited, window, open } = self.firm;
        let TradingTotals { orders, value, traded, fills } = open;
        let is_limited = u32::from(is_limited);
        save.write_list(&[SavedFirm { value, traded, limits, window, fills, orders, is_limited, reserved: 0 }]);
        let recent = (0..).zip(&self.accounts).flat_map(|(account, row)| {
            row.recent.iter().flat_map(|recent| recent.iter()).map(move |&order| SavedRecentOrder { order, account })
        });
        save.write_list(&recent.collect::<Vec<_>>());
    }

    pub(crate) fn load_more(&mut self, load: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        let [firm] = load.read_list::<SavedFirm>()?[..] else { return Err(SnapshotError::Damaged) };
        let SavedFirm { value, traded, limits, window, fills, orders, is_limited, .. } = firm;
        self.firm = FirmState {
            limits,
            is_limited: is_limited != 0,
            window,
            open: TradingTotals { orders, value, traded, fills },
        };
        for SavedRecentOrder { order, account } in load.read_list()? {
            let row = self.accounts.get_mut(account as usize).ok_or(SnapshotError::Damaged)?;
            row.recent.get_or_insert_default().add(order, |_| false);
        }
        self.has_optional_limits = self.firm.is_limited
            || self.accounts.iter().any(|row| row.has_optional_limits)
            || self.symbols.iter().any(|row| row.has_optional_limits)
            || self.sessions.iter().any(|row| row.has_optional_limits);
        Ok(())
    }
}

impl SavedAccount {
    fn of(row: &AccountEntry) -> Self {
        let TradingTotals { orders, value, traded, fills } = row.open;
        let (limits, more, rest) = split(&row.limits.unwrap_or_default());
        Self {
            value,
            traded,
            window: row.window,
            limits,
            orders,
            has_limits: row.limits.is_some().into(),
            killed: row.killed.into(),
            reserved: 0,
            more,
            fills,
            messages_today: row.messages_today,
            rest,
        }
    }

    fn row(&self) -> AccountEntry {
        let limits: AccountLimits = joined(&[&self.limits, &self.more, &self.rest]);
        AccountEntry {
            limits: (self.has_limits != 0).then_some(limits),
            killed: self.killed != 0,
            has_optional_limits: has_optional_fields(&limits, ACCOUNT_BYTES),
            window: self.window,
            open: TradingTotals { orders: self.orders, value: self.value, traded: self.traded, fills: self.fills },
            messages_today: self.messages_today,
            recent: None,
        }
    }
}

impl SavedSymbol {
    fn of(row: &SymbolEntry) -> Self {
        let (instrument, more, rest) = split(&row.instrument.unwrap_or_default());
        let (multiplier, exponent, quantity_exponent) = row.size.parts();
        Self {
            instrument,
            multiplier,
            has_instrument: row.instrument.is_some().into(),
            killed: row.killed.into(),
            exponent,
            quantity_exponent,
            reserved: [0; 4],
            more,
            window: row.window,
            price: row.price,
            rest,
        }
    }

    fn row(&self) -> SymbolEntry {
        let instrument: Instrument = joined(&[&self.instrument, &self.more, &self.rest]);
        SymbolEntry {
            instrument: (self.has_instrument != 0).then_some(instrument),
            size: ContractSize::from_parts(self.multiplier, self.exponent, self.quantity_exponent),
            killed: self.killed != 0,
            has_optional_limits: has_optional_fields(&instrument, INSTRUMENT_BYTES),
            window: self.window,
            price: self.price,
        }
    }
}

/// Splits a definition into the part that core version 3 had, the part of the layout before this one, and the rest.
fn split<T: IntoBytes + Immutable, const A: usize, const B: usize, const C: usize>(
    definition: &T,
) -> ([u8; A], [u8; B], [u8; C]) {
    let (first, more) = definition.as_bytes().split_at(A);
    let (more, rest) = more.split_at(B);
    let whole = "the parts make the whole";
    (first.try_into().expect(whole), more.try_into().expect(whole), rest.try_into().expect(whole))
}

fn joined<T: FromBytes + IntoBytes>(parts: &[&[u8]]) -> T {
    let mut definition = T::new_zeroed();
    definition.as_mut_bytes().copy_from_slice(&parts.concat());
    definition
}
