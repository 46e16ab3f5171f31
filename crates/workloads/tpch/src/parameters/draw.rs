//! What each query draws, and in which order.

use super::fraction;
use crate::random::Stream;
use tpchgen::distribution::Distributions;

/// The words of query 13; what comes first of its pair is drawn first.
const WORDS: [&str; 4] = ["special", "pending", "unusual", "express"];
const SUBJECTS: [&str; 4] = ["packages", "requests", "accounts", "deposits"];

/// The values of query `query` by this seed: each query has a stream of its own, so that they do not
/// depend on the order of execution.
pub(super) fn parameters(query: u8, scale: f64, seed: u64) -> Vec<String> {
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
