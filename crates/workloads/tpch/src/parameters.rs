//! The substitution parameters of the 22 queries (2.4) and the order of the streams (5.3.5.4), by the
//! rules of qgen: the same seed and scale factor give the same values.

use dyno_facts::{Message, say};
use std::sync::LazyLock;
use tpchgen::distribution::{Distribution, Distributions};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParameterChoice {
    /// The values of the query's validation.
    #[default]
    Default,
    /// The values that this seed draws; see [`seed_is_usable`].
    Seed(u64),
}

impl ParameterChoice {
    /// `validation defaults` or `seed 1122063000`.
    pub fn message(self) -> Message {
        match self {
            ParameterChoice::Default => say!(validation_defaults),
            ParameterChoice::Seed(seed) => say!(seed, n = seed.to_string()),
        }
    }
}

/// Returns true if a seed makes parameters that look random: multiples of 2^31 - 1, 0 among them, always
/// draw the first value.
pub fn seed_is_usable(seed: u64) -> bool {
    !seed.is_multiple_of(MODULUS)
}

/// The values of query `query` (1 to 22, else none), in the order of qgen's parameters.
pub fn parameters(query: u8, scale: f64, choice: ParameterChoice) -> Vec<String> {
    match choice {
        ParameterChoice::Default => defaults(query, scale),
        ParameterChoice::Seed(seed) => draw_parameters(query, scale, seed),
    }
}

/// The values of the queries' validation, a line each, parted by tabs.
const DEFAULTS: &str = include_str!("queries/defaults.tsv");

/// The values of the queries' validation (2.4.N.4); the fraction of query 11 follows the scale
/// factor.
fn defaults(query: u8, scale: f64) -> Vec<String> {
    let line = usize::from(query).checked_sub(1).and_then(|at| DEFAULTS.lines().nth(at));
    let values = line.map_or(Vec::new(), |line| line.split('\t').map(str::to_owned).collect());
    match (query, values.as_slice()) {
        (11, [nation, ..]) => vec![nation.clone(), fraction(scale)],
        _ => values,
    }
}

/// Query 11's share of the value of all stock (2.4.11.3).
fn fraction(scale: f64) -> String {
    format!("{:.10}", 0.0001 / scale)
}

/// The words of query 13; what comes first of its pair is drawn first.
const WORDS: [&str; 4] = ["special", "pending", "unusual", "express"];
const SUBJECTS: [&str; 4] = ["packages", "requests", "accounts", "deposits"];

/// The values of query `query` by this seed: each query has its own stream, so that they do not
/// depend on the order of execution.
fn draw_parameters(query: u8, scale: f64, seed: u64) -> Vec<String> {
    let mut draw = Draw {
        stream: Stream::after(seed, u64::from(query)),
        lists: Distributions::static_default(),
    };
    match query {
        1 => vec![draw.number(60, 120)],
        2 => {
            let size = draw.number(1, 50);
            let (_, metal) = split_type(draw.part_type());
            vec![size, metal.to_owned(), draw.value(Distributions::regions)]
        }
        3 => vec![
            draw.value(Distributions::market_segments),
            format!("1995-03-{:02}", draw.stream.uniform(1, 31)),
        ],
        4 | 15 => vec![draw.month(0, 57)],
        5 => vec![draw.value(Distributions::regions), draw.year()],
        6 => vec![draw.year(), format!("0.{:02}", draw.stream.uniform(2, 9)), draw.number(24, 25)],
        7 => draw.two(Draw::nation),
        8 => {
            let (nation, region) = draw.nation_in_region();
            vec![nation, region, draw.part_type().to_owned()]
        }
        9 => vec![draw.value(Distributions::part_colors)],
        10 => vec![draw.month(1, 24)],
        11 => vec![draw.nation(), fraction(scale)],
        12 => {
            let mut values = draw.two(|draw| draw.value(Distributions::ship_modes));
            values.push(draw.year());
            values
        }
        13 => vec![draw.stream.pick(&WORDS).to_owned(), draw.stream.pick(&SUBJECTS).to_owned()],
        14 => vec![draw.month(0, 59)],
        16 => draw.query_16(),
        17 => vec![draw.brand(), draw.value(Distributions::part_containers)],
        18 => vec![draw.number(312, 315)],
        19 => {
            let brands = [draw.brand(), draw.brand(), draw.brand()];
            let numbers = [draw.number(1, 10), draw.number(10, 20), draw.number(20, 30)];
            brands.into_iter().chain(numbers).collect()
        }
        20 => vec![draw.value(Distributions::part_colors), draw.year(), draw.nation()],
        21 => vec![draw.nation()],
        22 => draw.stream.permutation(25, 7).iter().map(|code| (code + 10).to_string()).collect(),
        _ => Vec::new(),
    }
}

