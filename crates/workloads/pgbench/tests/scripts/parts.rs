//! Several load generators: their clients draw what those of one draw, and what their workloads keep
//! adds up to what one keeps.

use crate::support::{FILE, Messages};
use dyno_core::{Dialect, ErrorClass, MILLISECOND};
use dyno_engine::{Control, TrialSpec, drive_simulated};
use dyno_pgbench::run::{Part, PgBench, PgbenchOptions, Statistics};
use dyno_pgbench::script::{QueryMode, Script};
use dyno_testkit::sim::{
    Fault, Service, SimDriver, SimulatedAnswers as SimScript, SimulatedStatement,
};
use proptest::prelude::*;

/// Three scripts, the choice among which is drawn by threads, and all that clients draw or know.
const SCRIPTS: [(&str, u32); 3] = [
    ("\\set aid random(1, 100000)\nSELECT :aid, :client_id, :default_seed;\n", 5),
    ("\\set at random_gaussian(1, 1000, 4)\nBEGIN;\nUPDATE t SET a = :at;\nCOMMIT;\n", 3),
    ("\\sleep 1 ms\nSELECT :random_seed;\n", 1),
];

fn workload(clients: u32, threads: u32, seed: u64, part: Part) -> PgBench {
    let mode = QueryMode::Simple;
    let scripts = SCRIPTS
        .iter()
        .map(|&(text, weight)| (Script::parse(text.as_bytes(), FILE, mode).unwrap(), weight))
        .collect();
    let options = PgbenchOptions {
        clients,
        threads,
        part,
        statement_latencies: true,
        continue_on_error: true,
        ..PgbenchOptions::new(scripts, mode, seed)
    };
    PgBench::new(options, Dialect::Postgres, Messages::default().talker()).unwrap()
}

/// Executed statements, by client and in order, and the statistics.
fn run(workload: &PgBench, spec: &TrialSpec) -> (Vec<SimulatedStatement>, Statistics) {
    let faults = vec![Fault::ErrorEvery { period: 1_000_003, class: ErrorClass::Deadlock }];
    let driver = SimDriver::new(SimScript {
        service: Service::Exponential(2 * MILLISECOND),
        dialect: Dialect::Postgres,
        faults,
        keep_log: true,
        ..SimScript::default()
    });
    drive_simulated(workload, &driver, spec, &Control::new(), &mut ()).unwrap();
    (driver.log(), workload.statistics())
}

/// The statements by session and time.
fn sorted(mut log: Vec<SimulatedStatement>) -> Vec<SimulatedStatement> {
    log.sort_by_key(|one| (one.session, one.began, one.ended));
    log
}

/// Sums of squares are floating-point numbers, whose sums depend on the order.
fn exact(statistics: &Statistics) -> Statistics {
    let mut exact = statistics.clone();
    for script in &mut exact.scripts {
        script.latency.sum_squares = 0.0;
        script.lag.sum_squares = 0.0;
        script.commands.iter_mut().for_each(|command| command.latency.sum_squares = 0.0);
    }
    exact
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn clients_of_several_generators_do_what_those_of_one_do(
        clients in 1_u32..9,
        generators in 1_u32..4,
        seed in any::<u64>(),
    ) {
        let spec = TrialSpec {
            duration: None,
            events_per_worker: Some(20),
            seed,
            ..TrialSpec::closed(clients)
        };
        let generators = generators.min(clients);
        let alone = workload(clients, generators, seed, Part::default());
        let (expected, statistics) = run(&alone, &spec);
        let merged = workload(clients, 1, seed, Part::default());
        let mut log = Vec::new();
        for generator in 0..generators {
            let spec = spec.part(generator, generators).unwrap();
            let part = Part {
                clients_before: spec.share.workers_before,
                clients_total: clients,
                threads_before: generator,
            };
            let (part_log, statistics) = run(&workload(spec.workers, 1, seed, part), &spec);
            let text = serde_json::to_string(&statistics).unwrap();
            merged.absorb(&serde_json::from_str(&text).unwrap()).unwrap();
            log.extend(part_log);
        }
        // Which script comes next is drawn by a thread for whichever of its clients is free first.
        prop_assert_eq!(sorted(log), sorted(expected));
        prop_assert_eq!(exact(&merged.statistics()), exact(&statistics));
        let merged_squares = merged.statistics().total().latency.sum_squares;
        let expected_squares = statistics.total().latency.sum_squares;
        prop_assert!((merged_squares / expected_squares - 1.0).abs() < 1e-12);
        prop_assert_eq!(statistics.total().total(), u64::from(clients) * 20);
    }
}

#[test]
fn statistics_of_other_scripts_are_refused() {
    let generator = workload(1, 1, 1, Part::default());
    let mut statistics = generator.statistics();
    statistics.scripts[1].commands.pop();
    assert_eq!(
        generator.absorb(&statistics).unwrap_err(),
        "another load generator has run other scripts"
    );
    statistics.scripts.pop();
    assert!(generator.absorb(&statistics).is_err());
    assert_eq!(generator.statistics().total().total(), 0);
}
