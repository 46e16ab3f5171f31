//! Parallel degrees of products.

use dyno_core::{AdminSession, DbError, Dialect, Discard};
use dyno_facts::{Message, say};
use dyno_load::query::answer;
use serde::Deserialize;

const BUILT_IN: &str = include_str!("degrees.toml");

/// Rules for setting, restoring and reading the parallel degree of one product. The built-in
/// rules are data: `degrees.toml`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DegreeRule {
    /// The name by which suites choose it, such as `postgres`.
    pub name: String,
    /// `mysql`, `postgres` or `sqlite`; empty is any.
    pub dialect: String,
    /// The rule applies where the product's name or version has this in it; empty is any.
    pub version_has: String,
    /// The rule applies where the session has this variable; empty is any.
    pub has: String,
    /// Only applied when it is chosen by name.
    pub by_name_only: bool,
    /// Reason why this product has no degree, in a sentence; empty if it has one.
    pub none: Message,
    /// The variables of the session that make the degree.
    pub settings: Vec<Setting>,
    /// Statements after the variables, for a degree above 0; `{degree}` is its place.
    pub set: Vec<String>,
    /// Statements that switch parallel execution off; they also end a trial that has executed `set`.
    pub off: Vec<String>,
    /// Variables that no session can change and that bound the number of workers.
    pub limits: Vec<String>,
    /// Texts of plans with the number of workers, `{n}` in its place; empty if they do not have one.
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
    /// Set if it is only raised: a larger value stays.
    pub raise: bool,
}

impl DegreeRule {
    /// A rule of the user's own: statements that set a degree (`{degree}` in its place) and
    /// statements that switch parallel execution off, which also end each trial; without them the former with 0.
    ///
    /// # Errors
    /// A sentence if no statement has a place for the degree.
    pub fn own(set: Vec<String>, mut off: Vec<String>) -> Result<DegreeRule, String> {
        if !set.iter().any(|statement| statement.contains("{degree}")) {
            return Err("No statement of `degree_set` has `{degree}` in it.".to_owned());
        }
        if off.is_empty() {
            off = set.iter().map(|sql| sql.replace("{degree}", "0")).collect();
        }
        Ok(DegreeRule { name: "own".to_owned(), set, off, ..DegreeRule::default() })
    }

    /// False for products that execute each query in one thread.
    pub fn is_parallel(&self) -> bool {
        self.none.is_empty()
    }

    /// Workers that plans tell of when parallel execution is off: some products have 1 then.
    pub(crate) fn workers_when_off(&self) -> u32 {
        self.settings.iter().filter_map(|setting| setting.off.parse().ok()).max().unwrap_or(0)
    }

    /// The reason why the rule can't be meant for the server of a session, in a sentence; `None` if it can.
    pub async fn objection(
        &self,
        session: &mut AdminSession<'_>,
    ) -> Result<Option<String>, DbError> {
        let (name, dialect) = (&self.name, session.dialect().name());
        if !self.dialect.is_empty() && self.dialect != dialect {
            return Ok(Some(format!(
                "The degree rule `{name}` is for targets that speak {}, and this one speaks \
                 {dialect}.",
                self.dialect
            )));
        }
        let is_known = self.has.is_empty() || read_variable(session, &self.has).await?.is_some();
        Ok((!is_known).then(|| {
            format!("The degree rule `{name}` sets {}, which this server does not have.", self.has)
        }))
    }

    /// Most workers that a plan tells of, 0 if it tells of none; `None` where plans of this
    /// product do not tell.
    pub fn workers(&self, plan: &str) -> Option<u32> {
        let mut counts = self.workers.iter().filter_map(|pattern| largest(pattern, plan));
        (!self.workers.is_empty()).then(|| counts.next().unwrap_or(0))
    }
}

