//! Terminals: what they enter, drawn once and used again by retries; what they choose in the menu, how long they key
//! and think.

use crate::audit::Counters;
use crate::options::TpccOptions;
use crate::profile::{
    Binding, CustomerKey, Pace, PerKind, Profile, REMOTE_LINE_PERCENT, REMOTE_PAYMENT_PERCENT,
    TpccTransaction, TransactionChoice,
};
use crate::values::Timestamp;
use crate::values::{Constants, NuRand, last_name};
use crate::{DISTRICTS, ITEMS, LINES_MAX, LINES_MIN};
use dyno_core::{EndedTransaction, Nanos, Rng, SECOND, TerminalPlan, TransactionId};

/// Places of terminals and parameters of their draws; the same for all.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) profile: Profile,
    pub(crate) warehouses: u32,
    pub(crate) customer: NuRand,
    pub(crate) item: NuRand,
    pub(crate) last_name: NuRand,
}

impl World {
    pub(crate) fn new(profile: Profile, warehouses: u32, constants: &Constants) -> Self {
        World {
            profile,
            warehouses,
            customer: constants.customer(),
            item: constants.item(),
            last_name: constants.last_name(),
        }
    }
}

/// One terminal and its random stream. Small: there may be hundreds of thousands.
#[derive(Clone, Debug)]
pub struct Terminal {
    pub(crate) warehouse: i64,
    pub(crate) district: i64,
    pub(crate) rng: Rng,
    pub(crate) deck: Deck,
    /// The kind that it chose last in the menu, and the one that it thought about before that.
    pub(crate) chosen: u8,
    pub(crate) thought: u8,
    pub(crate) think: Nanos,
    /// When its last transaction ended; 0 before the first one.
    pub(crate) ended: Nanos,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LineInput {
    /// Its place on the form, from 1.
    pub(crate) number: i64,
    pub(crate) item: i64,
    pub(crate) supply_warehouse: i64,
    pub(crate) quantity: i64,
}

#[derive(Clone, Debug)]
pub(crate) struct NewOrderInput {
    pub(crate) warehouse: i64,
    pub(crate) district: i64,
    pub(crate) customer: i64,
    /// Sorted by stock row, so that orders lock stock in one order; the unused item comes last.
    pub(crate) lines: [LineInput; LINES_MAX],
    pub(crate) count: usize,
    /// The last line names an item that does not exist.
    pub(crate) is_rolled_back: bool,
    pub(crate) entered: Timestamp,
}

#[derive(Clone, Debug)]
pub(crate) struct PaymentInput {
    pub(crate) warehouse: i64,
    pub(crate) district: i64,
    pub(crate) customer_warehouse: i64,
    pub(crate) customer_district: i64,
    pub(crate) who: CustomerKey,
    pub(crate) cents: i64,
    pub(crate) entered: Timestamp,
}

#[derive(Clone, Debug)]
pub(crate) struct OrderStatusInput {
    pub(crate) warehouse: i64,
    pub(crate) district: i64,
    pub(crate) who: CustomerKey,
}

#[derive(Clone, Debug)]
pub(crate) struct DeliveryInput {
    pub(crate) warehouse: i64,
    pub(crate) carrier: i64,
    pub(crate) entered: Timestamp,
}

#[derive(Clone, Debug)]
pub(crate) struct StockLevelInput {
    pub(crate) warehouse: i64,
    pub(crate) district: i64,
    pub(crate) threshold: i64,
}

impl DeliveryInput {
    /// Its form in the queue.
    pub(crate) fn ticket(&self) -> u64 {
        (self.warehouse as u64) << 8 | self.carrier as u64
    }

