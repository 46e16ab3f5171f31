//! What stands above the first section.

use crate::blocks::{Cover, Fact, Look, Span, TextLine};
use crate::evidence::{Level, Paper, RunFacts};
use crate::format::{DASH, unique};
use crate::text::Message;
use dyno_facts::say;

pub(super) fn cover(paper: &Paper) -> Cover {
    Cover {
        kicker: say!(database_performance_white_paper),
        title: paper.title.clone(),
        byline: products(paper).join(" · "),
        verdict: Message::sentences(&super::summary::headline(paper)),
        facts: facts(paper),
        contents: say!(contents),
    }
}

fn products(paper: &Paper) -> Vec<String> {
    let products = paper.targets.iter().map(|target| target.product.clone());
    unique(products.filter(|product| !product.is_empty()).collect())
}

fn facts(paper: &Paper) -> Vec<Fact> {
    let each = |of: fn(&RunFacts) -> &str| {
        let words: Vec<String> = paper.runs.iter().map(|run| of(run).to_owned()).collect();
        unique(words.into_iter().filter(|word| !word.is_empty()).collect())
    };
    let began = each(|run| &run.header.started_at).into_iter().min().unwrap_or_default();
    let ends: Option<Vec<String>> =
        paper.runs.iter().map(|run| run.header.finished_at.clone()).collect();
    let measured = match ends.and_then(|ends| ends.into_iter().max()) {
        Some(ended) => format!("{began} {DASH} {ended}"),
        None => began,
    };
    let hashes = each(|run| &run.header.environment.binary_sha256);
    let short = |hash: &String| format!("SHA-256 {}…", hash.get(..16).unwrap_or(hash)).into();
    let fact = |name: Message, value: String| Fact {
        name,
        value: vec![Span::plain(value)],
        below: Vec::new(),
    };
    let mut facts = vec![
        fact(say!(measured_2), measured),
        Fact {
            below: hashes.iter().map(short).collect(),
            ..fact("dyno".into(), each(|run| &run.header.environment.dyno_version).join(", "))
        },
    ];
    facts.extend(paper.runs.iter().map(|run| Fact {
        below: vec![run.status.clone()],
        ..fact(say!(run_number, number = run.number.to_string()), run.folder.clone())
    }));
    let made = say!(of_checks_made, n = paper.checks.len().to_string());
    facts.push(Fact { name: say!(checks), value: counts(paper), below: vec![made] });
    facts
}

/// How many checks of each level have found something.
fn counts(paper: &Paper) -> TextLine {
    let mut line = TextLine::new();
    for (level, count) in [Level::E, Level::W, Level::I].into_iter().zip(paper.check_counts()) {
        let to = Some("#checks".to_owned());
        let text = format!("{level:?}").into();
        line.push(Span { text, look: Look::Note(level), to: to.clone() });
        line.push(Span { text: format!(" {count} ").into(), look: Look::Count, to });
    }
    line
}
