//! Page one: the answer, what forbids it, what a reader must know first.

use crate::synthetic::pairs::{comparing, paired};
use crate::synthetic::{published, run, two_targets};
use crate::verdict::around;
use dyno_facts::{ComparisonFacts, PaperTexts, TargetTexts};
use dyno_report::blocks::{Block, Cover};
use dyno_report::{Lang, Naming, Paper};
use dyno_store::RunData;

/// Page one in English.
fn cover(paper: &Paper) -> Cover {
    let blocks = paper.blocks(Lang::En);
    let cover = blocks.into_iter().find_map(|block| match block {
        Block::Cover(cover) => Some(*cover),
        _ => None,
    });
    cover.expect("a paper has a cover")
}

/// The warnings of page one, as texts.
fn warnings(cover: &Cover) -> Vec<String> {
    let items = cover.warnings.items.iter();
    items
        .map(|item| item.iter().map(|span| span.text.to_string() + " ").collect::<String>())
        .collect()
}

/// The paper of a comparison with pairs around this ratio, after a change.
fn compared(ratio: f64, change: impl Fn(&mut RunData)) -> Paper {
    let mut run = paired(&around(ratio, 8));
    let candidates = vec!["postgres".to_owned()];
    let facts = ComparisonFacts { baseline: "maria".to_owned(), candidates, ..Default::default() };
    comparing(&mut run, facts);
    change(&mut run);
    for_readers(run)
}

/// The paper of a run as readers get it, not terminals.
fn for_readers(run: RunData) -> Paper {
    let naming = Naming { by_product: true, ..Naming::default() };
    Paper::named(&[run], &[], &[], &naming)
}

#[test]
fn the_answer_says_who_is_faster_by_how_much_in_products() {
    let faster = cover(&compared(1.2, |_| {})).answer.to_string();
    assert!(faster.starts_with("Compared with MariaDB 10.11, PostgreSQL 15 is "), "{faster}");
    assert!(faster.contains("% faster at “Read only” (8 workers)"), "{faster}");
    assert!(faster.contains(" (8 workers): medians 1,") && faster.contains(" against 1,00"));
    assert!(faster.ends_with(" transactions per second."), "{faster}");
    let slower = cover(&compared(0.8, |_| {})).answer.to_string();
    assert!(slower.contains("% slower at “Read only” (8 workers)"), "{slower}");
    let chinese = cover(&compared(0.8, |_| {})).answer.render(Lang::Zh);
    assert!(chinese.contains("与 MariaDB 10.11 相比，PostgreSQL 15"), "{chinese}");
}

#[test]
fn times_are_longer_or_shorter_on_page_one_as_in_the_verdicts() {
    for (times, wanted) in [(1.5, ": 50% more time"), (0.6, ": 40% less time")] {
        let paper = compared(1.0, |run| {
            for trial in &mut run.trials {
                let is_candidate = trial.summary.target == "postgres";
                let wobble = f64::from(trial.summary.repeat % 3) * 50.0;
                trial.summary.rate_per_s = Some(100.0);
                trial.summary.latency.p99_us =
                    (9_000.0 + wobble) * if is_candidate { times } else { 1.0 };
            }
        });
        let answer = cover(&paper).answer.to_string();
        assert!(answer.contains(wanted), "{answer}");
    }
}

/// Five experiments: faster, slower, equivalent, and two of three pairs, which decide nothing.
fn five_experiments() -> Paper {
    for_readers(run_with_experiments(&[
        ("a", 1.2, 8),
        ("b", 0.8, 8),
        ("c", 1.0, 8),
        ("d", 1.2, 3),
        ("e", 1.1, 3),
    ]))
}

