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
    self, AccountPattern, EditError, LineSettings, NewUser, OmsInitError, OmsUser, ROLES, Settings, Users, UsersFile,
    VenueSettings,
};

use crate::oms_files::{PartialSettings, read};
use crate::order::LoginArgs;
use crate::{admin, reconcile};
use tickpath_cli_terminal::args::{CliUsageError, bail_usage, one_of};
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::{count_text, print_note, print_text};

/// Characters of a generated password: each is one of 32, which gives 120 bits.
const PASSWORD_CHARS: usize = 24;
/// Characters of a generated password; no two of them look alike.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
const MAX_PASSWORD_BYTES: usize = 1024;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct OmsArgs {
    #[command(subcommand)]
    pub command: Option<OmsCommand>,
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Check the configuration and exit: print a summary of the OMS, or every mistake with its line
    #[arg(long)]
    pub check: bool,
}

#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// Configuration file, as `tickpath oms init` writes it
    #[arg(long, value_name = "FILE", default_value = "oms.toml")]
    pub config: PathBuf,
}

#[derive(Debug, Subcommand)]
pub enum OmsCommand {
    /// Write the files of a first OMS, with comments and two users, ready to run
    Init {
        /// Target folder, created if it does not exist; no file in it is overwritten
        #[arg(long, value_name = "DIR", default_value = ".")]
        folder: PathBuf,
    },
    /// Print the status of a running OMS
    #[command(after_help = status_help())]
    Status {
        #[command(flatten)]
        login: LoginArgs,
    },
    /// Make a running OMS reload its tables, [firm] and users; with a mistake in any of them nothing changes
    Reload {
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// Turn on the kill switch of the firm, an account, a session or a symbol: it denies new orders and replaces;
    /// cancels pass
    Kill(admin::KillArgs),
    /// Turn off a kill switch
    Unkill(admin::ScopeArgs),
    /// Cancel the working orders in a scope, of every session
    MassCancel(admin::ScopeArgs),
    /// Resolve an order in doubt: enter its state by hand
    Resolve(admin::ResolveArgs),
    /// Enter an order, a fill or a position by hand that the OMS has not received
    Enter {
        #[command(subcommand)]
        what: admin::EnterCommand,
    },
    /// Compare orders, fills and positions with those of a venue: the OMS books the fills of the answer, and lists
    /// differences
    Reconcile(reconcile::ReconcileArgs),
    /// End the trading day: day orders expire, finished orders are removed, and the day's log is archived
    DayEnd(admin::DayEndArgs),
    /// Add, change or list the users that may log in
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
        user: UserNameArgs,
        /// Rights of the user
        #[arg(long, value_name = "read|trade|admin", default_value = "trade", value_parser = role)]
        role: UserRole,
        /// Accounts that the user may trade for, or see: numbers, with * for any digits and ? for one
        #[arg(long, value_name = "LIST", value_delimiter = ',', required = true)]
        accounts: Vec<AccountPattern>,
        /// Sessions of the user, numbers that no other user has; default: the first free one
        #[arg(long, value_name = "LIST", value_delimiter = ',')]
        sessions: Vec<u16>,
        #[command(flatten)]
        password: PasswordArgs,
    },
    /// Set a new password of a user
    Passwd {
        #[command(flatten)]
        user: UserNameArgs,
        #[command(flatten)]
        password: PasswordArgs,
    },
    /// Disable a user, who then cannot log in
    Disable(UserNameArgs),
    /// Enable a disabled user
    Enable(UserNameArgs),
    /// List all users with their rights
    List(ConfigArgs),
}

