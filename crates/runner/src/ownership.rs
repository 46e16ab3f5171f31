//! Which tables a run has made itself: it drops no others.

use super::Runner;
use crate::failure::Failure;
use crate::family::ask;
use crate::watch::{self, WatchedNode};
use dyno_facts::{Message, PlanStep, TableOrigin, say};
use dyno_load::catalog::unmarked;
use std::collections::{BTreeMap, BTreeSet, HashSet};

type Known = BTreeMap<String, TableOrigin>;

/// Notes where `tables` come from, those in `existing` being there now. What the run has begun to
/// make is its own also when it exists by now: an interrupted run goes on with it.
pub(super) fn look(known: &mut Known, tables: &[String], existing: &BTreeSet<String>) {
    for table in tables {
        if known.get(table) != Some(&TableOrigin::Made) {
            let is_found = existing.contains(table);
            let origin = if is_found { TableOrigin::Found } else { TableOrigin::Made };
            known.insert(table.clone(), origin);
        }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) made: Vec<String>,
    pub(super) found: Vec<String>,
}

/// Notes that `unmarked` tables, which are there, are not the ones that the run has made.
fn disown(known: &mut Known, unmarked: &HashSet<String>) {
    for (_, origin) in known.iter_mut().filter(|(table, _)| unmarked.contains(*table)) {
        *origin = TableOrigin::Found;
    }
}

impl Runner<'_> {
    /// Notes which tables of a target others have made where the run's own were.
    pub(super) fn disown(&mut self, step: &PlanStep) -> Result<(), Failure> {
        let (_, reached) = self.parties(step)?;
        let owner = self.plan.owner(&step.target);
        if self.run.header().made(owner).next().is_none() {
            return Ok(());
        }
        let place = format!("the tables of {owner}");
        let nodes = WatchedNode::all(self.plan.target(owner), reached);
        let mark = self.run.header().table_mark();
        let unmarked = watch::guarded(&place, "the look at the tables", &nodes, || {
            ask(&reached.database.primary_admin(), async |session| unmarked(session, &mark).await)
        })
        .map_err(|failure| failure.at(&place))?;
        self.run.update(|header| {
            disown(header.tables.entry(owner.to_owned()).or_default(), &unmarked);
        })?;
        Ok(())
    }
}

/// Tells `tables` apart. One that the run has never looked at is not its own; one that it has
/// dropped before is neither.
pub(super) fn split(known: Option<&Known>, tables: &[String]) -> Parts {
    let mut parts = Parts::default();
    for table in tables {
        match known.and_then(|known| known.get(table)) {
            Some(TableOrigin::Made) => parts.made.push(table.clone()),
            Some(TableOrigin::Found) | None => parts.found.push(table.clone()),
            Some(TableOrigin::Dropped) => {}
        }
    }
    parts
}

/// Notes that `dropped` are gone: tables of these names that appear later are somebody else's.
pub(super) fn forget(known: &mut Known, dropped: &[String]) {
    for table in dropped {
        known.insert(table.clone(), TableOrigin::Dropped);
    }
}

impl Parts {
    pub(super) fn told(&self) -> Message {
        match (self.made.is_empty(), self.found.is_empty()) {
            (true, true) => say!(tables_none_left),
            (false, true) => say!(tables_dropped),
            (true, false) => say!(tables_kept),
            (false, false) => say!(
                tables_dropped_and_kept,
                made = self.made.join(", "),
                found = self.found.join(", ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &str) -> Vec<String> {
        words.split_whitespace().map(str::to_owned).collect()
    }

    fn parts(known: &Known, tables: &str) -> (String, String) {
        let parts = split(Some(known), &names(tables));
        (parts.made.join(" "), parts.found.join(" "))
    }

    fn own(made: &str, found: &str) -> (String, String) {
        (made.to_owned(), found.to_owned())
    }

    #[test]
    fn only_what_was_missing_at_the_first_look_is_the_runs_own() {
        let mut known = Known::new();
        let existing = |words: &str| names(words).into_iter().collect::<BTreeSet<_>>();
        look(&mut known, &names("a b"), &existing("a"));
        assert_eq!(parts(&known, "a b c"), own("b", "a c"));
        // A second look finds what the run has made, and a further table.
        look(&mut known, &names("a b c"), &existing("a b"));
        assert_eq!(parts(&known, "a b c"), own("b c", "a"));
        disown(&mut known, &["c".to_owned()].into());
        assert_eq!(parts(&known, "a b c"), own("b", "a c"));
        forget(&mut known, &names("b c"));
        assert_eq!(parts(&known, "a b c"), own("", "a"));
        // Somebody else's table under a name that was dropped.
        look(&mut known, &names("b c"), &existing("c"));
        assert_eq!(parts(&known, "b c"), own("b", "c"));
        assert_eq!(split(None, &names("a")).found, names("a"));
    }

    #[test]
    fn a_cleanup_says_what_it_does() {
        let told =
            |made: &str, found: &str| Parts { made: names(made), found: names(found) }.told();
        assert_eq!(told("a", ""), "tables dropped");
        assert_eq!(told("", "a"), "kept: this run has not made the tables");
        assert_eq!(told("a b", "c"), "dropped: a, b; kept: c, not made by this run");
        assert_eq!(told("", ""), "nothing left to drop");
    }
}
