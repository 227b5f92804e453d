//! `tickpath top`: a running OMS at a glance, read from its counters and its journal without sending it anything.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Table, Widget, Wrap};
use tickpath_clock::{Clock, HostClock};
use tickpath_log::{LogPath, ProcessId};
use tickpath_oms_runtime::meter::MeterReader;
use tickpath_oms_server::settings::{Settings, Users};
use tickpath_oms_web::{DisplayNames, FRAME_NS, HopRow, JournalFollower, OmsView, RecentReadings, duration};

use crate::oms_files::{PartialSettings, session_owners};
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::{count_text, print_text};

/// Columns of a frame that is printed as text, if the environment variable COLUMNS is not set.
const TEXT_WIDTH: u16 = 120;
/// Rows above the open orders: the head, then latency with orders beside, then sessions with positions beside.
const HEAD_ROWS: u16 = 1;
const STATE_ROWS: u16 = 7;
const MIN_ORDER_ROWS: u16 = 4;
/// Max rows of sessions and positions.
const MAX_MIDDLE_ROWS: usize = 8;
const MAX_TURN_INPUTS: usize = 1 << 16;
/// Number of orders that a page key moves by.
const PAGE: usize = 20;

#[derive(Debug, Clone, Args)]
pub struct TopArgs {
    /// Configuration file of the OMS
    #[arg(long, value_name = "FILE", default_value = "oms.toml")]
    pub config: PathBuf,
    /// Print one frame as text and exit; the default where standard output is no terminal
    #[arg(long)]
    pub once: bool,
}

pub fn run(args: &TopArgs) -> anyhow::Result<CliOutcome> {
    let settings = PartialSettings::read(&args.config);
    // A user without read access to the users file sees sessions without names.
    let users = Users::read(&settings.users_file).unwrap_or_default();
    let names = DisplayNames {
        oms: settings.name.clone(),
        symbols: settings.instruments().into_iter().flatten().map(|listed| (listed.symbol.0, listed.name)).collect(),
        venues: settings.venues.iter().map(|(number, name)| (number.0, name.clone())).collect(),
        users: session_owners(&users),
    };
    let journal = settings.journal("the file of the OMS with --config FILE")?;
    let mut screen = TopScreen::open(&journal, names)?;
    if args.once || !std::io::stdout().is_terminal() {
        let view = screen.view()?;
        return print_text(&text(&view)).map(|()| CliOutcome::Success);
    }
    let mut terminal = ratatui::try_init()?;
    let ended = screen.show(&mut terminal);
    // A failure to restore is ignored: the terminal may be gone.
    let _ = ratatui::try_restore();
    ended.map(|()| CliOutcome::Success)
}

/// Returns the names of an OMS's instruments, venues and users.
pub fn names(settings: &Settings, users: &Users) -> DisplayNames {
    DisplayNames {
        oms: settings.name.clone(),
        symbols: settings.instruments.iter().map(|i| (i.symbol.0, i.name().as_str().to_owned())).collect(),
        venues: settings.venues.iter().map(|venue| (venue.rules.venue.0, venue.name.clone())).collect(),
        users: session_owners(users),
    }
}

struct TopScreen {
    names: DisplayNames,
    meters: MeterReader,
    recent: RecentReadings,
    follower: JournalFollower,
}

impl TopScreen {
    fn open(journal: &Path, names: DisplayNames) -> anyhow::Result<Self> {
        let place: LogPath = tickpath_cli_terminal::log_arguments::parse_journal(journal)?;
        let meters = MeterReader::for_oms(&names.oms)?;
        Ok(Self { names, meters, recent: RecentReadings::default(), follower: JournalFollower::open(&place)? })
    }

    fn view(&mut self) -> anyhow::Result<OmsView> {
        while self.follower.step(MAX_TURN_INPUTS)? > 0 {}
        if let Ok(reading) = self.meters.read() {
            self.recent.add(reading);
        }
        Ok(OmsView::for_all(&self.names, &self.recent, Some(&self.follower)))
    }

