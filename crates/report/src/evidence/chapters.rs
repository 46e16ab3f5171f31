//! The chapters of the results.

use crate::evidence::Experiment;
use crate::families::FAMILIES;
use crate::text::Message;
use dyno_facts::say;

/// A chapter of the results: the experiments of one family of workloads.
#[derive(Clone, Debug, PartialEq)]
pub struct Chapter {
    /// Such as `6.1`.
    pub number: String,
    pub title: Message,
    /// Numbers of its experiments in the paper, from 0.
    pub experiments: Vec<usize>,
}

/// The chapters that have experiments, numbered as they come; what belongs to no family comes last.
pub(super) fn chapters(experiments: &[Experiment]) -> Vec<Chapter> {
    // A script of pgbench may be called oltp: facts decide before names, and the first family before the others.
    let family = |experiment: &Experiment| {
        let of_facts = FAMILIES.iter().position(|family| family.has_facts(experiment));
        of_facts.or_else(|| FAMILIES.iter().position(|family| family.has(experiment)))
    };
    let of = |wanted: Option<usize>| -> Vec<usize> {
        let own = experiments.iter().enumerate().filter(|(_, e)| family(e) == wanted);
        own.map(|(index, _)| index).collect()
    };
    let families = FAMILIES.iter().enumerate();
    let named = families.map(|(place, family)| (family.title(), of(Some(place))));
    let all = named.chain([(say!(other_workloads), of(None))]);
    let known = all.filter(|(_, experiments)| !experiments.is_empty());
    let chapter = |(index, (title, experiments)): (usize, (Message, Vec<usize>))| Chapter {
        number: format!("6.{}", index + 1),
        title,
        experiments,
    };
    known.enumerate().map(chapter).collect()
}
