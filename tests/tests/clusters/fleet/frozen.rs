//! A load generator that stands still in the middle of a trial and is back before it is given up.

use super::{READS, Stage, json, members};
use dyno_testkit::{MariaDb, Nats, commits, dyno, only_run, server_or_skip};
use rustix::process::Signal;
use std::thread::sleep;
use std::time::Duration;

#[test]
fn a_generator_frozen_for_four_seconds_starves_the_trial_which_is_made_again() {
    let name = "a_generator_frozen_for_four_seconds_starves_the_trial_which_is_made_again";
    let server = server_or_skip!(MariaDb, name);
    let nats = server_or_skip!(Nats, name);
    let stage = Stage::new(&nats.url(""), &["a", "b"]);
    // What a fleet does by itself.
    let suite =
        READS.replace("retry_starved = 0\n", "").replace("duration_s = 3", "duration_s = 7");
    let mut run = stage.start(&stage.suite(&suite), &server.url(), &[]);
    let runs = stage.scratch.file("dyno-runs");
    run.wait_until("an interval", |_| {
        only_run(&runs).is_some_and(|run| !commits(&run, 1).is_empty())
    });
    stage.generators[1].signal(Signal::STOP);
    sleep(Duration::from_secs(4));
    stage.generators[1].signal(Signal::CONT);
    let output = run.end();
    assert_eq!(output.code, 0, "{output}");

    let path = stage.only_run();
    let first = json(&path.join("trials/1.json"));
    assert_eq!(first["status"], "starved", "{output}");
    assert!(members(&first).iter().all(|member| member["lost"].is_null()), "{first}");
    let reason = "The load generator b was starved: The load generator stood still for";
    let is_reported =
        |text: &str| text.contains("starved, is repeated") && text.contains("stood still for");
    assert!(is_reported(&output.stderr), "{reason}: {output}");
    // The machine may starve them once more; the last attempt counts.
    let retries = (2..=3).map(|trial| path.join(format!("trials/{trial}.json")));
    let retries: Vec<_> = retries.filter(|file| file.exists()).map(|file| json(&file)).collect();
    let complete = retries.iter().find(|trial| trial["status"] == "complete").expect("one counts");
    assert_eq!(complete["step"], first["step"]);
    let summary = dyno(stage.scratch.path(), &["show", &path.display().to_string()]).good().stdout;
    assert!(
        summary.contains("starved, repeated") && summary.contains("stood still for"),
        "{summary}"
    );
}
