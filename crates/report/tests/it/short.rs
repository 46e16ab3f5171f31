//! The short edition, and the names and charts that fit into it.

use crate::support::table;
use crate::synthetic::{self, pgbench, two_targets};
use dyno_facts::{ExperimentFacts, PublishedRow, PublishedTable};
use dyno_report::blocks::{Block, Drawing, Level};
use dyno_report::{Edition, Lang, Naming, Paper};
use dyno_store::RunData;

/// Lines of print on a page, and letters in a line.
const LINES: usize = 60;
const LETTERS: usize = 105;
/// Page limit of the short edition.
const PAGES: usize = 12;

/// About how many lines of print a paper takes, from its Markdown; the tests of PDFs count pages.
fn lines(paper: &Paper) -> usize {
    let text = paper.markdown(Lang::En);
    let heights = text.lines().map(|line| match line.strip_prefix('|') {
        // A column has its share of the line, and breaks in it.
        Some(row) => {
            let cells: Vec<&str> = row.split('|').collect();
            let share = (LETTERS * 5 / 4 / cells.len()).max(5);
            cells.iter().map(|cell| cell.trim().len() / share + 1).max().unwrap_or(1)
        }
        None if line.starts_with('#') => 3,
        None => line.len() / LETTERS + usize::from(!line.is_empty()),
    });
    let blocks = paper.blocks(Lang::En);
    let charts = blocks.iter().map(|block| match block {
        Block::Figures { figures, is_grid: true } => 16 * figures.len().div_ceil(2),
        Block::Figures { figures, .. } => 20 * figures.len(),
        _ => 0,
    });
    heights.sum::<usize>() + charts.sum::<usize>()
}

/// The trials of a run under further names of experiments.
fn repeated(mut run: RunData, times: u32) -> RunData {
    let (trials, facts) = (run.trials.clone(), run.header.experiments.clone());
    for time in 2..=times {
        for trial in &trials {
            let mut trial = trial.clone();
            trial.summary.trial += 1000 * time;
            trial.summary.experiment = format!("{}_{time}", trial.summary.experiment);
            run.trials.push(trial);
        }
        run.header.experiments.extend(facts.iter().map(|facts| ExperimentFacts {
            name: format!("{}_{time}", facts.name),
            title: format!("{}, time {time}", facts.title),
            ..facts.clone()
        }));
    }
    run
}

#[test]
fn the_short_edition_has_at_most_12_pages() {
    let sysbench = two_targets(&[1, 8, 64], 3, 30);
    let tpcc = Paper::new(&[synthetic::tpcc::tpcc()], &synthetic::tpcc::published());
    let tpch = Paper::new(&[synthetic::tpch::tpch()], &synthetic::tpch::published());
    let papers = [
        ("TPC-C", tpcc),
        ("TPC-H", tpch),
        ("two suites", Paper::new(&[sysbench, pgbench::pgbench()], &[synthetic::published()])),
        ("many levels", Paper::new(&[two_targets(&[1, 2, 4, 8, 16, 32, 64, 128], 3, 30)], &[])),
        (
            "many experiments",
            Paper::new(&[repeated(pgbench::pgbench(), 16)], &pgbench::published()),
        ),
        ("five suites", five_suites()),
        ("many of both", Paper::new(&[repeated(two_targets(&[1, 8, 64], 1, 12), 10)], &[])),
    ];
    for (name, paper) in papers {
        let full = lines(&paper);
        let short = lines(&paper.in_edition(Edition::Short));
        assert!(short <= PAGES * LINES, "{name}: {short} lines, {} pages", short / LINES);
        assert!(short < full, "{name}: the full edition has {full} lines");
    }
}

fn five_suites() -> Paper {
    let runs = [
        two_targets(&[1, 8, 64], 3, 30),
        pgbench::pgbench(),
        synthetic::tpcc::tpcc(),
        synthetic::tpch::tpch(),
        synthetic::cluster::cluster(),
    ];
    Paper::new(&runs, &[])
}

