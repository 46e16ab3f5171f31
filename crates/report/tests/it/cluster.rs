//! Papers about targets with several nodes.

use crate::support::{ReadCell, ReadTable, elements, english, golden, number, table};
use crate::synthetic::cluster::cluster;
use dyno_report::blocks::PaperTable;
use dyno_report::{Lang, Paper};
use dyno_store::RunData;

/// The paper of a run on clusters, changed.
fn paper(change: impl Fn(&mut RunData)) -> Paper {
    let mut run = cluster();
    change(&mut run);
    Paper::new(&[run], &[])
}

/// Asserts that a number is off by at most a thousandth.
fn near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() <= wanted.abs() * 1e-3 + 1e-9, "{found} is not {wanted}");
}

/// The work of each node at the best load level of a target.
fn nodes_table(paper: &Paper, target: &str) -> PaperTable {
    table(paper, &format!("Work of each node of {target}"))
}

/// The names of rows.
fn names(table: &PaperTable) -> Vec<String> {
    table.rows.iter().map(|row| row.cells[0].english()).collect()
}

/// Numbers of all nodes without their sum.
fn numbers(table: &PaperTable, column: &str) -> Vec<f64> {
    let names = names(table).into_iter().filter(|name| name != ALL);
    names.filter_map(|name| number(table, &name, column)).collect()
}

const ALL: &str = "All nodes";

#[test]
fn the_paper_of_clusters_is_as_recorded() {
    let paper = paper(|_| {});
    golden("cluster.md", &crate::support::recorded(paper.clone()).markdown(Lang::En));
    for lang in Lang::ALL {
        elements(&paper.html(lang));
    }
}

#[test]
fn targets_that_only_trials_name_are_there_once() {
    let paper = paper(|run| run.header.targets.clear());
    let names = paper.targets.iter().map(|target| target.facts.name.as_str());
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    assert_eq!(names, ["cluster-ro1", "cluster-ro2", "cluster-ro4", "pair", "sharded"]);
}

#[test]
fn a_proxy_that_keeps_the_isolation_of_its_shards_is_named() {
    let passed_on = ["pgpool-II", "ShardingSphere-Proxy"].map(|product| {
        let paper = paper(|run| {
            for target in run.header.targets.iter_mut().filter(|target| target.name == "sharded") {
                product.clone_into(&mut target.product);
            }
        });
        !paper.markdown(Lang::En).contains("does not pass on the level of a session")
    });
    assert_eq!(passed_on, [true, false]);
}

#[test]
fn a_scale_out_series_is_held_against_its_fewest_nodes() {
    let paper = paper(|_| {});
    let rows = &paper.experiments[0].node_scaling;
    let row_facts: Vec<(u32, &str, bool)> =
        rows.iter().map(|row| (row.nodes, row.cluster.as_str(), row.is_stated)).collect();
    assert_eq!(row_facts, [(1, "cluster", false), (2, "cluster", false), (4, "cluster", false)]);
    let [single, four] = ["cluster-ro1", "cluster-ro4"].map(|target| {
        let mut points = paper.experiments[0].points.iter();
        points.find(|point| point.target == target).expect("a point").qps.median
    });
    near(rows[2].speedup, four / single);
    near(rows[2].efficiency, four / (4.0 * single));
    near(rows[2].qps_per_node, four / 4.0);
    let html = paper.html(Lang::En);
    assert!(
        html.contains("Statements per second of Read only against the number of read-only nodes")
    );
    assert!(paper.markdown(Lang::En).contains("4 read-only nodes executed"));
}

/// Every target is one address, and the suite says how many read-only nodes are behind it.
fn state_node_counts(run: &mut RunData) {
    for target in &mut run.header.targets {
        let listed =
            target.nodes.iter().filter(|node| node.role == dyno_facts::Role::ReadOnly).count();
        target.stated.insert("read_only_nodes".to_owned(), listed.to_string());
        target.nodes.clear();
        target.part_of = None;
    }
}

/// Stated nodes, with two targets of `product` next to them that do ten times as much.
fn add_stated_product(run: &mut RunData, product: &str) {
    state_node_counts(run);
    for name in ["cluster-ro1", "cluster-ro4"] {
        let renamed = name.replace("cluster", "other");
        let mut targets = run.header.targets.iter();
        let mut target = targets.find(|target| target.name == name).expect("a target").clone();
        (target.name, target.product) = (renamed.clone(), product.to_owned());
        run.header.targets.push(target);
        let trials = run.trials.iter().filter(|trial| trial.summary.target == name);
        for mut trial in trials.cloned().collect::<Vec<_>>() {
            trial.summary.trial = run.trials.len() as u32 + 1;
            trial.summary.target.clone_from(&renamed);
            trial.summary.qps *= 10.0;
            run.trials.push(trial);
        }
    }
}

