//! The substitution parameters of the 22 queries (2.4) and the order of the streams (5.3.5.4), by the
//! rules of qgen: the same seed and scale factor give the same values.

use crate::random::{self, Stream};
use dyno_facts::{Message, say};
use tpchgen::distribution::Distributions;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParameterChoice {
    /// Those of the query's validation.
    #[default]
    Default,
    /// Those of this seed; see [`seed_is_usable`].
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

/// Whether a seed makes parameters that look random: multiples of 2^31 - 1, 0 among them, always
/// draw the first value.
pub fn seed_is_usable(seed: u64) -> bool {
    !seed.is_multiple_of(random::MODULUS)
}

/// The values of query `query` (1 to 22, else none), in the order of qgen's parameters.
pub fn parameters(query: u8, scale: f64, choice: ParameterChoice) -> Vec<String> {
    match choice {
        ParameterChoice::Default => defaults(query, scale),
        ParameterChoice::Seed(seed) => drawn(query, scale, seed),
    }
}

/// The values of the queries' validation (2.4.N.4); the fraction of query 11 follows the scale
/// factor.
fn defaults(query: u8, scale: f64) -> Vec<String> {
    let values: &[&str] = match query {
        1 => &["90"],
        2 => &["15", "BRASS", "EUROPE"],
        3 => &["BUILDING", "1995-03-15"],
        4 => &["1993-07-01"],
        5 => &["ASIA", "1994-01-01"],
        6 => &["1994-01-01", ".06", "24"],
        7 => &["FRANCE", "GERMANY"],
        8 => &["BRAZIL", "AMERICA", "ECONOMY ANODIZED STEEL"],
        9 => &["green"],
        10 => &["1993-10-01"],
        11 => return vec!["GERMANY".to_owned(), fraction(scale)],
        12 => &["MAIL", "SHIP", "1994-01-01"],
        13 => &["special", "requests"],
        14 => &["1995-09-01"],
        15 => &["1996-01-01"],
        16 => &["Brand#45", "MEDIUM POLISHED", "49", "14", "23", "45", "19", "3", "36", "9"],
        17 => &["Brand#23", "MED BOX"],
        18 => &["300"],
        19 => &["Brand#12", "Brand#23", "Brand#34", "1", "10", "20"],
        20 => &["forest", "1994-01-01", "CANADA"],
        21 => &["SAUDI ARABIA"],
        22 => &["13", "31", "23", "29", "30", "18", "17"],
        _ => &[],
    };
    values.iter().map(|value| (*value).to_owned()).collect()
}

/// Query 11's share of the value of all stock (2.4.11.3).
fn fraction(scale: f64) -> String {
    format!("{:.10}", 0.0001 / scale)
}

/// The words of query 13; what comes first of its pair is drawn first.
const WORDS: [&str; 4] = ["special", "pending", "unusual", "express"];
const SUBJECTS: [&str; 4] = ["packages", "requests", "accounts", "deposits"];

/// The values of query `query` by this seed: each query has a stream of its own, so that they do not
/// depend on the order of execution.
fn drawn(query: u8, scale: f64, seed: u64) -> Vec<String> {
    let mut draw = Draw { stream: Stream::after(seed, u64::from(query)), lists: lists() };
    match query {
        1 => vec![draw.number(60, 120)],
        2 => {
            let size = draw.number(1, 50);
            let (_, metal) = split_type(draw.kind());
            vec![size, metal.to_owned(), draw.region()]
        }
        3 => vec![draw.segment(), format!("1995-03-{:02}", draw.stream.uniform(1, 31))],
        4 | 15 => vec![draw.month(0, 57)],
        5 => vec![draw.region(), draw.year()],
        6 => vec![draw.year(), format!("0.{:02}", draw.stream.uniform(2, 9)), draw.number(24, 25)],
        7 => draw.two(Draw::nation),
        8 => {
            let (nation, region) = draw.nation_in_region();
            vec![nation, region, draw.kind().to_owned()]
        }
        9 => vec![draw.colour()],
        10 => vec![draw.month(1, 24)],
        11 => vec![draw.nation(), fraction(scale)],
        12 => {
            let mut values = draw.two(Draw::mode);
            values.push(draw.year());
            values
        }
        13 => vec![draw.stream.pick(&WORDS).to_owned(), draw.stream.pick(&SUBJECTS).to_owned()],
        14 => vec![draw.month(0, 59)],
        16 => draw.query_16(),
        17 => vec![draw.brand(), draw.container()],
        18 => vec![draw.number(312, 315)],
        19 => {
            let brands = [draw.brand(), draw.brand(), draw.brand()];
            let numbers = [draw.number(1, 10), draw.number(10, 20), draw.number(20, 30)];
            brands.into_iter().chain(numbers).collect()
        }
        20 => vec![draw.colour(), draw.year(), draw.nation()],
        21 => vec![draw.nation()],
        22 => draw.stream.permutation(25, 7).iter().map(|code| (code + 10).to_string()).collect(),
        _ => Vec::new(),
    }
}

fn lists() -> &'static Distributions {
    Distributions::static_default()
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
    fn number(&mut self, low: i64, high: i64) -> String {
        self.stream.uniform(low, high).to_string()
    }

    fn kind(&mut self) -> &'static str {
        self.stream.pick(self.lists.part_types().get_values())
    }

    fn region(&mut self) -> String {
        self.stream.pick(self.lists.regions().get_values()).to_owned()
    }

    fn segment(&mut self) -> String {
        self.stream.pick(self.lists.market_segments().get_values()).to_owned()
    }

    fn mode(&mut self) -> String {
        self.stream.pick(self.lists.ship_modes().get_values()).to_owned()
    }

    fn colour(&mut self) -> String {
        self.stream.pick(self.lists.part_colors().get_values()).to_owned()
    }

    fn container(&mut self) -> String {
        self.stream.pick(self.lists.part_containers().get_values()).to_owned()
    }

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

    fn brand(&mut self) -> String {
        let (maker, brand) = (self.number(1, 5), self.number(1, 5));
        format!("Brand#{maker}{brand}")
    }

    /// The first day of a year of query 5.
    fn year(&mut self) -> String {
        format!("{}-01-01", self.stream.uniform(1993, 1997))
    }

    /// The first day of a month that is so many after January of 1993.
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
        let (kind, _) = split_type(self.kind());
        let sizes = self.stream.permutation(50, 8);
        [brand, kind.to_owned()]
            .into_iter()
            .chain(sizes.iter().map(|size| (size + 1).to_string()))
            .collect()
    }
}

