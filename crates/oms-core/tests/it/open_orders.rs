//! The index of open orders: which orders a mass cancel finds, how many entries it visits, and the list in pages.

use tickpath_market::{AccountId, ExecType, NewOrder, OrdStatus, OrderId, Request, Side, SymbolId};
use tickpath_oms_core::{
    ALL_ACCOUNTS, AccountLimits, CancelScope, Denial, Grant, Input, Instrument, KILL_ACCOUNT, KILL_ALL, KILL_SESSION,
    KILL_SYMBOL, SessionConnection, SessionRules,
};

use crate::dice::{Dice, seed};
use crate::scene::{Scene, amended, fill, instrument, order, reported, wide};
use crate::snapshot::{loaded, saved};

const SESSIONS: [u16; 4] = [1, 2, 3, 4];
const ACCOUNTS: [u32; 3] = [1, 2, 3];
const SYMBOLS: [u32; 3] = [1, 2, 3];

/// Returns four sessions that may trade three symbols for three accounts, and whose orders are canceled when they are
/// lost.
fn desk() -> Scene {
    let mut scene = Scene::empty();
    for symbol in SYMBOLS {
        scene.apply(Input::Instrument(Instrument { symbol: SymbolId(symbol), ..instrument(1) }));
    }
    for account in ACCOUNTS {
        scene.apply(Input::Account(AccountLimits { account: AccountId(account), ..wide() }));
    }
    for session in SESSIONS {
        scene.apply(Input::Session(SessionRules { session, cancel_on_disconnect: 1, ..SessionRules::default() }));
        scene.apply(Input::Grant(Grant { account: ALL_ACCOUNTS, session, reserved: 0 }));
    }
    scene
}

