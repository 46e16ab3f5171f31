//! Who talks to whom: load generators on the left, targets with their nodes on the right.

use super::{Figure, colour};
use crate::format;
use crate::model::{Paper, Target, Trial};
use crate::say;
use crate::svg::{escape, open, width_of};
use crate::text::{Lang, Text};
use dyno_measure::NodeConditions;
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const LINE: f64 = 17.0;
const LEFT_WIDTH: f64 = 250.0;
const RIGHT_WIDTH: f64 = 430.0;
const GAP: f64 = 18.0;

/// A box with its lines; the first is its name.
struct Block {
    lines: Vec<String>,
    class: String,
    top: f64,
}

impl Block {
    fn height(&self) -> f64 {
        self.lines.len() as f64 * LINE + 16.0
    }

    fn middle(&self) -> f64 {
        self.top + self.height() / 2.0
    }

    fn write(&self, out: &mut String, left: f64, width: f64) {
        let _ = write!(
            out,
            "<rect class=\"block {}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" rx=\"4\"/>",
            self.class,
            self.top,
            self.height()
        );
        for (index, line) in self.lines.iter().enumerate() {
            let class = if index == 0 { "name" } else { "tick" };
            let _ = write!(
                out,
                "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                left + 10.0,
                self.top + 20.0 + LINE * index as f64,
                escape(&shortened(line, width - 20.0))
            );
        }
    }
}

/// `None` of a paper without targets.
pub(crate) fn figure(paper: &Paper, lang: Lang) -> Option<Figure> {
    if paper.targets.is_empty() {
        return None;
    }
    let generators = stacked(paper.runs.iter().map(|run| generator(run, lang)));
    let targets = stacked(paper.targets.iter().map(|target| node(paper, target, lang)));
    let bottom = |blocks: &[Block]| blocks.last().map_or(0.0, |last| last.top + last.height());
    let height = bottom(&generators).max(bottom(&targets)) + 4.0;
    let description = say!("Load generators and targets, and how they are connected");
    let mut out = open(WIDTH, height, description.in_lang(lang), "");
    let right = WIDTH - RIGHT_WIDTH - 2.0;
    // Few generators stand in the middle of many targets.
    let shift = (bottom(&targets) - bottom(&generators)).max(0.0) / 2.0;
    let generators: Vec<Block> =
        generators.into_iter().map(|block| Block { top: block.top + shift, ..block }).collect();
    for (target, block) in paper.targets.iter().zip(&targets) {
        let Some(from) = generators.get(target.run - 1) else { continue };
        let (x1, y1, x2, y2) = (LEFT_WIDTH + 2.0, from.middle(), right, block.middle());
        let way = (x2 - x1) * 0.35;
        let _ = write!(
            out,
            "<path class=\"flow {}\" d=\"M{x1:.1},{y1:.1}C{:.1},{y1:.1} {:.1},{y2:.1} {x2:.1},{y2:.1}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            block.class,
            x1 + way,
            x2 - way,
            x2 - 8.0,
            y2 - 6.0,
            escape(&connection(paper, target, lang))
        );
    }
    for block in &generators {
        block.write(&mut out, 2.0, LEFT_WIDTH);
    }
    for block in &targets {
        block.write(&mut out, right, RIGHT_WIDTH);
    }
    out.push_str("</svg>");
    Some(Figure {
        note: String::new(),
        caption: say!("Load generators and targets, and how they are connected")
            .in_lang(lang)
            .to_owned(),
        svgs: vec![out],
        legend: Vec::new(),
    })
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

fn generator(run: &crate::RunFacts, lang: Lang) -> Block {
    let env = &run.header.environment;
    let size = say!(
        "{cores} cores, {memory} GiB",
        cores = env.cores.to_string(),
        memory = format::plain(env.memory_mib / 1024.0)
    );
    let name = match env.host.as_str() {
        "" => say!("load generator"),
        host => say!("load generator {host}", host = host),
    };
    let lines = [name.in_lang(lang), &env.cpu_model, size.in_lang(lang), &env.system];
    let known = lines.into_iter().filter(|line| !line.is_empty());
    Block { lines: known.map(str::to_owned).collect(), class: String::new(), top: 0.0 }
}

fn conditions<'a>(paper: &'a Paper, target: &Target) -> Option<(&'a String, &'a NodeConditions)> {
    let own = paper.trials.iter().filter(|trial| trial.target == target.label);
    let of = |trial: &'a Trial| trial.summary.conditions.nodes.iter().next();
    own.filter_map(of).next()
}

fn node(paper: &Paper, target: &Target, lang: Lang) -> Block {
    let size = match (target.vcpu, target.memory_gib) {
        (Some(vcpu), Some(memory)) => say!(
            "{vcpu} vCPU, {memory} GiB",
            vcpu = format::plain(vcpu),
            memory = format::plain(memory)
        ),
        _ => Text::from(&target.class),
    };
    let mut lines: Vec<String> = vec![target.label.clone()];
    lines.push(target.product.clone());
    lines.push(size.in_lang(lang).to_owned());
    lines.extend(target.urls.iter().cloned());
    if target.same_host {
        lines.push(say!("on the load generator's machine").in_lang(lang).to_owned());
    }
    for replica in conditions(paper, target).map(|node| &node.1.replicas).into_iter().flatten() {
        let copy = say!("copy {name}, {mode}", name = &replica.name, mode = &replica.mode);
        lines.push(copy.in_lang(lang).to_owned());
    }
    lines.retain(|line| !line.is_empty());
    Block { lines, class: colour(paper, &target.label), top: 0.0 }
}

/// How the load generator reaches a target.
fn connection(paper: &Paper, target: &Target, lang: Lang) -> String {
    let Some((_, node)) = conditions(paper, target) else { return String::new() };
    let round_trip = node
        .round_trip_us
        .map(|us| say!("round trip {ms} ms", ms = format::ms(us)).in_lang(lang).to_owned());
    let both = [node.transport.clone(), round_trip];
    both.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A text that fits into so much room.
fn shortened(text: &str, room: f64) -> String {
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
