//! The words of publishers and suites: Markdown as far as blocks go.

use super::*;

/// A section of the publisher's own Markdown; nothing if there is none.
pub(super) fn text(title: Message, anchor: &str, text: &BothTexts, lang: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    if !text.is_empty() {
        blocks.heading(2, "", title, anchor);
        blocks.extend(markdown_blocks(&text.message().render(lang)));
    }
    blocks
}

/// The description of each suite.
pub(super) fn descriptions(paper: &Paper, lang: Lang) -> Blocks {
    let plans = paper.runs.iter().filter_map(|run| run.header.plan.as_ref());
    let descriptions =
        plans.map(|plan| Message::either(&plan.suite.description, &plan.suite.description_zh));
    let mut blocks = Blocks::default();
    for text in unique(descriptions.collect()) {
        blocks.extend(markdown_blocks(&text.render(lang)));
    }
    blocks
}

/// Paragraphs, headings, lists, code between fences or indented; within a line `code`, **strong**, *stressed* and links.
/// Everything else stays text.
pub(super) fn markdown_blocks(text: &str) -> Vec<Block> {
    let mut blocks = Blocks::default();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let line = line.trim_end();
        if line.starts_with("```") {
            let inside: Vec<&str> = lines.by_ref().take_while(|l| !l.starts_with("```")).collect();
            blocks.code(inside.join("\n"));
        } else if let Some(first) = line.strip_prefix("  ") {
            let further = std::iter::from_fn(|| lines.next_if(|l| l.starts_with("  "))?.get(2..));
            blocks.code(std::iter::once(first).chain(further).collect::<Vec<_>>().join("\n"));
        } else if let Some(title) = line.strip_prefix('#') {
            let n_marks = title.len() - title.trim_start_matches('#').len();
            let level = u8::try_from(n_marks + 1).unwrap_or(5).clamp(2, 5);
            blocks.heading(level, "", title.trim_start_matches('#').trim(), "");
        } else if let Some(first) = list_item(line) {
            let mut items = vec![first.to_owned()];
            while let Some(next) = lines.next_if(|next| !next.trim().is_empty()) {
                match (list_item(next), items.last_mut()) {
                    (None, Some(last)) => append_line(last, next),
                    (item, _) => items.extend(item.map(str::to_owned)),
                }
            }
            blocks.list(Style::Plain, items.iter().map(|item| parse_spans(item)).collect());
        } else if !line.is_empty() {
            let mut paragraph = line.trim().to_owned();
            while let Some(next) = lines.next_if(|next| {
                !next.trim().is_empty()
                    && list_item(next).is_none()
                    && !next.starts_with(['#', '`'])
            }) {
                append_line(&mut paragraph, next);
            }
            blocks.paragraph(parse_spans(&paragraph));
        }
    }
    blocks.0
}

/// Adds a line. Between Chinese characters a line break does not become a blank.
fn append_line(text: &mut String, line: &str) {
    let ends = [text.chars().last(), line.trim().chars().next()];
    let is_chinese = ends.into_iter().all(|end| end.is_some_and(is_wide));
    *text += if is_chinese { "" } else { " " };
    *text += line.trim();
}

fn list_item(line: &str) -> Option<&str> {
    line.strip_prefix("- ").or_else(|| line.strip_prefix("* "))
}

fn parse_spans(text: &str) -> TextLine {
    let mut line = TextLine::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let marks = [("`", Look::Code), ("**", Look::Strong), ("*", Look::Emphasis)];
        let mut marked_spans = marks.into_iter().filter_map(|(mark, look)| {
            split_enclosed(rest, mark).map(|(inside, after)| (Span::new(inside, look), after))
        });
        match marked_spans.next().or_else(|| split_link(rest)) {
            Some((span, after)) => {
                if !plain.is_empty() {
                    line.push(Span::plain(std::mem::take(&mut plain)));
                }
                line.push(span);
                rest = after;
            }
            None => {
                plain.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    if !plain.is_empty() {
        line.push(Span::plain(plain));
    }
    line
}

fn split_enclosed<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    text.strip_prefix(mark)?.split_once(mark).filter(|(inside, _)| !inside.is_empty())
}

/// `[text](https://...)`; other targets are left out.
fn split_link(text: &str) -> Option<(Span, &str)> {
    let (name, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (to, after) = rest.split_once(')')?;
    let is_known = ["https://", "http://", "#"].iter().any(|begin| to.starts_with(begin));
    is_known.then(|| (link(name, to), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_blocks() {
        let blocks = markdown_blocks(
            "# Mine\n\nOne `a*b`\ntwo **three** [four](https://x).\n\n- *a*\n  b\n- c\n\n```\nx\n```\n",
        );
        let [
            Block::Heading(heading),
            Block::Paragraph { text, .. },
            Block::List { items, .. },
            Block::Code { text: listing },
        ] = blocks.as_slice()
        else {
            panic!("{blocks:?}")
        };
        assert_eq!((heading.level, heading.title.to_string()), (2, "Mine".to_owned()));
        let looks: Vec<Look> = text.iter().map(|span| span.look).collect();
        let plain = Look::Plain;
        assert_eq!(looks, [plain, Look::Code, plain, Look::Strong, plain, plain, plain]);
        assert_eq!(text[5].to.as_deref(), Some("https://x"));
        assert_eq!((items.len(), items[0][1].text.to_string()), (2, " b".to_owned()));
        assert_eq!(listing, "x");
    }

    #[test]
    fn what_is_no_markup_stays_text() {
        for text in ["a ` b", "**", "[x](javascript:alert(1))", "2 * 3"] {
            let blocks = markdown_blocks(text);
            let [Block::Paragraph { text: line, .. }] = blocks.as_slice() else {
                panic!("{blocks:?}")
            };
            assert_eq!((line.len(), line[0].text.to_string()), (1, text.to_owned()));
        }
    }
}