#[test]
fn each_product_is_held_against_its_own_fewest_nodes() {
    let two_products = paper(|run| add_stated_product(run, "Other"));
    let rows = &two_products.experiments[0].node_scaling;
    let row_facts: Vec<(&str, u32)> =
        rows.iter().map(|row| (&row.cluster[..], row.nodes)).collect();
    let (one, two) = ("MariaDB 10.11.6-MariaDB", "Other 10.11.6-MariaDB");
    assert_eq!(row_facts, [(one, 1), (one, 2), (one, 4), (two, 1), (two, 4)]);
    near(rows[0].speedup, 1.0);
    near(rows[3].speedup, 1.0);
    near(rows[4].speedup, rows[2].speedup);
    let sentence = "Read only, Other 10.11.6-MariaDB: 4 read-only nodes executed";
    assert!(two_products.markdown(Lang::En).contains(sentence), "{two_products:?}");
    // No one says which of two targets with one node each is the base of the one with four.
    let one_product = paper(|run| add_stated_product(run, "MariaDB"));
    assert_eq!(one_product.experiments[0].node_scaling, []);
    // In two runs they are distinguished.
    let mut runs = [cluster(), cluster()];
    runs.iter_mut().for_each(state_node_counts);
    let two_runs = Paper::new(&runs, &[]);
    let rows = &two_runs.experiments[0].node_scaling;
    let row_facts: Vec<(u32, bool)> =
        rows.iter().map(|row| (row.nodes, row.cluster.contains("cluster-ro1"))).collect();
    assert_eq!(row_facts, [1, 2, 4, 1, 2, 4].map(|nodes| (nodes, true)));
    assert_ne!(rows[0].cluster, rows[3].cluster);
}

#[test]
fn what_a_node_that_was_away_did_is_not_guessed() {
    let paper = paper(|run| {
        for trial in &mut run.trials {
            if let Some(node) = trial.summary.conditions.nodes.get_mut("n3") {
                (node.reads, node.writes, node.statements, node.commits) = (None, None, None, None);
                node.down = Some("it is gone".into());
            }
        }
    });
    let pair = nodes_table(&paper, "pair");
    let words = "\nn3 lost counters while away in a trial, so that no node's share is known.\n";
    assert!(paper.markdown(Lang::En).contains(words));
    assert!(number(&pair, "n2", "Reads").is_some() && number(&pair, "n2", "share %").is_none());
}

#[test]
fn own_statements_through_an_endpoint_are_told() {
    let paper = paper(|run| {
        for trial in &mut run.trials {
            if let Some(freshness) = &mut trial.summary.conditions.freshness {
                freshness.unplaced = 40;
            }
        }
    });
    let mut points = paper.experiments[1].points.iter();
    let point = points.find(|point| point.target == "pair" && point.workers == 64);
    let point = point.expect("a point");
    let sentence = format!("These include {} statements of dyno itself", 40 * point.trials.len());
    assert!(paper.markdown(Lang::En).contains(&sentence), "{sentence}");
}

#[test]
fn numbers_of_nodes_are_taken_as_stated_where_none_are_listed() {
    let paper = paper(state_node_counts);
    let rows = &paper.experiments[0].node_scaling;
    let row_facts: Vec<(u32, &str, bool)> =
        rows.iter().map(|row| (row.nodes, row.cluster.as_str(), row.is_stated)).collect();
    assert_eq!(row_facts, [(1, "", true), (2, "", true), (4, "", true)]);
    let markdown = paper.markdown(Lang::En);
    assert!(markdown.contains("| cluster-ro4 | 4 (stated) |"), "{markdown}");
}

#[test]
fn a_load_that_never_reaches_the_copies_is_no_series() {
    let paper = paper(|run| {
        for target in &mut run.header.targets {
            target.route = dyno_facts::Route::Primary;
        }
    });
    assert_eq!(paper.experiments[0].node_scaling, []);
    assert!(!paper.html(Lang::En).contains("in proportion"));
}

