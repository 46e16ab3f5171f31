//! How a product is told how many workers may share one query.

mod apply;
#[cfg(test)]
mod tests;

pub use apply::Applied;

use dyno_core::{AdminSession, DbError, Dialect, Session};
use dyno_facts::Message;
use serde::Deserialize;

const BUILT_IN: &str = include_str!("degrees.toml");

/// How the parallel degree of one product is set, restored and read from its plans. The built-in
/// rules are data: `degrees.toml`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DegreeRule {
    /// The name by which suites choose it, such as `postgres`.
    pub name: String,
    /// The product in words.
    pub product: String,
    /// `mysql`, `postgres` or `sqlite`; empty is any.
    pub dialect: String,
    /// The rule applies where the product's name or version has this in it; empty is any.
    pub version_has: String,
    /// The rule applies where the session has this variable; empty is any.
    pub has: String,
    /// Only applied when it is chosen by name.
    pub by_name_only: bool,
    /// Why this product has no degree, in a sentence; empty where it has one.
    pub none: Message,
    /// The variables of the session that make the degree.
    pub settings: Vec<Setting>,
    /// Statements after the variables, for a degree above 0; `{degree}` is its place.
    pub set: Vec<String>,
    /// Statements that switch parallel execution off; they also end a trial that has executed `set`.
    pub off: Vec<String>,
    /// Variables that no session can change and that bound the number of workers.
    pub limits: Vec<String>,
    /// How plans name the number of workers, `{n}` in its place; empty where they do not.
    pub workers: Vec<String>,
}

/// One variable of a rule.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Setting {
    /// Name of the variable.
    pub name: String,
    /// Its value at a degree above 0, `{degree}` in its place; empty leaves it.
    pub on: String,
    /// Its value at degree 0; empty leaves it.
    pub off: String,
    /// True when it is only raised: a larger value stays.
    pub raise: bool,
}

impl DegreeRule {
    /// A rule of the user's own: statements that set a degree (`{degree}` in its place) and
    /// statements that switch parallel execution off, which also end each trial.
    ///
    /// # Errors
    /// In a sentence, when no statement has a place for the degree or none switches it off.
    pub fn own(set: Vec<String>, off: Vec<String>) -> Result<DegreeRule, String> {
        if !set.iter().any(|statement| statement.contains("{degree}")) {
            return Err("No statement of `degree_set` has `{degree}` in it.".to_owned());
        }
        if off.is_empty() {
            return Err("`degree_set` needs `degree_off`: the statements that switch parallel \
                        execution off, also at the end of each trial."
                .to_owned());
        }
        let product = "own statements".to_owned();
        Ok(DegreeRule { name: "own".to_owned(), product, set, off, ..DegreeRule::default() })
    }

    /// False for products that execute each query in one thread.
    pub fn is_parallel(&self) -> bool {
        self.none.is_empty()
    }

    /// Workers that plans tell of when parallel execution is off: some products have 1 then.
    pub(crate) fn workers_when_off(&self) -> u32 {
        self.settings.iter().filter_map(|setting| setting.off.parse().ok()).max().unwrap_or(0)
    }

    /// Whether the rule can be meant for a dialect.
    pub fn fits(&self, dialect: Dialect) -> bool {
        self.dialect.is_empty() || self.dialect == dialect.name()
    }

    /// Why the rule can't be meant for the server of a session, in a sentence; `None` where it can.
    pub async fn objection(
        &self,
        session: &mut AdminSession<'_>,
    ) -> Result<Option<String>, DbError> {
        let (name, dialect) = (&self.name, session.dialect().name());
        if !self.fits(session.dialect()) {
            return Ok(Some(format!(
                "The degree rule `{name}` is for targets that speak {}, and this one speaks \
                 {dialect}.",
                self.dialect
            )));
        }
        let is_known = self.has.is_empty() || apply::value(session, &self.has).await?.is_some();
        Ok((!is_known).then(|| {
            format!("The degree rule `{name}` sets {}, which this server does not have.", self.has)
        }))
    }

    /// Most workers that a plan tells of, 0 where it tells of none; `None` where plans of this
    /// product do not tell.
    pub fn workers(&self, plan: &str) -> Option<u32> {
        let mut found = self.workers.iter().filter_map(|pattern| largest(pattern, plan));
        (!self.workers.is_empty()).then(|| found.next().unwrap_or(0))
    }
}

/// The largest number that stands in a text where the pattern has `{n}`.
fn largest(pattern: &str, text: &str) -> Option<u32> {
    let (before, after) = pattern.split_once("{n}")?;
    let numbers = text.match_indices(before).filter_map(|(at, _)| {
        let rest = &text[at + before.len()..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        rest[digits..].starts_with(after).then(|| rest[..digits].parse().ok())?
    });
    numbers.max()
}

/// The built-in rules, the most particular first.
pub fn rules() -> Vec<DegreeRule> {
    #[derive(Deserialize)]
    struct File {
        rule: Vec<DegreeRule>,
    }
    // A test reads them all: the file is part of the program.
    toml::from_str::<File>(BUILT_IN)
        .map_or_else(|error| panic!("degrees.toml: {error}"), |f| f.rule)
}

/// The built-in rule of this name.
pub fn named(name: &str) -> Option<DegreeRule> {
    rules().into_iter().find(|rule| rule.name == name)
}

/// The first built-in rule that applies to the server of a session; `None` where the product is not
/// known.
pub async fn detect(session: &mut AdminSession<'_>) -> Result<Option<DegreeRule>, DbError> {
    for rule in rules() {
        let product = session.product();
        let of_product = [&product.name, &product.version]
            .iter()
            .any(|text| text.to_lowercase().contains(&rule.version_has.to_lowercase()));
        if !rule.by_name_only && of_product && rule.objection(session).await?.is_none() {
            return Ok(Some(rule));
        }
    }
    Ok(None)
}
