//! Reads SQL as far as a canned answer needs it.

mod lexer;
mod load;
mod names;
mod parser;
mod plan;
mod select;
mod tpc;

pub(crate) use lexer::{Dialect, Parsed};
pub(crate) use names::{MYSQL_VERSION, POSTGRES_VERSION, variable};
pub(crate) use parser::parse;
pub(crate) use plan::{
    Column, Format, Load, Plan, Rows, Value, clock_ns, is_decimal, write_decimal,
};

use crate::counters::Kind;
use std::collections::HashMap;
use std::rc::Rc;

/// A statement text with its plan, shared by all connections of a loop that prepared it.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) sql: Box<[u8]>,
    pub(crate) plan: Plan,
}

/// Plans kept per loop; further texts are parsed again.
const CACHED_MAX: usize = 10_000;
/// Longer texts (multi-row inserts) are not kept.
const CACHED_BYTES_MAX: usize = 4_096;

/// The plans of the prepared texts of one dialect.
#[derive(Default)]
pub(crate) struct PlanCache {
    plans: HashMap<Box<[u8]>, Rc<Statement>>,
}

impl PlanCache {
    /// The plan of a text that must hold exactly one statement (or, in PostgreSQL, none).
    pub(crate) fn prepare(&mut self, sql: &[u8], dialect: Dialect) -> Parsed<Rc<Statement>> {
        if let Some(statement) = self.plans.get(sql) {
            return Ok(Rc::clone(statement));
        }
        let mut plan = Plan::default();
        parse(sql, 0, dialect, &mut plan)?;
        let mut rest = Plan::default();
        parse(sql, plan.end, dialect, &mut rest)?;
        if rest.kind != Kind::Empty || rest.end < sql.len() {
            return Err("a prepared text holds more than one statement");
        }
        let statement = Rc::new(Statement { sql: sql.into(), plan });
        if self.plans.len() < CACHED_MAX && sql.len() <= CACHED_BYTES_MAX {
            self.plans.insert(sql.into(), Rc::clone(&statement));
        }
        Ok(statement)
    }
}

#[cfg(test)]
mod tests;
