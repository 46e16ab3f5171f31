//! Targets and load generators.

use super::{clauses, known, listed};
use crate::blocks::{Blocks, Cell, PaperRows, Span, TextLine, code};
use crate::charts::{Drawing, topology};
use crate::evidence::node_role;
use crate::evidence::{Paper, PaperTarget, RunFacts};
use crate::format::{
    self,
    NumberFormat::{Plain, Right, Whole},
    unique,
};
use crate::text::{Lang, Message};
use dyno_facts::{Environment, LogInFacts, TargetNode, say};

pub(super) fn blocks(paper: &Paper, lang: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.section("3", say!(environment), "environment");
    let drawn = topology::figure(paper, lang).into_iter();
    let is_low = |drawing: &Drawing| drawing.svgs.iter().all(|svg| svg.size().1 <= HIGHEST_SHORT);
    blocks.figures(drawn.filter(|drawing| !paper.is_short() || is_low(drawing)));
    blocks.table(targets(paper));
    for target in &paper.targets {
        let facts = &target.facts;
        let text = Message::either(&facts.description, &facts.description_zh);
        if !text.is_empty() {
            blocks.paragraph(say!(labels_words, labels = &target.label, words = text));
        }
    }
    let has_tables = !is_of_several(paper);
    for target in paper.targets.iter().filter(|own| has_tables && has_own_nodes(paper, own)) {
        blocks.table(nodes(target));
        blocks.fine(target.route_words.clone().unwrap_or_default());
    }
    blocks.table(machines(say!(load_generator_2), say!(run), &of_runs(paper)));
    for run in &paper.runs {
        let fleet = &run.header.fleet;
        let rows: Vec<(String, Environment)> =
            fleet.iter().map(|one| (one.name.clone(), one.environment.clone())).collect();
        let number = run.number.to_string();
        let title = say!(load_generators_of_the_fleet_of, number = number);
        blocks.table(machines(title, say!(load_generator_2), &rows));
    }
    if paper.runs.len() > 1 {
        blocks.table(differing(paper));
    }
    for target in paper.targets.iter().filter(|target| !target.facts.stated.is_empty()) {
        let head = say!(stated_for_not_read, target = &target.label);
        let mut line: TextLine = vec![Span::plain(head)];
        for (place, (name, value)) in target.facts.stated.iter().enumerate() {
            let blank = if place == 0 { "" } else { "; " };
            line.extend([Span::plain(blank), code(name), Span::plain(format!(" {value}"))]);
        }
        blocks.fine(line);
    }
    blocks
}

/// Higher drawings take a page of their own, which only the full edition has.
const HIGHEST_SHORT: f64 = 420.0;

/// The short edition of several runs: what each of their targets has in full stands in the full one.
pub(super) fn is_of_several(paper: &Paper) -> bool {
    paper.is_short() && paper.runs.len() > 1
}

/// The load generators of the runs; those that were on one machine stand in one row.
fn of_runs(paper: &Paper) -> Vec<(String, Environment)> {
    fn shown(env: &Environment) -> ([&str; 5], [f64; 2]) {
        let words = [&env.host, &env.system, &env.kernel, &env.loops_io, &env.cpu_model];
        (words.map(String::as_str), [f64::from(env.cores), env.memory_mib])
    }
    let mut rows: Vec<(String, Environment)> = Vec::new();
    for run in &paper.runs {
        let own = &run.header.environment;
        match rows.iter_mut().find(|(_, known)| shown(known) == shown(own)) {
            Some((runs, _)) => runs.extend([", ", &run.number.to_string()]),
            None => rows.push((run.number.to_string(), own.clone())),
        }
    }
    rows
}

/// The nodes of a part of a cluster stand with the cluster.
fn has_own_nodes(paper: &Paper, target: &PaperTarget) -> bool {
    let is_there = |whole: &String| paper.targets.iter().any(|other| other.label == *whole);
    !target.facts.nodes.is_empty() && !target.part_of.as_ref().is_some_and(is_there)
}

fn machine(same_host: bool) -> Message {
    if same_host { say!(the_load_generators_own) } else { say!(another_one) }
}

fn log_in(found: Option<&LogInFacts>) -> Message {
    let Some(LogInFacts { tls, is_verified, method }) = found else { return Message::default() };
    match tls {
        None => say!(log_in_without_tls, method = method),
        Some(tls) if *is_verified => say!(log_in_verified, method = method, tls = tls),
        Some(tls) => say!(log_in_unverified, method = method, tls = tls),
    }
}

