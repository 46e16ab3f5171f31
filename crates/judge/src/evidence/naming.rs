//! What a paper and its targets are called: by the publisher, by the suite, by their names.

use super::model::major_product;
use super::runs::before_of_primary;
use crate::format::unique;
use crate::text::{Lang, Message};
use dyno_facts::{PaperTexts, SuiteFacts, TargetTexts, say};
use dyno_store::RunData;

/// A longer first sentence of a description is no subtitle.
const LONGEST_SUBTITLE: usize = 240;
/// A longer title of a target has no room beside an axis or in a column: its name stands there.
const LONGEST_LABEL: usize = 28;

/// Whose words are taken, in which language.
#[derive(Clone, Copy, Debug, Default)]
pub struct Naming<'a> {
    /// Instead of those that the suite has.
    pub texts: Option<&'a PaperTexts>,
    pub lang: Lang,
    /// Targets without a title are called by product and version: readers of a paper don't know the names of its
    /// command line.
    pub by_product: bool,
}

impl<'a> Naming<'a> {
    /// The publisher's texts for a run.
    pub(super) fn texts(&self, run: Option<&'a RunData>) -> Option<&'a PaperTexts> {
        self.texts.or_else(|| Some(&suite(run?)?.publication))
    }

    /// What the publisher says of a target.
    pub(super) fn target(&self, run: &'a RunData, name: &str) -> Option<&'a TargetTexts> {
        self.texts(Some(run))?.targets.get(name)
    }

    /// The name that tables show, another for each target: by the publisher, by the suite where its title is short,
    /// by product and version, by its name; where runs share a name, with the run's number.
    pub(super) fn label(&self, runs: &'a [RunData], index: usize, name: &str) -> String {
        let run = &runs[index];
        let own = self.called(run, name);
        let others = || {
            let of = |run: &'a RunData| names_of(run).into_iter().map(move |name| (run, name));
            runs.iter().flat_map(of).filter(|(_, other)| other != name)
        };
        let is_shared = others().any(|(run, other)| self.called(run, &other).text == own.text);
        let label = match (is_shared, own.is_product) {
            (false, _) => own.text,
            (true, true) => name.to_owned(),
            (true, false) => format!("{} ({name})", own.text),
        };
        let has_it = |run: &&RunData| names_of(run).iter().any(|other| other == name);
        match runs.iter().filter(has_it).count() {
            0 | 1 => label,
            _ => say!(label_of_run, label = label, n = index + 1).render(self.lang),
        }
    }

    /// What it is called as long as no other target is called the same.
    fn called(&self, run: &'a RunData, name: &str) -> Called {
        if let Some(text) = self.title(run, name) {
            return Called { text, is_product: false };
        }
        match major_product(&product(run, name)).filter(|_| self.by_product) {
            Some(text) => Called { text, is_product: true },
            None => Called { text: name.to_owned(), is_product: false },
        }
    }

    /// The publisher's name for it, or that of the suite where it is short.
    fn title(&self, run: &'a RunData, name: &str) -> Option<String> {
        let published = self.target(run, name).map(|own| own.name.message().render(self.lang));
        let facts = run.header.targets.iter().find(|facts| facts.name == name);
        let of_suite = facts.map(|facts| Message::either(&facts.title, &facts.title_zh));
        let of_suite = of_suite.map(|title| title.render(self.lang));
        let of_suite = of_suite.filter(|title| title.chars().count() <= LONGEST_LABEL);
        [published, of_suite].into_iter().flatten().find(|title| !title.is_empty())
    }
}

struct Called {
    text: String,
    /// True where it is no name that somebody gave it.
    is_product: bool,
}

/// The targets that a run names or has measured.
fn names_of(run: &RunData) -> Vec<String> {
    let named = run.header.targets.iter().map(|target| target.name.clone());
    unique(named.chain(run.trials.iter().map(|trial| trial.summary.target.clone())).collect())
}

/// Product and version of a target: as stated, else as its node says that takes writes, else as its first one does.
pub(super) fn product(run: &RunData, name: &str) -> String {
    let facts = run.header.targets.iter().find(|facts| facts.name == name);
    let stated = facts.map(|facts| [&facts.product, &facts.version]);
    let own = || run.trials.iter().filter(|trial| trial.summary.target == name);
    let told = || own().find_map(before_of_primary).map(|node| [&node.product, &node.version]);
    let words = stated.filter(|words| !words[0].is_empty()).or_else(told).or(stated);
    let words = words.into_iter().flatten().map(String::as_str).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

fn suite(run: &RunData) -> Option<&SuiteFacts> {
    run.header.plan.as_ref().map(|plan| &plan.suite)
}

/// The publisher's title, or that of the suite; of several suites how many there are.
pub(super) fn title(runs: &[RunData], texts: &PaperTexts) -> Message {
    if !texts.title.is_empty() {
        return texts.title.message();
    }
    let mut titles: Vec<Message> = Vec::new();
    for run in runs {
        let title_zh = suite(run).map_or("", |suite| suite.title_zh.as_str());
        let title = Message::either(&run.header.title, title_zh);
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    match titles.as_slice() {
        [first, _, ..] => say!(and_other_suites, title = first, n = titles.len() - 1),
        _ => Message::list(&titles),
    }
}

/// The publisher's subtitle, or the first sentence of the suite's description.
pub(super) fn subtitle(runs: &[RunData], texts: &PaperTexts) -> Message {
    if !texts.subtitle.is_empty() {
        return texts.subtitle.message();
    }
    let mut descriptions = runs.iter().filter_map(suite);
    let Some(first) = descriptions.next() else { return Message::default() };
    if descriptions.any(|other| other.description != first.description) {
        return Message::default();
    }
    let sentence = |text: &str, end: &str, stop: &str| {
        let text = text.split("\n\n").next().unwrap_or_default();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let first = text.split_once(end).map(|(first, _)| format!("{first}{stop}"));
        first.unwrap_or(text)
    };
    let both =
        [sentence(&first.description, ". ", "."), sentence(&first.description_zh, "。", "。")];
    let [en, zh] =
        both.map(|text| if text.chars().count() > LONGEST_SUBTITLE { String::new() } else { text });
    Message::either(&en, &zh)
}
