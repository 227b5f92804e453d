//! `tickpath oms`: an OMS as a server, its first files, and its users.
//!
//! ```text
//!   tickpath oms init --folder desk
//!   tickpath oms --config desk/oms.toml --check
//!   tickpath oms user add --config desk/oms.toml --accounts '7*' anna < anna.password
//! ```

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use rustix::process::{Pid, Signal};
use tickpath_clock::{LogoutCleanup, utc_ns};
use tickpath_log::{ProcessId, Reader, ReaderStart, Registration};
use tickpath_oms_client::{ClientEvent, Since};
use tickpath_oms_protocol::{Query, Secret, Status, UserRole};
use tickpath_oms_server::settings::{
    self, AccountPattern, EditError, NewUser, OmsInitError, OmsUser, ROLES, Settings, Users, UsersFile,
};

use crate::args::CliUsageError;
use crate::oms_files::{PartialSettings, read};
use crate::order::LoginArgs;
use crate::outcome::CliOutcome;
use crate::print::{print_note, print_text};
use crate::{admin, reconcile};

/// Characters of a generated password: each is one of 32, which gives 120 bits.
const PASSWORD_CHARS: usize = 24;
/// Characters of a generated password; no two of them look alike.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// Max length of a password, in bytes.
const MAX_PASSWORD_BYTES: usize = 1024;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct OmsArgs {
    #[command(subcommand)]
    pub command: Option<OmsCommand>,
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Only say whether the configuration is sound and what it would do, or every mistake in it with its line
    #[arg(long)]
    pub check: bool,
}

#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// Configuration, as `tickpath oms init` writes it
    #[arg(long, value_name = "FILE", default_value = "oms.toml")]
    pub config: PathBuf,
}

#[derive(Debug, Subcommand)]
pub enum OmsCommand {
    /// Write the files of a first OMS, with comments and two users: it works as it is
    Init {
        /// Where to; it is made if it is not there. Nothing is written over
        #[arg(long, value_name = "DIR", default_value = ".")]
        folder: PathBuf,
    },
    /// How a running OMS is
    #[command(after_help = status_help())]
    Status {
        #[command(flatten)]
        whom: LoginArgs,
    },
    /// Have a running OMS read its tables, [firm] and users again; with a mistake in any of them nothing changes
    Reload {
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// Stop new orders and replaces of the firm, an account, a session or a symbol; cancels pass
    Kill(admin::KillArgs),
    /// Let them trade again
    Unkill(admin::ScopeArgs),
    /// Cancel all that works in a scope, whatever session sent it
    MassCancel(admin::ScopeArgs),
    /// Say what became of an order that is unknown
    Resolve(admin::ResolveArgs),
    /// Enter by hand what the OMS has never heard of
    Enter {
        #[command(subcommand)]
        what: admin::EnterCommand,
    },
    /// Compare orders, fills and positions with those of a venue: what its answer brings is booked, what differs is listed
    Reconcile(reconcile::ReconcileArgs),
    /// End the trading day: day orders expire, what is done is forgotten, and the day's log goes into the archive
    DayEnd(admin::DayEndArgs),
    /// Users that may log in
    User {
        #[command(subcommand)]
        command: UserCommand,
    },
}

#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Add a user
    Add {
        #[command(flatten)]
        whom: UserNameArgs,
        /// Rights of the user
        #[arg(long, value_name = "read|trade|admin", default_value = "trade", value_parser = role)]
        role: UserRole,
        /// The accounts that it may trade for, or see: numbers, with * for any digits and ? for one
        #[arg(long, value_name = "LIST", value_delimiter = ',', required = true)]
        accounts: Vec<AccountPattern>,
        /// Its sessions, numbers that nobody else has; the first that is free if not given
        #[arg(long, value_name = "LIST", value_delimiter = ',')]
        sessions: Vec<u16>,
        #[command(flatten)]
        password: PasswordArgs,
    },
    /// Give a user another password
    Passwd {
        #[command(flatten)]
        whom: UserNameArgs,
        #[command(flatten)]
        password: PasswordArgs,
    },
    /// Shut a user out
    Disable(UserNameArgs),
    /// Let a user in again
    Enable(UserNameArgs),
    /// All users with their rights
    List(ConfigArgs),
}