#[test]
fn shares_of_reads_and_writes_add_up_over_the_nodes() {
    let paper = paper(|_| {});
    let pair = nodes_table(&paper, "pair");
    assert_eq!(names(&pair), ["n1", "n2", "n3", ALL]);
    let value = |node: &str, column: &str| number(&pair, node, column);
    near(value("n1", "share %").expect("known"), 0.1);
    near(value("n2", "share %").expect("known"), 0.45);
    // The first share is of reads, the second of writes.
    assert_eq!(pair.row("n1").expect("a node").cells[5].number(), Some(1.0));
    let words = "\nReads: the primary 10.0% and 2 read-only nodes 90%. Writes: the primary 100% and 2 \
                 read-only nodes 0%.\n";
    assert!(paper.markdown(Lang::En).contains(words));
    let mut points = paper.experiments[1].points.iter();
    let point = points.find(|point| point.target == "pair" && point.workers == 64);
    let point = point.expect("a point");
    assert_eq!(value(ALL, "Statements per s"), Some(point.qps.median));
    near(numbers(&pair, "Statements per s").iter().sum(), point.qps.median);
    assert_eq!(value(ALL, "Reads"), Some(numbers(&pair, "Reads").iter().sum()));
    assert_eq!((value("n1", "Largest lag s"), value(ALL, "Largest lag s")), (None, Some(0.75)));
}

#[test]
fn an_endpoint_is_shown_and_never_summed() {
    let paper = paper(|run| {
        for trial in &mut run.trials {
            if let Some(front) = trial.summary.conditions.nodes.get_mut("front") {
                front.reads = Some(1_000_000_000);
            }
        }
    });
    let sharded = nodes_table(&paper, "sharded");
    assert_eq!(names(&sharded)[3..], ["front", ALL]);
    let value = |node: &str, column: &str| number(&sharded, node, column);
    assert_eq!((value("front", "share %"), value("front", "Statements per s")), (None, None));
    assert_eq!(value(ALL, "Reads"), Some(numbers(&sharded, "Reads")[..3].iter().sum()));
    assert!(paper.markdown(Lang::En).contains("\nReads: 33% to 33% for each node."));
}

#[test]
fn what_a_node_does_not_tell_is_no_share() {
    let paper = paper(|run| {
        for trial in &mut run.trials {
            if let Some(node) = trial.summary.conditions.nodes.get_mut("n3") {
                node.reads = None;
            }
        }
    });
    let pair = nodes_table(&paper, "pair");
    assert_eq!((number(&pair, ALL, "Reads"), number(&pair, "n1", "share %")), (None, None));
    // All statements are still told, so their rate can be divided.
    let total = number(&pair, ALL, "Statements per s").expect("a sum");
    near(numbers(&pair, "Statements per s").iter().sum(), total);
    assert!(paper.markdown(Lang::En).contains("\nWrites: the primary 100%"), "only of the writes");
}

#[test]
fn only_the_best_load_level_has_a_table_of_its_own() {
    let paper = paper(|_| {});
    assert!(english(&nodes_table(&paper, "pair").caption).ends_with("64 workers"));
    let markdown = paper.markdown(Lang::En);
    assert!(!markdown.contains("What each node of pair did, 8 workers"));
    assert!(markdown.contains("| pair | 8 workers | Reads: the primary 10"), "{markdown}");
}

#[test]
fn reads_after_writes_are_summed_over_the_trials_of_a_point() {
    let paper = paper(|_| {});
    assert_eq!(paper.markdown(Lang::En).matches("Reads right after writes").count(), 1);
    let freshness = table(&paper, "Reads right after writes");
    let row = freshness.row("64 workers").expect("a row");
    let values: Vec<f64> = row.cells.iter().filter_map(|cell| cell.number()).collect();
    assert_eq!(values, [80.0, 2.0, 80.0, 6.0, 12.5]);
}

#[test]
fn targets_of_one_node_have_none_of_it() {
    let paper = Paper::new(&[crate::synthetic::two_targets(&[8], 1, 6)], &[]);
    let markdown = paper.markdown(Lang::En);
    for words in ["What each node of", "Reads right after writes", "Nodes of "] {
        assert!(!markdown.contains(words), "{words}");
    }
}

#[test]
fn capacity_counts_the_vcpu_of_all_nodes_that_are_driven() {
    let mut run = cluster();
    run.header.targets.iter_mut().for_each(|target| target.vcpu = Some(4.0));
    let paper = Paper::new(&[run], &[]);
    let capacity = table(&paper, "Highest throughput of each target");
    let vcpu = |target: &str| {
        let value = |column: &str| number(&capacity, target, column);
        let implied = value("Throughput").zip(value("Per vCPU")).map(|(all, each)| all / each);
        (value("vCPU"), implied)
    };
    assert_eq!(vcpu("cluster-ro2"), (Some(8.0), Some(8.0)), "its throughput is that of two nodes");
    assert_eq!(vcpu("cluster-ro4"), (Some(16.0), Some(16.0)));
    // Who splits or passes on may leave some of its nodes without load.
    assert_eq!(vcpu("pair"), (Some(4.0), Some(4.0)));
}
