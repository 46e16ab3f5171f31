//! The sections of a paper: their contents and their order.

mod appendix;
mod cover;
mod ending;
mod environment;
mod fault;
mod method;
mod nodes;
mod published;
mod publisher;
mod results;
mod short;
mod summary;

pub use environment::settings_table as settings;
pub use results::{place, shades};

pub use crate::blocks::separated;
use crate::blocks::*;
use crate::charts;
use crate::evidence::published::{condition_name, published_metric};
use crate::evidence::*;
use crate::families::{Method, families, find_family};
use crate::format::{self, NumberFormat, NumberFormat::*, grouped, shell_word, unique, whole};
use crate::svg::{ChartRow, Shade, is_wide, svg_size};
use crate::write::terminal;
use dyno_facts::statistics::gate::Objective;
use dyno_facts::statistics::ratio::Judging;
use dyno_facts::statistics::{ALPHA, Metric, mean, proportion_interval};
use dyno_facts::{
    BothTexts, CheckVerdict, CommitWait, DataCheck, DataFacts, EffectFacts, Environment, EventKind,
    FaultFacts, Freshness, GeneratorConditions, GeneratorMember, Lang, LatencySummary, LogInFacts,
    Measures, Message, NodeConditions, NodeRow, PublishedRow, Purpose, Role, Route, RunPlan,
    RunStatus, SeriesRow, StageFacts, TargetNode, TrialStatus, TrialSummary, say,
};
use dyno_judge::findings::checks::Caveat;
use dyno_judge::{KnownFamily, first_sentence};
use environment::is_short_multi_run;
use serde::Serialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// A section: its anchor, number and title, and what it says in the full edition and in the short one.
type Section = (&'static str, &'static str, fn() -> Message, MakeSection, Option<MakeSection>);
type MakeSection = fn(&Paper, Lang, &mut Blocks);

const SECTIONS: [Section; 11] = [
    ("summary", "1", || say!(summary), summary::blocks, Some(summary::blocks)),
    (
        "purpose",
        "2",
        || say!(purpose_and_limits_of_the_claims),
        method::purpose,
        Some(method::purpose),
    ),
    ("environment", "3", || say!(environment), environment::blocks, Some(environment::blocks)),
    ("fairness", "4", || say!(fairness), environment::fairness, Some(environment::fairness)),
    ("method", "5", || say!(method), method::blocks, Some(short::method)),
    ("results", "6", || say!(results), results::blocks, Some(short::results)),
    ("resources", "7", || say!(resource_use), appendix::resources, None),
    (
        "published",
        "8",
        || say!(against_published_figures),
        published::blocks,
        Some(published::blocks),
    ),
    ("limits", "9", || say!(limits), method::limits, Some(method::limits)),
    ("reproduce", "10", || say!(reproduce), method::reproduce, Some(method::reproduce)),
    ("appendix", "", || say!(appendix), appendix::blocks, None),
];

impl Paper {
    /// Returns all that it says and shows.
    pub fn blocks(&self, lang: Lang) -> Vec<Block> {
        let mut blocks = Blocks(vec![Block::Cover(Box::new(cover::cover(self, lang)))]);
        let texts = &self.texts;
        blocks.extend(publisher::text(say!(preface), "preface", &texts.preface, lang));
        blocks.extend(publisher::text(say!(introduction), "products", &texts.introduction, lang));
        for (anchor, number, title, full, short) in SECTIONS {
            if let Some(make) = if self.is_short() { short } else { Some(full) } {
                blocks.heading(2, number, title(), anchor);
                make(self, lang, &mut blocks);
            }
            if anchor == "summary" {
                let title = say!(conclusions_of_the_publisher);
                blocks.extend(publisher::text(title, "conclusions", &texts.conclusions, lang));
            }
        }
        blocks.extend(publisher::text(say!(legal_notice), "legal", &texts.legal, lang));
        match self.edition {
            Edition::Full => blocks.0,
            Edition::Short => short::shortened(blocks.0),
        }
    }

    /// Its tables of comparisons and gates, for a terminal.
    pub fn verdict_tables(&self, lang: Lang) -> String {
        let mut blocks = Blocks::default();
        summary::verdict_blocks(self, lang, &mut blocks);
        terminal(&blocks.0, lang)
    }

    /// Its tables of results, for a terminal that shows a run again.
    pub fn terminal(&self, lang: Lang) -> String {
        let mut blocks = Blocks::default();
        blocks.heading(2, "", self.title.clone(), "");
        let targets = self.targets.iter().map(|target| match target.product.as_str() {
            "" => vec![Span::plain(&target.label)],
            product => vec![Span::plain(format!("{}: {product}", target.label))],
        });
        blocks.list(Style::Plain, targets.collect());
        if self.trials.is_empty() {
            blocks.paragraph(summary::no_trial(self));
            return terminal(&blocks.0, lang);
        }
        blocks.table(summary::best(self));
        results::blocks(self, lang, &mut blocks);
        blocks.heading(3, "", say!(every_trial), "");
        results::trial_blocks(self, lang, &mut blocks);
        terminal(&blocks.0, lang)
    }
}

/// Sentences as the items of a list.
pub fn plain_items(texts: &[Message]) -> Vec<TextLine> {
    texts.iter().map(|text| vec![Span::plain(text)]).collect()
}

/// Numbers of checks with their levels; of several runs in short those that forbid a figure.
pub fn notes(paper: &Paper, numbers: &[usize]) -> Cell {
    let levels: Vec<(Level, usize)> = shown_levels(paper, numbers).collect();
    if levels.is_empty() { Cell::blank() } else { CellValue::Notes(levels).into() }
}