    fn show(&mut self, terminal: &mut ratatui::DefaultTerminal) -> anyhow::Result<()> {
        let clock = HostClock::get()?;
        let (mut view, mut made, mut first) = (self.view()?, clock.ticks(), 0_usize);
        loop {
            terminal.draw(|frame| draw(&view, first, frame.area(), frame.buffer_mut()))?;
            let left = FRAME_NS.saturating_sub(clock.ns_between(made, clock.ticks()).max(0) as u64);
            if event::poll(Duration::from_nanos(left))? {
                match event::read()? {
                    Event::Key(key) if key.kind == KeyEventKind::Press => match scrolled(&key, first) {
                        Some(index) => first = index.min(view.orders.len().saturating_sub(1)),
                        None => return Ok(()),
                    },
                    _ => {}
                }
            } else {
                (view, made) = (self.view()?, clock.ticks());
            }
        }
    }
}

/// Returns the index of the first visible order after a key press; none if the key quits.
fn scrolled(key: &KeyEvent, first: usize) -> Option<usize> {
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => None,
        KeyCode::Char('q') | KeyCode::Esc => None,
        KeyCode::Down | KeyCode::Char('j') => Some(first.saturating_add(1)),
        KeyCode::Up | KeyCode::Char('k') => Some(first.saturating_sub(1)),
        KeyCode::PageDown => Some(first.saturating_add(PAGE)),
        KeyCode::PageUp => Some(first.saturating_sub(PAGE)),
        _ => Some(first),
    }
}

/// Returns a frame as lines, as high as the content needs.
fn text(view: &OmsView) -> String {
    let width = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width: u16 = width.filter(|columns| (40..=1_000).contains(columns)).unwrap_or(TEXT_WIDTH);
    let middle = middle_rows(view) + 3;
    let rows = HEAD_ROWS + alarm_rows(view, width) + STATE_ROWS + middle + view.orders.len() as u16 + MIN_ORDER_ROWS;
    let area = Rect::new(0, 0, width, rows);
    let mut buffer = Buffer::empty(area);
    draw(view, 0, area, &mut buffer);
    let mut text = String::new();
    for y in 0..rows {
        let line: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn draw(view: &OmsView, first: usize, area: Rect, buffer: &mut Buffer) {
    let heights = [
        Constraint::Length(HEAD_ROWS),
        Constraint::Length(alarm_rows(view, area.width)),
        Constraint::Length(STATE_ROWS),
        Constraint::Length(middle_rows(view) + 3),
        Constraint::Min(MIN_ORDER_ROWS),
    ];
    let [head, alarms, state, middle, orders] = Layout::vertical(heights).areas(area);
    head_line(view).render(head, buffer);
    let lines: Vec<Line<'_>> = view.alarms.iter().map(|alarm| Line::raw(format!("! {alarm}"))).collect();
    Paragraph::new(lines).wrap(Wrap { trim: true }).style(bold()).render(alarms, buffer);
    let [hops, counts, lines] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(27), Constraint::Length(29)])
            .spacing(2)
            .areas(state);
    hop_table(view).render(hops, buffer);
    count_table(view).render(counts, buffer);
    line_table(view).render(lines, buffer);
    let [sessions, positions] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).spacing(2).areas(middle);
    session_table(view).render(sessions, buffer);
    position_table(view).render(positions, buffer);
    order_table(view, first, orders.width).render(orders, buffer);
}

fn head_line(view: &OmsView) -> Line<'_> {
    let pid = view.pid.map_or(String::new(), |pid| format!("  {}", ProcessId(pid)));
    Line::from(vec![
        Span::styled(format!("{} ", view.oms), bold()),
        Span::styled(view.state, bold()),
        Span::raw(format!(
            "{pid}  epoch {}  record {}  {} requests/s  {} sessions",
            view.epoch,
            view.record,
            view.requests_per_second,
            view.levels.get("sessions").copied().unwrap_or(0),
        )),
    ])
}

