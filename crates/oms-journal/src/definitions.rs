//! What is defined: instruments, accounts, venues, sessions and their rights, as the journal has them; and what their
//! numbers mean, also of those that are not defined any more.

use std::collections::{BTreeMap, BTreeSet};

use tickpath_market::{AccountId, SymbolId};
use tickpath_orders::{AccountLimits, Ended, Input, Instrument, Name, RECORD_BYTES, RecordKind};
use zerocopy::{FromBytes, IntoBytes};

/// What a definition is the definition of: its kind, its session (of limits in a symbol the account, of a rule the venue's code), its symbol, account or
/// venue.
type Key = (RecordKind, u16, u32);

/// The definitions that hold, and what numbers mean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definitions {
    held: BTreeMap<Key, Input>,
    /// Instruments and accounts whose definition has ended, as it was last: positions and orders outlive it.
    ended: BTreeMap<Key, Input>,
    /// Venues and sessions by what they are and by number. A name outlives the definition of its session.
    names: BTreeMap<(u8, u16), Name>,
}

impl Definitions {
    /// Takes an input, if it defines something or ends a definition.
    pub fn note(&mut self, input: &Input) {
        if let Input::Ended(Ended { id, session, kind, .. }) = input {
            if let Some(kind) = RecordKind::from_code(*kind) {
                let key = (kind, *session, *id);
                let was = self.held.remove(&key);
                let is_kept = matches!(kind, RecordKind::Instrument | RecordKind::Account);
                self.ended.extend(was.filter(|_| is_kept).map(|was| (key, was)));
            }
        } else if let Some(key) = defined(input) {
            self.ended.remove(&key);
            self.held.insert(key, *input);
        }
    }

    /// Takes the name of a venue or of a session's user.
    pub fn note_name(&mut self, name: Name) {
        self.names.insert((name.of, name.number), name);
    }

    /// Returns the inputs that make the wanted definitions of these: first what ends, a right before its session, then what
    /// is new.
    pub fn changes(&self, wanted: Vec<Input>) -> Vec<Input> {
        let keys: BTreeSet<Key> = wanted.iter().filter_map(defined).collect();
        let gone = self.held.keys().rev().filter(|held| !keys.contains(held));
        let ended = |&(kind, session, id): &Key| Input::Ended(Ended { id, session, kind: kind.code(), reserved: 0 });
        let is_new = |definition: &Input| defined(definition).and_then(|key| self.held.get(&key)) != Some(definition);
        gone.map(ended).chain(wanted.into_iter().filter(is_new)).collect()
    }

    /// Returns the wanted names that differ from those known here.
    pub fn new_names(&self, wanted: &[Name]) -> Vec<Name> {
        wanted.iter().copied().filter(|name| self.name(name.of, name.number) != Some(name)).collect()
    }

    /// Returns the definitions that hold now, as the core has got them.
    pub fn all(&self) -> impl Iterator<Item = &Input> {
        self.held.values()
    }

    /// Returns the instrument that has, or had last, this number.
    pub fn instrument(&self, symbol: SymbolId) -> Option<&Instrument> {
        match self.latest((RecordKind::Instrument, 0, symbol.0))? {
            Input::Instrument(instrument) => Some(instrument),
            _ => None,
        }
    }

    /// Returns all instruments that have a number, or had it last.
    pub fn instruments(&self) -> impl Iterator<Item = &Instrument> {
        self.held.values().chain(self.ended.values()).filter_map(|input| match input {
            Input::Instrument(instrument) => Some(instrument),
            _ => None,
        })
    }

    /// Returns the instruments with a number now, from this one on, by ascending number.
    pub fn instruments_from(&self, first: SymbolId) -> impl Iterator<Item = &Instrument> {
        let (first, last) = ((RecordKind::Instrument, 0, first.0), (RecordKind::Instrument, 0, u32::MAX));
        self.held.range(first..=last).filter_map(|(_, input)| match input {
            Input::Instrument(instrument) => Some(instrument),
            _ => None,
        })
    }

    /// Returns the limits that an account has, or had last.
    pub fn account(&self, account: AccountId) -> Option<&AccountLimits> {
        match self.latest((RecordKind::Account, 0, account.0))? {
            Input::Account(limits) => Some(limits),
            _ => None,
        }
    }

    /// Returns the name of a venue, or of the user of a session.
    pub fn name(&self, of: u8, number: u16) -> Option<&Name> {
        self.names.get(&(of, number))
    }

    /// Returns all names.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.names.values()
    }

    fn latest(&self, key: Key) -> Option<&Input> {
        self.held.get(&key).or_else(|| self.ended.get(&key))
    }

    /// As records, behind each other: kind, length, bytes. What has ended is defined, and then ended.
    pub(crate) fn save(&self, bytes: &mut Vec<u8>) {
        let mut put = |kind: RecordKind, record: &[u8]| {
            bytes.extend_from_slice(&[kind.code(), record.len() as u8]);
            bytes.extend_from_slice(record);
        };
        let ended = self.ended.iter().flat_map(|(&(kind, session, id), definition)| {
            [*definition, Input::Ended(Ended { id, session, kind: kind.code(), reserved: 0 })]
        });
        for definition in ended.chain(self.held.values().copied()) {
            put(definition.kind(), definition.write(&mut [0; RECORD_BYTES]));
        }
        for name in self.names.values() {
            put(RecordKind::Name, name.as_bytes());
        }
    }

    /// From so many such records; none if they are not.
    pub(crate) fn load(mut bytes: &[u8], count: u64) -> Option<Self> {
        let mut definitions = Self::default();
        for _ in 0..count {
            let (&[kind, length], rest) = bytes.split_first_chunk()?;
            let (record, rest) = rest.split_at_checked(length.into())?;
            bytes = rest;
            if kind == RecordKind::Name.code() {
                definitions.note_name(Name::read_from_bytes(record).ok()?);
                continue;
            }
            let definition = Input::read(kind, record).ok()??;
            if !matches!(definition, Input::Ended(_)) {
                defined(&definition)?;
            }
            definitions.note(&definition);
        }
        bytes.is_empty().then_some(definitions)
    }

    /// The records that [`Self::save`] makes.
    pub(crate) fn len(&self) -> usize {
        self.held.len() + 2 * self.ended.len() + self.names.len()
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
