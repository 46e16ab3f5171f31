//! Papers of made-up runs: golden files, well-formed and self-contained HTML, hostile names.

use crate::support::{count, count_bars, elements, find_table, golden, number, recorded};
use crate::synthetic::{HOSTILE, published, run, two_targets};
use dyno_core::is_command;
use dyno_facts::{RunStatus, SeriesRow, TrialStatus};
use dyno_report::blocks::Block;
use dyno_report::{Lang, Level, Pair, Paper};
use dyno_store::RunData;
use std::fs;

fn golden_paper() -> Paper {
    let mut run = two_targets(&[8], 2, 6);
    let last = run.trials.len() - 1;
    run.trials[last].summary.status = TrialStatus::Interrupted;
    Paper::new(&[run], &[published()])
}

#[test]
fn markdown_csv_and_json_are_as_agreed() {
    let paper = recorded(golden_paper());
    golden("paper.md", &paper.markdown(Lang::En));
    golden("paper.csv", &paper.csv());
    golden("paper.json", &paper.json().expect("rendered"));
}

#[test]
fn scripts_have_data_statements_checks_and_published_rows() {
    let paper = Paper::new(
        &[crate::synthetic::pgbench::pgbench()],
        &crate::synthetic::pgbench::published(),
    );
    golden("pgbench.md", &recorded(paper.clone()).markdown(Lang::En));
    elements(&paper.html(Lang::En));
    let comparisons = paper.comparisons();
    let [comparison] = comparisons.as_slice() else { panic!("one table") };
    assert_eq!(comparison.columns, ["read-only, QPS", "read-write, QPS"]);
    let [row] = comparison.rows.as_slice() else { panic!("one printed row") };
    let point = row.first.point.expect("a counterpart");
    let hot_share = point.data.as_ref().and_then(|data| data.hot_share);
    assert_eq!((point.workers, hot_share, row.first.row.number), (8, Some(0.5), 4));
    let pairs: Vec<Pair<'_>> = row.pairs.iter().copied().flatten().collect();
    let (reads, pays) = (&paper.experiments[0].points[0], &paper.experiments[1].points[0]);
    assert_eq!(pairs[0].measured(), Some(reads.qps), "a SELECT is all there is");
    assert_eq!(pairs[1].measured(), Some(pays.data_qps));
    // BEGIN and END are two of seven.
    assert!((pays.data_qps.median / pays.qps.median - 5.0 / 7.0).abs() < 1e-9);
    assert_eq!((pairs[0].published(), pairs[1].published()), (Some(34_386.0), Some(19_886.0)));
    // The trial with broken balances is not among the figures.
    assert_eq!((pays.repeats, pays.trials.as_slice()), (1, ["2".to_owned()].as_slice()));
    let mut blocks = paper.blocks(Lang::En);
    let is_second =
        |block: &Block| matches!(block, Block::Heading(of) if of.anchor == "experiment-2");
    blocks.drain(..blocks.iter().position(is_second).expect("an experiment"));
    let statements = find_table(&blocks, "Statement by statement").expect("a table");
    assert_eq!(statements.rows.len(), 3);
    let select = "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;";
    let committed = paper.trials[1].summary.counts.committed;
    assert_eq!(number(statements, select, "Executions"), Some(committed as f64));
    let check = paper.checks.iter().find(|check| check.id == "data").expect("the check exists");
    assert_eq!(
        check.lines,
        [
            "trial 3: balances: The sums changed by different amounts, but must change alike: accounts by 6, tellers by 5."
        ]
    );
    assert_eq!(check.level, Level::E);
}

#[test]
fn rendering_twice_gives_the_same_bytes() {
    let (one, two) = (golden_paper(), golden_paper());
    assert_eq!(one.html(Lang::En), two.html(Lang::En));
    assert_eq!(one.json().expect("rendered"), two.json().expect("rendered"));
}

