//! The section on failover.

use crate::support::{ReadCell, ReadTable, english, html_texts, number, table};
use crate::synthetic::fault::fault;
use crate::synthetic::two_targets;
use dyno_facts::TrialStatus;
use dyno_report::blocks::PaperTable;
use dyno_report::{Lang, Paper, fault_sentence};

/// The table of the configurations.
fn configurations(paper: &Paper) -> PaperTable {
    table(paper, "Configurations side by side")
}

#[test]
fn configurations_stand_side_by_side() {
    let paper = Paper::new(&[fault()], &[]);
    let rows = configurations(&paper);
    let [durable, other] = ["maria", "postgres"]
        .map(|target| move |rows: &PaperTable, column: &str| number(rows, target, column));
    assert_eq!((rows.rows.len(), durable(&rows, "Trials")), (2, Some(2.0)));
    assert_eq!(
        (durable(&rows, "Acknowledged"), durable(&rows, "Lost")),
        (Some(24_690.0), Some(0.0))
    );
    assert_eq!((other(&rows, "Lost"), other(&rows, "Recovered s")), (Some(24.0), None));
    let never = rows.cell("postgres", "Recovered s").expect("a cell");
    assert_eq!(
        never.below.iter().map(|line| english(line)).collect::<Vec<_>>(),
        ["never in 2 of 2"]
    );
    assert_eq!(durable(&rows, "First success s"), Some(1.4));
    assert!(durable(&rows, "Recovered s").is_some());
    let texts =
        ["Errors", "Fault"].map(|column| rows.cell("maria", column).expect("a cell").english());
    assert_eq!(texts, ["connection_lost 80", "n1 killed, n2 took over"]);
    let findings = ["lost-acknowledged", "not-recovered", "no-fault"]
        .map(|id| paper.checks.iter().any(|c| c.id == id && !c.findings.is_empty()));
    assert_eq!(findings, [true, true, false]);
}

#[test]
fn lost_work_is_that_of_targets_that_may_not_lose_any() {
    // Only `postgres` has lost commits.
    let unexpected = count_lost_findings(&[]);
    assert!(unexpected > 0);
    let findings = [["maria"], ["postgres"], ["*"]].map(|allowed| count_lost_findings(&allowed));
    assert_eq!(findings, [unexpected, 0, 0]);
}

/// The number of findings on lost work if these targets may lose some.
fn count_lost_findings(allowed: &[&str]) -> usize {
    let mut run = fault();
    for plan in run.header.experiments.iter_mut().filter_map(|facts| facts.fault.as_mut()) {
        plan.allow_lost = allowed.iter().map(|&target| target.to_owned()).collect();
    }
    Paper::new(&[run], &[]).lost_work().len()
}

#[test]
fn a_fault_that_did_not_happen_is_in_no_median() {
    let mut run = fault();
    let trial = &mut run.trials[0].summary;
    trial.status = TrialStatus::Failed("The trial ended before the fault.".into());
    let facts = trial.fault.as_mut().expect("a fault");
    facts.steps.clear();
    (facts.first_success_after_s, facts.recovered_after_s) = (Some(0.0), Some(0.0));
    let (label, paper) = (trial.target.clone(), Paper::new(&[run], &[]));
    let rows = configurations(&paper);
    let [trials, firsts] = ["Trials", "First success s"]
        .map(|column| ["maria", "postgres"].map(|target| number(&rows, target, column)));
    let trials: f64 = trials.into_iter().flatten().sum();
    assert_eq!(trials as usize, fault().trials.len() - 1, "{label}");
    assert!(firsts.iter().all(|first| first.is_some_and(|s| s > 0.0)), "{firsts:?}");
    assert!(paper.checks.iter().any(|c| c.id == "no-fault" && !c.findings.is_empty()));
}

#[test]
fn it_is_told_in_both_languages_and_drawn() {
    let paper = Paper::new(&[fault()], &[]);
    for (lang, words) in [
        (
            Lang::En,
            ["Failover and durability", "n1 killed, n2 took over", "n1 was killed", "24,690"],
        ),
        (Lang::Zh, ["故障切换与持久性", "n1 被强制终止，n2 接管", "n1 已被强制终止", "24,690"]),
    ] {
        let html = paper.html(lang);
        let markdown = paper.markdown(lang);
        for word in words {
            assert!(html_texts(&html).contains(word), "{word}");
            assert!(markdown.contains(word), "{word}:\n{markdown}");
        }
        assert!(html.contains("class=\"moment\""), "the moments are marked");
        let listed = html.split("href=\"#failover\">6.").nth(1).expect("in the contents");
        let number: String = listed.chars().take_while(char::is_ascii_digit).collect();
        assert!(html.contains(&format!("\"failover\">6.{number} ")), "{number}");
        let next = number.parse::<u32>().expect("a number") + 1;
        assert!(html.contains(&format!("href=\"#disturbances\">6.{next} ")), "{next}");
        assert!(!paper.typst(lang).is_empty());
    }
    let facts = fault().trials[2].summary.fault.clone().expect("a fault");
    assert_eq!(
        fault_sentence(&facts),
        "n1 killed, n2 took over: first success after 1.4 s, not back at 90% of the throughput, 12 of 12,345 \
         acknowledged transactions lost."
    );
    // Intervals can't show that there was none.
    let quick = dyno_facts::FaultFacts { first_success_after_s: Some(0.0), ..facts };
    assert!(fault_sentence(&quick).to_string().contains(": no outage of 0.2 s or more, "));
}

