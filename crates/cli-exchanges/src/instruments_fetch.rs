//! `tickpath instruments fetch`: writes the list of an exchange's instruments into a table.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use tickpath_exchanges::{FeedExchange, ListingType, MergedTable, merge_table};
use tickpath_feed::Listing;
use tickpath_web_client::{HttpRequest, HttpsClient};

use tickpath_cli_terminal::args::{CliUsageError, bail_usage, one_of};
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::{count_text, print_text};

/// Max names that each part of the output lists.
const MAX_LISTED: usize = 20;

/// Max characters of an exchange's answer in an error message.
const MAX_ANSWER_CHARS: usize = 200;

/// Types of OKX that are fetched unless others are named.
const DEFAULT_TYPES: [ListingType; 2] = [ListingType::Spot, ListingType::Swap];

#[derive(Debug, Args)]
pub struct InstrumentsArgs {
    #[command(subcommand)]
    pub command: InstrumentsCommand,
}

#[derive(Debug, Subcommand)]
pub enum InstrumentsCommand {
    /// Fetch the list of an exchange's instruments, and write it into a table for `tickpath feed` and an OMS
    Fetch(FetchArgs),
}

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "An existing table keeps its numbers: a name that is there keeps its number, and a new one gets the \
                  number after the highest one. Only rows of the venue are changed, and in them only the columns that \
                  the exchange knows. An instrument that the exchange does not trade now stays, with restricted=true; \
                  clear the cell when it is to be traded again. The file is replaced at once."
)]
pub struct FetchArgs {
    /// The exchange
    #[arg(value_name = "EXCHANGE", value_enum)]
    pub exchange: FeedExchange,
    /// Read a saved answer of the exchange instead of asking it; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "ca", "types"])]
    pub from: Vec<PathBuf>,
    /// Table to write
    #[arg(long, value_name = "FILE", default_value = "instruments.csv")]
    pub to: PathBuf,
    /// Address of the exchange's REST interface, instead of the exchange's own
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// File of the only trusted certificate authorities; default: those of the system
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Venue of the instruments in the table, its name or number in oms.toml; default: OKX, BINANCE or BINANCE-FUTURES
    #[arg(long, value_name = "NAME", value_parser = venue)]
    pub venue: Option<String>,
    /// Types of instruments of OKX: SPOT, SWAP and FUTURES, with commas between; default: SPOT,SWAP
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = listing_type)]
    pub types: Vec<ListingType>,
}

pub fn run(args: &InstrumentsArgs) -> anyhow::Result<CliOutcome> {
    let InstrumentsCommand::Fetch(args) = &args.command;
    if args.exchange != FeedExchange::Okx && !args.types.is_empty() {
        bail_usage!("--types is for okx alone; leave it out, {} has one list", args.exchange.name());
    }
    let existing = read_existing(&args.to)?;
    let listing = if args.from.is_empty() { fetch(args)? } else { read_answers(args)? };
    if !listing.instruments.iter().any(|instrument| instrument.is_live) {
        bail!("the list has no instrument that can be traded now, so the table is unchanged; look at the answer");
    }
    let venue = args.venue.clone().unwrap_or_else(|| args.exchange.venue());
    let type_of = |name: &str| args.exchange.listing_type(name);
    let mut covered = Vec::new();
    for kind in listing.instruments.iter().map(|listed| type_of(&listed.name)) {
        if !covered.contains(&kind) {
            covered.push(kind);
        }
    }
    let is_covered = |name: &str| covered.contains(&type_of(name));
    let merged = merge_table(existing.as_deref(), &listing.instruments, &venue, is_covered)
        .map_err(|why| CliUsageError(format!("{}: {why}", args.to.display())))?;
    replace_file(&args.to, &merged.text)
        .with_context(|| format!("{} cannot be written; name another file with --to FILE", args.to.display()))?;
    print_text(&summary(&args.to, &venue, &merged, &listing.refused))?;
    Ok(CliOutcome::Success)
}

/// Returns the text of a table; none if there is no file.
fn read_existing(file: &Path) -> Result<Option<String>, CliUsageError> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => bail_usage!("{} cannot be read ({why}); name a table with --to FILE", file.display()),
    }
}