    /// The input in the queue, as it is executed now: OL_DELIVERY_D is the time of execution (clause
    /// 2.7.4.2).
    pub(crate) fn from_ticket(ticket: u64) -> Self {
        DeliveryInput {
            warehouse: (ticket >> 8) as i64,
            carrier: (ticket & 0xff) as i64,
            entered: Timestamp::now(),
        }
    }
}

impl Terminal {
    pub(crate) fn new(warehouse: i64, district: i64, rng: Rng) -> Self {
        let (deck, chosen, thought, think, ended) = Default::default();
        Terminal { warehouse, district, rng, deck, chosen, thought, think, ended }
    }

    fn next_warehouse(&mut self, world: &World) -> i64 {
        match world.profile.binding {
            Binding::Home | Binding::Drawn => self.warehouse,
            Binding::Roaming => self.rng.uniform(1, u64::from(world.warehouses)) as i64,
        }
    }

    fn any_district(&mut self) -> i64 {
        self.rng.uniform(1, u64::from(DISTRICTS)) as i64
    }

    /// Returns true in `percent` of a hundred cases.
    fn happens(&mut self, percent: u32) -> bool {
        self.rng.uniform(1, 100) <= u64::from(percent)
    }

    /// Any warehouse but this one, all alike; this one when it is the only one.
    fn other_warehouse(&mut self, world: &World, warehouse: i64) -> i64 {
        if world.warehouses < 2 {
            return warehouse;
        }
        let candidate = self.rng.uniform(1, u64::from(world.warehouses) - 1) as i64;
        candidate + i64::from(candidate >= warehouse)
    }

    fn draw_customer(&mut self, world: &World) -> CustomerKey {
        if self.happens(world.profile.by_name_percent) {
            let number = world.last_name.sample(&mut self.rng);
            CustomerKey::Name(number, last_name(number))
        } else {
            CustomerKey::Id(world.customer.sample(&mut self.rng) as i64)
        }
    }

    /// Clause 2.4.1.
    pub(crate) fn new_order(&mut self, world: &World) -> NewOrderInput {
        let warehouse = self.next_warehouse(world);
        let district = self.any_district();
        let customer = world.customer.sample(&mut self.rng) as i64;
        let count = self.rng.uniform(LINES_MIN as u64, LINES_MAX as u64) as usize;
        let is_rolled_back = self.happens(world.profile.rollback_percent);
        let mut lines = [LineInput::default(); LINES_MAX];
        for (line, number) in lines[..count].iter_mut().zip(1..) {
            let item = world.item.sample(&mut self.rng) as i64;
            let is_remote = self.happens(REMOTE_LINE_PERCENT);
            let supply_warehouse =
                if is_remote { self.other_warehouse(world, warehouse) } else { warehouse };
            let quantity = self.rng.uniform(1, 10) as i64;
            *line = LineInput { number, item, supply_warehouse, quantity };
        }
        let mut valid = count;
        if is_rolled_back {
            // Clause 2.4.1.5: the item of the last line is an unused number.
            valid -= 1;
            lines[valid].item = i64::from(ITEMS) + self.rng.uniform(1, 9_000_000) as i64;
        }
        lines[..valid].sort_unstable_by_key(|line| (line.supply_warehouse, line.item, line.number));
        let entered = Timestamp::now();
        NewOrderInput { warehouse, district, customer, lines, count, is_rolled_back, entered }
    }

    /// Clause 2.5.1.
    pub(crate) fn payment(&mut self, world: &World) -> PaymentInput {
        let warehouse = self.next_warehouse(world);
        let district = self.any_district();
        let is_remote = self.happens(REMOTE_PAYMENT_PERCENT) && world.warehouses > 1;
        let (customer_warehouse, customer_district) = if is_remote {
            (self.other_warehouse(world, warehouse), self.any_district())
        } else {
            (warehouse, district)
        };
        PaymentInput {
            warehouse,
            district,
            customer_warehouse,
            customer_district,
            who: self.draw_customer(world),
            cents: self.rng.uniform(100, 500_000) as i64,
            entered: Timestamp::now(),
        }
    }

