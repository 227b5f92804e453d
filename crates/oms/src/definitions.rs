//! What is defined: instruments, accounts, venues, sessions and their rights, as the journal has them.

use std::collections::{BTreeMap, BTreeSet};

use tickpath_orders::{Ended, Grant, Input, RECORD_BYTES, RecordKind, SessionRules};

use crate::config::Desk;

/// What a definition is the definition of: its kind, its session (of limits in a symbol the account, of a rule the venue's code), its symbol, account or
/// venue.
type Key = (RecordKind, u16, u32);

/// The definitions that hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Definitions(BTreeMap<Key, Input>);

impl Definitions {
    /// Takes an input, if it defines something or ends a definition.
    pub fn note(&mut self, input: &Input) {
        if let Input::Ended(Ended { id, session, kind, .. }) = input {
            if let Some(kind) = RecordKind::from_code(*kind) {
                self.0.remove(&(kind, *session, *id));
            }
        } else if let Some(key) = defined(input) {
            self.0.insert(key, *input);
        }
    }

    /// What makes of these definitions those of a desk: first what ends, a right before its session, then what is new.
    pub fn changes(&self, desk: &Desk) -> Vec<Input> {
        let wanted = definitions(desk);
        let keys: BTreeSet<Key> = wanted.iter().filter_map(defined).collect();
        let gone = self.0.keys().rev().filter(|held| !keys.contains(held));
        let ended = |&(kind, session, id): &Key| Input::Ended(Ended { id, session, kind: kind.code(), reserved: 0 });
        let is_new = |definition: &Input| defined(definition).and_then(|key| self.0.get(&key)) != Some(definition);
        gone.map(ended).chain(wanted.into_iter().filter(is_new)).collect()
    }

    /// What holds now, as the core has been told it.
    pub fn all(&self) -> impl Iterator<Item = &Input> {
        self.0.values()
    }

    /// As records, behind each other: kind, length, bytes.
    pub fn save(&self, bytes: &mut Vec<u8>) {
        for definition in self.0.values() {
            let mut buffer = [0; RECORD_BYTES];
            let record = definition.write(&mut buffer);
            bytes.extend_from_slice(&[definition.kind().code(), record.len() as u8]);
            bytes.extend_from_slice(record);
        }
    }

    /// From so many such records; none if they are not.
    pub fn load(mut bytes: &[u8], count: u64) -> Option<Self> {
        let mut definitions = Self::default();
        for _ in 0..count {
            let (&[kind, length], rest) = bytes.split_first_chunk()?;
            let (record, rest) = rest.split_at_checked(length.into())?;
            bytes = rest;
            let definition = Input::read(kind, record).ok()??;
            definitions.0.insert(defined(&definition)?, definition);
        }
        bytes.is_empty().then_some(definitions)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// What a definition is the definition of; none if the input is no definition.
fn defined(input: &Input) -> Option<Key> {
    let (session, id) = match input {
        Input::Instrument(new) => (0, new.symbol.0),
        Input::Account(new) => (0, new.account.0),
        Input::Venue(new) => (0, new.venue.0.into()),
        Input::Session(new) => (new.session, 0),
        Input::Reject(new) => (new.code, new.venue.0.into()),
        Input::Grant(new) => (new.session, new.account.0),
        // Accounts that are more are not taken by the core, nor ended.
        Input::SymbolLimits(new) => (new.account.0 as u16, new.symbol.0),
        Input::Firm(_) => (0, 0),
        _ => return None,
    };
    Some((input.kind(), session, id))
}

/// A desk as inputs.
fn definitions(desk: &Desk) -> Vec<Input> {
    let mut inputs: Vec<Input> = desk.instruments.iter().copied().map(Input::Instrument).collect();
    inputs.extend(desk.accounts.iter().copied().map(Input::Account));
    inputs.extend(desk.venues.iter().copied().map(Input::Venue));
    inputs.extend(desk.symbols.iter().copied().map(Input::SymbolLimits));
    inputs.extend(desk.firm.map(Input::Firm));
    inputs.extend(desk.rejects.iter().copied().map(Input::Reject));
    for rules in &desk.sessions {
        let session = rules.session;
        inputs.push(Input::Session(SessionRules {
            session,
            cancel_on_disconnect: u8::from(rules.cancel_on_disconnect),
            level: rules.level as u8,
            withheld: rules.withheld,
            max_order_quantity: rules.limits.max_order_quantity,
            max_notional: rules.limits.max_notional.0.to_le_bytes(),
            rate_limit: rules.limits.rate_limit,
            rate_window_ns: rules.limits.rate_window_ns,
            ..SessionRules::default()
        }));
        let grants = rules.accounts.iter().map(|&account| Input::Grant(Grant { account, session, reserved: 0 }));
        inputs.extend(grants);
    }
    inputs
}
