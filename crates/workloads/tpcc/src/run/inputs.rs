//! What terminals enter: the input data of each transaction, drawn once and used again by retries.

use super::pacing::Deck;
use crate::profile::{Binding, CustomerKey, Profile};
use crate::random::{Constants, NuRand, last_name};
use crate::text::Timestamp;
use crate::{DISTRICTS, ITEMS};
use dyno_core::{Nanos, Rng};

/// Fewest and most lines of an order (clause 2.4.1.3).
pub(crate) const LINES_MIN: usize = 5;
pub(crate) const LINES_MAX: usize = 15;

/// Where terminals work and what they draw from; the same for all.
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
    /// What the queue keeps of it.
    pub(crate) fn ticket(&self) -> u64 {
        (self.warehouse as u64) << 8 | self.carrier as u64
    }

    /// The input in the queue, as it is executed now: OL_DELIVERY_D is the time of execution (clause
    /// 2.7.4.2).
    pub(crate) fn of_ticket(ticket: u64) -> Self {
        DeliveryInput {
            warehouse: (ticket >> 8) as i64,
            carrier: (ticket & 0xff) as i64,
            entered: Timestamp::now(),
        }
    }
}

impl Terminal {
    pub(crate) fn new(warehouse: i64, district: i64, rng: Rng) -> Self {
        let (chosen, thought) = (0, 0);
        let deck = Deck::default();
        Terminal { warehouse, district, rng, deck, chosen, thought, think: 0, ended: 0 }
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

    /// True in so many of a hundred cases.
    fn happens(&mut self, percent: u32) -> bool {
        self.rng.uniform(1, 100) <= u64::from(percent)
    }

    /// Any warehouse but this one, all alike; this one when it is the only one.
    fn other_warehouse(&mut self, world: &World, warehouse: i64) -> i64 {
        if world.warehouses < 2 {
            return warehouse;
        }
        let other = self.rng.uniform(1, u64::from(world.warehouses) - 1) as i64;
        other + i64::from(other >= warehouse)
    }

    fn who(&mut self, world: &World) -> CustomerKey {
        if self.happens(world.profile.by_name_percent) {
            let number = world.last_name.draw(&mut self.rng);
            CustomerKey::Name(number, last_name(number))
        } else {
            CustomerKey::Id(world.customer.draw(&mut self.rng) as i64)
        }
    }

    /// Clause 2.4.1.
    pub(crate) fn new_order(&mut self, world: &World) -> NewOrderInput {
        let warehouse = self.next_warehouse(world);
        let district = self.any_district();
        let customer = world.customer.draw(&mut self.rng) as i64;
        let count = self.rng.uniform(LINES_MIN as u64, LINES_MAX as u64) as usize;
        let is_rolled_back = self.happens(world.profile.rollback_percent);
        let mut lines = [LineInput::default(); LINES_MAX];
        for (line, number) in lines[..count].iter_mut().zip(1..) {
            let item = world.item.draw(&mut self.rng) as i64;
            let is_remote = self.happens(world.profile.remote_line_percent);
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
        let is_remote = self.happens(world.profile.remote_payment_percent) && world.warehouses > 1;
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
            who: self.who(world),
            cents: self.rng.uniform(100, 500_000) as i64,
            entered: Timestamp::now(),
        }
    }

    /// Clause 2.6.1.
    pub(crate) fn order_status(&mut self, world: &World) -> OrderStatusInput {
        let warehouse = self.next_warehouse(world);
        OrderStatusInput { warehouse, district: self.any_district(), who: self.who(world) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::BMSQL_5_0;

    fn terminal(warehouse: i64) -> Terminal {
        Terminal::new(warehouse, 4, Rng::new(5, "inputs", 0))
    }

    fn world(warehouses: u32) -> World {
        World::new(BMSQL_5_0, warehouses, &Constants { c_last: 1, c_id: 2, i_id: 3 })
    }

    #[test]
    fn orders_are_as_the_clause_wants_them() {
        let (world, mut terminal) = (world(3), terminal(2));
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
        // 200,000 lines, 1 % remote: 2,000 with deviation 45, half of it at each other warehouse.
        assert!((195_000..205_000).contains(&lines), "{lines}");
        assert!((800..1_200).contains(&remote[1]) && (800..1_200).contains(&remote[3]));
        assert!((140..260).contains(&rolled_back), "{rolled_back}");
    }

    #[test]
    fn payments_are_as_the_clause_wants_them() {
        let (world, mut terminal) = (world(4), terminal(1));
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
        let (world, mut terminal) = (world(1), terminal(1));
        for _ in 0..1_000 {
            let order = terminal.new_order(&world);
            assert!(order.lines[..order.count].iter().all(|line| line.supply_warehouse == 1));
            assert_eq!(terminal.payment(&world).customer_warehouse, 1);
        }
    }

    #[test]
    fn a_roaming_terminal_keeps_its_district_only() {
        let profile = Profile { binding: Binding::Roaming, ..BMSQL_5_0 };
        let world = World { profile, ..world(5) };
        let mut terminal = terminal(2);
        let mut seen = [false; 6];
        for _ in 0..200 {
            let level = terminal.stock_level(&world);
            assert_eq!(level.district, 4);
            assert!((10..=20).contains(&level.threshold));
            seen[level.warehouse as usize] = true;
        }
        assert_eq!(seen, [false, true, true, true, true, true]);
    }
}
