//! The chapters of the results.

use crate::model::Experiment;
use crate::text::Message;
use dyno_facts::say;
use serde::Serialize;

/// A chapter of the results: the experiments of one family of workloads.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Chapter {
    /// Such as `6.1`.
    pub number: String,
    /// Its heading.
    pub title: Message,
    /// Numbers of its experiments in the paper, from 0.
    pub experiments: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Sysbench,
    Pgbench,
    Tpcc,
    Tpch,
    Other,
}

impl Family {
    /// In the order of the chapters.
    const ALL: [Family; 5] =
        [Family::Sysbench, Family::Pgbench, Family::Tpcc, Family::Tpch, Family::Other];

    pub(super) fn of(experiment: &Experiment) -> Family {
        let test = experiment.test.to_ascii_lowercase();
        match experiment {
            Experiment { tpcc: Some(_), .. } => Family::Tpcc,
            Experiment { tpch: Some(_), .. } => Family::Tpch,
            _ if test.contains("tpcc") || test.contains("tpc-c") => Family::Tpcc,
            _ if test.contains("tpch") || test.contains("tpc-h") => Family::Tpch,
            _ if test.contains("pgbench") => Family::Pgbench,
            _ if test.contains("sysbench") || test.contains("oltp") => Family::Sysbench,
            _ => Family::Other,
        }
    }

    fn title(self) -> Message {
        match self {
            Family::Sysbench => say!(sysbench_oltp),
            Family::Pgbench => Message::from("pgbench"),
            Family::Tpcc => say!(tpc_c_like),
            Family::Tpch => say!(tpc_h_like),
            Family::Other => say!(other_workloads),
        }
    }
}

/// The chapters that have experiments, numbered as they come.
pub(super) fn chapters(experiments: &[Experiment]) -> Vec<Chapter> {
    let of = |family: Family| -> Vec<usize> {
        let own = experiments.iter().enumerate().filter(|(_, e)| Family::of(e) == family);
        own.map(|(index, _)| index).collect()
    };
    let all = Family::ALL.into_iter().map(|family| (family, of(family)));
    let known = all.filter(|(_, experiments)| !experiments.is_empty());
    let chapter = |(index, (family, experiments)): (usize, (Family, Vec<usize>))| Chapter {
        number: format!("6.{}", index + 1),
        title: family.title(),
        experiments,
    };
    known.enumerate().map(chapter).collect()
}