fn hop_table(view: &OmsView) -> Table<'_> {
    let shown = |ns: Option<u64>| right_aligned(ns.map_or("-".to_owned(), duration));
    let row = |hop: &HopRow| {
        let [p50, p90, p99, p999, max] = [hop.p50_ns, hop.p90_ns, hop.p99_ns, hop.p999_ns, hop.max_ns].map(shown);
        Row::new([Cell::from(hop.hop), right_aligned(hop.count), p50, p90, p99, p999, max])
    };
    let widths = [9, 9, 7, 7, 7, 7, 7].map(Constraint::Length);
    let title = match view.hops_of {
        "" => "latency".to_owned(),
        "its start" => "latency since its start".to_owned(),
        span => format!("latency of {span}"),
    };
    table(&title, ["hop", "count", "p50", "p90", "p99", "p99.9", "max"], &widths, view.hops.iter().map(row))
}

fn count_table(view: &OmsView) -> Table<'_> {
    let level = |name: &str| right_aligned(view.levels.get(name).copied().unwrap_or(0));
    let pairs = [
        ("queued", "done"),
        ("sending", "rejected"),
        ("working", "withdrawn"),
        ("unknown", "denied_requests"),
        ("held", "refused"),
    ];
    let rows = pairs.map(|(left, other)| {
        let label = if other == "denied_requests" { "denied" } else { other };
        Row::new([Cell::from(left), level(left), Cell::from(label), level(other)])
    });
    let widths = [7, 5, 9, 3].map(Constraint::Length);
    Table::new(rows, widths).block(block("orders by state".to_owned()))
}

fn line_table(view: &OmsView) -> Table<'_> {
    let row = |line: &tickpath_oms_web::LineRow| {
        let [waiting, open] = [line.waiting, line.open_orders].map(right_aligned);
        Row::new([Cell::from(line.venue.clone()), Cell::from(line.state), waiting, open])
    };
    let widths = [9, 5, 7, 5].map(Constraint::Length);
    table("lines", ["venue", "state", "waiting", "open"], &widths, view.lines.iter().map(row))
}

fn session_table(view: &OmsView) -> Table<'_> {
    let row = |session: &tickpath_oms_web::SessionRow| {
        let [open, requests, denied] = [session.open_orders, session.requests, session.denied].map(right_aligned);
        let name = Cell::from(session.user.clone());
        Row::new([right_aligned(session.session), name, Cell::from(session.state), open, requests, denied])
    };
    let widths = [7, 12, 9, 6, 9, 7].map(Constraint::Length);
    // Sessions that are logged in come first, then those with open orders.
    let mut sessions: Vec<_> = view.sessions.iter().collect();
    sessions.sort_by_key(|session| (session.state != "logged in", session.open_orders == 0, session.session));
    let title = omitted_note("sessions", sessions.len().saturating_sub(MAX_MIDDLE_ROWS));
    let heads = ["session", "user", "state", "open", "requests", "denied"];
    table(&title, heads, &widths, sessions.into_iter().take(MAX_MIDDLE_ROWS).map(row))
}

fn position_table(view: &OmsView) -> Table<'_> {
    let row = |position: &tickpath_oms_web::PagePositionRow| {
        let [net, buy, sell] = [&position.net, &position.working_buy, &position.working_sell].map(right_aligned);
        Row::new([right_aligned(position.account), Cell::from(position.symbol.clone()), net, buy, sell])
    };
    let widths = [8, 12, 12, 10, 10].map(Constraint::Length);
    let more = view.positions.len().saturating_sub(MAX_MIDDLE_ROWS) + view.positions_left_out;
    let heads = ["account", "symbol", "net", "buying", "selling"];
    table(&omitted_note("positions", more), heads, &widths, view.positions.iter().take(MAX_MIDDLE_ROWS).map(row))
}

