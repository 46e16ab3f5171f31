//! What a paper and its targets are called: by the publisher, by the suite, by their names.

use crate::text::{Lang, Message};
use dyno_facts::{PaperTexts, SuiteFacts, TargetFacts, TargetTexts, say};
use dyno_store::RunData;

/// A longer first sentence of a description is no subtitle.
const LONGEST_SUBTITLE: usize = 240;

/// Whose words are taken, in which language.
#[derive(Clone, Copy, Debug, Default)]
pub struct Naming<'a> {
    /// Instead of those that the suite has.
    pub texts: Option<&'a PaperTexts>,
    pub lang: Lang,
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

    /// The name that tables show; with that of the suite behind it where another target is called the same.
    pub(super) fn shown(&self, run: &'a RunData, name: &str) -> String {
        let shown = self.title(run, name);
        let is_same =
            |other: &&TargetFacts| other.name != name && self.title(run, &other.name) == shown;
        match run.header.targets.iter().find(is_same) {
            Some(_) => format!("{shown} ({name})"),
            None => shown,
        }
    }

    fn title(&self, run: &'a RunData, name: &str) -> String {
        let published = self.target(run, name).map(|own| own.name.message());
        let facts = run.header.targets.iter().find(|facts| facts.name == name);
        let of_suite = facts.map(|facts| Message::either(&facts.title, &facts.title_zh));
        let chosen = [published, of_suite].into_iter().flatten().find(|text| !text.is_empty());
        chosen.map_or_else(|| name.to_owned(), |text| text.render(self.lang))
    }
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