/// A type without its last syllable, and that.
fn split_type(kind: &str) -> (&str, &str) {
    kind.rsplit_once(' ').unwrap_or((kind, ""))
}

struct Draw {
    stream: Stream,
    lists: &'static Distributions,
}

impl Draw {
    /// A whole number from `low` to `high`.
    fn number(&mut self, low: i64, high: i64) -> String {
        self.stream.uniform(low, high).to_string()
    }

    fn part_type(&mut self) -> &'static str {
        self.stream.pick(self.lists.part_types().get_values())
    }

    /// A value of a list.
    fn value(&mut self, list: fn(&Distributions) -> &Distribution) -> String {
        self.stream.pick(list(self.lists).get_values()).to_owned()
    }

    /// The name of a nation.
    fn nation(&mut self) -> String {
        self.nation_in_region().0
    }

    fn nation_in_region(&mut self) -> (String, String) {
        let nations = self.lists.nations();
        let at = (self.stream.uniform(1, nations.size() as i64) - 1) as usize;
        // The cumulative weight of a nation is the key of its region.
        let region = nations.get_weight(at) as usize;
        (nations.get_value(at).to_owned(), self.lists.regions().get_value(region).to_owned())
    }

    /// The name of a brand: `Brand#12`.
    fn brand(&mut self) -> String {
        let (maker, brand) = (self.number(1, 5), self.number(1, 5));
        format!("Brand#{maker}{brand}")
    }

    /// The first day of a year of query 5.
    fn year(&mut self) -> String {
        format!("{}-01-01", self.stream.uniform(1993, 1997))
    }

    /// The first day of a month, `low` to `high` months after January of 1993.
    fn month(&mut self, low: i64, high: i64) -> String {
        let months = self.stream.uniform(low, high);
        format!("{}-{:02}-01", 1993 + months / 12, months % 12 + 1)
    }

    /// Two values that differ.
    fn two(&mut self, draw: impl Fn(&mut Draw) -> String) -> Vec<String> {
        let first = draw(self);
        // A seed that always draws the same (a multiple of the modulus) has no second value.
        let second = (0..10_000).map(|_| draw(self)).find(|second| *second != first);
        vec![first.clone(), second.unwrap_or(first)]
    }

    fn query_16(&mut self) -> Vec<String> {
        let brand = self.brand();
        let (kind, _) = split_type(self.part_type());
        let sizes = self.stream.permutation(50, 8);
        [brand, kind.to_owned()]
            .into_iter()
            .chain(sizes.iter().map(|size| (size + 1).to_string()))
            .collect()
    }
}

/// Numbers are from 1 to one less than this.
pub(crate) const MODULUS: u64 = 2_147_483_647;
const MULTIPLIER: u64 = 16_807;

/// The random numbers of dbgen and qgen: s' = s * 16807 mod 2^31 - 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream(u64);

impl Stream {
    /// The stream that begins after the first `skipped` numbers of a seed.
    pub(crate) fn after(seed: u64, skipped: u64) -> Stream {
        Stream(seed % MODULUS * power(skipped) % MODULUS)
    }

    #[inline]
    pub(crate) fn next_number(&mut self) -> u64 {
        self.0 = self.0 * MULTIPLIER % MODULUS;
        self.0
    }

    /// A number from `low` to `high`. In doubles, as qgen draws it.
    pub(crate) fn uniform(&mut self, low: i64, high: i64) -> i64 {
        let share = self.next_number() as f64 / MODULUS as f64;
        low + (share * (high - low + 1) as f64) as i64
    }