    /// Clause 2.6.1.
    pub(crate) fn order_status(&mut self, world: &World) -> OrderStatusInput {
        let warehouse = self.next_warehouse(world);
        OrderStatusInput {
            warehouse,
            district: self.any_district(),
            who: self.draw_customer(world),
        }
    }

    /// Clause 2.7.1.
    pub(crate) fn delivery(&mut self, world: &World) -> DeliveryInput {
        let warehouse = self.next_warehouse(world);
        let carrier = self.rng.uniform(1, 10) as i64;
        DeliveryInput { warehouse, carrier, entered: Timestamp::now() }
    }

    /// Clause 2.8.1.
    pub(crate) fn stock_level(&mut self, world: &World) -> StockLevelInput {
        StockLevelInput {
            warehouse: self.next_warehouse(world),
            district: self.district,
            threshold: self.rng.uniform(10, 20) as i64,
        }
    }
}

/// The cards that a terminal has not played yet (clause 5.2.4.2): how many of each kind. One drawn
/// by chance from what is left is the next one of a shuffled deck.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deck(PerKind<u16>);

impl Deck {
    #[inline]
    pub(crate) fn draw_card(&mut self, full: &PerKind<u32>, rng: &mut Rng) -> TransactionId {
        if self.0 == [0; 5] {
            self.0 = full.map(|count| count as u16);
        }
        let cards_left: u64 = self.0.iter().map(|&count| u64::from(count)).sum();
        let mut card = rng.uniform(1, cards_left) as u16;
        for (kind, count) in self.0.iter_mut().enumerate() {
            if card <= *count {
                *count = count.saturating_sub(1);
                return kind;
            }
            card -= *count;
        }
        TpccTransaction::NewOrder.index()
    }
}

/// Throws dice with as many sides as the weights add up to. BenchmarkSQL compares in this order;
/// New-Order has the rest.
#[inline]
fn throw(weights: &[u32; 5], rng: &mut Rng) -> TransactionId {
    let sides: u32 = weights.iter().sum();
    let mut roll = rng.uniform(1, u64::from(sides)) as u32;
    for kind in [
        TpccTransaction::Payment,
        TpccTransaction::StockLevel,
        TpccTransaction::OrderStatus,
        TpccTransaction::Delivery,
    ] {
        let weight = weights[kind.index()];
        if roll <= weight {
            return kind.index();
        }
        roll -= weight;
    }
    TpccTransaction::NewOrder.index()
}

/// Shortest assumed time, in mean cycles, since terminals have begun before the trial.
const CYCLES_BEFORE: f64 = 8.0;

#[derive(Clone, Debug)]
pub(crate) struct Pacing {
    choice: TransactionChoice,
    /// Multiplied already.
    paces: PerKind<Pace>,
}

impl Pacing {
    pub(crate) fn new(options: &TpccOptions) -> Self {
        let none = Pace { keying_s: 0.0, think_mean_s: 0.0 };
        let paces = options.profile.pacing.unwrap_or([none; 5]).map(|pace| Pace {
            keying_s: pace.keying_s * options.keying_multiplier,
            think_mean_s: pace.think_mean_s * options.think_multiplier,
        });
        Pacing { choice: options.profile.choice, paces }
    }

    /// The share of a kind in the mix, 0 to 1.
    pub(crate) fn share(&self, kind: TpccTransaction) -> f64 {
        let shares = self.choice.shares();
        let sum: u32 = shares.iter().sum();
        f64::from(shares[kind.index()]) / f64::from(sum.max(1))
    }

    /// The mean time from one begin to the next if every response came at once, in seconds.
    pub(crate) fn cycle_s(&self) -> f64 {
        let kinds = TpccTransaction::ALL.into_iter().zip(&self.paces);
        kinds.map(|(kind, pace)| self.share(kind) * (pace.keying_s + pace.think_mean_s)).sum()
    }

