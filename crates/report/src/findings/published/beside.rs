//! Results beside the published rows that are nearest to how they were measured.

use super::differences::{Here, differences};
use crate::evidence::counterpart;
use crate::evidence::{BesidePublished, Evidence, Experiment, PaperTarget, PerVcpu, Point};
use crate::findings::comparison::published_metric;
use crate::text::Message;
use dyno_facts::PublishedRow;

/// The metrics that are told beside published ones, in this order.
const METRICS: [&str; 4] = ["tps", "qps", "data_qps", "tpmc"];

/// Every target of every experiment beside its rows. Seconds of statements stand in tables of their families.
pub(crate) fn beside(evidence: &Evidence) -> Vec<BesidePublished> {
    let mut found = Vec::new();
    for (index, experiment) in evidence.experiments.iter().enumerate() {
        for target in evidence.targets.iter().filter(|target| is_in(experiment, target)) {
            let side = PublishedSide { evidence, index, experiment, target };
            found.extend(side.rows());
        }
    }
    found
}

fn is_in(experiment: &Experiment, target: &PaperTarget) -> bool {
    !experiment.is_pass() && experiment.points.iter().any(|p| p.target == target.label)
}

/// One target in one experiment.
struct PublishedSide<'a> {
    evidence: &'a Evidence,
    index: usize,
    experiment: &'a Experiment,
    target: &'a PaperTarget,
}

impl<'a> PublishedSide<'a> {
    fn rows(&self) -> Vec<BesidePublished> {
        let mut found = Vec::new();
        for published in &self.experiment.published {
            for metric in METRICS {
                let rows = published.table.rows.iter();
                let rows: Vec<&PublishedRow> =
                    rows.filter(|row| row.metrics.get(metric).is_some_and(|v| *v > 0.0)).collect();
                let named = |row: &&&PublishedRow| row.targets.contains(&self.target.facts.name);
                let mut own: Vec<&PublishedRow> = rows.iter().filter(named).copied().collect();
                let is_named = !own.is_empty();
                if !is_named {
                    own.extend(self.nearest(&rows));
                }
                let one = |row| self.one(&published.table.title, row, metric, is_named);
                found.extend(own.into_iter().filter_map(one));
            }
        }
        found
    }

    /// The point that a row is held against: the row's own load level, else the target's best.
    fn point(&self, row: Option<&PublishedRow>) -> Option<&'a Point> {
        let of_row = row.and_then(|row| {
            let point = counterpart(self.experiment, row, &self.target.facts.name)?;
            (point.target == self.target.label).then_some(point)
        });
        let own = self.experiment.points.iter();
        let is_usable = |p: &&Point| p.status == "complete" && !p.has_fault;
        let own = own.filter(|p| p.target == self.target.label).filter(is_usable);
        of_row
            .or_else(|| own.max_by(|a, b| a.throughput().median.total_cmp(&b.throughput().median)))
    }

    /// The row with the nearest size: virtual CPUs count first, then memory, then workers.
    fn nearest(&self, rows: &[&'a PublishedRow]) -> Option<&'a PublishedRow> {
        let point = self.point(None)?;
        let vcpu = vcpu(self.evidence, self.target);
        let distance = |row: &PublishedRow| {
            let far = |here: Option<f64>, there: Option<f64>| match (here, there) {
                (Some(here), Some(there)) if here > 0.0 && there > 0.0 => (here / there).ln().abs(),
                _ => 0.0,
            };
            100.0 * far(vcpu, row.vcpu())
                + 10.0 * far(self.target.facts.memory_gib, row.number("memory_gib"))
                + far(Some(point.load()), row.workers())
        };
        rows.iter().copied().min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }

    fn one(
        &self,
        table: &Message,
        row: &PublishedRow,
        metric: &str,
        is_named: bool,
    ) -> Option<BesidePublished> {
        let point = self.point(Some(row))?;
        let published = *row.metrics.get(metric)?;
        let measured = point.metric(metric)?;
        let own_vcpu = vcpu(self.evidence, self.target);
        let per_vcpu = own_vcpu.zip(row.vcpu()).map(|(here, there)| {
            let (measured, published) = (measured.median / here, published / there);
            let ratio = measured / published;
            PerVcpu { vcpu_here: here, vcpu_there: there, measured, published, ratio }
        });
        let here = Here {
            experiment: self.experiment,
            target: self.target,
            point,
            vcpu: own_vcpu,
            window_s: self.experiment.shortest_window_s,
        };
        Some(BesidePublished {
            experiment_index: self.index,
            experiment: self.experiment.title.clone(),
            target: self.target.label.clone(),
            table: table.clone(),
            row: row.label.clone(),
            is_named,
            metric: published_metric(metric),
            measured,
            repeats: point.repeats,
            published,
            ratio: measured.median / published,
            per_vcpu,
            differences: differences(&here, row),
            checks: point.checks.clone(),
        })
    }
}

/// The virtual CPUs of a target: those that are stated; of one that shares the load generator's
/// machine, that machine's.
fn vcpu(evidence: &Evidence, target: &PaperTarget) -> Option<f64> {
    let machine = || {
        let run = evidence.runs.iter().find(|run| run.number == target.run)?;
        target.facts.same_host.then_some(run.header.environment.cores as f64)
    };
    target.facts.vcpu.or_else(machine).filter(|vcpu| *vcpu > 0.0)
}
