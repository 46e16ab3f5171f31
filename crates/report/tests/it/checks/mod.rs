//! Every check over made-up runs: one in which it fires, and one just alongside it in which it does not.

mod arithmetic;
mod disclosure;
mod families;
mod generator;
mod nodes;
mod quiet;
mod repetition;
mod same;
mod state;
mod time;
mod truth;

use crate::synthetic::PAPERS;
use dyno_facts::{GeneratorConditions, Message, NodeConditions, TrialStatus, TrialSummary};
use dyno_report::blocks::Block;
use dyno_report::{Check, Effect, Lang, Level, Paper, check_ids};
use dyno_store::RunData;
use quiet::quiet;
use std::collections::BTreeSet;

/// Input that makes a check fire, and input that nearly does.
pub(crate) struct Case {
    pub(crate) id: &'static str,
    /// Part of the first line of evidence.
    pub(crate) evidence: &'static str,
    pub(crate) fires: Change,
    pub(crate) silent: Change,
}

/// Changes a run in which no check finds anything.
pub(crate) type Change = fn(&mut Vec<RunData>);

const GROUPS: [&[Case]; 11] = [
    generator::CASES,
    time::CASES,
    repetition::CASES,
    same::CASES,
    state::CASES,
    truth::CASES,
    arithmetic::CASES,
    disclosure::CASES,
    nodes::CASES,
    families::TPCC,
    families::TPCH,
];

/// Leaves a run in which the check has no reason to fire unchanged.
pub(crate) const AS_IT_IS: Change = |_| {};

/// Changes all trials.
pub(crate) fn trials(runs: &mut [RunData], change: impl Fn(&mut TrialSummary)) {
    for trial in runs.iter_mut().flat_map(|run| &mut run.trials) {
        change(&mut trial.summary);
    }
}

/// Changes the trials of the second target.
pub(crate) fn candidate(runs: &mut [RunData], change: impl Fn(&mut TrialSummary)) {
    trials(runs, |summary| {
        if summary.target == quiet::CANDIDATE {
            change(summary);
        }
    });
}

/// Changes what surrounded the load generator.
pub(crate) fn generator(runs: &mut [RunData], change: impl Fn(&mut GeneratorConditions)) {
    trials(runs, |summary| change(&mut summary.conditions.generator));
}

/// Changes what surrounded the nodes.
pub(crate) fn nodes(runs: &mut [RunData], change: impl Fn(&mut NodeConditions)) {
    trials(runs, |summary| summary.conditions.nodes.values_mut().for_each(&change));
}

/// Changes what surrounded the nodes of the second target.
pub(crate) fn candidate_nodes(runs: &mut [RunData], change: impl Fn(&mut NodeConditions)) {
    candidate(runs, |summary| summary.conditions.nodes.values_mut().for_each(&change));
}

/// The paper of a run in which no check finds anything, changed.
fn paper(change: Change) -> Paper {
    let mut runs = quiet();
    change(&mut runs);
    Paper::new(&runs, &[])
}

/// The check with this id; panics if there is none.
fn check<'a>(paper: &'a Paper, id: &str) -> &'a Check {
    paper.checks.iter().find(|check| check.id == id).unwrap_or_else(|| panic!("no check {id}"))
}

fn ids_with_findings(paper: &Paper) -> Vec<&str> {
    let checks = paper.checks.iter().filter(|check| !check.findings.is_empty());
    checks.map(|check| check.id).collect()
}

#[test]
fn a_run_with_nothing_to_remark_has_no_findings() {
    let paper = paper(AS_IT_IS);
    let findings: Vec<String> = paper
        .checks
        .iter()
        .flat_map(|check| check.lines.iter().map(move |line| format!("{}: {line}", check.id)))
        .collect();
    assert_eq!(findings, Vec::<String>::new());
    assert_eq!(paper.check_counts(), [0, 0, 0]);
}

#[test]
fn what_is_not_known_fires_nothing() {
    let paper = paper(|runs| trials(runs, |summary| summary.conditions = Default::default()));
    assert_eq!(ids_with_findings(&paper), Vec::<&str>::new());
}

#[test]
fn settings_of_a_target_are_those_of_a_trial_that_counts() {
    let mut runs = quiet();
    let failed = &mut runs[0].trials[0];
    failed.summary.status = TrialStatus::Failed("The server was wrong.".into());
    assert!(!failed.before.is_empty());
    for node in failed.before.values_mut() {
        node.settings.insert("put_right_later".to_owned(), "on".to_owned());
    }
    let name = failed.summary.target.clone();
    let paper = Paper::new(&runs, &[]);
    let target = paper.targets.iter().find(|target| target.facts.name == name).expect("a target");
    assert!(!target.all_settings.is_empty());
    assert!(!target.all_settings.contains_key("put_right_later"));
}