/// Each with its ratio and its number of pairs.
pub(crate) fn run_with_experiments(experiments: &[(&str, f64, usize)]) -> RunData {
    let mut run = paired(&[]);
    for &(name, ratio, pairs) in experiments {
        let mut facts = run.header.experiments[0].clone();
        name.clone_into(&mut facts.name);
        name.clone_into(&mut facts.title);
        facts.title_zh = String::new();
        "sysbench".clone_into(&mut facts.workload);
        name.clone_into(&mut facts.test);
        let candidates = vec!["postgres".to_owned()];
        let baseline = "maria".to_owned();
        facts.comparison = Some(ComparisonFacts { baseline, candidates, ..Default::default() });
        for mut trial in paired(&around(ratio, pairs)).trials {
            trial.summary.trial = u32::try_from(run.trials.len()).expect("few") + 1;
            name.clone_into(&mut trial.summary.experiment);
            trial.summary.step = format!("{name}/{}", trial.summary.trial);
            run.trials.push(trial);
        }
        run.header.experiments.push(facts);
    }
    run.header.experiments.remove(0);
    run
}

#[test]
fn an_answer_of_many_parts_is_a_list_with_medians() {
    let paper = five_experiments();
    let page = cover(&paper);
    assert_eq!(page.answer.to_string(), "PostgreSQL 15 compared with MariaDB 10.11:");
    let lines: Vec<String> = page.answers.iter().map(ToString::to_string).collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[0].contains("% faster at “a” (8 workers): medians 1,"), "{lines:?}");
    assert!(lines[1].contains("% slower at “b” (8 workers): medians "), "{lines:?}");
    assert!(lines[2].contains("equivalent within "), "{lines:?}");
    assert!(lines[3].starts_with("no verdict at “d” (8 workers) and “e” (8 workers), because "));
    let chinese = page.answers[0].render(Lang::Zh);
    assert!(chinese.contains("中位数 1,") && chinese.contains(" 对 "), "{chinese}");
    // Every form has every line.
    let html = paper.html(Lang::En);
    let typst = paper.typst(Lang::En);
    assert_eq!(html.matches("<ul class=\"verdict\">").count(), 1);
    assert!(typst.contains("<ul class=\\\"verdict\\\">"), "print has the list");
    let text = paper.markdown(Lang::En);
    for form in [&html, &typst, &text] {
        let form = form.replace('\u{a0}', " ");
        assert!(form.contains("faster at “a”") && form.contains("no verdict at “d”"), "{form}");
    }
}

#[test]
fn page_one_counts_the_experiments_that_it_names() {
    let page = cover(&five_experiments());
    let load = page.facts.iter().find(|fact| fact.name == "Load").expect("a fact");
    let text = load.value[0].text.to_string();
    assert!(text.starts_with("5 experiments: "), "{text}");
}

#[test]
fn without_a_verdict_the_answer_says_why() {
    let answer = cover(&for_readers(paired(&around(1.2, 3)))).answer.to_string();
    assert!(
        answer.starts_with("No verdict on whether PostgreSQL 15 or MariaDB 10.11 is faster"),
        "{answer}"
    );
    assert!(answer.contains("fewer than 6 pairs"), "{answer}");
}

#[test]
fn levels_that_a_check_forbids_are_counted_among_those_without_a_verdict() {
    let mut run =
        run_with_experiments(&[("a", 1.2, 8), ("b", 0.8, 8), ("c", 1.2, 3), ("d", 1.1, 3)]);
    for trial in &mut run.trials {
        // Started and ended transactions that do not add up are an E.
        if matches!(trial.summary.experiment.as_str(), "a" | "b") {
            trial.summary.counts.started += 50;
        }
    }
    let paper = for_readers(run);
    let page = cover(&paper);
    let parts = std::iter::once(&page.answer).chain(&page.answers);
    let answer: String = parts.map(|part| format!("{part} ")).collect();
    assert!(answer.contains("No verdict at any of the 4 load levels"), "{answer}");
    assert!(answer.contains("Not usable for a claim"), "{answer}");
    let summary = paper.verdicts.sentence().expect("a sentence").to_string();
    assert!(
        summary.contains("at 4 load levels") && summary.contains("was undecided at 4."),
        "{summary}"
    );
    assert!(summary.contains("the check adds-up found can explain the differences of 2 of them"));
    assert!(!summary.contains("times as fast"), "{summary}");
}

