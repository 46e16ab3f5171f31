//! What generators and servers used during the trials.

use crate::evidence::Trial;
use dyno_facts::NodeRow;

/// What generators and servers used.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resources {
    /// What the nodes said of themselves, by trial and node; empty where they were not asked.
    pub nodes: Vec<NodeUse>,
}

/// What a node did in the window of a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeUse {
    /// Label of the trial.
    pub trial: String,
    /// Name of its experiment.
    pub experiment: String,
    /// Label of its target.
    pub target: String,
    pub node: String,
    /// Times that it was asked in the window.
    pub samples: usize,
    /// Sessions that execute something.
    pub active_sessions: Option<Use>,
    /// Sessions that wait for a lock.
    pub waiting_sessions: Option<Use>,
    /// Share of the machine's CPU, 0 to 1.
    pub cpu_share: Option<Use>,
    /// Pages read per second.
    pub pages_read_per_s: Option<Use>,
    /// Pages written per second.
    pub pages_written_per_s: Option<Use>,
    /// Bytes of log written per second.
    pub log_bytes_per_s: Option<Use>,
    /// Dirty share of the memory for data, 0 to 1.
    pub dirty_share: Option<Use>,
    /// Replica lag, seconds.
    pub lag_s: Option<Use>,
}

/// A quantity over the window of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Use {
    /// Arithmetic mean of the samples.
    pub mean: f64,
    /// The largest.
    pub max: f64,
}

impl Use {
    fn of(values: impl Iterator<Item = f64>) -> Option<Use> {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let max = values.iter().copied().reduce(f64::max)?;
        Some(Use { mean: values.iter().sum::<f64>() / values.len() as f64, max })
    }
}

pub(super) fn resources(trials: &[Trial]) -> Resources {
    let mut nodes = Vec::new();
    for trial in trials {
        let rows = &trial.nodes;
        let mut names: Vec<&str> = Vec::new();
        for row in rows {
            if !names.contains(&row.node.as_str()) {
                names.push(&row.node);
            }
        }
        for name in names {
            let own: Vec<&NodeRow> = rows.iter().filter(|row| row.node == name).collect();
            nodes.push(node(trial, name, &own));
        }
    }
    Resources { nodes }
}

fn node(trial: &Trial, name: &str, rows: &[&NodeRow]) -> NodeUse {
    let to_s = trial.summary.window_s;
    let is_inside = |row: &NodeRow| row.at_s >= 0.0 && row.at_s <= to_s + 0.5;
    let level = |of: fn(&NodeRow) -> Option<f64>| {
        Use::of(rows.iter().filter(|row| is_inside(row)).filter_map(|row| of(row)))
    };
    // Counters are growth since the line before.
    let rate = |of: fn(&NodeRow) -> Option<f64>| {
        let pairs = rows.windows(2).filter(|pair| is_inside(pair[1]));
        Use::of(pairs.filter_map(|pair| {
            let length_s = pair[1].at_s - pair[0].at_s;
            (length_s > 0.0).then(|| of(pair[1])).flatten().map(|growth| growth / length_s)
        }))
    };
    NodeUse {
        trial: trial.label.clone(),
        experiment: trial.summary.experiment.clone(),
        target: trial.target.clone(),
        node: name.to_owned(),
        samples: rows.iter().filter(|row| is_inside(row)).count(),
        active_sessions: level(|row| row.active_sessions),
        waiting_sessions: level(|row| row.waiting_sessions),
        cpu_share: level(|row| row.cpu_share),
        pages_read_per_s: rate(|row| row.pages_read),
        pages_written_per_s: rate(|row| row.pages_written),
        log_bytes_per_s: rate(|row| row.log_bytes),
        dirty_share: level(|row| row.dirty_share),
        lag_s: level(|row| row.lag_s),
    }
}
