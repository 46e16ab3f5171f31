//! Papers about several load generators.

use crate::support::{ReadCell, english, html_texts, number, table};
use crate::synthetic::cluster::cluster;
use dyno_facts::NodeConditions;
use dyno_report::blocks::{Block, PaperTable};
use dyno_report::{Lang, Paper, Point};
use dyno_store::RunData;

/// The paper of a run with two load generators, changed.
fn paper(change: impl Fn(&mut RunData)) -> Paper {
    let mut run = cluster();
    change(&mut run);
    Paper::new(&[run], &[])
}

/// Asserts that a value is known and off by at most a thousandth.
fn near(value: Option<f64>, wanted: f64) {
    let value = value.expect("known");
    assert!((value - wanted).abs() <= wanted.abs() * 1e-3 + 1e-9, "{value} is not {wanted}");
}

/// The load level that was repeated.
fn repeated(paper: &Paper) -> &Point {
    let mut points = paper.experiments[1].points.iter();
    points.find(|point| point.target == "pair" && point.repeats == 2).expect("a point")
}

const ALL: &str = "All together";

/// The caption of the table of load generators.
fn caption(paper: &Paper) -> String {
    format!("Work of each load generator on pair, {} workers", repeated(paper).workers)
}

fn generators_table(paper: &Paper) -> PaperTable {
    table(paper, &caption(paper))
}

/// The words below that table.
fn words(paper: &Paper) -> String {
    let blocks = paper.blocks(Lang::En);
    let caption = caption(paper);
    let place = blocks.iter().position(
        |block| matches!(block, Block::Table(table) if english(&table.caption) == caption),
    );
    let place = place.expect("the table");
    let Block::Paragraph { text, .. } = &blocks[place + 1] else { panic!("no words") };
    english(text)
}

#[test]
fn each_generator_is_shown_with_its_part_and_the_sum_is_the_trials() {
    let paper = paper(|_| {});
    let table = generators_table(&paper);
    let names: Vec<String> = table.rows.iter().map(|row| row.cells[0].english()).collect();
    assert_eq!(names, ["load-1", "load-2", ALL]);
    let value = |name: &str, column: &str| number(&table, name, column);
    near(value("load-1", "share %"), 0.25);
    near(value("load-2", "share %"), 0.75);
    let point = repeated(&paper);
    let trials = paper.trials.iter().filter(|trial| point.trials.contains(&trial.label));
    let trials: Vec<_> = trials.collect();
    assert_eq!(trials.len(), 2);
    let committed: u64 = trials.iter().map(|trial| trial.summary.counts.committed).sum();
    assert_eq!(
        (value(ALL, "Committed"), value(ALL, "Workers")),
        (Some(committed as f64), Some(64.0))
    );
    let parts = ["load-1", "load-2"].iter().filter_map(|name| value(name, "Statements per s"));
    near(value(ALL, "Statements per s"), parts.sum());
    let qps = trials.iter().map(|trial| trial.summary.qps).sum::<f64>() / 2.0;
    near(value(ALL, "Statements per s"), qps);
    // Both trials together.
    near(value("load-2", "CPU of loops s"), 13.0);
    near(value("load-2", "Machine busy %"), 0.375);
    assert_eq!(value("load-2", "Calendar ahead ms"), Some(-3.5), "the farthest, with its sign");
    assert_eq!(value(ALL, "Started late ms"), None);
    assert_eq!(
        words(&paper),
        "2 load generators made the load together, with 64 workers in all. They started within 1.50 ms of each \
         other, with clocks accurate to ± 0.125 ms."
    );
}

#[test]
fn pages_have_the_machines_and_the_parts_in_both_languages() {
    let paper = paper(|_| {});
    let english = paper.html(Lang::En);
    for text in [
        "Work of each load generator on pair, ",
        "Load generators of the fleet of run 1; the machine above only coordinated them",
        "load-2 (10.0.0.12)",
        "All together",
    ] {
        assert!(english.contains(text), "{text}");
    }
    let chinese = html_texts(&paper.html(Lang::Zh));
    assert!(chinese.contains("负载由 2 台压测机共同产生，合计 64 个并发。"));
    let markdown = paper.markdown(Lang::En);
    assert!(markdown.contains("| **All together** |"), "{markdown}");
}

