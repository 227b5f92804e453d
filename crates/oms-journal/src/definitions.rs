//! Definitions in the journal: instruments, accounts, venues, sessions and their rights; and the meaning of their
//! numbers, including those of ended definitions.

use std::collections::{BTreeMap, BTreeSet};

use tickpath_market::{AccountId, SymbolId};
use tickpath_oms_core::{AccountLimits, DefinitionEnd, Input, Instrument, NameRecord, RECORD_BYTES, RecordKind};
use zerocopy::{FromBytes, IntoBytes};

/// Key of a definition: its kind; its session (for limits in a symbol the account, for a rule the venue's reject code);
/// its symbol, account or venue.
type DefinitionKey = (RecordKind, u16, u32);

/// Current definitions, and the meaning of numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definitions {
    current: BTreeMap<DefinitionKey, Input>,
    /// Last definition of each ended instrument and account: positions and orders outlive it.
    ended: BTreeMap<DefinitionKey, Input>,
    /// Names of venues and sessions by type and number. A name outlives the definition of its session.
    names: BTreeMap<(u8, u16), NameRecord>,
}

impl Definitions {
    /// Records an input that defines something or ends a definition; ignores others.
    pub fn note(&mut self, input: &Input) {
        if let Input::DefinitionEnd(DefinitionEnd { id, session, kind, .. }) = input {
            if let Some(kind) = RecordKind::from_code(*kind) {
                let key = (kind, *session, *id);
                let was = self.current.remove(&key);
                let is_kept = matches!(kind, RecordKind::Instrument | RecordKind::Account);
                self.ended.extend(was.filter(|_| is_kept).map(|was| (key, was)));
            }
        } else if let Some(key) = key_of(input) {
            self.ended.remove(&key);
            self.current.insert(key, *input);
        }
    }

    /// Records the name of a venue or of a session's user.
    pub fn note_name(&mut self, name: NameRecord) {
        self.names.insert((name.of, name.number), name);
    }

    /// Returns the inputs that turn these definitions into the wanted ones: first the ended definitions, a right before
    /// its session, then the new ones.
    pub fn changes(&self, wanted: Vec<Input>) -> Vec<Input> {
        let keys: BTreeSet<DefinitionKey> = wanted.iter().filter_map(key_of).collect();
        let gone = self.current.keys().rev().filter(|held| !keys.contains(held));
        let ended = |&(kind, session, id): &DefinitionKey| {
            Input::DefinitionEnd(DefinitionEnd { id, session, kind: kind.code(), reserved: 0 })
        };
        let is_new = |definition: &Input| key_of(definition).and_then(|key| self.current.get(&key)) != Some(definition);
        gone.map(ended).chain(wanted.into_iter().filter(is_new)).collect()
    }

    /// Returns the wanted names that differ from those known here.
    pub fn new_names(&self, wanted: &[NameRecord]) -> Vec<NameRecord> {
        wanted.iter().copied().filter(|name| self.name(name.of, name.number) != Some(name)).collect()
    }

    /// Returns the current definitions, as the core received them.
    pub fn all(&self) -> impl Iterator<Item = &Input> {
        self.current.values()
    }

    /// Returns the current or last instrument with this number.
    pub fn instrument(&self, symbol: SymbolId) -> Option<&Instrument> {
        self.latest((RecordKind::Instrument, 0, symbol.0)).and_then(as_instrument)
    }

    /// Returns all instruments, current and ended.
    pub fn instruments(&self) -> impl Iterator<Item = &Instrument> {
        self.current.values().chain(self.ended.values()).filter_map(as_instrument)
    }

    /// Returns the current instruments from this number on, in ascending order.
    pub fn instruments_from(&self, first: SymbolId) -> impl Iterator<Item = &Instrument> {
        let (first, last) = ((RecordKind::Instrument, 0, first.0), (RecordKind::Instrument, 0, u32::MAX));
        self.current.range(first..=last).filter_map(|(_, input)| as_instrument(input))
    }

    /// Returns the current or last limits of an account.
    pub fn account(&self, account: AccountId) -> Option<&AccountLimits> {
        match self.latest((RecordKind::Account, 0, account.0))? {
            Input::Account(limits) => Some(limits),
            _ => None,
        }
    }

    /// Returns the name of a venue, or of the user of a session.
    pub fn name(&self, of: u8, number: u16) -> Option<&NameRecord> {
        self.names.get(&(of, number))
    }

    /// Returns all names.
    pub fn names(&self) -> impl Iterator<Item = &NameRecord> {
        self.names.values()
    }

    fn latest(&self, key: DefinitionKey) -> Option<&Input> {
        self.current.get(&key).or_else(|| self.ended.get(&key))
    }

    /// Appends the definitions as records: kind, length, bytes. An ended definition is written as a definition and its
    /// end.
    pub(crate) fn save(&self, bytes: &mut Vec<u8>) {
        let mut put = |kind: RecordKind, record: &[u8]| {
            bytes.extend_from_slice(&[kind.code(), record.len() as u8]);
            bytes.extend_from_slice(record);
        };
        let ended = self.ended.iter().flat_map(|(&(kind, session, id), definition)| {
            [*definition, Input::DefinitionEnd(DefinitionEnd { id, session, kind: kind.code(), reserved: 0 })]
        });
        for definition in ended.chain(self.current.values().copied()) {
            put(definition.kind(), definition.write(&mut [0; RECORD_BYTES]));
        }
        for name in self.names.values() {
            put(RecordKind::Name, name.as_bytes());
        }
    }

    /// Reads this many records of [`Self::save`]; none if the bytes are invalid.
    pub(crate) fn load(mut bytes: &[u8], count: u64) -> Option<Self> {
        let mut definitions = Self::default();
        for _ in 0..count {
            let (&[kind, length], rest) = bytes.split_first_chunk()?;
            let (record, rest) = rest.split_at_checked(length.into())?;
            bytes = rest;
            if kind == RecordKind::Name.code() {
                definitions.note_name(NameRecord::read_from_bytes(record).ok()?);
                continue;
            }
            let definition = Input::read(kind, record).ok()??;
            if !matches!(definition, Input::DefinitionEnd(_)) {
                key_of(&definition)?;
            }
            definitions.note(&definition);
        }
        bytes.is_empty().then_some(definitions)
    }

    /// Returns the number of records that [`Self::save`] writes.
    pub(crate) fn len(&self) -> usize {
        self.current.len() + 2 * self.ended.len() + self.names.len()
    }
}

fn as_instrument(input: &Input) -> Option<&Instrument> {
    if let Input::Instrument(instrument) = input { Some(instrument) } else { None }
}

/// Returns the key of a definition; none for any other input.
fn key_of(input: &Input) -> Option<DefinitionKey> {
    let (session, id) = match input {
        Input::Instrument(new) => (0, new.symbol.0),
        Input::Account(new) => (0, new.account.0),
        Input::Venue(new) => (0, new.venue.0.into()),
        Input::Session(new) => (new.session, 0),
        Input::Reject(new) => (new.code, new.venue.0.into()),
        Input::Grant(new) => (new.session, new.account.0),
        // Account numbers above 16 bits: the core rejects their limits, so no such definition ever ends.
        Input::SymbolLimits(new) => (new.account.0 as u16, new.symbol.0),
        Input::Firm(_) => (0, 0),
        _ => return None,
    };
    Some((input.kind(), session, id))
}