#[derive(Debug, Args)]
pub struct UserNameArgs {
    /// Name of the user
    pub name: String,
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// Source of a password, which is never an argument: every user of the host can read the arguments of a process.
#[derive(Debug, Args)]
pub struct PasswordArgs {
    /// File whose first line is the password; default: standard input
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
}

pub fn run(args: &OmsArgs) -> anyhow::Result<CliOutcome> {
    match &args.command {
        None if args.check => check(&args.config.config),
        None => crate::serve::run(&read(&args.config.config)?),
        Some(OmsCommand::Init { folder }) => init(folder),
        Some(OmsCommand::Status { login }) => status(login),
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

fn status_help() -> String {
    let journal = ("journal", "Id of the journal, chosen at its creation.");
    let switches = ("switches_on", "Kill switches that are on and that the user may see; no line if there are none.");
    let lines = std::iter::once(journal).chain(Status::meanings()).chain([switches]);
    lines.fold("Lines of the output:".to_owned(), |text, (name, meaning)| format!("{text}\n  {name:<16} {meaning}"))
}

fn status(login: &LoginArgs) -> anyhow::Result<CliOutcome> {
    let mut client = login.connect(&login.read_settings(), Since::Now)?;
    let journal = client.welcome().journal;
    if client.query(Query { what: Query::STATUS, ..Query::default() }).is_err() {
        bail!("the connection was lost before the query was sent; run the command again");
    }
    let (mut answer, mut switches) = (None, None);
    while answer.is_none() {
        client.wait(100_000_000);
        client.poll(|event| match event {
            ClientEvent::KillSwitches(list) => switches = Some(list),
            ClientEvent::Answered(status) => answer = status,
            _ => {}
        })?;
    }
    client.close();
    let journal = ("journal", journal);
    let fields = std::iter::once(journal).chain(answer.iter().flat_map(Status::fields));
    let mut text: String = fields.map(|(name, value)| format!("{name:<16} {value}\n")).collect();
    text.extend(switches.map(|list| format!("{:<16} {list}\n", "switches_on")));
    print_text(&text).map(|()| CliOutcome::Success)
}

/// Checks the files, and then makes the OMS that writes their journal read them.
fn reload(file: &Path) -> anyhow::Result<CliOutcome> {
    let settings = read(file)?;
    let journal = tickpath_cli_terminal::log_arguments::parse_journal(&settings.journal)?;
    let writer = Reader::open(&journal, ReaderStart::Now, Registration::Unregistered)?.writer();
    let Some(writer) = writer else {
        bail!("no OMS writes {journal}, so none runs with these files; its next start reads them");
    };
    let Some(pid) = Pid::from_raw(writer as i32) else {
        bail!("the OMS that writes {journal} is {}; run `tickpath oms reload` there", ProcessId(writer));
    };
    rustix::process::kill_process(pid, Signal::HUP).with_context(|| {
        format!("cannot signal process {}, which writes {journal}; run the command as its user", pid.as_raw_nonzero())
    })?;
    let pid = pid.as_raw_nonzero();
    print_text(&format!("process {pid} reloads its files; its log lists the changes, or the lines with mistakes\n"))?;
    Ok(CliOutcome::Success)
}

fn check(file: &Path) -> anyhow::Result<CliOutcome> {
    let settings = read(file)?;
    let warnings = settings.warnings(LogoutCleanup::here()).into_iter().chain(settings.limit_warnings());
    warnings.for_each(|warning| print_note(&format!("tickpath: {warning}")));
    print_text(&format!("{}\n{}", summary(&settings), lines_text(&settings))).map(|()| CliOutcome::Success)
}

/// Returns a line of text for each line to a venue.
fn lines_text(settings: &Settings) -> String {
    let of_venue = |venue: &VenueSettings| {
        let text = |line: &LineSettings| format!("{} is reached by {}\n", venue.name, line.target);
        venue.lines.iter().map(text).collect::<String>()
    };
    settings.venues.iter().map(of_venue).collect()
}

fn summary(settings: &Settings) -> String {
    let Settings { listen, core, venues, instruments, accounts, users, .. } = settings;
    let unix = listen.unix.iter().map(|path| format!("unix://{}", path.display()));
    let scheme = if listen.tls.is_some() { "tls" } else { "tcp" };
    let places: Vec<String> = unix.chain(listen.tcp.iter().map(|address| format!("{scheme}://{address}"))).collect();
    let sessions: usize = users.list.iter().map(|user| user.sessions.len()).sum();
    let next = settings.day.as_ref().and_then(|calendar| Some((calendar, calendar.next_close(utc_ns())?)));
    let next = next.map(|(calendar, close)| format!("; its day ends next at {}", calendar.describe(&close)));
    format!(
        "{} is sound: '{}' would listen on {}, with journal {}, layout {}, wait {}, for {}, {}, {}, {} with {}{}",
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

fn init(folder: &Path) -> anyhow::Result<CliOutcome> {
    let made = settings::init(folder, random_password).map_err(|error| match error {
        OmsInitError::Exists { .. } => CliUsageError(error.to_string()).into(),
        OmsInitError::Write { .. } => anyhow::Error::from(error),
    })?;
    let mut text: String = made.files.iter().map(|file| format!("wrote {}\n", file.display())).collect();
    text.push_str("passwords, printed only this once:\n");
    for (user, password, file) in &made.logins {
        let file = file.display();
        text.push_str(&format!("  {user:<8}{password}  (also in {file}; delete the file once you have noted it)\n"));
    }
    text.push_str(&format!("next: tickpath oms --config {} --check\n", made.files[0].display()));
    print_text(&text).map(|()| CliOutcome::Success)
}

fn random_password() -> String {
    let mut bytes = [0; PASSWORD_CHARS];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    bytes.iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect()
}

fn user(command: &UserCommand) -> anyhow::Result<CliOutcome> {
    let text = match command {
        UserCommand::Add { user, role, accounts, sessions, password } => {
            let (accounts, sessions) = (accounts.clone(), sessions.clone());
            let new = NewUser { name: user.name.clone(), role: *role, accounts, sessions, secret: password.secret()? };
            let sessions = change(&user.config, |users| users.add(&new))?;
            let (noun, numbers) = (if sessions.len() == 1 { "session" } else { "sessions" }, joined(&sessions));
            let name = &user.name;
            format!("user '{name}' may log in to {noun} {numbers}; a running OMS admits the user within a second\n")
        }
        UserCommand::Passwd { user, password } => {
            let secret = password.secret()?;
            change(&user.config, |users| users.set_secret(&user.name, &secret))?;
            format!("user '{}' has a new password\n", user.name)
        }
        UserCommand::Disable(user) | UserCommand::Enable(user) => {
            let disabled = matches!(command, UserCommand::Disable(_));
            change(&user.config, |users| users.set_disabled(&user.name, disabled))?;
            format!("user '{}' may {}log in\n", user.name, if disabled { "no longer " } else { "" })
        }
        UserCommand::List(config) => {
            let users = Users::read(&config.users_file()?).map_err(|error| CliUsageError(error.to_string()))?;
            table(&users.list)
        }
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
        let settings = PartialSettings::read(&self.config);
        match settings.users_file.as_os_str().is_empty() {
            false => Ok(settings.users_file),
            true => {
                Err(settings.missing_part("the file of the users", "the file of the OMS with --config FILE").into())
            }
        }
    }
}

impl PasswordArgs {
    fn secret(&self) -> anyhow::Result<Secret> {
        let (line, source) = match &self.password_file {
            Some(file) => (File::open(file).and_then(first_line), format!("--password-file {}", file.display())),
            None if io::stdin().is_terminal() => {
                bail_usage!("a terminal would show the password; pipe it in, or name a file with --password-file")
            }
            None => (first_line(io::stdin()), "standard input".to_owned()),
        };
        let text = line.map_err(|e| CliUsageError(format!("{source}: {e}")))?;
        let password = text.strip_suffix('\n').unwrap_or(&text);
        let password = password.strip_suffix('\r').unwrap_or(password);
        match password.len() {
            0 => bail_usage!("{source}: the password is empty; write it in the first line"),
            length if length > MAX_PASSWORD_BYTES => {
                bail_usage!("the password exceeds {MAX_PASSWORD_BYTES} bytes; use a shorter one")
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

fn role(text: &str) -> Result<UserRole, String> {
    one_of(text, ROLES)
}

fn table(users: &[OmsUser]) -> String {
    let mut rows = vec![["name", "role", "accounts", "sessions", "state"].map(str::to_owned)];
    rows.extend(users.iter().map(|user| {
        let role = ROLES.iter().find(|(_, role)| *role == user.role).map_or("", |(name, _)| name);
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

fn joined<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
