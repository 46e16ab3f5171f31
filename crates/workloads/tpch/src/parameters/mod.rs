//! The substitution parameters of the 22 queries (2.4) and the order of the streams (5.3.5.4), by the
//! rules of qgen: the same seed and scale factor give the same values.

mod draw;
mod order;

pub use order::order;

use crate::random;
use dyno_facts::{Message, say};

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
        ParameterChoice::Seed(seed) => draw::parameters(query, scale, seed),
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

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = include_str!("../../golden/parameters.tsv");

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