fn shown_levels(paper: &Paper, numbers: &[usize]) -> impl Iterator<Item = (Level, usize)> {
    let levels = numbers.iter().map(move |number| (paper.checks[*number - 1].level, *number));
    levels.filter(move |(level, _)| *level == Level::E || !is_short_multi_run(paper))
}

/// Numbers of checks as spans, for small print.
pub(crate) fn note_spans(paper: &Paper, numbers: &[usize]) -> TextLine {
    shown_levels(paper, numbers).map(|(level, number)| note(level, number)).collect()
}

/// The end of a trial or of the trials of a point.
pub fn ended(status: &str) -> Message {
    match status {
        "complete" => say!(complete),
        "interrupted" => say!(interrupted),
        "failed" => say!(failed),
        "starved" => say!(starved),
        "stage" => say!(stage_counts),
        _ => say!(running),
    }
}

/// A target, and how its trials ended if they did not end well.
pub fn target_of(target: &str, status: &str) -> TextLine {
    let mut line = vec![Span::plain(target)];
    if status != "complete" {
        line.push(Span::plain(say!(in_brackets, what = ended(status))));
    }
    line
}

/// The place of data by how many times they fill the memory for them.
pub(crate) fn fit_in_memory(times: f64) -> Message {
    match times {
        times if times <= IN_MEMORY => say!(in_memory),
        times if times <= BEYOND_MEMORY => say!(at_the_edge),
        _ => say!(larger_than_the_buffers),
    }
}

/// A fact that may be unknown.
pub(crate) fn or_unknown(fact: &str) -> Message {
    if fact.is_empty() { say!(unknown) } else { Message::from(fact) }
}

pub(crate) fn yes_or_no(is_so: bool) -> Message {
    if is_so { say!(yes) } else { say!(no_word) }
}

/// The outcome of a check of the data.
pub fn verdict_of(verdict: CheckVerdict) -> Span {
    match verdict {
        CheckVerdict::Passed => Span::plain(say!(passed)),
        CheckVerdict::Failed => bad(say!(check_failed)),
        CheckVerdict::NotMade => emphasis(say!(not_made)),
    }
}

/// An outcome with its trials.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CountedOutcome {
    /// The outcome; `None` if there is nothing to judge.
    pub verdict: Option<CheckVerdict>,
    /// The figures it rests on, or why it was not made.
    pub evidence: Option<Message>,
    /// `trial 1`, `trials 2 and 3`; `None` if it is about every trial of the experiment.
    pub trials: Option<Message>,
}

/// A verdict and what it rests on.
pub type Judged = (Option<CheckVerdict>, Option<Message>);

/// Groups trials of the same outcome, in the order of their first.
pub fn count_outcomes(trials: &[&Trial], judge: impl Fn(&Trial) -> Judged) -> Vec<CountedOutcome> {
    let groups = grouped(trials.iter().map(|trial| (judge(trial), trial.label.clone())));
    let is_uniform = groups.len() == 1;
    let outcomes = groups.into_iter().map(|((verdict, evidence), names)| {
        let trials = (!is_uniform).then(|| Spot { kind: SpotKind::Trial, names }.text());
        CountedOutcome { verdict, evidence, trials }
    });
    outcomes.collect()
}

/// Outcomes with their trials; brief if passed ones need no evidence.
pub fn outcomes(outcomes: &[CountedOutcome], is_brief: bool) -> TextLine {
    let outcome_lines = outcomes.iter().map(|outcome| {
        let mut line = TextLine::new();
        if let Some(trials) = &outcome.trials {
            line.push(Span::plain(say!(trials_prefix, trials)));
        }
        let evidence = outcome.evidence.as_ref();
        match (outcome.verdict, evidence) {
            (None, _) => line.extend(evidence.map(Span::plain)),
            (Some(verdict), _) => line.push(verdict_of(verdict)),
        }
        let needs_evidence =
            outcome.verdict.is_some_and(|verdict| verdict != CheckVerdict::Passed || !is_brief);
        if let Some(evidence) = evidence.filter(|_| needs_evidence) {
            line.push(Span::plain(say!(evidence, evidence)));
        }
        line
    });
    lines(outcome_lines)
}

/// The lowest and the highest.
pub(crate) fn min_and_max(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let ranges = values.into_iter().map(|value| (value, value));
    ranges.reduce(|(low, high), (value, _)| (low.min(value), high.max(value)))
}

/// Both ends; one if they look the same.
pub(crate) fn low_to_high(low: String, high: String) -> Message {
    if low == high { Message::verbatim(low) } else { say!(low_to_high, low, high) }
}

/// Texts of a line with the separators of each language.
pub(crate) fn join_list(texts: &[Message]) -> Message {
    Message::joined(texts, ", ", "、")
}

/// Clauses of a line.
pub(crate) fn join_clauses(texts: &[Message]) -> Message {
    Message::joined(texts, "; ", "；")
}

/// Names of a line.
pub(crate) fn join_names<T: AsRef<str>>(names: &[T]) -> Message {
    join_list(&names.iter().map(|name| Message::from(name.as_ref())).collect::<Vec<_>>())
}

/// A strong text where something is wrong, a plain one elsewhere.
pub fn bad_if(is_bad: bool, text: impl Into<Message>) -> Span {
    if is_bad { bad(text) } else { Span::plain(text) }
}

/// A name; for the row of a sum, which has none, the words for it in bold.
pub(crate) fn sum_or(name: &str, sum: Message) -> Span {
    if name.is_empty() { strong(sum) } else { Span::plain(name) }
}