fn speaks_chinese(check: &Check) {
    for text in [&check.rule, &check.meaning, &check.advice].into_iter().chain(&check.lines) {
        assert!(has_chinese(&text.render(Lang::Zh)), "{}: {text}", check.id);
        assert!(!has_chinese(&text.render(Lang::En)), "{}: {text}", check.id);
    }
}

/// Returns true if a text has a Chinese character.
fn has_chinese(text: &str) -> bool {
    text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c))
}

#[test]
fn every_check_fires_and_is_silent_just_beside_it() {
    let mut wrong = Vec::new();
    for case in GROUPS.iter().flat_map(|cases| cases.iter()) {
        let fired = paper(case.fires);
        speaks_chinese(check(&fired, case.id));
        let lines = &check(&fired, case.id).lines;
        let line = lines.first().map(ToString::to_string).unwrap_or_default();
        if line.is_empty() || !line.contains(case.evidence) {
            wrong.push(format!("{} has to say {:?}: {line:?}", case.id, case.evidence));
        }
        let silent = paper(case.silent);
        if let Some(line) = check(&silent, case.id).lines.first() {
            wrong.push(format!("{} has to be silent: {line}", case.id));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_check_lacks_its_pair() {
    dyno_report::register(PAPERS);
    let cases: Vec<&str> =
        GROUPS.iter().flat_map(|cases| cases.iter()).map(|case| case.id).collect();
    let tested: BTreeSet<&str> = cases.iter().copied().collect();
    assert_eq!(tested.len(), cases.len(), "no check has two pairs");
    let ids = check_ids().into_iter();
    let expected: BTreeSet<&str> =
        ids.filter(|id| !families::BESIDE_PUBLISHED.contains(id)).collect();
    assert_eq!(expected.difference(&tested).collect::<Vec<_>>(), Vec::<&&str>::new());
    assert_eq!(tested.difference(&expected).collect::<Vec<_>>(), Vec::<&&str>::new());
}

/// All checks by group and id, in a language.
fn reference(lang: Lang) -> String {
    use crate::synthetic::{tpcc::tpcc, tpch::tpch};
    let mut checks = Paper::new(&quiet(), &[]).judgment.checks;
    for run in [tpcc(), tpch()] {
        let family_checks = Paper::new(&[run], &[]).judgment.checks.into_iter();
        checks.extend(family_checks.filter(|check| check.id.starts_with("tpc")));
    }
    checks.sort_by_key(|check| (check.group, check.level, check.id));
    let (title, about, head) = match lang {
        Lang::En => (
            "Checks",
            "What every paper checks. E: not usable for a claim; W: a caveat next to the number; I: disclosed. \
             `--deny ID` ends a run with exit code 4 when the check finds something, `--allow ID` shows it as accepted.",
            ["Check", "Expected", "Otherwise", "What to do"],
        ),
        Lang::Zh => (
            "检查项",
            "每份白皮书执行的检查。E：不能作为结论依据；W：数据旁须注明；I：仅作披露。\
             `--deny ID`：该项有发现时以退出码 4 结束；`--allow ID`：显示为已接受。",
            ["检查", "期望", "否则", "对策"],
        ),
    };
    let mut text = format!("# {title}\n\n{about}\n");
    let groups = [
        ("A", "The load generator", "压测机"),
        ("B", "Time", "时间"),
        ("C", "Repetition", "重复"),
        ("D", "Same for same", "同等条件"),
        ("E", "State", "状态"),
        ("F", "Truth of the workload", "负载的真实性"),
        ("G", "Arithmetic", "算术"),
        ("H", "Disclosure", "披露"),
    ];
    for (letter, english, chinese) in groups {
        let name = if lang == Lang::En { english } else { chinese };
        text += &format!("\n## {letter} {name}\n\n| {} |\n|---|---|---|---|\n", head.join(" | "));
        for check in checks.iter().filter(|check| format!("{:?}", check.group) == letter) {
            let [rule, meaning, advice] =
                [&check.rule, &check.meaning, &check.advice].map(|text| text.render(lang));
            let (level, id) = (check.level, check.id);
            text += &format!("| {level:?} `{id}` | {rule} | {meaning} | {advice} |\n");
        }
    }
    text
}

#[test]
fn the_reference_lists_every_check() {
    for (file, lang) in [("checks.md", Lang::En), ("checks.zh.md", Lang::Zh)] {
        let text = reference(lang);
        for id in check_ids() {
            assert_eq!(text.matches(&format!(" `{id}` |")).count(), 1, "{id}");
        }
        crate::support::golden(&format!("../../../../doc/src/reference/{file}"), &text);
    }
}

#[test]
fn what_a_run_accepts_is_shown_as_accepted_and_what_it_denies_is_told() {
    let paper = paper(|runs| {
        generator(runs, |known| {
            known.hiccup_p999_us = Some(5_000.0);
            known.governor = Some("powersave".to_owned());
        });
        runs[0].header.denied = vec!["governor".to_owned(), "swap".to_owned()];
        runs[0].header.allowed = vec!["hiccups".to_owned()];
    });
    let denied: Vec<&str> = paper.denied().iter().map(|check| check.id).collect();
    assert_eq!(denied, ["governor"], "swap is denied and was not found");
    let accepted = check(&paper, "hiccups");
    assert!(accepted.is_accepted && !check(&paper, "governor").is_accepted);
    let html = paper.html(Lang::En);
    assert!(html.contains("<small>accepted</small>"), "the table says so");
    assert_eq!(paper.check_counts(), [0, 0, 1], "the accepted caveat is not counted");
    assert_eq!((check(&paper, "governor").number, accepted.number), (1, 2));
    let text = paper.checks_text(Lang::En);
    assert!(text.ends_with("I: governor (I1).\nAccepted: hiccups (W2).\n"), "{text}");
    assert!(paper.checks_text(Lang::Zh).contains("已接受：hiccups (W2)。"));
}

#[test]
fn the_text_for_a_terminal_tells_the_grave_ones_in_full() {
    let paper = paper(|runs| {
        trials(runs, |summary| {
            summary.counts.failed = summary.counts.started / 20;
            summary.counts.started += summary.counts.failed;
        });
        nodes(runs, |node| node.background = vec!["purge".to_owned()]);
        generator(runs, |known| known.network_share = Some(0.75));
    });
    let text = paper.checks_text(Lang::En);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains("figures unusable (E): 1, caveats (W): 1, disclosures (I): 1"));
    let check = check(&paper, "errors-1");
    assert_eq!(lines[1], format!("E1 errors-1: {}", check.rule));
    assert!(lines[2].starts_with("    trial"), "{}", lines[2]);
    assert_eq!(&lines[lines.len() - 2..], ["W2 network: trials 1–12: 75%", "I: background (I3)."]);
    assert!(lines.contains(&format!("    {}", check.advice).as_str()), "{text}");
    assert_eq!(Paper::new(&[], &[]).denied().len(), 0);
}

#[test]
fn a_terminal_has_four_lines_of_a_grave_check_and_the_number_of_the_others() {
    let paper = paper(|runs| {
        trials(runs, |summary| {
            let (trial, counts) = (summary.trial, &mut summary.counts);
            counts.failed = counts.started * (5 + u64::from(trial)) / 100;
            counts.started += counts.failed;
        });
    });
    let lines: Vec<String> =
        check(&paper, "errors-1").lines.iter().map(ToString::to_string).collect();
    assert!(lines.len() > 4, "{lines:?}");
    let text = paper.checks_text(Lang::En);
    let is_visible: Vec<bool> = lines.iter().map(|line| text.contains(line.as_str())).collect();
    assert!(!is_visible[..4].contains(&false) && !is_visible[4..].contains(&true), "{text}");
    assert!(text.contains(&format!("    and {} more line", lines.len() - 4)), "{text}");
}

/// The sentence of page one on what the checks found.
fn cover_verdict(paper: &Paper, lang: Lang) -> String {
    let Some(Block::Cover(cover)) = paper.blocks(lang).into_iter().next() else {
        panic!("a paper begins with its cover")
    };
    cover.warnings.verdict.render(lang)
}

#[test]
fn disturbances_that_forbid_nothing_are_named_where_that_is_said() {
    let disturbed = paper(|runs| {
        for trial in &mut runs[0].trials[..3] {
            trial.summary.generator.host.steal_share = 0.3;
        }
        runs[0].trials[2].summary.conditions.generator.starved = Some("It waited.".into());
    });
    let verdict = cover_verdict(&disturbed, Lang::En);
    let sentence = "generator-starved and steal found disturbances in 3 of 12 trials. Quote these figures with 2 caveats";
    assert!(verdict.contains(sentence), "{verdict}");
    let chinese = cover_verdict(&disturbed, Lang::Zh);
    assert!(chinese.contains("发现 12 次试验中有 3 次受到干扰"), "{chinese}");
    // What a run accepts isn't reported again.
    let accepted = paper(|runs| {
        trials(runs, |trial| trial.generator.host.steal_share = 0.3);
        generator(runs, |known| known.network_share = Some(0.75));
        runs[0].header.allowed = vec!["steal".to_owned()];
    });
    assert!(cover_verdict(&accepted, Lang::En).ends_with("Quote these figures with 1 caveat."));
}

#[test]
fn caveats_of_one_cause_are_one_and_those_that_reach_farthest_come_first() {
    let disturbed = paper(|runs| {
        trials(runs, |trial| {
            trial.generator.host.steal_share = 0.2;
            trial.conditions.generator.starved = Some("It waited.".into());
            trial.conditions.generator.hiccup_p999_us = Some(50_000.0);
        });
        generator(runs, |known| known.network_share = Some(0.75));
    });
    let caveats = disturbed.caveats();
    let ids: Vec<Vec<&str>> =
        caveats.iter().map(|caveat| caveat.checks.iter().map(|check| check.id).collect()).collect();
    let together = ids.iter().find(|ids| ids.contains(&"generator-starved")).expect("a caveat");
    assert!(together.contains(&"hiccups"), "{ids:?}");
    let effects: Vec<Effect> = caveats.iter().map(|caveat| caveat.effect).collect();
    assert!(effects.is_sorted_by(|a, b| a >= b), "{effects:?}");
    let steal = caveats.iter().find(|caveat| caveat.checks[0].id == "steal").expect("a caveat");
    // A fifth of the time was taken: a quarter more could have been done with it.
    assert_eq!(steal.effect, Effect::AtMost(0.25));
    assert!(disturbed.objections(4).len() <= 7, "a sentence, a title, at most four caveats");
}

#[test]
fn a_starved_worker_is_no_fault_of_the_arithmetic() {
    let paper = paper(|runs| {
        trials(runs, |trial| {
            trial.latency.sum_us *= 0.5;
            trial.generator.worker_busy_s_stddev = 30.0;
        });
    });
    assert_eq!(ids_with_findings(&paper), ["idle-workers"]);
}

#[test]
fn trials_that_vary_blame_the_system_only_where_nothing_disturbed_them() {
    /// The lines of the check of variation on ratios that vary, after a change.
    fn varying(change: Change) -> Vec<Message> {
        let mut runs = quiet();
        quiet::with_ratios(&mut runs, [0.9, 1.1, 0.9, 1.1, 0.9, 1.1], [1.0; 6]);
        change(&mut runs);
        check(&Paper::new(&runs, &[]), "variation").lines.clone()
    }
    let by_itself = varying(AS_IT_IS);
    assert!(by_itself[0].to_string().contains("so the system is unstable"), "{}", by_itself[0]);
    let disturbed = varying(|runs| {
        runs[0].trials[3].summary.conditions.generator.starved = Some("It waited.".into());
    });
    let [english, chinese] = Lang::ALL.map(|lang| disturbed[0].render(lang));
    assert!(english.ends_with("what generator-starved found may be why"), "{english}");
    assert!(chinese.contains("原因可能是 generator-starved"), "{chinese}");
    let foreign = varying(|runs| {
        nodes(runs, |node| node.commits = node.commits.map(|commits| 2 * commits));
    });
    assert!(foreign[0].to_string().contains("what foreign-load"), "{}", foreign[0]);
}

#[test]
fn unlike_major_versions_are_told_without_an_example_of_another_product() {
    let paper = paper(|runs| runs[0].header.targets[1].version = "11.4.2-MariaDB".to_owned());
    let version_check = check(&paper, "major-version");
    assert!(!version_check.findings.is_empty());
    for lang in Lang::ALL {
        let meaning = version_check.meaning.render(lang);
        assert!(!meaning.contains("MySQL"), "{meaning}");
    }
}

#[test]
fn findings_mark_the_cells_that_they_concern() {
    let slow_trial = paper(|runs| runs[0].trials[0].summary.generator.busiest_loop_share = 0.95);
    let number = check(&slow_trial, "generator-loop").number;
    let points = &slow_trial.experiments[0].points;
    assert_eq!(
        (points[0].checks.as_slice(), points[1].checks.as_slice()),
        (&[number][..], &[][..])
    );
    assert_eq!(
        (&slow_trial.trials[0].checks, &slow_trial.verdicts.comparisons[0].checks),
        (&vec![number], &vec![number])
    );

    let pair = paper(|runs| runs[0].header.targets[1].version = "11.4.2-MariaDB".to_owned());
    let number = check(&pair, "major-version").number;
    assert!(pair.experiments[0].points.iter().all(|point| point.checks.contains(&number)));
    assert!(pair.verdicts.comparisons[0].checks.contains(&number));

    let disclosed = paper(|runs| nodes(runs, |node| node.background = vec!["purge".to_owned()]));
    let check = check(&disclosed, "background");
    assert_eq!(check.level, Level::I);
    assert_eq!(disclosed.experiments[0].points[0].checks, [check.number]);
}
