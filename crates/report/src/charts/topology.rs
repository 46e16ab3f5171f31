//! Who talks to whom: load generators on the left, targets with their nodes on the right.

use super::cluster::Nodes;
use super::{Drawing, colour};
use crate::evidence::{Paper, PaperTarget, RunFacts, Trial};
use crate::format;
use crate::svg::{Anchor, Svg, open, place, text, width_of};
use crate::text::{Lang, Message};
use dyno_facts::{Environment, NodeConditions, ReplicaFacts, Role, Route, say};
use std::collections::BTreeMap;
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const LINE: f64 = 17.0;
const LEFT_WIDTH: f64 = 250.0;
const RIGHT_WIDTH: f64 = 430.0;
const GAP: f64 = 18.0;

/// A box with its lines, the first of which is its name, and the nodes in it.
#[derive(Clone, Default)]
struct Block {
    lines: Vec<String>,
    class: String,
    top: f64,
    nodes: Nodes,
}

impl Block {
    fn height(&self) -> f64 {
        self.lines.len() as f64 * LINE + 16.0 + self.nodes.height()
    }

    fn middle(&self) -> f64 {
        self.top + self.height() / 2.0
    }

    fn write(&self, out: &mut String, left: f64, width: f64) {
        let place = place(left, self.top, width, self.height());
        let _ = write!(out, "<rect class=\"block {}\" {place} rx=\"4\"/>", self.class);
        for (index, line) in self.lines.iter().enumerate() {
            let class = if index == 0 { "name" } else { "tick" };
            let y = self.top + 20.0 + LINE * index as f64;
            text(
                out,
                class,
                left + 10.0,
                y,
                Anchor::Start,
                &shortened(line, (width - 20.0) * CAPITALS),
            );
        }
        let below = self.top + self.lines.len() as f64 * LINE + 14.0;
        self.nodes.write(out, &self.class, left, width, below);
    }
}

/// `None` of a paper without targets.
pub(crate) fn figure(paper: &Paper, lang: Lang) -> Option<Drawing> {
    if paper.targets.is_empty() {
        return None;
    }
    let shown: Vec<&PaperTarget> =
        paper.targets.iter().filter(|target| !is_part(paper, target)).collect();
    let generators: Vec<(Block, usize)> =
        paper.runs.iter().flat_map(|run| generators_of(run, lang)).collect();
    let targets: Vec<TargetBlock> = shown
        .iter()
        .map(|target| TargetBlock {
            block: node(paper, target, lang),
            run: target.run,
            way: connection(paper, target, lang),
        })
        .collect();
    let caption = say!(load_generators_and_targets_and_how).render(lang);
    let has_copies = shown.iter().any(|target| has_copies(target));
    let note = if has_copies { say!(dashed_copies_of_the_primary) } else { Message::default() };
    Some(Drawing {
        note: note.render(lang),
        svgs: vec![Svg::plain(side_by_side(generators, targets, &caption))],
        caption,
        ..Drawing::default()
    })
}

/// A target as it is drawn, the number of its run, and how it is reached.
struct TargetBlock {
    block: Block,
    run: usize,
    way: String,
}