/// The orders of the power test (first) and of the streams 1 to 40.
#[rustfmt::skip]
const ORDERS: [[u8; 22]; 41] = [
    [14, 2, 9, 20, 6, 17, 18, 8, 21, 13, 3, 22, 16, 4, 11, 15, 1, 10, 19, 5, 7, 12],
    [21, 3, 18, 5, 11, 7, 6, 20, 17, 12, 16, 15, 13, 10, 2, 8, 14, 19, 9, 22, 1, 4],
    [6, 17, 14, 16, 19, 10, 9, 2, 15, 8, 5, 22, 12, 7, 13, 18, 1, 4, 20, 3, 11, 21],
    [8, 5, 4, 6, 17, 7, 1, 18, 22, 14, 9, 10, 15, 11, 20, 2, 21, 19, 13, 16, 12, 3],
    [5, 21, 14, 19, 15, 17, 12, 6, 4, 9, 8, 16, 11, 2, 10, 18, 1, 13, 7, 22, 3, 20],
    [21, 15, 4, 6, 7, 16, 19, 18, 14, 22, 11, 13, 3, 1, 2, 5, 8, 20, 12, 17, 10, 9],
    [10, 3, 15, 13, 6, 8, 9, 7, 4, 11, 22, 18, 12, 1, 5, 16, 2, 14, 19, 20, 17, 21],
    [18, 8, 20, 21, 2, 4, 22, 17, 1, 11, 9, 19, 3, 13, 5, 7, 10, 16, 6, 14, 15, 12],
    [19, 1, 15, 17, 5, 8, 9, 12, 14, 7, 4, 3, 20, 16, 6, 22, 10, 13, 2, 21, 18, 11],
    [8, 13, 2, 20, 17, 3, 6, 21, 18, 11, 19, 10, 15, 4, 22, 1, 7, 12, 9, 14, 5, 16],
    [6, 15, 18, 17, 12, 1, 7, 2, 22, 13, 21, 10, 14, 9, 3, 16, 20, 19, 11, 4, 8, 5],
    [15, 14, 18, 17, 10, 20, 16, 11, 1, 8, 4, 22, 5, 12, 3, 9, 21, 2, 13, 6, 19, 7],
    [1, 7, 16, 17, 18, 22, 12, 6, 8, 9, 11, 4, 2, 5, 20, 21, 13, 10, 19, 3, 14, 15],
    [21, 17, 7, 3, 1, 10, 12, 22, 9, 16, 6, 11, 2, 4, 5, 14, 8, 20, 13, 18, 15, 19],
    [2, 9, 5, 4, 18, 1, 20, 15, 16, 17, 7, 21, 13, 14, 19, 8, 22, 11, 10, 3, 12, 6],
    [16, 9, 17, 8, 14, 11, 10, 12, 6, 21, 7, 3, 15, 5, 22, 20, 1, 13, 19, 2, 4, 18],
    [1, 3, 6, 5, 2, 16, 14, 22, 17, 20, 4, 9, 10, 11, 15, 8, 12, 19, 18, 13, 7, 21],
    [3, 16, 5, 11, 21, 9, 2, 15, 10, 18, 17, 7, 8, 19, 14, 13, 1, 4, 22, 20, 6, 12],
    [14, 4, 13, 5, 21, 11, 8, 6, 3, 17, 2, 20, 1, 19, 10, 9, 12, 18, 15, 7, 22, 16],
    [4, 12, 22, 14, 5, 15, 16, 2, 8, 10, 17, 9, 21, 7, 3, 6, 13, 18, 11, 20, 19, 1],
    [16, 15, 14, 13, 4, 22, 18, 19, 7, 1, 12, 17, 5, 10, 20, 3, 9, 21, 11, 2, 6, 8],
    [20, 14, 21, 12, 15, 17, 4, 19, 13, 10, 11, 1, 16, 5, 18, 7, 8, 22, 9, 6, 3, 2],
    [16, 14, 13, 2, 21, 10, 11, 4, 1, 22, 18, 12, 19, 5, 7, 8, 6, 3, 15, 20, 9, 17],
    [18, 15, 9, 14, 12, 2, 8, 11, 22, 21, 16, 1, 6, 17, 5, 10, 19, 4, 20, 13, 3, 7],
    [7, 3, 10, 14, 13, 21, 18, 6, 20, 4, 9, 8, 22, 15, 2, 1, 5, 12, 19, 17, 11, 16],
    [18, 1, 13, 7, 16, 10, 14, 2, 19, 5, 21, 11, 22, 15, 8, 17, 20, 3, 4, 12, 6, 9],
    [13, 2, 22, 5, 11, 21, 20, 14, 7, 10, 4, 9, 19, 18, 6, 3, 1, 8, 15, 12, 17, 16],
    [14, 17, 21, 8, 2, 9, 6, 4, 5, 13, 22, 7, 15, 3, 1, 18, 16, 11, 10, 12, 20, 19],
    [10, 22, 1, 12, 13, 18, 21, 20, 2, 14, 16, 7, 15, 3, 4, 17, 5, 19, 6, 8, 9, 11],
    [10, 8, 9, 18, 12, 6, 1, 5, 20, 11, 17, 22, 16, 3, 13, 2, 15, 21, 14, 19, 7, 4],
    [7, 17, 22, 5, 3, 10, 13, 18, 9, 1, 14, 15, 21, 19, 16, 12, 8, 6, 11, 20, 4, 2],
    [2, 9, 21, 3, 4, 7, 1, 11, 16, 5, 20, 19, 18, 8, 17, 13, 10, 12, 15, 6, 14, 22],
    [15, 12, 8, 4, 22, 13, 16, 17, 18, 3, 7, 5, 6, 1, 9, 11, 21, 10, 14, 20, 19, 2],
    [15, 16, 2, 11, 17, 7, 5, 14, 20, 4, 21, 3, 10, 9, 12, 8, 13, 6, 18, 19, 22, 1],
    [1, 13, 11, 3, 4, 21, 6, 14, 15, 22, 18, 9, 7, 5, 10, 20, 12, 16, 17, 8, 19, 2],
    [14, 17, 22, 20, 8, 16, 5, 10, 1, 13, 2, 21, 12, 9, 4, 18, 3, 7, 6, 19, 15, 11],
    [9, 17, 7, 4, 5, 13, 21, 18, 11, 3, 22, 1, 6, 16, 20, 14, 15, 10, 8, 2, 12, 19],
    [13, 14, 5, 22, 19, 11, 9, 6, 18, 15, 8, 10, 7, 4, 17, 16, 3, 1, 12, 2, 21, 20],
    [20, 5, 4, 14, 11, 1, 6, 16, 8, 22, 7, 3, 2, 12, 21, 19, 17, 13, 10, 15, 18, 9],
    [3, 7, 14, 15, 6, 5, 21, 20, 18, 10, 4, 16, 19, 1, 13, 9, 8, 17, 11, 12, 22, 2],
    [13, 15, 17, 1, 22, 11, 3, 4, 7, 20, 14, 21, 9, 8, 2, 18, 16, 6, 10, 12, 5, 19],
];

