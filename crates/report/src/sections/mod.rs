//! The sections of a paper: what stands in which of them, in which order.

mod appendix;
mod brief;
mod cover;
mod environment;
mod experiment;
mod fairness;
mod fault;
mod fleet;
mod glossary;
mod limits;
mod method;
mod nodes;
mod published;
mod publisher;
mod purpose;
mod reproduce;
mod resources;
mod results;
mod short;
mod steady;
mod summary;
mod trials;
mod verdict;

pub(crate) use cover::{standing, why_forbidden, with_objections};
pub use fairness::of_settings as settings;
pub(crate) use summary::reached as results_reached;
pub use trials::{place, shades};

use crate::blocks::{
    Block, Blocks, Cell, CellValue, Level, Look, Span, Style, TextLine, bad, emphasis, strong,
};
use crate::evidence::{Edition, Paper, PaperTarget};
use crate::outcomes::CountedOutcome;
use crate::text::{Lang, Message};
use dyno_facts::CheckVerdict;
use dyno_facts::say;
use environment::is_of_several;

/// A section: its anchor, which also names the slots before and behind it, and what it says.
type Section = (&'static str, fn(&Paper, Lang) -> Blocks);

const SECTIONS: [Section; 11] = [
    ("summary", summary::blocks),
    ("purpose", purpose),
    ("environment", environment::blocks),
    ("fairness", fairness::blocks),
    ("method", method::blocks),
    ("results", results::blocks),
    ("resources", resources::blocks),
    ("published", published::blocks),
    ("limits", limits),
    ("reproduce", reproduce::blocks),
    ("appendix", appendix::blocks),
];

/// The sections of the paper's edition.
fn sections(paper: &Paper) -> impl Iterator<Item = Section> {
    let is_short = paper.is_short();
    let in_short = move |(anchor, whole): Section| -> Section {
        match anchor {
            "method" if is_short => (anchor, short::method),
            "results" if is_short => (anchor, short::results),
            _ => (anchor, whole),
        }
    };
    let is_kept = move |(anchor, _): &Section| !(is_short && short::FULL_ONLY.contains(anchor));
    SECTIONS.into_iter().filter(is_kept).map(in_short)
}

/// Places where a user's own text may stand: before the first section and behind each.
pub(crate) fn slots() -> impl Iterator<Item = String> {
    let behind = SECTIONS.iter().map(|(anchor, _)| format!("after-{anchor}"));
    std::iter::once("before-summary".to_owned()).chain(behind)
}

/// All of a paper; `slot` gives the user's own blocks for a place.
pub(crate) fn of_paper(paper: &Paper, lang: Lang, slot: impl Fn(&str) -> Vec<Block>) -> Vec<Block> {
    let mut blocks = vec![Block::Cover(Box::new(cover::cover(paper, lang)))];
    let texts = &paper.texts;
    blocks.extend(publisher::text(say!(preface), "preface", &texts.preface, lang));
    blocks.extend(publisher::text(say!(introduction), "products", &texts.introduction, lang));
    blocks.extend(slot("before-summary"));
    for (anchor, make) in sections(paper) {
        blocks.extend(make(paper, lang));
        if anchor == "summary" {
            let title = say!(conclusions_of_the_publisher);
            blocks.extend(publisher::text(title, "conclusions", &texts.conclusions, lang));
        }
        blocks.extend(slot(&format!("after-{anchor}")));
    }
    blocks.extend(publisher::text(say!(legal_notice), "legal", &texts.legal, lang));
    match paper.edition {
        Edition::Full => blocks,
        Edition::Short => short::shortened(blocks),
    }
}

/// What a terminal shows of a paper: its tables of results, accounting, errors and checks of the data.
pub(crate) fn of_verdicts(paper: &Paper, lang: Lang) -> Vec<Block> {
    verdict::blocks(paper, lang).0
}

/// What a terminal shows at the end of a run.
pub(crate) fn at_the_end(paper: &Paper) -> Vec<Block> {
    brief::blocks(paper).0
}

pub(crate) fn for_terminal(paper: &Paper, lang: Lang) -> Vec<Block> {
    let mut blocks = Blocks::default();
    blocks.heading(2, "", paper.title.clone(), "");
    let target = |target: &PaperTarget| match target.product.as_str() {
        "" => vec![Span::plain(&target.label)],
        product => vec![Span::plain(format!("{}: {product}", target.label))],
    };
    blocks.list(Style::Plain, paper.targets.iter().map(target).collect());
    if paper.trials.is_empty() {
        blocks.paragraph(summary::no_trial(paper));
        return blocks.0;
    }
    blocks.table(summary::best(paper));
    for experiment in &paper.experiments {
        experiment::terminal(paper, experiment, &mut blocks);
    }
    if !paper.faults().is_empty() {
        blocks.heading(3, "", say!(failover_and_durability), "");
        blocks.extend(fault::blocks(paper, lang));
    }
    blocks.heading(3, "", say!(every_trial), "");
    trials::terminal(paper, &mut blocks);
    steady::errors(paper, &mut blocks);
    blocks.0
}

fn purpose(paper: &Paper, lang: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.section("2", say!(purpose_and_limits_of_the_claims), "purpose");
    blocks.extend(publisher::descriptions(paper, lang));
    blocks.list(Style::Plain, plain_items(&purpose::sentences(paper)));
    let more = say!(what_else_limits_the_claims_stands, number = "9");
    blocks.paragraph(crate::blocks::link(more, "#limits"));
    blocks
}

fn limits(paper: &Paper, _: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.section("9", say!(limits), "limits");
    blocks.list(Style::Plain, plain_items(&limits::sentences(paper)));
    limits::of_plans(paper, &mut blocks);
    if !paper.is_short() {
        limits::known_effects(paper, &mut blocks);
    }
    blocks
}

/// Sentences as the items of a list.
pub fn plain_items(texts: &[Message]) -> Vec<TextLine> {
    texts.iter().map(|text| vec![Span::plain(text)]).collect()
}

/// Numbers of checks with their levels; of several runs in short those that forbid a figure.
pub fn notes(paper: &Paper, numbers: &[usize]) -> Cell {
    let shown: Vec<(Level, usize)> = levels(paper, numbers).collect();
    match shown.is_empty() {
        true => Cell::blank(),
        false => CellValue::Notes(shown).into(),
    }
}

fn levels(paper: &Paper, numbers: &[usize]) -> impl Iterator<Item = (Level, usize)> {
    let all = numbers.iter().map(move |number| (paper.checks[*number - 1].level, *number));
    all.filter(move |(level, _)| *level == Level::E || !is_of_several(paper))
}

/// The same as spans, for small print.
pub(crate) fn note_spans(paper: &Paper, numbers: &[usize]) -> TextLine {
    let span = |(level, number)| {
        let text = format!("{level:?}{number}");
        Span { text: text.into(), look: Look::Note(level), to: Some(format!("#check-{number}")) }
    };
    levels(paper, numbers).map(span).collect()
}

/// How a trial or the trials of a point ended.
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

/// A target, and how its trials ended where they did not end well.
pub fn target_of(target: &str, status: &str) -> TextLine {
    let mut line = vec![Span::plain(target)];
    if status != "complete" {
        line.push(Span::plain(say!(in_brackets, what = ended(status))));
    }
    line
}

/// A fact that may be unknown.
pub(crate) fn known(fact: &str) -> Message {
    if fact.is_empty() { say!(unknown) } else { Message::from(fact) }
}

pub(crate) fn yes_or_no(is_so: bool) -> Message {
    if is_so { say!(yes) } else { say!(no_2) }
}

/// How a check of the data ended.
pub fn verdict_of(verdict: CheckVerdict) -> Span {
    match verdict {
        CheckVerdict::Passed => Span::plain(say!(passed)),
        CheckVerdict::Failed => bad(say!(failed_2)),
        CheckVerdict::NotMade => emphasis(say!(not_made)),
    }
}

/// How something ended, in which trials; brief where what passed needs no evidence.
pub fn outcomes(outcomes: &[CountedOutcome], is_brief: bool) -> TextLine {
    let told = |outcome: &CountedOutcome| {
        let mut line = TextLine::new();
        if let Some(trials) = &outcome.trials {
            line.push(Span::plain(say!(trials_2, trials = trials)));
        }
        let evidence = outcome.evidence.as_ref();
        match (outcome.verdict, evidence) {
            (None, _) => line.extend(evidence.map(Span::plain)),
            (Some(verdict), _) => line.push(verdict_of(verdict)),
        }
        let is_said = outcome.verdict.is_some_and(|v| v != CheckVerdict::Passed || !is_brief);
        if let Some(evidence) = evidence.filter(|_| is_said) {
            line.push(Span::plain(say!(evidence, evidence = evidence)));
        }
        line
    };
    crate::blocks::lines(outcomes.iter().map(told))
}

/// Spans with a text between them.
pub fn separated(spans: impl IntoIterator<Item = Span>, between: &str) -> TextLine {
    let mut line = TextLine::new();
    for span in spans {
        if !line.is_empty() {
            line.push(Span::plain(between));
        }
        line.push(span);
    }
    line
}

/// Texts of a line with what stands between them in each language.
pub(crate) fn listed(texts: &[Message]) -> Message {
    Message::joined(texts, ", ", "、")
}

/// Clauses of a line.
pub(crate) fn clauses(texts: &[Message]) -> Message {
    Message::joined(texts, "; ", "；")
}

/// The same of names.
pub(crate) fn names<T: AsRef<str>>(names: &[T]) -> Message {
    listed(&names.iter().map(|name| Message::from(name.as_ref())).collect::<Vec<_>>())
}

/// A strong text where something is wrong, a plain one elsewhere.
pub fn bad_if(is_bad: bool, text: impl Into<Message>) -> Span {
    if is_bad { bad(text) } else { Span::plain(text) }
}

/// The row of a sum: its name stands out.
pub(crate) fn sum_or(name: &str, sum: Message) -> Span {
    if name.is_empty() { strong(sum) } else { Span::plain(name) }
}