/// Load generators on the left, targets on the right.
fn side_by_side(
    generators: Vec<(Block, usize)>,
    targets: Vec<TargetBlock>,
    description: &str,
) -> String {
    let (machines, owners): (Vec<Block>, Vec<usize>) = generators.into_iter().unzip();
    let generators = stacked(machines.into_iter());
    let blocks = stacked(targets.iter().map(|target| target.block.clone()));
    let bottom = |blocks: &[Block]| blocks.last().map_or(0.0, |last| last.top + last.height());
    let height = bottom(&generators).max(bottom(&blocks)) + 4.0;
    let mut out = open(WIDTH, height, description, "");
    let right = WIDTH - RIGHT_WIDTH - 2.0;
    // Few generators stand in the middle of many targets.
    let shift = (bottom(&blocks) - bottom(&generators)).max(0.0) / 2.0;
    let generators: Vec<Block> =
        generators.into_iter().map(|block| Block { top: block.top + shift, ..block }).collect();
    for (target, block) in targets.iter().zip(&blocks) {
        let own = generators.iter().zip(&owners).filter(|(_, run)| **run == target.run);
        for (from, _) in own {
            let (x1, y1, x2, y2) = (LEFT_WIDTH + 2.0, from.middle(), right, block.middle());
            let way = (x2 - x1) * 0.35;
            let (class, a, b) = (&block.class, x1 + way, x2 - way);
            let _ = write!(
                out,
                "<path class=\"flow {class}\" d=\"M{x1:.1},{y1:.1}C{a:.1},{y1:.1} {b:.1},{y2:.1} {x2:.1},{y2:.1}\"/>"
            );
        }
    }
    // On the side of its end that a line does not come from.
    for (target, block) in targets.iter().zip(&blocks) {
        let end = block.middle();
        let is_above = |(from, run): (&Block, &usize)| *run == target.run && from.middle() < end;
        let comes_from_above = generators.iter().zip(&owners).any(is_above);
        let y = if comes_from_above { end + 15.0 } else { end - 6.0 };
        text(&mut out, "tick over", right - 8.0, y, Anchor::End, &target.way);
    }
    for block in &generators {
        block.write(&mut out, 2.0, LEFT_WIDTH);
    }
    for block in &blocks {
        block.write(&mut out, right, RIGHT_WIDTH);
    }
    out + "</svg>"
}

fn stacked(blocks: impl Iterator<Item = Block>) -> Vec<Block> {
    let mut top = 2.0;
    let place = |block: Block| {
        let placed = Block { top, ..block };
        top += placed.height() + GAP;
        placed
    };
    blocks.map(place).collect()
}

/// A part of a cluster that is drawn itself.
fn is_part(paper: &Paper, target: &PaperTarget) -> bool {
    target.part_of.as_ref().is_some_and(|whole| paper.targets.iter().any(|t| t.label == *whole))
}

/// The load generators of a run, with the number of the run.
fn generators_of(run: &RunFacts, lang: Lang) -> Vec<(Block, usize)> {
    let fleet = &run.header.fleet;
    match fleet.is_empty() {
        true => vec![(generator(&run.header.environment, "", lang), run.number)],
        false => fleet
            .iter()
            .map(|member| (generator(&member.environment, &member.name, lang), run.number))
            .collect(),
    }
}

/// A machine; `member` is its name in a fleet, if it is in one.
fn generator(env: &Environment, member: &str, lang: Lang) -> Block {
    let size = say!(
        cores_cores_memory_gib,
        n = env.cores as u64,
        memory = format::plain(env.memory_mib / 1024.0)
    );
    let known = [member, &env.host].into_iter().filter(|name| !name.is_empty());
    let name = match crate::format::unique(known.collect()).join(", ") {
        name if name.is_empty() => say!(load_generator),
        name => say!(load_generator_host, host = name),
    };
    let lines = [name.render(lang), env.cpu_model.clone(), size.render(lang), env.system.clone()];
    Block { lines: lines.into_iter().filter(|line| !line.is_empty()).collect(), ..Block::default() }
}

fn conditions<'a>(
    paper: &'a Paper,
    target: &PaperTarget,
) -> Option<(&'a String, &'a NodeConditions)> {
    // Where the nodes of a cluster are listed, the one that the others are copies of.
    let front = target.facts.nodes.first().map(|node| node.name.as_str());
    let measured = |label: &String| {
        let of_label = |other: &&PaperTarget| other.label == *label;
        let found = paper.targets.iter().find(of_label);
        *label == target.label || found.and_then(|f| f.part_of.as_ref()) == Some(&target.label)
    };
    let own = paper.trials.iter().filter(|trial| measured(&trial.target));
    let of = |trial: &'a Trial| {
        let nodes = &trial.summary.conditions.nodes;
        front.and_then(|name| nodes.get_key_value(name)).or_else(|| nodes.iter().next())
    };
    own.filter_map(of).next()
}