/// Sends a new order from the scene's session.
fn open(scene: &mut Scene, client: u64, account: u32, symbol: u32) -> u64 {
    let (account, symbol) = (AccountId(account), SymbolId(symbol));
    scene.request(Request::New(NewOrder { account, symbol, ..order(client, Side::Buy, 100, 10) }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModelStatus {
    Open,
    /// Id of the outstanding cancel.
    Canceling(u64),
    Filled,
    Done,
}

/// An order in the test's own model.
#[derive(Debug, Clone, Copy)]
struct ModelOrder {
    id: u64,
    session: u16,
    account: u32,
    symbol: u32,
    status: ModelStatus,
    /// The fill was busted once.
    is_busted: bool,
    /// The venue's last sequence number.
    sequence: u64,
}

impl ModelOrder {
    fn is_live(&self) -> bool {
        matches!(self.status, ModelStatus::Open | ModelStatus::Canceling(_))
    }
}

/// A core that gets random inputs, and all its orders by ascending id.
struct OpenOrderWalk {
    dice: Dice,
    scene: Scene,
    rows: Vec<ModelOrder>,
    client: u64,
}

impl OpenOrderWalk {
    fn new(seed: u64) -> Self {
        Self { dice: Dice::new(seed), scene: desk(), rows: Vec::new(), client: 0 }
    }

    fn step(&mut self) {
        self.client += 1;
        self.scene.session = self.dice.pick(&SESSIONS);
        match self.dice.below(16) {
            0..=5 => self.send(),
            6..=11 => self.change(),
            12 => self.mass_cancel(false),
            13 => self.mass_cancel(true),
            14 => self.cancel_scope(),
            _ => self.lose_session(),
        }
    }

    fn send(&mut self) {
        let (account, symbol) = (self.dice.pick(&ACCOUNTS), self.dice.pick(&SYMBOLS));
        let id = open(&mut self.scene, self.client, account, symbol);
        assert_eq!(self.scene.report(reported(id, ExecType::New, id, 1, 0, 10)), Some(OrdStatus::New));
        let session = self.scene.session;
        self.rows.push(ModelOrder {
            id,
            session,
            account,
            symbol,
            status: ModelStatus::Open,
            is_busted: false,
            sequence: 1,
        });
    }

    /// Applies a random event to an order: a fill, a bust, a cancel, or a cancel reject.
    fn change(&mut self) {
        if self.rows.is_empty() {
            return;
        }
        let place = self.dice.below(self.rows.len() as u64) as usize;
        let Self { scene, dice, rows, client } = self;
        let row = &mut rows[place];
        let (id, next) = (row.id, row.sequence + 1);
        let report = match row.status {
            ModelStatus::Open if !row.is_busted && dice.once_in(2) => {
                row.status = ModelStatus::Filled;
                fill(id, next, 10, 10, 0)
            }
            ModelStatus::Open => {
                row.status = ModelStatus::Canceling(scene.cancel_by_id(*client, id));
                assert_eq!(scene.canceled(), [id]);
                return;
            }
            ModelStatus::Canceling(request) if dice.once_in(2) => {
                row.status = ModelStatus::Open;
                reported(id, ExecType::CancelRejected, request, next, 0, 10)
            }
            ModelStatus::Canceling(request) => {
                row.status = ModelStatus::Done;
                reported(id, ExecType::Canceled, request, next, 0, 0)
            }
            ModelStatus::Filled => {
                (row.status, row.is_busted) = (ModelStatus::Open, true);
                amended(id, ExecType::TradeCancel, 10, next, 10, 0, 10)
            }
            ModelStatus::Done => return,
        };
        row.sequence = next;
        let status = match row.status {
            ModelStatus::Open | ModelStatus::Canceling(_) => OrdStatus::New,
            ModelStatus::Filled => OrdStatus::Filled,
            ModelStatus::Done => OrdStatus::Canceled,
        };
        assert_eq!(scene.report(report), Some(status), "{row:?}");
    }

    fn mass_cancel(&mut self, is_of_symbol: bool) {
        let (session, account, symbol) = (self.scene.session, self.dice.pick(&ACCOUNTS), self.dice.pick(&SYMBOLS));
        let is_in_scope = move |row: &ModelOrder| {
            row.session == session && row.account == account && (!is_of_symbol || row.symbol == symbol)
        };
        let has_any = self.rows.iter().any(|row| is_in_scope(row) && row.is_live());
        let by = self.scene.mass_cancel(self.client, AccountId(account), is_of_symbol.then_some(SymbolId(symbol)));
        if self.is_canceled(by, is_in_scope) == 0 {
            let denial = if has_any { Denial::AlreadyPending } else { Denial::UnknownOrder };
            assert_eq!(self.scene.denial(), Some((denial, 0, 0)));
        }
    }

    fn cancel_scope(&mut self) {
        let scope = self.dice.pick(&[KILL_ALL, KILL_ACCOUNT, KILL_SYMBOL, KILL_SESSION]);
        let target = self.dice.pick(&SYMBOLS);
        let by = self.scene.apply(Input::CancelScope(CancelScope { scope, target, ..CancelScope::default() }));
        self.is_canceled(by, |row| match scope {
            KILL_ACCOUNT => row.account == target,
            KILL_SYMBOL => row.symbol == target,
            KILL_SESSION => u32::from(row.session) == target,
            _ => true,
        });
    }

    fn lose_session(&mut self) {
        let session = self.scene.session;
        let by = self.scene.apply(Input::SessionConnection(SessionConnection { session, up: 0, reserved: [0; 5] }));
        self.is_canceled(by, |row| row.session == session);
    }

    /// Checks that the last input has canceled exactly the selected open orders without an outstanding cancel, by
    /// ascending id.
    fn is_canceled(&mut self, by: u64, is_in_scope: impl Fn(&ModelOrder) -> bool) -> usize {
        let meant = self.rows.iter_mut().filter(|row| row.status == ModelStatus::Open && is_in_scope(row));
        let meant: Vec<u64> = meant
            .map(|row| {
                row.status = ModelStatus::Canceling(by);
                row.id
            })
            .collect();
        assert_eq!(self.scene.canceled(), meant);
        meant.len()
    }

    /// Checks that the pages of the list are the open orders of the accounts visible to the user.
    fn check_pages(&mut self) {
        let (account, most) = (self.dice.pick(&ACCOUNTS), 1 + self.dice.below(7) as usize);
        let (mut after, mut listed) = (None, Vec::new());
        loop {
            let page = self.scene.core.open_page(after, most, |seen| seen.0 != account);
            assert!(page.orders.len() <= most && page.visited <= self.rows.len());
            listed.extend(page.orders.iter().map(|order| order.id.0));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let rows = self.rows.iter().filter(|row| row.is_live() && row.account != account);
        assert_eq!(listed, rows.map(|row| row.id).collect::<Vec<_>>());
    }
}

#[test]
fn a_mass_cancel_finds_the_same_orders_as_a_full_scan() {
    let mut dice = Dice::new(seed());
    for _ in 0..30 {
        let seed = dice.draw();
        println!("walk of seed {seed}");
        let mut walk = OpenOrderWalk::new(seed);
        for step in 0..1000 {
            walk.step();
            if step % 20 == 0 {
                walk.check_pages();
            }
            if step % 250 == 249 {
                walk.scene.core = loaded(&saved(&walk.scene.core)).expect("it was just saved");
            }
        }
    }
}

/// Sends 100,000 orders of session 2, alternating over accounts 1 and 2 and symbols 1 and 2, and returns their number.
fn crowd(scene: &mut Scene) -> usize {
    scene.session = 2;
    for client in 1..=100_000 {
        open(scene, client, 1 + (client % 2) as u32, 1 + (client / 2 % 2) as u32);
    }
    scene.core.open_orders().count()
}

/// Applies an input, and returns the canceled orders and the number of index entries visited.
fn visits(scene: &mut Scene, act: impl Fn(&mut Scene)) -> (Vec<u64>, u64) {
    let before = scene.core.mass_cancel_visits();
    act(scene);
    (scene.canceled(), scene.core.mass_cancel_visits() - before)
}

#[test]
fn a_mass_cancel_of_3_orders_in_100_000_visits_only_them() {
    let mut scene = desk();
    assert_eq!(crowd(&mut scene), 100_000);
    scene.session = 1;
    let mut three: Vec<u64> = (1..=3).map(|client| open(&mut scene, client, 1, 1)).collect();
    let mass = |client| {
        move |scene: &mut Scene| {
            scene.mass_cancel(client, AccountId(1), None);
        }
    };
    assert_eq!(visits(&mut scene, mass(11)), (three.clone(), 4), "three orders and their group");
    assert_eq!(visits(&mut scene, mass(12)).1, 1, "a group that is empty since");
    assert_eq!(scene.denial(), Some((Denial::AlreadyPending, 0, 0)));
    assert_eq!(visits(&mut scene, mass(13)), (vec![], 0));
    let none = visits(&mut scene, |scene| {
        scene.mass_cancel(14, AccountId(2), None);
    });
    assert_eq!((none, scene.denial()), ((vec![], 0), Some((Denial::UnknownOrder, 0, 0))));
    // A new order after the first mass cancel is found, too.
    three.push(open(&mut scene, 4, 1, 1));
    assert_eq!(visits(&mut scene, mass(15)), (vec![three[3]], 2));
}

#[test]
fn a_mass_cancel_of_a_symbol_visits_no_order_of_another_symbol() {
    let mut scene = desk();
    crowd(&mut scene);
    let lone = open(&mut scene, 100_001, 1, 3);
    let of = |client, symbol| {
        move |scene: &mut Scene| {
            scene.mass_cancel(client, AccountId(1), Some(SymbolId(symbol)));
        }
    };
    assert_eq!(visits(&mut scene, of(200_001, 3)), (vec![lone], 1));
    assert_eq!(visits(&mut scene, of(200_002, 3)).1, 0);
    assert_eq!(scene.denial(), Some((Denial::AlreadyPending, 0, 0)));
    assert_eq!(visits(&mut scene, of(200_003, 9)), (vec![], 0), "a symbol without orders");
    assert_eq!(scene.denial(), Some((Denial::UnknownOrder, 0, 0)));
}

#[test]
fn a_lost_session_visits_only_its_own_orders() {
    let mut scene = desk();
    crowd(&mut scene);
    scene.session = 3;
    let mine: Vec<u64> = (1..=2).map(|client| open(&mut scene, client, client as u32, 1)).collect();
    let lose = |session| {
        move |scene: &mut Scene| {
            scene.apply(Input::SessionConnection(SessionConnection { session, up: 0, reserved: [0; 5] }));
        }
    };
    assert_eq!(visits(&mut scene, lose(3)), (mine, 6), "two accounts, with a group and an order each");
    assert_eq!(visits(&mut scene, lose(4)), (vec![], 0), "it never had an order");
}

#[test]
fn a_second_mass_cancel_visits_no_order_of_the_first() {
    let mut scene = desk();
    crowd(&mut scene);
    let mass = |client| {
        move |scene: &mut Scene| {
            scene.mass_cancel(client, AccountId(1), None);
        }
    };
    let (canceled, visited) = visits(&mut scene, mass(200_001));
    assert_eq!((canceled.len(), visited), (50_000, 50_002));
    assert!(canceled.is_sorted());
    assert_eq!(visits(&mut scene, mass(200_002)), (vec![], 2), "two groups leave the chain");
    assert_eq!(visits(&mut scene, mass(200_003)), (vec![], 0));
    assert_eq!(scene.denial(), Some((Denial::AlreadyPending, 0, 0)));
}

#[test]
fn a_page_of_the_order_list_visits_a_bounded_number_of_orders() {
    let mut scene = desk();
    crowd(&mut scene);
    scene.session = 1;
    let three: Vec<u64> = (1..=3).map(|client| open(&mut scene, client, 3, 1)).collect();
    // A user with access to all accounts gets full pages.
    let first = scene.core.open_page(None, 128, |_| true);
    assert_eq!((first.orders.len(), first.visited), (128, 128));
    assert_eq!(first.next, Some(first.orders[127].id));
    let second = scene.core.open_page(first.next, 128, |_| true);
    assert!(second.orders[0].id > first.orders[127].id);
    // A user who sees three orders of so many gets them over several pages, each with the same bound on visits.
    let (mut after, mut pages, mut listed) = (None, 0, Vec::new());
    loop {
        let page = scene.core.open_page(after, 128, |account| account.0 == 3);
        assert!(page.visited <= 1024, "{} orders", page.visited);
        listed.extend(page.orders.iter().map(|order| order.id.0));
        (after, pages) = (page.next, pages + 1);
        if after.is_none() {
            break;
        }
    }
    assert_eq!((listed, pages), (three, 98));
}

#[test]
fn an_order_list_resumes_after_an_ended_order_and_a_days_end() {
    let mut scene = desk();
    let ids: Vec<u64> = (1..=6)
        .map(|client| {
            let good_till_cancel = NewOrder { time_in_force: 1, ..order(client, Side::Buy, 100, 10) };
            let new = NewOrder { account: AccountId(1), symbol: SymbolId(1), ..good_till_cancel };
            scene.request(Request::New(new))
        })
        .collect();
    for &id in &ids {
        scene.report(reported(id, ExecType::New, id, 1, 0, 10));
    }
    let page = scene.core.open_page(None, 3, |_| true);
    assert_eq!(page.next, Some(OrderId(ids[2])));
    for &id in &ids[..3] {
        scene.report(fill(id, 2, 10, 10, 0));
    }
    let rest = |scene: &Scene| {
        let page = scene.core.open_page(Some(OrderId(ids[2])), 9, |_| true);
        assert_eq!(page.next, None);
        page.orders.iter().map(|order| order.id.0).collect::<Vec<_>>()
    };
    assert_eq!(rest(&scene), ids[3..]);
    scene.apply(Input::DayEnd(tickpath_oms_core::DayEnd::default()));
    assert!(scene.core.order(OrderId(ids[2])).is_none(), "the day has forgotten it");
    assert_eq!(rest(&scene), ids[3..]);
    scene.mass_cancel(50, AccountId(1), None);
    assert_eq!(scene.canceled(), ids[3..], "the day's end has filed them anew");
}
