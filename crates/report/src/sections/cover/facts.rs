//! The strip of four facts: systems, data against memory, load, durability.

use crate::blocks::{Fact, Span};
use crate::evidence::{BEYOND_MEMORY, Experiment, IN_MEMORY, Paper, PaperTarget};
use crate::families::family_of;
use crate::format::{self, unique};
use crate::sections::{clauses, listed, names};
use crate::text::Message;
use dyno_facts::{DataFacts, say};

/// So many lines stand below each name.
const MOST: usize = 4;

pub(super) fn facts(paper: &Paper) -> Vec<Fact> {
    vec![
        of(say!(systems), systems(paper)),
        of(say!(data_against_memory), data(paper)),
        of(say!(load), load(paper)),
        of(say!(durability_2), durability(paper)),
    ]
}

/// Without anything known the fact says so.
fn of(name: Message, mut lines: Vec<Message>) -> Fact {
    if lines.is_empty() {
        lines.push(say!(not_known));
    }
    let more = lines.len().saturating_sub(MOST);
    if more > 0 {
        lines.truncate(MOST);
        lines.push(say!(and_more, n = more));
    }
    let first = lines.remove(0);
    Fact { name, value: vec![Span::plain(first)], below: lines }
}

/// Targets that were measured; all where none was.
fn measured(paper: &Paper) -> Vec<&PaperTarget> {
    let is_measured =
        |target: &&PaperTarget| paper.trials.iter().any(|trial| trial.target == target.label);
    let own: Vec<&PaperTarget> = paper.targets.iter().filter(is_measured).collect();
    if own.is_empty() { paper.targets.iter().collect() } else { own }
}

fn systems(paper: &Paper) -> Vec<Message> {
    let line = |target: &PaperTarget| {
        let product = shown_product(&target.product);
        let is_told = product.starts_with(&target.label);
        let label = (!is_told).then_some(&target.label).into_iter();
        let product = Some(&product).filter(|product| !product.is_empty());
        let mut parts: Vec<Message> = label.chain(product).map(Message::verbatim).collect();
        if !target.facts.class.is_empty() {
            parts.push(Message::verbatim(&target.facts.class));
        }
        Message::joined(&parts, ", ", "，")
    };
    unique(measured(paper).into_iter().map(line).collect())
}

/// Without the package that it came in: `MariaDB 10.11.14`, `ShardingSphere-Proxy 5.1.0 (MariaDB 10.11.19)`.
pub(in crate::sections) fn shown_product(words: &str) -> String {
    const PROXY: &str = "ShardingSphere-Proxy ";
    if let Some((server, version)) = words.split_once(PROXY) {
        return format!("{PROXY}{version} ({})", shown_product(server));
    }
    let words = words.split(" (").next().unwrap_or_default().split(' ');
    let is_version = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let word = |word: &str| match is_version(word) {
        true => word.split('-').next().unwrap_or_default().to_owned(),
        false => word.to_owned(),
    };
    words.map(word).collect::<Vec<_>>().join(" ")
}

/// Sizes are told of each experiment's data; alike ones once.
fn data(paper: &Paper) -> Vec<Message> {
    let points = paper.experiments.iter().flat_map(|experiment| &experiment.points);
    let known: Vec<&DataFacts> =
        points.filter_map(|point| Some(&point.data.as_ref()?.facts)).collect();
    let ratios: Vec<f64> = known.iter().filter_map(|data| data.size_to_memory()).collect();
    let sizes: Vec<f64> =
        known.iter().filter_map(|data| data.size_bytes).map(|b| b as f64).collect();
    let ends = |values: &[f64]| {
        let low = values.iter().copied().reduce(f64::min)?;
        Some((low, values.iter().copied().reduce(f64::max)?))
    };
    let mut lines = Vec::new();
    if let Some((low, high)) = ends(&ratios) {
        let range = between(format::short(low), format::short(high));
        let place = |ratio: f64| match ratio {
            ratio if ratio <= IN_MEMORY => say!(in_memory),
            ratio if ratio <= BEYOND_MEMORY => say!(at_the_edge),
            _ => say!(larger_than_the_buffers),
        };
        lines.push(say!(times_the_memory, range = range));
        lines.push(clauses(&unique(vec![place(low), place(high)])));
    }
    if let Some((low, high)) = ends(&sizes) {
        let range = between(format::bytes(low), format::bytes(high));
        lines.push(match lines.is_empty() {
            true => say!(data_of_unknown_share, range = range),
            false => say!(data_of, range = range),
        });
    }
    lines
}