#[test]
fn one_generator_of_a_fleet_is_told_as_one() {
    let paper = paper(|run| {
        for trial in &mut run.trials {
            trial.summary.conditions.members.truncate(1);
        }
    });
    assert_eq!(words(&paper), "One load generator of a fleet made the load, with 16 workers.");
    assert_eq!(number(&generators_table(&paper), "load-1", "share %"), Some(1.0));
}

#[test]
fn papers_say_who_drove_which_nodes() {
    let sentence = "Each load generator drove its own read-only node, and no other.";
    assert_eq!(driven_nodes([&["x"], &["y"]], None), sentence);
    let agrees = "The servers' own counts of reads agree with that to 1.0% of all reads.";
    assert_eq!(driven_nodes([&["x"], &["y"]], Some([260, 740])), format!("{sentence} {agrees}"));
    assert_eq!(
        driven_nodes([&["x", "z"], &["y"]], None),
        "Each load generator drove its own read-only nodes, and no others."
    );
    assert_eq!(
        driven_nodes([&["x", "y"], &["x", "y"]], None),
        "The load generators could not have their own read-only nodes in equal numbers: the workers of \
         each were spread over all 2 of them."
    );
    assert_eq!(driven_nodes([&[], &[]], None), "");
}

/// Returns what a paper says of load generators that drove these nodes, which counted this many reads.
fn driven_nodes(nodes: [&[&str]; 2], counted: Option<[u64; 2]>) -> String {
    let paper = paper(|run| {
        for trial in &mut run.trials {
            let conditions = &mut trial.summary.conditions;
            for (member, nodes) in conditions.members.iter_mut().zip(nodes) {
                member.nodes = nodes.iter().map(|&name| name.to_owned()).collect();
            }
            for (name, reads) in ["x", "y"].into_iter().zip(counted.into_iter().flatten()) {
                let node = NodeConditions { reads: Some(reads), ..NodeConditions::default() };
                conditions.nodes.insert(name.to_owned(), node);
            }
        }
    });
    let html = paper.html(Lang::En);
    assert_eq!(html.contains(">Nodes driven</th>"), !nodes[0].is_empty());
    let sentences = words(&paper);
    sentences.split_once("0.125 ms.").expect("how they started").1.trim_start().to_owned()
}

#[test]
fn checks_of_the_load_generator_name_the_one_of_several() {
    let paper = paper(|run| {
        for trial in &mut run.trials {
            let Some(member) = trial.summary.conditions.members.get_mut(1) else { continue };
            member.host_load.as_mut().expect("known").cpu_share = 0.97;
            member.conditions.hiccup_p999_us = Some(25_000.0);
            member.conditions.network_share = Some(0.9);
            member.conditions.headroom = Some(1.5);
        }
    });
    for (id, value) in [
        ("generator-cpu-95", "load-2: 97%"),
        ("hiccups", "load-2: 25.0 ms"),
        ("network", "load-2: 90%"),
        ("headroom", "load-2: 1.5 times the measured rate"),
    ] {
        let check = paper.checks.iter().find(|check| check.id == id).expect("a check");
        let is_found =
            check.findings.iter().any(|finding| finding.value.to_string().contains(value));
        assert!(is_found, "{id}: {:?}", check.findings);
    }
    let paper = self::paper(|run| {
        for trial in &mut run.trials {
            let Some(member) = trial.summary.conditions.members.get_mut(1) else { continue };
            member.conditions.network_share = Some(0.9);
            member.lost = Some("It answers no more.".into());
        }
    });
    let findings = ["generator-lost", "network"].map(|id| {
        let mut checks = paper.checks.iter();
        !checks.find(|check| check.id == id).expect("a check").findings.is_empty()
    });
    assert_eq!(findings, [true, false], "of one that is lost nothing is known");
}