#[test]
fn html_is_well_formed_and_needs_nothing_from_outside() {
    let run = two_targets(&[1, 8, 64], 2, 30);
    let html_trials = run.trials.len();
    let paper = Paper::new(&[run], &[published()]);
    let html = paper.html(Lang::En);
    if let Some(folder) = std::env::var_os("DYNO_PAPERS") {
        let chinese = paper.html(Lang::Zh);
        for (name, text) in [("paper.html", &html), ("paper.zh.html", &chinese)] {
            fs::write(std::path::Path::new(&folder).join(name), text).expect("written");
        }
    }
    let elements = elements(&html);
    assert_eq!(
        (
            count(&elements, "html"),
            count(&elements, "script"),
            count(&elements, "style"),
            count(&elements, "h1")
        ),
        (1, 1, 1, 1)
    );
    assert!(html.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"), "{}", &html[..60]);
    // Two charts per trial; none of the single rate. The chart of page one, throughput and latency of the comparison, three charts of the sweep.
    assert_eq!(count(&elements, "svg"), 2 * html_trials + 1 + 2 + 3);
    assert_eq!(
        count(&elements, "table"),
        count(&elements, "caption"),
        "every table says what it shows"
    );
    for loads in ["http://", "https://", "src=", "@import", "url(", "fetch("] {
        assert!(!html.contains(loads), "{loads} would load something");
    }
    let text = html.replace("</script>", "");
    assert!(!text.contains("NaN") && !text.contains("inf"), "a number has run away");
}

#[test]
fn fifty_points_stay_below_a_megabyte() {
    let run = two_targets(&(1..=25).map(|step| step * 8).collect::<Vec<_>>(), 1, 600);
    assert_eq!(run.trials.len(), 51);
    let html = Paper::new(&[run], &[]).html(Lang::En);
    assert!(html.len() <= 1_000_000, "{} bytes", html.len());
    elements(&html);
}

/// The paper of a run in which all that others may name or say is this text.
fn paper_of_others(text: &str) -> Paper {
    let mut run = two_targets(&[1, 8], 1, 6);
    run.header.title = text.to_owned();
    run.header.command_line.push(text.to_owned());
    run.header.targets[0].name = text.to_owned();
    run.header.experiments[0].options.insert(text.to_owned(), text.to_owned());
    for trial in &mut run.trials {
        trial.summary.target = text.to_owned();
        trial.summary.notes = vec![text.into()];
        for error in &mut trial.summary.errors {
            error.message = text.into();
        }
    }
    Paper::new(&[run], &[published()])
}

#[test]
fn no_page_obeys_the_texts_of_others_and_they_forge_no_line() {
    let obeyed = "\u{1b}[2Ja\u{202e}b\u{9b}c\u{2028}d\u{feff}e\r\nOK: everything passed";
    let paper = paper_of_others(obeyed);
    for (form, page) in [
        ("html", paper.html(Lang::En)),
        ("typst", paper.typst(Lang::En)),
        ("markdown", paper.markdown(Lang::En)),
        ("csv", paper.csv()),
    ] {
        assert!(page.contains("OK: everything passed"), "{form}");
        let command = page.chars().find(|&c| is_command(c) && !matches!(c, '\n' | '\t'));
        assert_eq!(command, None, "{form}");
    }
    for text in [paper.terminal(Lang::En), paper.ending(Lang::En, 25), paper.markdown(Lang::En)] {
        assert!(text.lines().all(|line| !line.starts_with("OK: ")), "{text}");
    }
}

#[test]
fn hostile_names_stay_text() {
    let paper = paper_of_others(HOSTILE);
    let html = paper.html(Lang::En);
    assert!(!html.contains("<script>alert"));
    assert!(html.contains("&lt;script&gt;alert"));
    assert_eq!(elements(&html).iter().filter(|element| *element == "script").count(), 1);
    let markdown = paper.markdown(Lang::En);
    let outside_code = markdown.lines().filter(|line| !line.starts_with("    "));
    assert!(outside_code.clone().all(|line| !line.contains("<script>")));
    let rows: Vec<&str> = outside_code.filter(|line| line.starts_with('|')).collect();
    assert!(rows.iter().any(|row| row.contains("script")));
    for pair in rows.windows(2).filter(|pair| pair[1].starts_with("|---")) {
        assert_eq!(count_bars(pair[0]), count_bars(pair[1]), "{}", pair[0]);
    }
}

#[test]
fn checks_follow_from_the_numbers() {
    let quiet = Paper::new(&[two_targets(&[8, 64], 4, 60)], &[]);
    assert_eq!(count_findings(&quiet, "gaps"), 1);
    assert_eq!(count_findings(&quiet, "few-repeats"), 2, "four times, and the open loop once");
    assert_eq!(
        (count_findings(&quiet, "adds-up"), count_findings(&quiet, "generator-cpu")),
        (0, 0)
    );
    // The workers of trial 2 waited four of sixty seconds for the server.
    assert_eq!(
        (count_findings(&quiet, "short-window"), count_findings(&quiet, "idle-workers")),
        (0, 1)
    );
    assert_eq!(
        (count_findings(&quiet, "same-host"), count_findings(&quiet, "weak-durability")),
        (1, 2)
    );

    let mut small = two_targets(&[8], 1, 6);
    assert_eq!(count_findings(&Paper::new(&[small.clone()], &[]), "full-size"), 0);
    small.header.plan = Some(dyno_facts::RunPlan { shrink: 0.01, ..Default::default() });
    assert_eq!(count_findings(&Paper::new(&[small], &[]), "full-size"), 1);

    let mut loud = two_targets(&[8, 64], 1, 30);
    // The first two trials are on the load generator's machine, the others are not.
    loud.trials[0].summary.generator.host.cpu_share = 0.97;
    loud.trials[1].summary.generator.host.cpu_share = 0.85;
    loud.trials[2].summary.generator.host.cpu_share = 0.85;
    loud.trials[3].summary.generator.host.cpu_share = 0.97;
    loud.trials[2].summary.counts.started += 1;
    loud.trials[3].summary.status = TrialStatus::Failed("the server went away".into());
    loud.trials[4].summary.offered = Some(1_000_000);
    let paper = Paper::new(&[loud.clone()], &[]);
    for id in ["generator-cpu", "generator-cpu-95", "adds-up", "trial-failed", "rate-missed"] {
        assert_eq!(count_findings(&paper, id), 1, "{id}");
    }
    loud.header.targets[0].url = dyno_facts::SecretUrl::new("sqlite:test.db");
    loud.trials[0].summary.generator.busiest_loop_share = 0.99;
    let embedded = Paper::new(&[loud.clone()], &[]);
    assert_eq!(
        count_findings(&embedded, "generator-loop"),
        0,
        "the database works inside the loops"
    );
    loud.header.targets[0].url = dyno_facts::SecretUrl::default();
    assert_eq!(count_findings(&Paper::new(&[loud], &[]), "generator-loop"), 1);
    assert_eq!(paper.checks[0].level, Level::E, "the gravest come first");
    let point = &paper.experiments[0].points[2];
    assert!(!point.checks.is_empty(), "the number has its badge");
    assert!(paper.html(Lang::En).contains("<a class=\"note E\""));
}

/// The number of findings of a check, which must exist.
fn count_findings(paper: &Paper, id: &str) -> usize {
    let check = paper.checks.iter().find(|check| check.id == id).expect("the check exists");
    check.findings.len()
}

#[test]
fn a_single_load_level_is_a_bar_beside_the_published_ones() {
    let paper = Paper::new(&[two_targets(&[8], 1, 6)], &[published()]);
    let html = paper.html(Lang::En);
    // On page one and in the section: three that are published, two that were measured, and the legend.
    assert_eq!(html.matches("<rect class=\"column\"").count(), 2 * (5 + 2));
}

#[test]
fn gaps_are_found_and_percentiles_need_samples() {
    let paper = Paper::new(&[two_targets(&[8, 64], 1, 12)], &[]);
    let gaps = &paper.trials[1].gaps;
    assert_eq!((gaps.len(), gaps[0].from_s, gaps[0].to_s), (1, 4.0, 8.0));
    assert_eq!((gaps[0].errors, gaps[0].reconnects), (4 * 3 * 64, 64));
    let open = &paper.experiments[1].points[0];
    // 12 per second over 12 s: about 140 samples.
    assert!(open.p50_us.is_some() && open.p95_us.is_none() && open.p999_us.is_none(), "{open:?}");
    assert!(paper.markdown(Lang::En).contains("fewer than 10 samples"));
}

#[test]
fn repeats_become_medians_and_incomplete_trials_stand_back() {
    let mut run = two_targets(&[8], 3, 12);
    for (trial, tps) in run.trials.iter_mut().zip([300.0, 100.0, 9_999.0]) {
        trial.summary.tps = tps;
    }
    let complete = first_point(&run);
    assert_eq!((complete.tps.min, complete.tps.median, complete.tps.max), (100.0, 300.0, 9_999.0));
    run.trials[2].summary.status = TrialStatus::Interrupted;
    let without = first_point(&run);
    assert_eq!((without.repeats, without.tps.median, without.status), (2, 200.0, "complete"));
    for trial in &mut run.trials[..2] {
        trial.summary.status = TrialStatus::Interrupted;
    }
    assert_eq!((first_point(&run).repeats, first_point(&run).status), (3, "interrupted"));
}

/// The first load level of the first experiment.
fn first_point(run: &RunData) -> dyno_report::Point {
    Paper::new(std::slice::from_ref(run), &[]).experiments[0].points[0].clone()
}

#[test]
fn a_trial_that_was_made_again_is_shown_in_gray_and_counts_for_nothing() {
    let without = two_targets(&[8], 3, 12);
    let mut run = without.clone();
    let without_it = without.clone();
    let mut starved = run.trials[0].clone();
    starved.summary.trial = 99;
    (starved.summary.tps, starved.summary.latency.max_us) = (1e9, 1e12);
    starved.summary.status = TrialStatus::Starved;
    starved.summary.conditions.generator.starved = Some("It stood still for 4 s.".into());
    run.trials.insert(0, starved);
    let [paper, without] = [&run, &without].map(|run| Paper::new(std::slice::from_ref(run), &[]));
    assert_eq!(paper.experiments, without.experiments, "it is in no figure");
    assert_eq!(paper.verdicts, without.verdicts);
    assert_eq!(paper.trials, without.trials);
    let html = paper.html(Lang::En);
    elements(&html);
    assert_eq!(html.matches("<tr id=\"trial-99\" class=\"gray\">").count(), 1);
    let markdown = paper.markdown(Lang::En);
    assert!(markdown.contains("1 trial was repeated"));
    let csv = paper.csv();
    assert!(csv.lines().any(|line| line.contains(",99,") && line.contains("starved")), "{csv}");
    for text in [&markdown, &paper.terminal(Lang::En)] {
        assert_eq!(text.matches("starved, repeated").count(), 1);
    }
    // The same goes for one that failed and was repeated, and for the other half of its pair.
    let mut run = without_it;
    let mut failed = run.trials[0].clone();
    failed.summary.status = TrialStatus::Failed("no such table".into());
    (failed.summary.trial, failed.summary.tps) = (0, 0.0);
    let mut half = run.trials[1].clone();
    half.summary.trial = 98;
    half.summary.tps = 1e9;
    run.header.set_aside = [98].into();
    run.trials.splice(0..0, [failed, half]);
    let paper = Paper::new(&[run], &[]);
    assert_eq!(paper.experiments, without.experiments, "they are in no figure");
    let again = paper.checks.iter().find(|check| check.id == "made-again").expect("the check");
    let lines: Vec<String> = again.lines.iter().map(ToString::to_string).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[0].contains("no such table") && lines[1].contains("The other trial of its pair"),
        "{lines:?}"
    );
    let failed_checks = paper.checks.iter().filter(|check| check.id == "trial-failed");
    assert!(failed_checks.flat_map(|check| &check.findings).next().is_none());
}