fn targets(paper: &Paper) -> PaperRows<&PaperTarget> {
    PaperRows::new(say!(targets), &paper.targets)
        .look("text")
        .text(say!(target_2), |target| {
            Cell::from(&target.label).with(clauses(&other_names(target)))
        })
        .text(say!(product_and_version), |target| known(&target.product))
        .text(say!(address), |target| match target.facts.nodes.len() {
            0 => Message::from(target.facts.url.to_string()),
            n => say!(n_nodes, n = n.to_string()),
        })
        .text(say!(class), |target| match target.facts.class.as_str() {
            "" => say!(not_stated),
            class => Message::from(class),
        })
        .col(say!(vcpu), Plain, |target| target.facts.vcpu)
        .col(say!(memory_gib_2), Plain, |target| target.facts.memory_gib)
        .col(say!(price_per_hour), Right, |target| {
            let price = target.facts.price.as_ref();
            price.map(|price| format!("{} {}", format::plain(price.per_hour), price.currency))
        })
        .text(say!(machine), |target| machine(target.facts.same_host))
        .when(paper.targets.iter().any(|target| target.facts.log_in.is_some()), |table| {
            table.text(say!(log_in), |target| log_in(target.facts.log_in.as_ref()))
        })
}

/// Its names in the suite and on the command line, where the paper calls it by another.
fn other_names(target: &PaperTarget) -> Vec<Message> {
    let facts = &target.facts;
    let names = [Message::either(&facts.title, &facts.title_zh), Message::verbatim(&facts.name)];
    let is_label = |name: &Message| Lang::ALL.iter().any(|lang| name.render(*lang) == target.label);
    unique(names.into_iter().filter(|name| !name.is_empty() && !is_label(name)).collect())
}

fn nodes(target: &PaperTarget) -> PaperRows<&TargetNode> {
    PaperRows::new(say!(nodes_of_target, target = &target.label), &target.facts.nodes)
        .look("text")
        .text(say!(node), |node| &node.name)
        .text(say!(role), |node| node_role(node.role.name()))
        .text(say!(product_and_version), |node| {
            known(format!("{} {}", node.product, node.version).trim())
        })
        .text(say!(address), |node| node.url.to_string())
        .text(say!(machine), |node| machine(node.same_host))
        .when(target.facts.nodes.iter().any(|node| node.log_in.is_some()), |table| {
            table.text(say!(log_in), |node| log_in(node.log_in.as_ref()))
        })
}

/// What is not the same in all runs, a column for each fact.
fn differing(paper: &Paper) -> PaperRows<&RunFacts> {
    let products = |run: &RunFacts| {
        let own = paper.targets.iter().filter(|target| target.run == run.number);
        listed(&unique(own.map(|target| known(&target.product)).collect::<Vec<_>>()))
    };
    let shrink = |run: &RunFacts| run.header.plan.as_ref().map_or(1.0, |plan| plan.shrink);
    type Of<'a> = Box<dyn Fn(&RunFacts) -> Message + 'a>;
    let environment = |of: fn(&Environment) -> Message| -> Of<'_> {
        Box::new(move |run| of(&run.header.environment))
    };
    let facts: [(Message, Of<'_>); 10] = [
        (say!(run_began), Box::new(|run| Message::verbatim(&run.header.started_at))),
        (say!(suite), Box::new(|run| Message::verbatim(&run.header.suite))),
        (say!(share_of_full_size), Box::new(move |run| format::plain(shrink(run)).into())),
        (say!(systems), Box::new(products)),
        (say!(load_generator_2), environment(|env| known(&env.host))),
        (say!(processor), environment(|env| known(&env.cpu_model))),
        (say!(cores_2), environment(|env| format::plain(env.cores as f64).into())),
        (say!(kernel), environment(|env| known(&env.kernel))),
        (say!(version_of_dyno), environment(|env| Message::verbatim(&env.dyno_version))),
        (say!(seed_2), Box::new(|run| run.header.seed.to_string().into())),
    ];
    let runs = &paper.runs;
    let table = PaperRows::new(say!(what_differs_between_the_runs), runs.iter()).look("text").col(
        say!(run),
        Whole,
        |run| run.number,
    );
    let differs = |of: &Of<'_>| runs.iter().any(|run| of(run) != of(&runs[0]));
    facts.iter().filter(|(_, of)| differs(of)).fold(table, |table, (name, of)| table.text(name, of))
}

fn machines(
    caption: Message,
    title: Message,
    rows: &[(String, Environment)],
) -> PaperRows<&(String, Environment)> {
    PaperRows::new(caption, rows)
        .look("text")
        .text(title, |(name, _)| name)
        .text(say!(host), |(_, env)| known(&env.host))
        .text(say!(system), |(_, env)| known(&env.system))
        .text(say!(kernel), |(_, env)| known(&env.kernel))
        .text(say!(loops_io), |(_, env)| known(&env.loops_io))
        .text(say!(processor), |(_, env)| known(&env.cpu_model))
        .col(say!(cores_2), Whole, |(_, env)| env.cores as f64)
        .col(say!(memory_mib), Whole, |(_, env)| env.memory_mib)
}