#[test]
fn a_shard_that_is_away_while_others_go_on_is_told() {
    let mut run = fault();
    for trial in &mut run.trials {
        let facts = trial.summary.fault.as_mut().expect("a fault");
        let shard =
            dyno_facts::ShardOutage { first_success_after_s: Some(6.4), ..Default::default() };
        (facts.first_success_after_s, facts.shard) = (Some(0.0), Some(shard));
    }
    let facts = run.trials[0].summary.fault.clone().expect("a fault");
    let outage = ": no outage of 0.2 s or more (on the rows of n1: first success after 6.4 s), ";
    assert!(fault_sentence(&facts).to_string().contains(outage), "{}", fault_sentence(&facts));
    let paper = Paper::new(&[run], &[]);
    assert_eq!(number(&configurations(&paper), "maria", "Shard's own s"), Some(6.4));
    assert!(paper.markdown(Lang::En).contains("The shard's own time is the first success"));
}

/// The ranked tables of a paper: capacities, comparisons, costs.
fn ranked(paper: &Paper) -> [usize; 3] {
    [paper.key_rows().len(), paper.verdicts.comparisons.len(), paper.verdicts.scaling.len()]
}

#[test]
fn trials_with_a_fault_are_no_capacity_and_are_compared_with_nothing() {
    let levels = [1, 2, 4, 8, 16, 32];
    let usual = two_targets(&levels, 2, 30);
    let paper = Paper::new(std::slice::from_ref(&usual), &[]);
    assert!(ranked(&paper).iter().all(|count| *count > 0), "{:?}", ranked(&paper));
    let mut run = usual.clone();
    let facts = fault().trials[0].summary.fault.clone();
    for trial in &mut run.trials {
        trial.summary.fault.clone_from(&facts);
    }
    let paper = Paper::new(std::slice::from_ref(&run), &[]);
    assert_eq!(ranked(&paper), [0; 3]);
    assert!(!paper.html(Lang::En).is_empty() && !paper.markdown(Lang::Zh).is_empty());
    // All trials of an experiment without a fault stay.
    let experiment = usual.trials.last().expect("a trial").summary.experiment.clone();
    let mut mixed = run.clone();
    for trial in mixed.trials.iter_mut().filter(|trial| trial.summary.experiment == experiment) {
        trial.summary.fault = None;
    }
    let paper = Paper::new(&[mixed], &[]);
    assert!(!paper.key_rows().is_empty());
    assert!(paper.key_rows().iter().all(|row| row.experiment.name == experiment));
    // Two runs of the same suite, one with faults: no pair is made of both.
    assert!(!Paper::new(&[usual.clone(), usual.clone()], &[]).verdicts.comparisons.is_empty());
    assert!(Paper::new(&[usual, run], &[]).verdicts.comparisons.is_empty());
}

#[test]
fn only_the_time_without_a_commit_is_shaded() {
    let mut run = fault();
    let trial = &mut run.trials[0];
    let facts = trial.summary.fault.as_mut().expect("a fault");
    // Until 12 s, two seconds after the fault, commits continued; then there was none until 15 s.
    facts.first_success_after_s = Some(5.0);
    // Known to an interval: it can't be before what it follows from.
    (facts.promoted_at_s, facts.recovered_after_s) = (Some(15.02), Some(5.0));
    for row in &mut trial.series {
        if (12.0..15.0).contains(&row.begins_s) {
            (row.committed, row.tps) = (0, 0.0);
        }
    }
    let html = html_texts(&Paper::new(&[run], &[]).html(Lang::En));
    for words in [
        "fault at 10.0 s (n1 killed, n2 took over).",
        "Shaded: no commit from 12.0 s to 15.0 s. Lines from left to right: the fault (10.0 s), another node \
         takes writes (15.0 s) and 90% of the throughput (15.0 s).",
    ] {
        assert!(html.contains(words), "{words}:\n{html}");
    }
}

#[test]
fn papers_without_faults_say_nothing_of_them() {
    let paper = Paper::new(&[two_targets(&[1, 8], 2, 30)], &[]);
    assert!(!paper.html(Lang::En).contains("Failover and durability"));
}