    /// One of some values that are equally likely.
    pub(crate) fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[(self.uniform(1, values.len() as i64) - 1) as usize]
    }

    /// The first `count` of the numbers 0 to `n` - 1 in random order.
    pub(crate) fn permutation(&mut self, n: i64, count: usize) -> Vec<i64> {
        let mut numbers: Vec<i64> = (0..n).collect();
        for at in 0..n {
            numbers.swap(at as usize, self.uniform(at, n - 1) as usize);
        }
        numbers.truncate(count);
        numbers
    }
}

/// The multiplier to the power of `exponent`, modulo the modulus.
fn power(mut exponent: u64) -> u64 {
    let (mut base, mut result) = (MULTIPLIER, 1);
    while exponent > 0 {
        if exponent % 2 == 1 {
            result = result * base % MODULUS;
        }
        base = base * base % MODULUS;
        exponent /= 2;
    }
    result
}

/// The orders of the power test (first) and of the streams 1 to 40, a line each.
static ORDERS: LazyLock<Vec<[u8; 22]>> = LazyLock::new(|| {
    let orders = include_str!("queries/orders.txt").lines().map(|line| {
        let mut numbers = line.split(' ').map(|number| number.parse().unwrap_or(0));
        std::array::from_fn(|_| numbers.next().unwrap_or(0))
    });
    orders.collect()
});

/// The order of the queries in stream `stream`: 0 is the power test, 1 and more are those of the
/// throughput test; after the 40th the orders begin again with the first.
pub fn order(stream: u32) -> [u8; 22] {
    match stream {
        0 => ORDERS[0],
        _ => ORDERS[(stream as usize - 1) % 40 + 1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = include_str!("../golden/parameters.tsv");

    #[test]
    fn a_seed_draws_what_qgen_draws() {
        let actual: String = (1..=22)
            .map(|query| {
                let values = parameters(query, 1.0, ParameterChoice::Seed(101_000_000));
                format!("{query}\t{}\n", values.join("\t"))
            })
            .collect();
        assert_eq!(actual, GOLDEN);
    }

    #[test]
    fn other_seeds_draw_other_values_of_the_same_form() {
        for query in 1..=22 {
            let default = parameters(query, 1.0, ParameterChoice::Default);
            let samples: Vec<_> =
                (1..200).map(|seed| parameters(query, 1.0, ParameterChoice::Seed(seed))).collect();
            assert!(samples.iter().all(|values| values.len() == default.len()), "query {query}");
            assert!(samples.iter().any(|values| *values != samples[0]), "query {query}");
        }
    }

    #[test]
    fn pairs_differ_but_for_seeds_that_repeat_themselves() {
        for seed in 1..500 {
            for query in [7, 12] {
                let values = parameters(query, 1.0, ParameterChoice::Seed(seed));
                assert_ne!(values[0], values[1], "query {query}, seed {seed}");
            }
        }
        assert!(!seed_is_usable(0) && !seed_is_usable(MODULUS) && seed_is_usable(1));
        assert_eq!(parameters(7, 1.0, ParameterChoice::Seed(0)), ["ALGERIA", "ALGERIA"]);
    }

    #[test]
    fn the_fraction_of_query_11_follows_the_scale_factor() {
        for (scale, fraction) in [(0.1, "0.0010000000"), (300.0, "0.0000003333")] {
            assert_eq!(parameters(11, scale, ParameterChoice::Default)[1], fraction);
        }
    }

    #[test]
    fn streams_begin_anew_after_the_fortieth() {
        assert_eq!(order(0)[..3], [14, 2, 9]);
        assert_eq!(order(40)[..3], [13, 15, 17]);
        assert_eq!(order(41), order(1));
        for stream in 0..=40 {
            let mut queries = order(stream);
            queries.sort_unstable();
            assert!(queries.iter().copied().eq(1..=22), "stream {stream}");
        }
    }

    #[test]
    fn the_numbers_are_those_of_the_minimal_standard_generator() {
        // Park and Miller: after 10,000 draws from 1 the number is 1043618065.
        let mut stream = Stream::after(1, 0);
        let last = (0..10_000).map(|_| stream.next_number()).last();
        assert_eq!(last, Some(1_043_618_065));
        assert_eq!(Stream::after(1, 9_999).next_number(), 1_043_618_065);
    }
}