fn load(paper: &Paper) -> Vec<Message> {
    let measured = || paper.experiments.iter().filter(|own| !own.points.is_empty());
    let tests = unique(measured().map(|own| own.test.clone()).filter(|t| !t.is_empty()).collect());
    let mut lines = Vec::new();
    match tests.as_slice() {
        [] => {}
        few if few.len() <= 3 => lines.push(names(few)),
        // As many as have a name on this page.
        _ => {
            let title = |own: &Experiment| {
                family_of(own).map_or_else(|| say!(other_workloads), |family| family.title())
            };
            let families = listed(&unique(measured().map(title).collect()));
            let n = measured().count();
            lines.push(say!(experiments_of_families, n = n, families = families));
        }
    }
    let clients = measured().filter(|own| !own.is_pass()).flat_map(|own| &own.points);
    let (low, high) = clients.fold((f64::INFINITY, 0.0_f64), |(low, high), point| {
        (low.min(point.load()), high.max(point.load()))
    });
    if high > 0.0 {
        let range = between(format::whole(low), format::whole(high));
        let has_terminals = measured().filter(|own| !own.is_pass()).all(|own| own.has_terminals());
        lines.push(match has_terminals {
            true => say!(range_of_terminals, n = range),
            false => say!(range_of_workers, n = range),
        });
    }
    let windows = paper.trials.iter().map(|trial| trial.summary.window_s).filter(|s| *s > 0.0);
    let (low, high) = windows
        .fold((f64::INFINITY, 0.0_f64), |(low, high), window| (low.min(window), high.max(window)));
    if high > 0.0 {
        lines.push(say!(trials_with_windows, n = paper.trials.len(), windows = seconds(low, high)));
    } else if !paper.trials.is_empty() {
        lines.push(say!(n_trials_2, n = paper.trials.len()));
    }
    lines
}

/// What a commit survives on each target, alike ones together.
fn durability(paper: &Paper) -> Vec<Message> {
    let words = |target: &PaperTarget| {
        let weak: Vec<Message> = target
            .settings
            .iter()
            .filter(|row| row.is_weak)
            .map(|row| Message::verbatim(format!("{} = {}", row.name, row.value)))
            .collect();
        match (&target.facts.durability, weak.is_empty(), target.settings.is_empty()) {
            (_, false, _) => say!(a_commit_may_be_lost, settings = listed(&weak)),
            (Some(stated), ..) => say!(stated_durability, stated = stated),
            (None, true, false) => say!(commits_survive_a_power_loss),
            (None, true, true) => say!(not_known),
        }
    };
    let mut groups: Vec<(Message, Vec<&str>)> = Vec::new();
    for target in measured(paper) {
        let own = words(target);
        match groups.iter_mut().find(|(known, _)| *known == own) {
            Some((_, labels)) => labels.push(&target.label),
            None => groups.push((own, vec![&target.label])),
        }
    }
    match groups.as_slice() {
        [(only, _)] => vec![only.clone()],
        all => {
            let line = |(words, labels): &(Message, Vec<&str>)| {
                say!(labels_words, labels = names(labels), words = words)
            };
            all.iter().map(line).collect()
        }
    }
}

/// One end where both are shown alike.
fn between(low: String, high: String) -> Message {
    if low == high { low.into() } else { say!(low_to_high, low = low, high = high) }
}

/// Lengths of windows.
pub(super) fn seconds(low: f64, high: f64) -> Message {
    let shown = |seconds: f64| match seconds >= 10.0 {
        true => format::whole(seconds),
        false => format::plain((seconds * 10.0).round() / 10.0),
    };
    say!(n_seconds, range = between(shown(low), shown(high)))
}
