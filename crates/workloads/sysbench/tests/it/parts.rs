//! Several load generators: their workers send what those of one send, and insert no id twice.

use dyno_core::{Dialect, MILLISECOND};
use dyno_engine::{Control, TrialSpec, drive_simulated};
use dyno_sysbench::{Sysbench, SysbenchOptions, SysbenchTest};
use dyno_testkit::sim::{Service, SimDriver, SimulatedAnswers, SimulatedStatement};

const WORKERS: u32 = 8;
const EACH: u64 = 30;

fn options(script: &str, pairs: &[(&str, &str)]) -> SysbenchOptions {
    let test = SysbenchTest::from_script(script).unwrap();
    let size = [("tables", "3"), ("table_size", "1000")];
    let takes_tables = !script.contains("random") && !script.contains("bulk");
    let given_pairs =
        size.iter().filter(|(name, _)| takes_tables || *name != "tables").chain(pairs);
    let pairs: Vec<_> =
        given_pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    SysbenchOptions::from_pairs(test, &pairs).unwrap()
}

/// Statements of the workers of a trial, or of a part of it.
fn sent_statements(options: &SysbenchOptions, spec: &TrialSpec) -> Vec<SimulatedStatement> {
    let service = Service::Exponential(MILLISECOND);
    let driver =
        SimDriver::new(SimulatedAnswers { service, keep_log: true, ..SimulatedAnswers::default() });
    let unique_part = (spec.share.generator, spec.share.generators.max(1));
    let workload =
        Sysbench::new(SysbenchOptions { unique_part, ..options.clone() }, Dialect::Mysql);
    drive_simulated(&workload, &driver, spec, &Control::new(), &mut ()).unwrap();
    driver.log()
}

/// Statements by one load generator and by several, each in the order of workers and time.
fn alone_and_together(options: &SysbenchOptions, generators: u32) -> [Vec<SimulatedStatement>; 2] {
    let spec = TrialSpec {
        duration: None,
        events_per_worker: Some(EACH),
        seed: 5,
        ..TrialSpec::closed(WORKERS)
    };
    let parts = (0..generators).filter_map(|generator| spec.part(generator, generators));
    let together = parts.flat_map(|part| sent_statements(options, &part)).collect();
    [sent_statements(options, &spec), together].map(|mut log: Vec<SimulatedStatement>| {
        log.sort_by_key(|one| (one.session, one.began, one.ended));
        log
    })
}

#[test]
fn workers_of_several_generators_send_what_those_of_one_send() {
    let tests = [
        ("oltp_read_write", &[][..]),
        ("oltp_point_select", &[("rand_type", "zipfian")]),
        // Each worker draws from its own part of the keys.
        ("select_random_points", &[]),
        ("select_random_ranges", &[]),
        // Each worker fills its own table.
        ("bulk_insert", &[]),
    ];
    for (script, pairs) in tests {
        let options = options(script, pairs);
        for generators in [2, 3] {
            let [alone, together] = alone_and_together(&options, generators);
            assert!(alone.len() >= WORKERS as usize, "{script}");
            // How long opening takes is the slowest worker's affair: times may be others.
            let [together, alone] = [together, alone].map(|log| {
                let parts = log.into_iter().map(|one| (one.session, one.sql, one.params));
                parts.collect::<Vec<_>>()
            });
            assert!(together == alone, "{script} by {generators} generators");
        }
    }
}

#[test]
fn ids_that_clients_number_are_inserted_once() {
    let mut options = options("oltp_insert", &[("auto_inc", "off")]);
    options.unique_start = 777;
    // Parts of the same size have made as many inserts each: together all ids of one.
    let [alone, together] = alone_and_together(&options, 4);
    assert_eq!(inserted_ids(&alone).len() as u64, u64::from(WORKERS) * EACH);
    assert_eq!(inserted_ids(&together), inserted_ids(&alone));
    let [_, uneven] = alone_and_together(&options, 3);
    let mut ids = inserted_ids(&uneven);
    ids.dedup();
    assert_eq!(ids.len() as u64, u64::from(WORKERS) * EACH);
}

/// The sorted ids of all inserted rows.
fn inserted_ids(log: &[SimulatedStatement]) -> Vec<i64> {
    let inserts = log.iter().filter(|one| one.sql.starts_with("INSERT"));
    let ids = inserts.map(|one| match one.params.first() {
        Some(id) => id.clone(),
        None => one.sql.split(['(', ',']).nth(5).unwrap().trim().to_owned(),
    });
    let mut ids: Vec<i64> = ids.map(|id| id.parse().unwrap()).collect();
    ids.sort_unstable();
    ids
}