#[test]
fn page_one_has_room_for_the_caveats_of_many_suites() {
    let paper = five_suites();
    let caveats = paper.checks.iter().filter(|check| check.level == Level::W);
    let caveats = caveats.filter(|check| !check.findings.is_empty()).count();
    let cover = paper.blocks(Lang::En).into_iter().next();
    let Some(Block::Cover(cover)) = cover else { panic!("no cover") };
    let items = &cover.warnings.items;
    let texts: Vec<String> = items.iter().map(|item| item[0].text.to_string()).collect();
    let n_listed = texts.iter().filter(|text| text.starts_with('W')).count();
    assert!(caveats > 12 && n_listed == 4, "{caveats}, {n_listed}");
    let last = items.last().expect("an item");
    assert!(
        texts[texts.len() - 1].contains("further caveats") && last.len() > caveats - 2 * n_listed,
        "{last:?}"
    );
}

#[test]
fn what_the_short_edition_leaves_out_leads_nowhere() {
    let paper = Paper::new(&[two_targets(&[1, 8, 64], 3, 30)], &[synthetic::published()]);
    let html = paper.in_edition(Edition::Short).html(Lang::En);
    for link in html.split("href=\"#").skip(1) {
        let name = link.split('"').next().expect("a name");
        assert!(html.contains(&format!("id=\"{name}\"")), "#{name} is nowhere");
    }
    assert!(!html.contains("<th scope=\"row\"></th>"), "a row without a head");
}

#[test]
fn several_runs_in_short_leave_what_each_of_them_has_to_the_full_edition() {
    let runs = [synthetic::cluster::cluster(), two_targets(&[1, 8], 3, 30)];
    let full = Paper::new(&runs, &[]);
    let short = full.clone().in_edition(Edition::Short);
    let text = short.markdown(Lang::En);
    assert!(full.markdown(Lang::En).contains("Nodes of ") && !text.contains("Nodes of "));
    assert_eq!(text.matches("dyno reproduce ").count(), 2, "{text}");
    assert!(text.contains("Original commands:") && !text.contains("Original command:"));
    // Both were made by one machine.
    assert_eq!(table(&short, "Load generator").rows.len(), 1);
    let columns = table(&short, "Checks that raised findings").columns;
    let heads: Vec<String> = columns.iter().map(|column| column.title.to_string()).collect();
    assert_eq!(heads, ["No.", "Found", "Meaning"]);
}

/// The labels of the targets of these runs.
fn labels(runs: &[RunData], by_product: bool) -> Vec<String> {
    let naming = Naming { by_product, ..Naming::default() };
    let paper = Paper::named(runs, &[], &[], &naming);
    paper.targets.iter().map(|target| target.label.clone()).collect()
}

#[test]
fn labels_are_short_and_tell_products() {
    assert_eq!(labels(&[small_run()], false), ["maria", "postgres"], "as they are typed");
    assert_eq!(labels(&[small_run()], true), ["MariaDB 10.11", "PostgreSQL 15"]);
    assert_eq!(title_label("The old server"), "The old server");
    // A title that has no room in a chart gives way to the name.
    assert_eq!(title_label("A vendor's database, class.x4.medium, of 2020"), "MariaDB 10.11");
    // Two of one product are distinguished by their names.
    let mut one_product = small_run();
    for trial in &mut one_product.trials {
        for node in trial.before.values_mut() {
            (node.product, node.version) = ("MariaDB".to_owned(), "10.11.14".to_owned());
        }
    }
    for target in &mut one_product.header.targets {
        (target.product, target.version) = (String::new(), String::new());
    }
    assert_eq!(labels(&[one_product], true), ["maria", "postgres"]);
    // Runs that share a name are distinguished by their numbers.
    assert_eq!(
        labels(&[small_run(), small_run()], true)[..2],
        ["MariaDB 10.11, run 1", "PostgreSQL 15, run 1"]
    );
}

