//! Arguments of the echo acceptor.

use tickpath_fix::{BeginString, FaultDetail};

const USAGE: &str = "usage: echo --listen ADDRESS:PORT --version VERSION --peer COMPID --dictionary FILE \
                     [--transport-dictionary FILE] [--faults terse|full]";

/// The arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    /// Address to listen at.
    pub listen: String,
    /// Version of the application messages: FIX.4.2, FIX.4.4, FIX.5.0SP2 and others.
    pub version: String,
    /// CompID of the peer.
    pub peer: String,
    /// File of the dictionary.
    pub dictionary: String,
    /// File of the transport's dictionary, for FIX 5.0 and later.
    pub transport_dictionary: Option<String>,
    /// Detail of rejects and logouts about a wrong header.
    pub fault_detail: FaultDetail,
}

impl Arguments {
    /// Reads the arguments; an error names the mistake and the usage.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut listen, mut version, mut peer, mut dictionary) = (None, None, None, None);
        let (mut transport_dictionary, mut faults) = (None, None);
        while let Some(name) = words.next() {
            let place = match name.as_str() {
                "--listen" => &mut listen,
                "--version" => &mut version,
                "--peer" => &mut peer,
                "--dictionary" => &mut dictionary,
                "--transport-dictionary" => &mut transport_dictionary,
                "--faults" => &mut faults,
                _ => return Err(format!("'{name}' is no argument of this program; {USAGE}")),
            };
            *place = Some(words.next().ok_or_else(|| format!("{name} needs a value; {USAGE}"))?);
        }
        let require = |name: &str, value: Option<String>| value.ok_or_else(|| format!("{name} is missing; {USAGE}"));
        let arguments = Self {
            listen: require("--listen", listen)?,
            version: require("--version", version)?,
            peer: require("--peer", peer)?,
            dictionary: require("--dictionary", dictionary)?,
            transport_dictionary,
            fault_detail: match faults.as_deref() {
                None | Some("terse") => FaultDetail::Terse,
                Some("full") => FaultDetail::Full,
                Some(other) => return Err(format!("'{other}' is neither terse nor full; {USAGE}")),
            },
        };
        arguments.checked()
    }

    /// Returns the version of the session layer.
    pub fn begin_string(&self) -> BeginString {
        BeginString::parse(&self.version).unwrap_or(BeginString::Fixt11)
    }

    fn checked(self) -> Result<Self, String> {
        let is_known = BeginString::parse(&self.version).is_some() || self.version.starts_with("FIX.5.0");
        if !is_known {
            return Err(format!("'{}' is no version of FIX; write FIX.4.2, FIX.4.4 or FIX.5.0SP2", self.version));
        }
        match (self.begin_string() == BeginString::Fixt11, &self.transport_dictionary) {
            (true, None) => Err(format!("{} needs --transport-dictionary with a file of FIXT.1.1", self.version)),
            (false, Some(_)) => Err(format!("{} has one dictionary; leave --transport-dictionary out", self.version)),
            _ => Ok(self),
        }
    }
}
