//! What suite and publisher say in their own words.

use crate::blocks::{Blocks, coded, of_markdown};
use crate::evidence::{Paper, RunFacts};
use crate::format::unique;
use crate::text::{Lang, Message};
use dyno_facts::{BothTexts, SuiteFacts};

/// A section of the publisher's own Markdown; nothing where there is none.
pub(super) fn text(title: Message, anchor: &str, text: &BothTexts, lang: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    if !text.is_empty() {
        blocks.section("", title, anchor);
        blocks.extend(of_markdown(&text.message().render(lang)));
    }
    blocks
}

/// What each suite says of itself.
pub(super) fn descriptions(paper: &Paper, lang: Lang) -> Blocks {
    let suite = |run: &RunFacts| run.header.plan.as_ref().map(|plan| plan.suite.clone());
    let both = |suite: SuiteFacts| Message::either(&suite.description, &suite.description_zh);
    let all: Vec<Message> = paper.runs.iter().filter_map(suite).map(both).collect();
    let mut blocks = Blocks::default();
    unique(all).iter().for_each(|text| paragraphs(&mut blocks, &text.render(lang)));
    blocks
}

/// Paragraphs of a suite's text: what is indented stands as it is, between backticks stands code.
pub(super) fn paragraphs(blocks: &mut Blocks, text: &str) {
    let parts = text.split("\n\n").map(|part| part.trim_matches('\n'));
    for part in parts.filter(|part| !part.trim().is_empty()) {
        if part.lines().all(|line| line.starts_with("  ")) {
            let lines: Vec<&str> = part.lines().map(|line| &line[2..]).collect();
            blocks.code(lines.join("\n"));
            continue;
        }
        let mut joined = String::new();
        for line in part.lines().map(str::trim) {
            // Between Chinese characters a break of lines is no blank.
            let is_wide = |c: Option<char>| c.is_some_and(crate::text::is_wide);
            let is_chinese = is_wide(joined.chars().last()) && is_wide(line.chars().next());
            if !joined.is_empty() && !is_chinese {
                joined.push(' ');
            }
            joined += line;
        }
        blocks.paragraph(coded(joined));
    }
}