#[test]
fn a_check_forbids_no_other_experiment_than_its_own() {
    let mut run = run_with_experiments(&[("a", 1.2, 8), ("b", 0.8, 8), ("c", 1.2, 8)]);
    for trial in &mut run.trials {
        match trial.summary.experiment.as_str() {
            "c" => {
                trial.summary.counts.failed = trial.summary.counts.started;
                trial.summary.counts.started *= 2;
            }
            _ => trial.summary.counts.started += 50,
        }
    }
    let paper = for_readers(run);
    let page = cover(&paper);
    let parts = std::iter::once(&page.answer).chain(&page.answers);
    let answer: String = parts.map(|part| format!("{part} ")).collect();
    let objections: Vec<&str> = answer.split("Not usable for a claim: ").skip(1).collect();
    for (id, wanted) in [("adds-up", [true, true, false]), ("errors-1", [false, false, true])] {
        let check = paper.checks.iter().find(|check| check.id == id).expect("a check");
        let number = format!("E{}: ", check.number);
        let objection = objections.iter().find(|part| part.contains(&number)).expect(&answer);
        let has_name = ["“a”", "“b”", "“c”"].map(|name| objection.contains(name));
        assert_eq!(has_name, wanted, "{answer}");
    }
}

#[test]
fn how_fast_it_is_is_said_of_what_is_decided_alone() {
    let paper = for_readers(run_with_experiments(&[("a", 1.2, 8), ("b", 1.25, 8), ("c", 3.0, 3)]));
    let summary = paper.verdicts.sentence().expect("a sentence").to_string();
    let speeds = summary.split("undecided at 1; ").nth(1).expect(&summary);
    let speeds = speeds.split(' ').take(3).filter_map(|word| word.parse::<f64>().ok());
    let highest = speeds.fold(0.0, f64::max);
    assert!(highest > 1.2 && highest < 1.3, "{summary}");
}

#[test]
fn a_figure_that_a_check_forbids_is_never_stated_without_it() {
    // Started and ended transactions that do not add up are an E.
    let spoilt = compared(1.2, |run| {
        for trial in &mut run.trials {
            trial.summary.counts.started += 50;
        }
    });
    let [errors, ..] = spoilt.check_counts();
    assert!(errors > 0, "the run is spoilt");
    let page = cover(&spoilt);
    let answer = page.answer.to_string();
    assert!(answer.contains("Not usable for a claim") && !answer.contains("% faster"), "{answer}");
    assert!(page.warnings.verdict.to_string().contains("forbid"), "{:?}", page.warnings.verdict);
    assert!(warnings(&page)[0].starts_with('E'), "{:?}", warnings(&page));
}

#[test]
fn every_e_and_w_stands_in_the_box() {
    let paper = Paper::new(&[two_targets(&[1, 8], 2, 40)], &[published()]);
    let items = warnings(&cover(&paper));
    let with_findings = paper.checks.iter().filter(|check| !check.findings.is_empty());
    for check in with_findings.filter(|check| check.level < dyno_report::Level::I) {
        let number = format!("{:?}{}", check.level, check.number);
        let mut words = items.iter().flat_map(|item| item.split([' ', ',']));
        assert!(words.any(|word| word == number), "{number}: {items:?}");
    }
    let in_words = items.iter().filter(|item| item.starts_with('W')).count();
    assert!(in_words <= 4, "{items:?}");
}

#[test]
fn failed_trials_leave_nothing_to_quote() {
    let failed = compared(1.2, |run| {
        for trial in &mut run.trials {
            trial.summary.status = dyno_facts::TrialStatus::Failed("it is gone".into());
        }
    });
    let verdict = cover(&failed).warnings.verdict.to_string();
    assert!(verdict.starts_with("1 finding (E) forbids quoting"), "{verdict}");
}