#[derive(Debug, Args)]
pub struct UserNameArgs {
    /// The user
    pub name: String,
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// A password is no argument: everybody on the host could read it.
#[derive(Debug, Args)]
pub struct PasswordArgs {
    /// The file whose first line is the password; standard input if not given
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
}

pub fn run(args: &OmsArgs) -> anyhow::Result<CliOutcome> {
    match &args.command {
        None if args.check => check(&args.config.config),
        None => crate::serve::run(&read(&args.config.config)?),
        Some(OmsCommand::Init { folder }) => init(folder),
        Some(OmsCommand::Status { whom }) => status(whom),
        Some(OmsCommand::Reload { config }) => reload(&config.config),
        Some(OmsCommand::Kill(args)) => admin::kill(args, true),
        Some(OmsCommand::Unkill(args)) => {
            let admin::ScopeArgs { scope, admin } = args.clone();
            admin::kill(&admin::KillArgs { scope, cancel: false, admin }, false)
        }
        Some(OmsCommand::MassCancel(args)) => admin::mass_cancel(args),
        Some(OmsCommand::Resolve(args)) => admin::resolve(args),
        Some(OmsCommand::Enter { what }) => admin::enter(what),
        Some(OmsCommand::Reconcile(args)) => reconcile::run(args),
        Some(OmsCommand::DayEnd(args)) => admin::day_end(args),
        Some(OmsCommand::User { command }) => user(command),
    }
}

/// Returns the help text for the lines of a status.
fn status_help() -> String {
    let journal = ("journal", "The number that the journal was given when it was begun.");
    let switches = ("switches_on", "The kill switches that are on and that the user may see, if there are some.");
    let lines = std::iter::once(journal).chain(Status::meanings()).chain([switches]);
    lines.fold("What it prints:".to_owned(), |text, (name, meaning)| format!("{text}\n  {name:<16} {meaning}"))
}

/// Queries a running OMS for its status.
fn status(whom: &LoginArgs) -> anyhow::Result<CliOutcome> {
    let mut client = whom.connect(&whom.read_settings(), Since::Now)?;
    let journal = client.welcome().journal;
    if client.query(Query { what: Query::STATUS, ..Query::default() }).is_err() {
        bail!("the connection was lost before the OMS was asked; run the command again");
    }
    let (mut told, mut switches) = (None, None);
    while told.is_none() {
        client.wait(100_000_000);
        client.poll(|event| match event {
            ClientEvent::KillSwitches(list) => switches = Some(list),
            ClientEvent::Answered(status) => told = status,
            _ => {}
        })?;
    }
    client.close();
    let journal = ("journal", journal);
    let fields = std::iter::once(journal).chain(told.iter().flat_map(Status::fields));
    let mut text: String = fields.map(|(name, value)| format!("{name:<16} {value}\n")).collect();
    text.extend(switches.map(|list| format!("{:<16} {list}\n", "switches_on")));
    print_text(&text).map(|()| CliOutcome::Success)
}

/// Checks the files, and then makes the OMS that writes their journal read them.
fn reload(file: &Path) -> anyhow::Result<CliOutcome> {
    let settings = read(file)?;
    let journal = crate::log::log_arguments::parse_journal(&settings.journal)?;
    let writer = Reader::open(&journal, ReaderStart::Now, Registration::Unregistered)?.writer();
    let Some(writer) = writer else {
        bail!("no OMS writes {journal}: none runs with these files, and the next start reads them");
    };
    let Some(pid) = Pid::from_raw(writer as i32) else {
        bail!("the OMS that writes {journal} is {}; say `tickpath oms reload` in that one", ProcessId(writer));
    };
    rustix::process::kill_process(pid, Signal::HUP).with_context(|| {
        format!("process {}, which writes {journal}, cannot be asked; ask as its user", pid.as_raw_nonzero())
    })?;
    let pid = pid.as_raw_nonzero();
    print_text(&format!(
        "process {pid} reads its files again; its log says what has changed, or which line it refuses\n"
    ))?;
    Ok(CliOutcome::Success)
}

fn check(file: &Path) -> anyhow::Result<CliOutcome> {
    let settings = read(file)?;
    let doubts = settings.warnings(LogoutCleanup::here()).into_iter().chain(settings.limit_warnings());
    doubts.for_each(|doubt| print_note(&format!("tickpath: {doubt}")));
    print_text(&format!("{}\n", summary(&settings)))?;
    Ok(CliOutcome::Success)
}

/// Returns a summary of an OMS with these settings.
fn summary(settings: &Settings) -> String {
    let Settings { listen, core, venues, instruments, accounts, users, .. } = settings;
    let unix = listen.unix.iter().map(|path| format!("unix://{}", path.display()));
    let scheme = if listen.tls.is_some() { "tls" } else { "tcp" };
    let places: Vec<String> = unix.chain(listen.tcp.iter().map(|address| format!("{scheme}://{address}"))).collect();
    let sessions: usize = users.list.iter().map(|user| user.sessions.len()).sum();
    let next = settings.day.as_ref().and_then(|calendar| Some((calendar, calendar.next_close(utc_ns())?)));
    let next = next.map(|(calendar, close)| format!("; its day ends next at {}", calendar.describe(&close)));
    format!(
        "{} is sound: '{}' would listen on {}, keep its journal in {}, work {}, wait {}, for {}, {}, {}, {} with {}{}",
        settings.file.display(),
        settings.name,
        places.join(" and "),
        settings.journal.display(),
        core.layout,
        core.wait,
        count_text(venues.len(), "venue"),
        count_text(instruments.len(), "instrument"),
        count_text(accounts.len(), "account"),
        count_text(users.list.len(), "user"),
        count_text(sessions, "session"),
        next.unwrap_or_default(),
    )
}

fn count_text(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn init(folder: &Path) -> anyhow::Result<CliOutcome> {
    let made = settings::init(folder, random_password).map_err(|error| match error {
        OmsInitError::Exists { .. } => CliUsageError(error.to_string()).into(),
        OmsInitError::Write { .. } => anyhow::Error::from(error),
    })?;
    let mut text = String::new();
    made.files.iter().for_each(|file| text.push_str(&format!("wrote {}\n", file.display())));
    text.push_str("passwords, which are told this once:\n");
    for (user, password, file) in &made.logins {
        text.push_str(&format!("  {user:<8}{password}  (also in {}; take it away when you know it)\n", file.display()));
    }
    text.push_str(&format!("next: tickpath oms --config {} --check\n", made.files[0].display()));
    print_text(&text)?;
    Ok(CliOutcome::Success)
}

fn random_password() -> String {
    let mut bytes = [0; PASSWORD_CHARS];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes for everybody");
    bytes.iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect()
}

fn user(command: &UserCommand) -> anyhow::Result<CliOutcome> {
    let text = match command {
        UserCommand::Add { whom, role, accounts, sessions, password } => {
            let (accounts, sessions) = (accounts.clone(), sessions.clone());
            let new = NewUser { name: whom.name.clone(), role: *role, accounts, sessions, secret: password.secret()? };
            let sessions = change(&whom.config, |users| users.add(&new))?;
            let sessions = sessions_of(&sessions);
            format!("user '{}' may log in to {sessions}; an OMS that runs knows of it within a second\n", whom.name)
        }
        UserCommand::Passwd { whom, password } => {
            let secret = password.secret()?;
            change(&whom.config, |users| users.set_secret(&whom.name, &secret))?;
            format!("user '{}' has another password\n", whom.name)
        }
        UserCommand::Disable(whom) => {
            change(&whom.config, |users| users.set_disabled(&whom.name, true))?;
            format!("user '{}' may not log in any more\n", whom.name)
        }
        UserCommand::Enable(whom) => {
            change(&whom.config, |users| users.set_disabled(&whom.name, false))?;
            format!("user '{}' may log in\n", whom.name)
        }
        UserCommand::List(config) => table(&config.users()?.list),
    };
    print_text(&text).map(|()| CliOutcome::Success)
}

/// Changes the users file, which stays locked from its reading to its writing.
fn change<T>(config: &ConfigArgs, change: impl FnOnce(&mut UsersFile) -> Result<T, EditError>) -> anyhow::Result<T> {
    let file = config.users_file()?;
    let changed = UsersFile::open(&file).and_then(|mut users| {
        let changed = change(&mut users)?;
        users.save().map(|()| changed)
    });
    changed.map_err(|error| match error {
        EditError::Write { .. } => error.into(),
        _ => CliUsageError(error.to_string()).into(),
    })
}

impl ConfigArgs {
    fn users_file(&self) -> anyhow::Result<PathBuf> {
        let known = PartialSettings::read(&self.config);
        match known.users_file.as_os_str().is_empty() {
            false => Ok(known.users_file),
            true => Err(known.missing_part("the file of the users", "the file of the OMS by --config FILE").into()),
        }
    }

    fn users(&self) -> anyhow::Result<Users> {
        Users::read(&self.users_file()?).map_err(|error| CliUsageError(error.to_string()).into())
    }
}

impl PasswordArgs {
    fn secret(&self) -> anyhow::Result<Secret> {
        let (text, place) = match &self.password_file {
            Some(file) => {
                let opened = File::open(file).and_then(first_line);
                (
                    opened.map_err(|e| CliUsageError(format!("--password-file {}: {e}", file.display()))),
                    "its first line",
                )
            }
            None if io::stdin().is_terminal() => bail!(CliUsageError(
                "a terminal would show the password; pipe it in, or name a file with --password-file".to_owned()
            )),
            None => {
                (first_line(io::stdin()).map_err(|e| CliUsageError(format!("standard input: {e}"))), "standard input")
            }
        };
        let text = text?;
        let password = text.strip_suffix('\n').unwrap_or(&text);
        let password = password.strip_suffix('\r').unwrap_or(password);
        match password.len() {
            0 => bail!(CliUsageError(format!("the password is empty; {place} must be the password"))),
            length if length > MAX_PASSWORD_BYTES => {
                bail!(CliUsageError(format!(
                    "the password is longer than {MAX_PASSWORD_BYTES} bytes; use a shorter one"
                )))
            }
            _ => Ok(Secret::from_password(password)),
        }
    }
}

/// Reads the first line, bounded at two bytes above the limit, so that a line that is too long is recognized.
fn first_line(from: impl Read) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(from.take(MAX_PASSWORD_BYTES as u64 + 3)).read_line(&mut line)?;
    Ok(line)
}

fn role(word: &str) -> Result<UserRole, String> {
    let found = ROLES.iter().find(|(name, _)| *name == word).map(|(_, role)| *role);
    found.ok_or_else(|| format!("'{word}' is no role; use read, trade or admin"))
}

fn table(users: &[OmsUser]) -> String {
    let mut rows = vec![["name", "role", "accounts", "sessions", "state"].map(str::to_owned)];
    rows.extend(users.iter().map(|user| {
        let role = ROLES.iter().find(|(_, role)| *role == user.role).map_or("", |(word, _)| word);
        let state = if user.disabled { "disabled" } else { "enabled" };
        [user.name.clone(), role.to_owned(), joined(&user.accounts), joined(&user.sessions), state.to_owned()]
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn sessions_of(sessions: &[u16]) -> String {
    let noun = if sessions.len() == 1 { "session" } else { "sessions" };
    format!("{noun} {}", joined(sessions))
}

fn joined<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