/// The order of the queries in stream `stream`: 0 is the power test, 1 and more are those of the
/// throughput test; after the 40th the orders begin anew with the first.
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
        let found: String = (1..=22)
            .map(|query| {
                let values = parameters(query, 1.0, ParameterChoice::Seed(101_000_000));
                format!("{query}\t{}\n", values.join("\t"))
            })
            .collect();
        assert_eq!(found, GOLDEN);
    }

    #[test]
    fn other_seeds_draw_other_values_of_the_same_form() {
        for query in 1..=22 {
            let default = parameters(query, 1.0, ParameterChoice::Default);
            let drawn: Vec<_> =
                (1..200).map(|seed| parameters(query, 1.0, ParameterChoice::Seed(seed))).collect();
            assert!(drawn.iter().all(|values| values.len() == default.len()), "query {query}");
            assert!(drawn.iter().any(|values| *values != drawn[0]), "query {query}");
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
        assert!(!seed_is_usable(0) && !seed_is_usable(random::MODULUS) && seed_is_usable(1));
        assert_eq!(parameters(7, 1.0, ParameterChoice::Seed(0)), ["ALGERIA", "ALGERIA"]);
    }

    #[test]
    fn the_fraction_of_query_11_follows_the_scale_factor() {
        let fraction = |scale| parameters(11, scale, ParameterChoice::Default).swap_remove(1);
        assert_eq!(fraction(0.1), "0.0010000000");
        assert_eq!(fraction(300.0), "0.0000003333");
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
}