/// The largest number in a text at the place of `{n}` in the pattern.
fn largest(pattern: &str, text: &str) -> Option<u32> {
    let (before, after) = pattern.split_once("{n}")?;
    let numbers = text.match_indices(before).filter_map(|(at, _)| {
        let tail = &text[at + before.len()..];
        let digits = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        tail[digits..].starts_with(after).then(|| tail[..digits].parse().ok())?
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

/// The first built-in rule that applies to the server of a session; `None` if the product is not
/// known.
pub async fn detect(session: &mut AdminSession<'_>) -> Result<Option<DegreeRule>, DbError> {
    for rule in rules() {
        let product = session.product();
        let is_product = [&product.name, &product.version]
            .iter()
            .any(|text| text.to_lowercase().contains(&rule.version_has.to_lowercase()));
        if !rule.by_name_only && is_product && rule.objection(session).await?.is_none() {
            return Ok(Some(rule));
        }
    }
    Ok(None)
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// The statements that set it, as they were sent.
    pub statements: Vec<String>,
    /// Limits, in sentences: variables that took another value or that no session changes.
    pub remarks: Vec<Message>,
    restore: Vec<String>,
}

impl DegreeRule {
    /// Sets the degree in a session. What was set is set back when it fails.
    pub async fn apply(
        &self,
        session: &mut AdminSession<'_>,
        degree: u32,
    ) -> Result<Applied, DbError> {
        let mut applied = Applied::default();
        if !self.is_parallel() {
            return Ok(applied);
        }
        match self.set_all(session, degree, &mut applied).await {
            Ok(()) => Ok(applied),
            Err(error) => {
                applied.restore(session).await.ok();
                Err(error)
            }
        }
    }

    async fn set_all(
        &self,
        session: &mut AdminSession<'_>,
        degree: u32,
        applied: &mut Applied,
    ) -> Result<(), DbError> {
        for Setting { name, on, off, raise } in &self.settings {
            let template = if degree == 0 { off } else { on };
            let target = template.replace("{degree}", &degree.to_string());
            let before = read_variable(session, name).await?;
            let Some(before) = before.filter(|_| !target.is_empty()) else { continue };
            if *raise && parse_number(&before) >= parse_number(&target) {
                continue;
            }
            let statement = set_statement(session.dialect(), name, &target);
            match session.query(&statement, &mut Discard).await {
                Ok(_) => {}
                // The administrator's value bounds the degree; only the degree itself has to be set.
                Err(error) if is_server_wide(&error) && !template.contains("{degree}") => {
                    if !before.eq_ignore_ascii_case(&target) {
                        let remark = say!(setting_stays, setting = name, before, wanted = target);
                        applied.remarks.push(remark);
                    }
                    continue;
                }
                Err(error) => return Err(error),
            }
            applied.statements.push(statement);
            applied.restore.push(set_statement(session.dialect(), name, &before));
            let current = read_variable(session, name).await?.unwrap_or_default();
            if parse_number(&current).is_some_and(|number| Some(number) != parse_number(&target)) {
                let remark = say!(setting_became, setting = name, now = current, wanted = target);
                applied.remarks.push(remark);
            }
        }
        if degree > 0 {
            applied.restore.extend(self.off.iter().cloned());
        }
        for statement in if degree == 0 { &self.off } else { &self.set } {
            let statement = statement.replace("{degree}", &degree.to_string());
            session.query(&statement, &mut Discard).await?;
            applied.statements.push(statement);
        }
        for limit in self.limits.iter().filter(|_| degree > 0) {
            let bound = read_variable(session, limit).await?.and_then(|bound| parse_number(&bound));
            if let Some(bound) = bound.filter(|bound| *bound < f64::from(degree)) {
                applied.remarks.push(say!(
                    setting_bound,
                    setting = limit,
                    bound = bound.to_string()
                ));
            }
        }
        Ok(())
    }
}

impl Applied {
    /// Sets back what was changed, the last first. Continues after an error.
    pub async fn restore(&mut self, session: &mut AdminSession<'_>) -> Result<(), DbError> {
        let mut result = Ok(());
        while let Some(statement) = self.restore.pop() {
            result = result.and(session.query(&statement, &mut Discard).await.map(drop));
        }
        result
    }
}

/// The value of a variable in a session; `None` if the server does not know it.
async fn read_variable(
    session: &mut AdminSession<'_>,
    name: &str,
) -> Result<Option<String>, DbError> {
    let sql = match session.dialect() {
        Dialect::Mysql => format!("show session variables where variable_name = '{name}'"),
        // Reading a variable that is not there is an error; this table isn't.
        _ => match session.capabilities().settings {
            Some(settings) => format!("{settings} where name = '{name}'"),
            None => return Ok(None),
        },
    };
    let table = answer(session, &sql).await?;
    Ok(table.rows.first().and_then(|row| row.get(1).cloned().flatten()))
}

/// MySQL's errors 1229 and 1238: the variable is that of the whole server, or can't be changed.
fn is_server_wide(error: &DbError) -> bool {
    matches!(error.errno(), 1229 | 1238)
}

fn parse_number(value: &str) -> Option<f64> {
    value.trim().parse().ok()
}

fn set_statement(dialect: Dialect, name: &str, value: &str) -> String {
    let scope = if dialect == Dialect::Mysql { "session " } else { "" };
    // MySQL refuses numbers in quotes.
    match parse_number(value) {
        Some(_) => format!("set {scope}{name} = {value}"),
        None => format!("set {scope}{name} = '{}'", value.replace('\'', "''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_rules_can_be_read_and_have_what_they_need() {
        let rules = rules();
        let names: HashSet<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
        assert_eq!(names.len(), rules.len(), "names are unique");
        for rule in &rules {
            assert_eq!(rule.is_parallel(), !rule.settings.is_empty(), "{}", rule.name);
            let has_place = rule.settings.iter().any(|setting| setting.on.contains("{degree}"));
            assert_eq!(has_place, rule.is_parallel(), "{}", rule.name);
            let has_off = rule.settings.iter().any(|setting| !setting.off.is_empty());
            assert_eq!(has_off, rule.is_parallel(), "{}", rule.name);
            assert!(rule.workers.iter().all(|pattern| pattern.matches("{n}").count() == 1));
        }
        assert!(rules.iter().any(|rule| rule.dialect == Dialect::Sqlite.name()));
    }

    #[test]
    fn workers_are_read_from_plans() {
        let postgres = named("postgres").unwrap();
        let plan = r#""Workers Planned": 9, "Workers Launched": 2, x "Workers Launched": 12,"#;
        assert_eq!(postgres.workers(plan), Some(12));
        assert_eq!(postgres.workers(r#""Workers Planned": 9"#), Some(9));
        assert_eq!(postgres.workers("Seq Scan"), Some(0));
        let polardb = named("polardb-mysql").unwrap();
        assert_eq!(polardb.workers("Using where; Parallel scan (4 workers)"), Some(4));
        assert_eq!(named("tidb").unwrap().workers("Concurrency:OFF, Concurrency:15"), Some(15));
    }

    #[test]
    fn own_rules_need_a_place_for_the_degree_and_a_way_back() {
        let [set, off] =
            ["set dop = {degree}", "set dop = 0"].map(|statement| vec![statement.to_owned()]);
        assert!(DegreeRule::own(set.clone(), off.clone()).is_ok_and(|rule| rule.off == off));
        assert!(DegreeRule::own(off.clone(), off.clone()).unwrap_err().contains("{degree}"));
        assert!(DegreeRule::own(set, vec![]).is_ok_and(|rule| rule.off == off));
    }
}
