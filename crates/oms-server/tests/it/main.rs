//! An OMS as a server, through real sockets: sessions, their reports after each kind of crash, hostile clients, and the
//! configuration files.

mod acceptor;
mod admin_commands;
mod archived_days;
mod conditional;
mod denials;
mod detail_line;
mod details;
mod drop_copies;
#[path = "../../../oms-runtime/tests/it/fixture.rs"]
mod fixture;
mod full_disk;
mod hostile;
mod lanes;
mod raw_client;
mod reload;
mod sessions;
mod settings;
mod tls;
mod trader;
mod venue_lines;
mod versions;

use std::path::Path;

use tempfile::TempDir;
use tickpath_clock::{Clock, Wait};
use tickpath_log::{Config as LogConfig, LogPath, OverflowPolicy, Reader, ReaderStart, Registration, Writer};
use tickpath_market::{
    AccountId, ClientOrderId, ExecType, Kind, NewOrder, OrdStatus, Price, Quantity, Request, Side, SymbolId, TopOfBook,
};
use tickpath_oms_core::ALL_ACCOUNTS;
use tickpath_oms_runtime::{Config, Layout, SessionConfig};
use tickpath_venue_sim::{Config as VenueConfig, SimVenue, VenueEngine};
use zerocopy::{FromBytes, IntoBytes};

use fixture::{ClientRequest, ReceivedMessage, SECOND, VENUE, WIDE, limit, top};

/// Returns the configuration of an OMS whose two sessions use sockets.
fn config(name: &str, folder: &Path) -> Config {
    let mut config = Config { history: true, ..fixture::config(name, folder, 0) };
    for account in &mut config.trading.accounts {
        // Longer than any test takes, on any machine.
        account.max_reference_age_ns = 3_600 * SECOND;
    }
    config
}