#[test]
fn a_shrunk_run_is_called_a_rehearsal() {
    assert!(cover(&compared(1.2, |_| {})).banner.is_empty());
    let shrunk = compared(1.2, |run| {
        run.header.plan.as_mut().expect("a plan").shrink = 0.01;
    });
    assert_eq!(
        cover(&shrunk).banner.to_string(),
        "REHEARSAL: data up to 100 times smaller than the suite's, windows 40 s"
    );
    assert!(
        shrunk.ending(Lang::En, 25).starts_with("REHEARSAL: "),
        "{}",
        shrunk.ending(Lang::En, 25)
    );
}

#[test]
fn titles_of_the_suite_and_names_of_the_publisher_reach_the_paper() {
    let mut run = run(&["maria"], two_targets(&[1, 8], 2, 40).trials.clone());
    run.header.targets[0].title = "The old server".to_owned();
    run.header.targets[0].title_zh = "旧服务器".to_owned();
    let runs = [run];
    let label = |texts: Option<&PaperTexts>, lang: Lang| {
        Paper::named(&runs, &[], &[], &Naming { texts, lang, by_product: true }).targets[0]
            .label
            .clone()
    };
    assert_eq!(label(None, Lang::En), "The old server");
    assert_eq!(label(None, Lang::Zh), "旧服务器");
    let mut texts = PaperTexts::default();
    let mut target_texts = TargetTexts::default();
    target_texts.name.en = "Product A".to_owned();
    texts.targets.insert("maria".to_owned(), target_texts);
    texts.title.en = "A white paper".to_owned();
    texts.conclusions.en = "It is **fast**.".to_owned();
    assert_eq!(label(Some(&texts), Lang::Zh), "Product A");
    let naming = Naming { texts: Some(&texts), ..Naming::default() };
    let paper = Paper::named(&runs, &[], &[], &naming);
    assert_eq!(paper.title, "A white paper");
    let text = paper.markdown(Lang::En);
    assert!(text.contains("Conclusions of the publisher") && text.contains("It is **fast**."));
}

#[test]
fn colors_and_logo_of_the_publisher_reach_page_print_and_charts() {
    let svg = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4=";
    let paper = compared(1.2, |run| {
        let texts = &mut run.header.plan.as_mut().expect("a plan").suite.publication;
        texts.logo = format!("data:image/svg+xml;base64,{svg}");
        let target = TargetTexts { color: "#7a0000".to_owned(), ..TargetTexts::default() };
        texts.targets.insert("postgres".to_owned(), target);
    });
    let place =
        paper.targets.iter().position(|target| target.facts.name == "postgres").expect("there");
    let html = paper.html(Lang::En);
    assert!(html.contains(&format!("<img class=\"logo\" src=\"data:image/svg+xml;base64,{svg}\"")));
    assert!(html.contains(&format!("--p{place}: #7a0000;")), "light");
    let classes = html.split("class=\"").filter_map(|part| part.split('"').next());
    let class = format!("p{place}");
    assert!(
        classes.into_iter().any(|names| names.split(' ').any(|name| name == class)),
        "in a chart"
    );
    let typst = paper.typst(Lang::En);
    assert!(typst.contains("cover(logo(\"svg\", bytes((60, 115, 118, 103, "), "print has the logo");
    assert!(paper.markdown(Lang::En).starts_with("![](logo.svg)\n\n# "));
    let (name, bytes) = paper.logo().expect("a file");
    assert_eq!((name.as_str(), bytes.starts_with(b"<svg xmlns=")), ("logo.svg", true));
    assert!(typst.contains(&format!("\"p{place}\": rgb(\"#7a0000\")")), "and the color");
    let charts = paper.charts(Lang::En);
    assert!(
        charts
            .iter()
            .any(|chart| chart.1.contains(&format!("svg .p{place} {{ color: #7a0000; }}")))
    );
}