/// Returns the table of open orders, beginning with the first visible one. A narrow screen drops columns, and never
/// cuts an order id.
fn order_table(view: &OmsView, first: usize, width: u16) -> Table<'_> {
    const HEADS: [&str; 10] =
        ["order", "session", "account", "symbol", "venue", "side", "leaves", "filled", "price", "status"];
    const WIDE: [usize; 10] = [18, 7, 8, 12, 8, 5, 10, 10, 14, 16];
    const RIGHT: [bool; 10] = [false, true, true, false, false, false, true, true, true, false];
    /// Columns in the order in which a narrow screen drops them.
    const SPARE: [usize; 6] = [4, 2, 1, 7, 5, 3];
    let rows: Vec<[String; 10]> = view.orders.iter().map(order_cells).collect();
    let longest = |column: usize| rows.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..10).map(|column| longest(column).max(WIDE[column])).collect();
    let mut kept: Vec<usize> = (0..10).collect();
    let is_too_wide = |kept: &[usize], widths: &[usize]| {
        kept.iter().map(|&column| widths[column] + 1).sum::<usize>() > usize::from(width) + 1
    };
    if is_too_wide(&kept, &widths) {
        widths = (0..10).map(|column| longest(column).max(HEADS[column].len())).collect();
    }
    for spare in SPARE {
        if is_too_wide(&kept, &widths) {
            kept.retain(|&column| column != spare);
        }
    }
    let row = |cells: &[String; 10]| {
        let cell = |&column: &usize| match RIGHT[column] {
            true => right_aligned(&cells[column]),
            false => Cell::from(cells[column].clone()),
        };
        Row::new(kept.iter().map(cell).collect::<Vec<_>>())
    };
    let lengths: Vec<Constraint> = kept.iter().map(|&column| Constraint::Length(widths[column] as u16)).collect();
    let count = view.orders.len() + view.orders_left_out;
    let title = omitted_note(&count_text(count, "open order"), view.orders_left_out);
    table(&title, kept.iter().map(|&column| HEADS[column]), &lengths, rows.iter().skip(first).map(row))
}

fn order_cells(order: &tickpath_oms_web::PageOrderRow) -> [String; 10] {
    let tickpath_oms_web::PageOrderRow { id, symbol, venue, side, leaves, filled, price, status, .. } = order;
    let (session, account) = (order.session.to_string(), order.account.to_string());
    let [id, symbol, venue, side] = [id, symbol, venue, side].map(|text| text.to_string());
    let [leaves, filled, price, status] = [leaves, filled, price, status].map(|text| text.to_string());
    [id, session, account, symbol, venue, side, leaves, filled, price, status]
}

fn table<'a>(
    title: &str,
    heads: impl IntoIterator<Item = &'static str>,
    widths: &[Constraint],
    rows: impl Iterator<Item = Row<'a>>,
) -> Table<'a> {
    let head = Row::new(heads).style(Style::new().add_modifier(Modifier::DIM));
    Table::new(rows, widths.to_vec()).header(head).block(block(title.to_owned()))
}

fn block(title: String) -> Block<'static> {
    Block::new().borders(Borders::TOP).title(format!(" {title} "))
}

fn omitted_note(what: &str, more: usize) -> String {
    if more == 0 { what.to_owned() } else { format!("{what}, {more} more not shown") }
}

fn right_aligned(value: impl ToString) -> Cell<'static> {
    Cell::from(Line::raw(value.to_string()).right_aligned())
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// Returns the number of lines of the alarms, which wrap where they are wider than the screen.
fn alarm_rows(view: &OmsView, width: u16) -> u16 {
    let rows = |alarm: &String| (alarm.chars().count() as u16 + 2).div_ceil(width.max(20)) + 1;
    view.alarms.iter().map(|alarm| rows(alarm) - 1).sum()
}

fn middle_rows(view: &OmsView) -> u16 {
    view.sessions.len().max(view.positions.len()).clamp(1, MAX_MIDDLE_ROWS) as u16
}
