//! The steps of a simulation, drawn from its seed before it begins, so that every part of a plan is a plan, too.

/// A random number generator: the same seed gives the same numbers.
#[derive(Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((mixed ^ (mixed >> 31)) | 1)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.draw() % limit.max(1)
    }

    /// Returns an index into a list of this length.
    pub fn place(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

macro_rules! acts {
    ($($(#[$doc:meta])* $name:ident $weight:literal $is_fault:literal,)+) => {
        /// An action of a plan. Its open details are drawn from the number of its step.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Act {
            $($(#[$doc])* $name,)+
        }

        /// Each action, its weight, and whether a plan may omit it.
        const ACTS: &[(Act, u64, bool)] = &[$((Act::$name, $weight, $is_fault),)+];
    };
}

acts! {
    /// A client sends a new order.
    Order 30 false,
    /// A client sends an order with a trigger.
    Conditional 10 false,
    /// A client requests another trigger.
    Rearm 3 false,
    /// A client requests a cancel.
    Cancel 8 false,
    /// A client requests a replace.
    Replace 8 false,
    /// A client requests an order's status.
    Status 3 false,
    /// A client requests the cancel of all orders.
    MassCancel 2 true,
    /// A client sends more orders at once than fit into its venue's lane.
    Burst 1 true,
    /// A client reads its reports.
    Hear 4 false,
    /// The OMS has some turns.
    Poll 32 false,
    /// The disk completes a sync.
    Commit 10 false,
    /// A gateway forwards requests of its lane.
    Forward 20 false,
    /// A venue takes requests.
    Take 20 false,
    /// A gateway delivers reports.
    Deliver 20 false,
    /// The market moves.
    Tick 5 false,
    /// Time passes.
    Advance 6 false,
    /// The OMS, a gateway or a client that is down comes back.
    Return 14 false,
    /// The operator turns a kill switch.
    Switch 2 true,
    /// A session loses its account, or gets it back.
    Rights 3 true,
    /// The trading configuration changes its limits, and sometimes swaps the numbers of its symbols.
    Limits 3 true,
    /// The operator queries an order.
    Inquire 1 true,
    /// All messages arrive, and all rules are checked.
    Settle 2 false,
    /// The day ends.
    DayEnd 1 true,
    /// Two reports arrive out of order.
    Swap 5 true,
    /// A report is duplicated.
    Double 5 true,
    /// A gateway loses its connection.
    Disconnect 2 true,
    /// The venue busts or corrects a fill.
    Amend 2 true,
    /// The OMS is killed between two turns.
    KillOms 2 true,
    /// The OMS is killed in a turn.
    KillInTurn 4 true,
    /// The OMS is killed while it starts.
    KillInStart 3 true,
    /// The OMS is stopped in order, or killed while it stops.
    Stop 1 true,
    /// A gateway is killed.
    KillGateway 2 true,
    /// A line is cut.
    CutLine 5 true,
    /// The process of a venue that is reached by lines is killed.
    KillVenue 2 true,
    /// A line is lost for good.
    LoseLine 2 true,
    /// The sockets to a venue are full.
    FillSockets 1 true,
    /// A client is killed.
    KillClient 2 true,
    /// The disk fails.
    FailDisk 1 true,
    /// The host loses its power.
    LosePower 2 true,
    /// The lanes are copied, to be restored later.
    CopyLanes 2 true,
    /// The clock steps.
    StepClock 1 true,
}

/// An action, and the number from which its details are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub act: Act,
    pub number: u64,
}

/// Returns the plan of a seed. Each seed omits some of the faults, because some faults hide others.
pub fn plan(seed: u64) -> Vec<Step> {
    let mut dice = Dice::new(seed);
    let mut acts: Vec<(Act, u64)> = Vec::new();
    for &(act, weight, is_fault) in ACTS {
        let kept = !is_fault || dice.one_in(2);
        acts.extend(kept.then_some((act, weight)));
    }
    let sum = acts.iter().map(|(_, weight)| weight).sum();
    let steps = 60 + dice.below(80);
    let step = |_| {
        let mut at = dice.below(sum);
        let act = acts.iter().find(|(_, weight)| {
            let is_it = at < *weight;
            at = at.saturating_sub(*weight);
            is_it
        });
        Step { act: act.expect("the weights add up").0, number: dice.draw() }
    };
    (0..steps).map(step).collect()
}