fn node(paper: &Paper, target: &PaperTarget, lang: Lang) -> Block {
    let size = match (target.facts.vcpu, target.facts.memory_gib) {
        (Some(vcpu), Some(memory)) => {
            say!(vcpu_vcpu_memory_gib, vcpu = format::plain(vcpu), memory = format::plain(memory))
        }
        _ => Message::from(&target.facts.class),
    };
    let mut lines: Vec<String> = vec![target.label.clone()];
    lines.push(target.product.clone());
    lines.push(size.render(lang));
    let is_cluster = target.facts.nodes.len() > 1;
    if !is_cluster {
        lines.push(target.facts.url.to_string());
    }
    lines.extend(parts(paper, target).map(|text| text.render(lang)));
    if is_cluster {
        lines.push(short_route(target.facts.route).render(lang));
    }
    if target.facts.same_host {
        lines.push(say!(on_the_load_generators_machine).render(lang));
    }
    lines.extend(copies(paper, target, is_cluster).iter().map(|text| text.render(lang)));
    lines.retain(|line| !line.is_empty());
    let nodes = if is_cluster { Nodes::of(target, lang) } else { Nodes::default() };
    Block { lines, class: colour(paper, &target.label), top: 0.0, nodes }
}

/// What copies the primary. Of a cluster the nodes are drawn, and the name of a copy is often no more than the
/// port that it has connected from: there the ways of copying are enough.
fn copies(paper: &Paper, target: &PaperTarget, is_cluster: bool) -> Vec<Message> {
    let replicas = conditions(paper, target).map(|node| &node.1.replicas).into_iter().flatten();
    if !is_cluster {
        let copy = |replica: &ReplicaFacts| {
            say!(copy_name_mode, name = &replica.name, mode = &replica.mode)
        };
        return replicas.map(copy).collect();
    }
    let mut modes: BTreeMap<&str, usize> = BTreeMap::new();
    replicas.for_each(|replica| *modes.entry(&replica.mode).or_default() += 1);
    let told = |(mode, n): (&str, usize)| say!(copies_mode_n, mode = mode, n = n.to_string());
    modes.into_iter().map(told).collect()
}

/// With how many of its read-only nodes a cluster was measured, where it was with some of them.
fn parts(paper: &Paper, target: &PaperTarget) -> Option<Message> {
    let is_own = |other: &&PaperTarget| other.part_of.as_ref() == Some(&target.label);
    let count = |part: &PaperTarget| {
        part.facts.nodes.iter().filter(|node| node.role == Role::ReadOnly).count()
    };
    let numbers: Vec<Message> = paper
        .targets
        .iter()
        .filter(is_own)
        .map(|part| Message::verbatim(count(part).to_string()))
        .collect();
    let is_any = !numbers.is_empty();
    is_any.then(|| say!(measured_with_of_its_read_only, numbers = Message::list(&numbers)))
}

/// Whether copies are drawn: behind an endpoint lines are statements.
fn has_copies(target: &PaperTarget) -> bool {
    let has = |role: Role| target.facts.nodes.iter().any(|node| node.role == role);
    has(Role::Primary) && has(Role::ReadOnly) && !has(Role::Endpoint)
}

fn short_route(route: Route) -> Message {
    match route {
        Route::Primary => say!(load_to_the_primary),
        Route::Endpoint => say!(load_through_the_endpoint),
        Route::Split => say!(load_writes_to_the_primary_reads),
        Route::Spread => say!(load_spread_over_the_read_only),
    }
}

/// How the load generator reaches a target.
fn connection(paper: &Paper, target: &PaperTarget, lang: Lang) -> String {
    let Some((_, node)) = conditions(paper, target) else { return String::new() };
    let round_trip =
        node.round_trip_us.map(|us| say!(round_trip_ms, ms = format::ms(us)).render(lang));
    let both = [node.transport.clone(), round_trip];
    both.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Versions have many digits and capitals, which are wider than letters in general.
const CAPITALS: f64 = 0.9;

/// A text that fits into so much room.
pub(super) fn shortened(text: &str, room: f64) -> String {
    if width_of(text) <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        if width_of(&kept) + 2.0 * width_of("m") > room {
            break;
        }
        kept.push(c);
    }
    kept + "\u{2026}"
}
