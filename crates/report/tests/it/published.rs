//! Results alongside published ones, and what they cost.

use crate::support::{ReadCell, elements, table as table_of};
use crate::synthetic::{self, own_mut};
use dyno_facts::{Price, PublishedRow, PublishedTable};
use dyno_report::blocks::Cell;
use dyno_report::{Lang, Paper};
use dyno_store::RunData;
use dyno_tpch::facts::TpchFacts;

/// A read-only pgbench run on a node of 4 vCPU.
fn run() -> RunData {
    let mut run = synthetic::pgbench::pgbench();
    let target = &mut run.header.targets[0];
    (target.vcpu, target.memory_gib) = (Some(4.0), Some(15.6));
    target.same_host = false;
    run
}

/// A row of a published table with this many queries per second.
fn row(label: &str, conditions: &[(&str, &str)], qps: f64, targets: &[&str]) -> PublishedRow {
    PublishedRow {
        label: label.to_owned(),
        number: 1,
        conditions: conditions.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
        metrics: [("data_qps".to_owned(), qps)].into(),
        targets: targets.iter().map(|target| (*target).to_owned()).collect(),
    }
}

/// A published table on the experiment of [`run`].
fn table(rows: Vec<PublishedRow>) -> PublishedTable {
    PublishedTable {
        experiment: "reads".to_owned(),
        title: "A vendor's classes".into(),
        rows,
        ..PublishedTable::default()
    }
}

#[test]
fn a_result_stands_beside_its_row_per_vcpu_and_with_what_differs() {
    let conditions =
        [("vcpu", "2"), ("memory_gib", "16"), ("clients", "16"), ("duration_s", "120")];
    let rows = vec![
        row("class.medium", &conditions, 30_000.0, &["medium"]),
        row("class.large", &[("vcpu", "4")], 60_000.0, &[]),
    ];
    let paper = Paper::new(&[run()], &[table(rows)]);
    let results = paper.beside();
    let [result] = results.as_slice() else { panic!("{results:?}") };
    assert!(result.is_named && result.pair.row.label == "class.medium", "the suite says so");
    let measured = paper.experiments[0].points[0].data_qps.median;
    assert_eq!(result.pair.ratio(), Some(measured / 30_000.0));
    assert_eq!(result.vcpu, Some([4.0, 2.0]), "both are stated");
    let table = table_of(&paper, "Each result with the nearest published row");
    let numbers: Vec<Option<f64>> =
        table.rows[0].cells.iter().skip(7).take(3).map(Cell::number).collect();
    let expected = [measured / 4.0, 15_000.0, measured / 30_000.0 / 2.0];
    assert_eq!(numbers, expected.map(Some));
    let differences: Vec<String> = result.differences.iter().map(ToString::to_string).collect();
    assert!(differences.contains(&"4 vCPU instead of 2".to_owned()), "{differences:?}");
    assert!(differences.contains(&"8 workers instead of 16".to_owned()), "{differences:?}");
    assert!(
        differences.iter().any(|text| text.ends_with("s measured instead of 120 s")),
        "{differences:?}"
    );
    assert!(
        !differences.iter().any(|text| text.contains("GiB of memory")),
        "15.6 is sold as 16: {differences:?}"
    );
    for lang in Lang::ALL {
        elements(&paper.html(lang));
    }
    assert!(paper.markdown(Lang::Zh).contains("4 vCPU，而非 2"));
}

#[test]
fn the_nearest_row_is_taken_if_none_is_named() {
    let rows = vec![
        row("two", &[("vcpu", "2"), ("clients", "8")], 1.0, &[]),
        row("four", &[("vcpu", "4"), ("clients", "64")], 2.0, &["another target"]),
        row("four and more memory", &[("vcpu", "4"), ("memory_gib", "64")], 3.0, &[]),
        row(
            "storage",
            &[("compute_vcpu", "4"), ("storage_nodes", "4"), ("storage_vcpu", "4")],
            4.0,
            &[],
        ),
    ];
    assert_eq!(
        nearest_row(rows.clone()),
        ("four".to_owned(), Some(4.0)),
        "vCPU count before workers"
    );
    assert_eq!(nearest_row(rows[3..].to_vec()), ("storage".to_owned(), Some(20.0)), "both layers");
    assert_eq!(nearest_row(vec![row("unknown", &[], 1.0, &[])]), ("unknown".to_owned(), None));
    let other_tables = vec![PublishedTable { experiment: "nothing".to_owned(), ..table(rows) }];
    assert!(Paper::new(&[run()], &other_tables).beside().is_empty(), "of another experiment");
}

/// The label and the virtual CPUs of the row that the result is compared with.
fn nearest_row(rows: Vec<PublishedRow>) -> (String, Option<f64>) {
    let paper = Paper::new(&[run()], &[table(rows)]);
    let results = paper.beside();
    let [result] = results.as_slice() else { panic!("{results:?}") };
    assert!(!result.is_named);
    (result.pair.row.label.clone(), result.vcpu.map(|[_, published]| published))
}

#[test]
fn a_price_makes_costs_and_without_one_there_are_none() {
    assert!(Paper::new(&[run()], &[]).costs().is_empty());
    let mut priced = run();
    priced.header.targets[0].price = Some(Price { per_hour: 1.8, currency: "USD".to_owned() });
    let paper = Paper::new(&[priced], &[]);
    let point = paper.key_rows()[0].point;
    let costs = paper.costs();
    let [row, _] = costs.as_slice() else { panic!("{costs:?}") };
    assert_eq!(row.quantity, "per million transactions");
    assert!((row.amount - 1.8 / 3600.0 / point.tps.median * 1e6).abs() < 1e-9, "{}", row.amount);
    let text = paper.markdown(Lang::En);
    assert!(text.contains("| medium | 1.8 USD | per million transactions |"), "{text}");

    let mut orders = synthetic::tpcc::tpcc();
    orders.header.targets[0].price = Some(Price { per_hour: 2.0, currency: "CNY".to_owned() });
    let paper = Paper::new(&[orders], &[]);
    let tpmc = paper.key_rows()[0].point.main.expect("tpmC").1.median;
    let row = &paper.costs()[1];
    assert_eq!(row.quantity, "hourly price per 1,000 tpmC");
    assert!((row.amount - 2000.0 / tpmc).abs() < 1e-9);

    let mut queries = synthetic::tpch::tpch();
    for target in &mut queries.header.targets {
        target.price = Some(Price { per_hour: 3.0, currency: "USD".to_owned() });
    }
    let target = queries.trials.iter_mut().find_map(|trial| {
        let mut facts = own_mut::<TpchFacts>(&mut trial.summary);
        facts.metrics.as_mut()?.qphh = Some(120.0);
        drop(facts);
        Some(trial.summary.target.clone())
    });
    let target = target.expect("a trial with metrics");
    let paper = Paper::new(&[queries], &[]);
    let costs = paper.costs();
    let [cost] = costs.as_slice() else { panic!("{costs:?}") };
    assert_eq!((&cost.target.label, cost.amount), (&target, 25.0));
}