#[test]
fn several_runs_and_empty_runs_have_papers() {
    let mut second = two_targets(&[8], 1, 6);
    second.path = "dyno-runs/another".into();
    let paper = Paper::new(&[two_targets(&[8], 1, 6), second], &[]);
    let labels: Vec<&str> = paper.targets.iter().map(|target| target.label.as_str()).collect();
    assert_eq!(labels, ["maria, run 1", "postgres, run 1", "maria, run 2", "postgres, run 2"]);
    assert_eq!(paper.trials[3].label, "2/1");
    elements(&paper.html(Lang::En));

    let mut empty = run(&["maria"], Vec::new());
    empty.header.status = RunStatus::Running;
    let paper = Paper::new(&[empty], &[]);
    assert!(paper.markdown(Lang::En).contains("No trial has been executed yet."));
    elements(&paper.html(Lang::En));
    assert_eq!(paper.csv().lines().count(), 1);
}

#[test]
fn settings_that_differ_stand_in_a_table() {
    let mut second = two_targets(&[8], 1, 6);
    second.path = "dyno-runs/another".into();
    for facts in second.trials.iter_mut().flat_map(|trial| trial.before.values_mut()) {
        facts.settings.insert("max_connections".to_owned(), "99".to_owned());
    }
    let paper = Paper::new(&[two_targets(&[8], 1, 6), second], &[]);
    let html = paper.html(Lang::En);
    assert!(html.contains("max_connections"), "a row of the table");
}