/// Requests the exchange's lists.
fn fetch(args: &FetchArgs) -> anyhow::Result<Listing> {
    let url = args.url.as_deref().unwrap_or_else(|| args.exchange.rest_url());
    let client = HttpsClient::new(url, args.ca.as_deref()).map_err(|why| CliUsageError(why.to_string()))?;
    let types = if args.types.is_empty() { &DEFAULT_TYPES[..] } else { &args.types };
    let mut whole = Listing::default();
    for path in args.exchange.listing_paths(types) {
        let answer = client.fetch(HttpRequest::get(&path))?;
        if answer.status != 200 {
            let text: String = String::from_utf8_lossy(&answer.body).chars().take(MAX_ANSWER_CHARS).collect();
            bail!("{url}{path} answers with status {}: {text}; check --url, or try again later", answer.status);
        }
        let listing = args.exchange.read_listing(&answer.body).with_context(|| format!("{url}{path}"))?;
        add(&mut whole, listing);
    }
    Ok(whole)
}

/// Reads saved answers.
fn read_answers(args: &FetchArgs) -> anyhow::Result<Listing> {
    let mut whole = Listing::default();
    for file in &args.from {
        let name = file.display();
        let answer = fs::read(file).map_err(|why| {
            CliUsageError(format!("{name} cannot be read ({why}); save the exchange's answer there first"))
        })?;
        let listing = args.exchange.read_listing(&answer).map_err(|why| CliUsageError(format!("{name}: {why}")))?;
        add(&mut whole, listing);
    }
    Ok(whole)
}

fn add(whole: &mut Listing, listing: Listing) {
    whole.instruments.extend(listing.instruments);
    whole.refused.extend(listing.refused);
}

/// Replaces a file by another one with the same permissions; after a crash it is whole, the old one or the new one.
fn replace_file(file: &Path, text: &str) -> io::Result<()> {
    // A link stays a link.
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let draft = file.with_added_extension("new");
    let mut out = File::create(&draft)?;
    if let Ok(found) = fs::metadata(&file) {
        out.set_permissions(found.permissions())?;
    }
    out.write_all(text.as_bytes())?;
    out.sync_all()?;
    fs::rename(&draft, &file)
}

fn summary(file: &Path, venue: &str, merged: &MergedTable, refused: &[(String, String)]) -> String {
    let MergedTable { listed, added, restricted, still_restricted, .. } = merged;
    let (file, instruments) = (file.display(), count_text(*listed, "instrument"));
    let mut text = format!("{file}: {instruments} of {venue}, {} new\n", added.len());
    let lists = [
        ("restricted, because the exchange does not trade them now", restricted),
        ("traded again, and restricted until the cell is cleared", still_restricted),
    ];
    for (what, names) in lists.iter().filter(|(_, names)| !names.is_empty()) {
        let shown = names[..names.len().min(MAX_LISTED)].join(", ");
        text += &format!("{} {what}: {shown}{}\n", names.len(), rest(names.len(), ""));
    }
    let refused: Vec<&(String, String)> = refused.iter().chain(&merged.refused).collect();
    if !refused.is_empty() {
        text += &format!("{} refused:\n", refused.len());
    }
    for (name, why) in refused.iter().take(MAX_LISTED) {
        text += &format!("  {name}: {why}\n");
    }
    text + &rest(refused.len(), "\n")
}

/// Returns the number of names beyond those that are listed, as text; an empty string if there are none.
fn rest(count: usize, end: &str) -> String {
    let more = count.saturating_sub(MAX_LISTED);
    if more > 0 { format!(" and {more} more{end}") } else { String::new() }
}

fn venue(text: &str) -> Result<String, String> {
    let is_bad = text.is_empty() || text.trim() != text || text.contains(['"', ',']);
    if is_bad { Err("use a name without commas and quotation marks".to_owned()) } else { Ok(text.to_owned()) }
}

fn listing_type(text: &str) -> Result<ListingType, String> {
    one_of(text, &ListingType::ALL.map(|kind| (kind.name(), kind)))
}
