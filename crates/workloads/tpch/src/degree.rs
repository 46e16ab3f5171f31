//! How a product is told how many workers may share one query.

use dyno_core::{DbError, Dialect, Session};
use serde::Deserialize;

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
    pub none: String,
    /// The variables of the session that make the degree.
    pub settings: Vec<Setting>,
    /// Statements instead of variables, for a degree above 0; `{degree}` is its place.
    pub set: Vec<String>,
    /// Statements instead of variables that switch parallel execution off.
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
    /// statements that switch parallel execution off.
    ///
    /// # Errors
    /// In a sentence, when no statement has a place for the degree.
    pub fn own(set: Vec<String>, off: Vec<String>) -> Result<DegreeRule, String> {
        if !set.iter().any(|statement| statement.contains("{degree}")) {
            return Err("No statement of `degree_set` has `{degree}` in it.".to_owned());
        }
        Ok(DegreeRule { name: "own".to_owned(), set, off, ..DegreeRule::default() })
    }

    /// False for products that execute each query in one thread.
    pub fn is_parallel(&self) -> bool {
        self.none.is_empty()
    }

    /// Whether the rule can be meant for a dialect.
    pub fn fits(&self, dialect: Dialect) -> bool {
        self.dialect.is_empty() || self.dialect == dialect.name()
    }
}

/// The built-in rules, the most particular first.
pub fn rules() -> Vec<DegreeRule> {
    Vec::new()
}

/// The first built-in rule that applies to the server of a session; `None` where the product is not
/// known.
///
/// # Errors
/// When the server could not be asked.
pub async fn detect<S: Session>(_session: &mut S) -> Result<Option<DegreeRule>, DbError> {
    Ok(None)
}