/// A run with a trial on each of two targets.
fn small_run() -> RunData {
    two_targets(&[1], 1, 12)
}

/// The label of a target with this title.
fn title_label(title: &str) -> String {
    let mut run = small_run();
    run.header.targets[0].title = title.to_owned();
    labels(&[run], true).swap_remove(0)
}

/// A separate class in each run, alongside the rows of one published table.
fn classes() -> (Vec<RunData>, Vec<PublishedTable>) {
    let runs = ["medium", "large"].map(|class| {
        let mut run = pgbench::pgbench();
        for trial in &mut run.trials {
            trial.summary.target = class.to_owned();
        }
        run.header.targets[0].name = class.to_owned();
        run.header.targets[0].class = format!("polar.{class}");
        run
    });
    let tables = pgbench::published().into_iter().map(|table| {
        let rows = [("large", 1, 70_000.0), ("medium", 2, 30_000.0)];
        let rows = rows.map(|(class, number, qps)| PublishedRow {
            label: format!("polar.{class}"),
            number,
            metrics: [("data_qps".to_owned(), qps)].into(),
            targets: vec![class.to_owned()],
            ..table.rows[0].clone()
        });
        PublishedTable { rows: rows.into(), ..table }
    });
    (runs.into(), tables.collect())
}

/// The figures of a section.
fn figures(paper: &Paper, section: &str) -> Vec<Drawing> {
    let mut is_in_section = false;
    let mut figures_of_section = Vec::new();
    for block in paper.blocks(Lang::En) {
        match block {
            Block::Heading(heading) if heading.level == 2 => {
                is_in_section = heading.anchor == section
            }
            Block::Figures { figures, .. } if is_in_section => figures_of_section.extend(figures),
            _ => {}
        }
    }
    figures_of_section
}

#[test]
fn runs_of_classes_stand_in_one_table_and_one_chart_for_each_quantity() {
    let (runs, published) = classes();
    let paper = Paper::new(&runs, &published);
    let comparisons = paper.comparisons();
    let [table] = comparisons.as_slice() else { panic!("{comparisons:?}") };
    let rows: Vec<_> =
        table.rows.iter().map(|row| (row.first.row.label.as_str(), row.target)).collect();
    assert_eq!(rows, [("polar.large", "large"), ("polar.medium", "medium")], "as published");
    assert!(table.rows.iter().all(|row| {
        row.pairs.iter().all(|pair| pair.is_some_and(|pair| pair.published().is_some()))
    }));
    let charts = figures(&paper, "published");
    assert_eq!(charts.len(), 2, "read-only and read-write");
    assert!(charts[0].caption.contains("by class"), "{}", charts[0].caption);
    let svg: &str = &charts[0].svgs[0];
    for class in [">large<", ">medium<"] {
        assert!(svg.contains(class), "{class}: {svg}");
    }
    // Published and measured of each class.
    assert!(
        svg.contains("<title>70,000</title>") && svg.contains("<title>30,000</title>"),
        "{svg}"
    );
    assert_eq!(svg.matches("<rect class=\"column\"").count(), 2 + 4, "with those of the legend");
    // Without published figures bars have the colors of their targets.
    let result_charts = figures(&Paper::new(&[two_targets(&[8], 3, 30)], &[]), "results");
    assert!(result_charts[0].caption.contains("by target"), "{}", result_charts[0].caption);
    let svg: &str = &result_charts[0].svgs[0];
    assert!(svg.contains("series s0") && svg.contains("series s1"), "{svg}");
    assert!(!charts[0].halves.is_empty(), "two have room side by side");
    // The first of them is that of page one.
    let cover = paper.blocks(Lang::En).into_iter().next();
    let Some(Block::Cover(cover)) = cover else { panic!("no cover") };
    assert_eq!(cover.chart.expect("a chart").caption, charts[0].caption);
}