    /// The choice in the menu (clause 5.2.4).
    #[inline]
    pub(crate) fn choose(&self, terminal: &mut Terminal) -> TransactionId {
        match &self.choice {
            TransactionChoice::Weights(weights) => throw(weights, &mut terminal.rng),
            TransactionChoice::Deck(full) => terminal.deck.draw_card(full, &mut terminal.rng),
        }
    }

    /// The plan of a terminal after its last transaction: it thinks about that (clause 5.2.5.4),
    /// chooses the next one, whose form is there at once, and keys its input in (clause 5.2.5.2).
    /// The response time begins then (clause 5.2.5.3).
    #[inline]
    pub(crate) fn plan(&self, terminal: &mut Terminal) -> TerminalPlan {
        terminal.thought = terminal.chosen;
        let think_s = self.paces[usize::from(terminal.thought)].think_s(&mut terminal.rng);
        let transaction = self.choose(terminal);
        terminal.chosen = transaction as u8;
        terminal.think = (think_s * SECOND as f64) as Nanos;
        let pause_s = think_s + self.paces[transaction].keying_s;
        TerminalPlan { transaction, pause: (pause_s * SECOND as f64) as Nanos }
    }

    /// The first plan of a terminal. Terminals are spread over their first cycle as if they had been at
    /// it for a while: transactions come at an even rate from the first second on, not all at once.
    /// Terminals are spread over their decks too: had all drawn the first cards of one, there would
    /// be more of the slow kinds than in the mix, because who got them is not as far.
    pub(crate) fn first(&self, terminal: &mut Terminal) -> TerminalPlan {
        let cycle = self.cycle_s() * SECOND as f64;
        let deck = match self.choice {
            TransactionChoice::Weights(_) => 1,
            TransactionChoice::Deck(cards) => cards.iter().sum(),
        };
        let mut before = cycle * (CYCLES_BEFORE + f64::from(deck) * terminal.rng.unit());
        loop {
            let plan = self.plan(terminal);
            if plan.pause as f64 >= before {
                return TerminalPlan { pause: plan.pause - before as Nanos, ..plan };
            }
            before -= plan.pause as f64;
        }
    }
}

/// Notes the pauses before a transaction of a terminal: keying is what the engine has waited beyond the think time,
/// which is unknown of its first one.
#[inline]
pub(crate) fn note_pause(
    counters: &mut Counters,
    terminal: &mut Terminal,
    ended: &EndedTransaction,
) {
    let (kind, think) = (usize::from(terminal.thought), terminal.think);
    let waited = ended.due.saturating_sub(terminal.ended);
    let is_first = std::mem::replace(&mut terminal.ended, ended.ended) == 0;
    if ended.is_measured {
        let keyed = (!is_first).then(|| (ended.transaction, waited.saturating_sub(think)));
        counters.pause((kind, think), keyed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::TpccDatabase;
    use crate::profile::{BMSQL_5_0, SPEC};

    fn new_terminal(warehouse: i64) -> Terminal {
        Terminal::new(warehouse, 4, Rng::new(5, "inputs", 0))
    }

    fn new_world(warehouses: u32) -> World {
        World::new(BMSQL_5_0, warehouses, &Constants { c_last: 1, c_id: 2, i_id: 3 })
    }

    #[test]
    fn orders_are_as_the_clause_wants_them() {
        let (world, mut terminal) = (new_world(3), new_terminal(2));
        let (mut lines, mut remote, mut rolled_back) = (0, [0; 4], 0);
        for _ in 0..20_000 {
            let order = terminal.new_order(&world);
            assert_eq!(order.warehouse, 2);
            assert!((5..=15).contains(&order.count));
            let valid = order.count - usize::from(order.is_rolled_back);
            rolled_back += u32::from(order.is_rolled_back);
            let entered = &order.lines[..order.count];
            assert!(entered[..valid].iter().all(|line| (1..=100_000).contains(&line.item)));
            assert!(entered[valid..].iter().all(|line| line.item > 100_000));
            assert!(entered[..valid].is_sorted_by_key(|line| (line.supply_warehouse, line.item)));
            let mut numbers: Vec<i64> = entered.iter().map(|line| line.number).collect();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(1..=order.count as i64));
            if order.is_rolled_back {
                assert_eq!(entered[valid].number, order.count as i64, "the last one entered");
            }
            lines += order.count;
            entered.iter().for_each(|line| remote[line.supply_warehouse as usize] += 1);
        }
        // 200,000 lines, 1% remote: 2,000 with deviation 45, half of it at each other warehouse.
        assert!((195_000..205_000).contains(&lines), "{lines}");
        assert!((800..1_200).contains(&remote[1]) && (800..1_200).contains(&remote[3]));
        assert!((140..260).contains(&rolled_back), "{rolled_back}");
    }

    #[test]
    fn payments_are_as_the_clause_wants_them() {
        let (world, mut terminal) = (new_world(4), new_terminal(1));
        let (mut remote, mut by_name) = (0, 0);
        for _ in 0..20_000 {
            let payment = terminal.payment(&world);
            assert!((100..=500_000).contains(&payment.cents));
            if payment.customer_warehouse == 1 {
                assert_eq!(payment.customer_district, payment.district);
            } else {
                remote += 1;
            }
            by_name += u32::from(matches!(payment.who, CustomerKey::Name(..)));
        }
        assert!((2_700..3_300).contains(&remote), "{remote}");
        assert!((11_600..12_400).contains(&by_name), "{by_name}");
    }

    #[test]
    fn one_warehouse_has_nothing_remote() {
        let (world, mut terminal) = (new_world(1), new_terminal(1));
        for _ in 0..1_000 {
            let order = terminal.new_order(&world);
            assert!(order.lines[..order.count].iter().all(|line| line.supply_warehouse == 1));
            assert_eq!(terminal.payment(&world).customer_warehouse, 1);
        }
    }

    #[test]
    fn a_roaming_terminal_keeps_its_district_only() {
        let profile = Profile { binding: Binding::Roaming, ..BMSQL_5_0 };
        let world = World { profile, ..new_world(5) };
        let mut terminal = new_terminal(2);
        let mut visited = [false; 6];
        for _ in 0..200 {
            let level = terminal.stock_level(&world);
            assert_eq!(level.district, 4);
            assert!((10..=20).contains(&level.threshold));
            visited[level.warehouse as usize] = true;
        }
        assert_eq!(visited, [false, true, true, true, true, true]);
    }

    #[test]
    fn a_deck_deals_every_card_before_it_is_shuffled_again() {
        let mut rng = Rng::new(1, "deck", 0);
        let mut deck = Deck::default();
        let mut hands = Vec::new();
        for _ in 0..50 {
            let hand: Vec<usize> =
                (0..23).map(|_| deck.draw_card(&[10, 10, 1, 1, 1], &mut rng)).collect();
            let counts =
                [0, 1, 2, 3, 4].map(|kind| hand.iter().filter(|&&card| card == kind).count());
            assert_eq!(counts, [10, 10, 1, 1, 1]);
            hands.push(hand);
        }
        hands.sort();
        hands.dedup();
        assert_eq!(hands.len(), 50, "shuffled differently each time");
    }

    #[test]
    fn dice_follow_the_weights() {
        let mut rng = Rng::new(1, "dice", 0);
        let mut counts = [0; 5];
        for _ in 0..100_000 {
            counts[throw(&[45, 43, 4, 4, 4], &mut rng)] += 1;
        }
        for (count, weight) in counts.iter().zip([45, 43, 4, 4, 4]) {
            assert!((count - weight * 1_000_i32).abs() < 950, "{counts:?}");
        }
        assert_eq!(throw(&[100, 0, 0, 0, 0], &mut rng), 0);
        assert_eq!(throw(&[0, 0, 0, 100, 0], &mut rng), TpccTransaction::Delivery.index());
        let mut counts = [0_i32; 5];
        for _ in 0..100_000 {
            counts[throw(&[4_420, 4_320, 420, 420, 420], &mut rng)] += 1;
        }
        for (count, weight) in counts.iter().zip([44_200, 43_200, 4_200, 4_200, 4_200]) {
            assert!(i32::abs(count - weight) < 950, "{counts:?}");
        }
    }

    fn seated_terminal(number: u64) -> Terminal {
        Terminal::new(1, 1, Rng::new(8, "terminal", number))
    }

    fn new_options() -> TpccOptions {
        TpccOptions::new(SPEC, &TpccDatabase { warehouses: 1, c_last: 100 }, 7)
    }

    #[test]
    fn a_terminal_is_small() {
        assert!(size_of::<Terminal>() <= 80, "{}", size_of::<Terminal>());
    }

    #[test]
    fn pauses_are_think_and_keying_times_with_their_multipliers() {
        for (keying_multiplier, think_multiplier) in [(1.0, 1.0), (0.5, 2.0), (0.0, 0.1)] {
            let options = TpccOptions { keying_multiplier, think_multiplier, ..new_options() };
            let pacing = Pacing::new(&options);
            let mut terminal = seated_terminal(0);
            let mut last = pacing.plan(&mut terminal).transaction;
            let mut thought = [(0.0, 0_u32); 5];
            for _ in 0..230_000 {
                let plan = pacing.plan(&mut terminal);
                let paces = SPEC.pacing.unwrap();
                let keying_s = paces[plan.transaction].keying_s * keying_multiplier;
                let think_s = plan.pause as f64 / 1e9 - keying_s;
                assert!(think_s > -1e-6);
                thought[last].0 += think_s;
                thought[last].1 += 1;
                last = plan.transaction;
            }
            for ((sum, count), pace) in thought.iter().zip(SPEC.pacing.unwrap()) {
                let (mean, expected) =
                    (sum / f64::from(*count), pace.think_mean_s * think_multiplier);
                // At least 10,000 times of an exponential distribution: a hundredth is a deviation.
                assert!((mean / expected - 1.0).abs() < 0.05, "{mean} {expected}");
            }
        }
    }

    #[test]
    fn terminals_begin_at_an_even_rate() {
        let pacing = Pacing::new(&new_options());
        assert!((pacing.cycle_s() - 20.696).abs() < 0.001);
        let mut kinds = [0; 5];
        // Begins of 20,000 terminals in each of 60 seconds.
        let mut seconds = [0_u32; 60];
        for number in 0..20_000 {
            let mut terminal = seated_terminal(number);
            let mut plan = pacing.first(&mut terminal);
            let mut at = plan.pause;
            while let Some(second) = seconds.get_mut((at / SECOND) as usize) {
                *second += 1;
                kinds[plan.transaction] += 1;
                plan = pacing.plan(&mut terminal);
                at += plan.pause;
            }
        }
        // 966 a second, with a deviation of 31 at most.
        assert!(seconds.iter().all(|count| (840..1_090).contains(count)), "{seconds:?}");
        let total: u32 = kinds.iter().sum();
        for (count, cards) in kinds.iter().zip([10.0, 10.0, 1.0, 1.0, 1.0]) {
            let expected = f64::from(total) * cards / 23.0;
            // 25,000 of the frequent kinds, 2,500 of the rare ones.
            let bound = if cards > 1.0 { 0.012 } else { 0.07 };
            assert!((f64::from(*count) / expected - 1.0).abs() < bound, "{kinds:?}");
        }
    }

    #[test]
    fn without_pauses_everything_is_due_at_once() {
        let no_pauses =
            TpccOptions::new(BMSQL_5_0, &TpccDatabase { warehouses: 1, c_last: 100 }, 7);
        let pacing = Pacing::new(&no_pauses);
        assert_eq!(pacing.first(&mut seated_terminal(0)).pause, 0);
        assert_eq!(pacing.plan(&mut seated_terminal(0)).pause, 0);
    }
}