#[test]
fn a_trial_that_measured_nothing_has_a_paper() {
    let mut run = two_targets(&[8], 1, 6);
    for trial in &mut run.trials {
        trial.series = vec![SeriesRow { phase: "measured".to_owned(), ..SeriesRow::default() }; 3];
        trial.summary.window_s = 0.0;
        trial.summary.status = TrialStatus::Interrupted;
    }
    let html = Paper::new(&[run], &[]).html(Lang::En);
    elements(&html);
    assert!(html.contains("No figures: no trial of this experiment has measured anything."));
}

#[test]
fn the_method_names_the_estimators_that_were_used() {
    use crate::verdict::{around, until_decided};
    let anytime = until_decided(&around(1.10, 8));
    let mut fixed = anytime.clone();
    let comparison = fixed.header.experiments[0].comparison.as_mut().expect("a comparison");
    comparison.stop.is_until_decided = false;
    let english = method_section(&fixed, Lang::En);
    assert!(english.contains("pseudo-median (Hodges-Lehmann)"), "{english}");
    assert!(english.contains("at least 6 pairs") && !english.contains("e-process"), "{english}");
    let english = method_section(&anytime, Lang::En);
    assert!(english.contains("e-process") && !english.contains("Wilcoxon"), "{english}");
    for (run, estimator) in [(&fixed, "伪中位数"), (&anytime, "几何平均")] {
        let chinese = method_section(run, Lang::Zh);
        assert!(chinese.contains(estimator) && chinese.contains("Holm 校正"), "{chinese}");
    }
}

/// The section on the method, without its heading.
fn method_section(run: &RunData, lang: Lang) -> String {
    let text = Paper::new(std::slice::from_ref(run), &[]).markdown(lang);
    let (_, behind) = text.split_once("\n## 5 ").expect("a section of methods");
    behind.split_once("\n## ").map_or(behind, |(section, _)| section).to_owned()
}
