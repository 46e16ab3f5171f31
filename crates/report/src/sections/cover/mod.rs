//! Page one: what was compared, what came out, and what forbids quoting it.

mod answer;
pub(super) mod facts;
mod warnings;

use crate::families::family_of;
pub(crate) use answer::{why_forbidden, with_objections};

use crate::blocks::{Cover, Drawing};
use crate::charts;
use crate::evidence::{Paper, RunFacts};
use crate::format::{self, unique};
use crate::text::{Lang, Message};
use dyno_facts::{RunStatus, say};

pub(super) fn cover(paper: &Paper, lang: Lang) -> Cover {
    let (answer, answers) = answer::answer(paper);
    Cover {
        logo: paper.texts.logo.clone(),
        kicker: say!(database_performance_white_paper),
        title: paper.title.clone(),
        subtitle: paper.subtitle.clone(),
        byline: byline(paper),
        banner: rehearsal(paper).unwrap_or_default(),
        answer,
        answers,
        chart: charts::cover::figure_of(paper, lang).or_else(|| of_family(paper, lang)),
        facts: facts::facts(paper),
        warnings: warnings::warnings(paper),
        contents: say!(contents),
    }
}

/// The first chart of a family that draws its own.
fn of_family(paper: &Paper, lang: Lang) -> Option<Drawing> {
    paper.experiments.iter().find_map(|experiment| {
        let own = family_of(experiment)?.section(paper, experiment, lang)?;
        own.first_figure()
    })
}

/// Who measured and when, and how it ended where it did not end well.
fn byline(paper: &Paper) -> Message {
    let each = |of: fn(&RunFacts) -> &str| {
        let words: Vec<String> = paper.runs.iter().map(|run| of(run).to_owned()).collect();
        unique(words.into_iter().filter(|word| !word.is_empty()).collect())
    };
    let day = |time: &str| time.get(..10).unwrap_or(time).to_owned();
    let began: Vec<String> = each(|run| &run.header.started_at).iter().map(|at| day(at)).collect();
    let days = match (began.iter().min(), began.iter().max()) {
        (Some(first), Some(last)) if first != last => say!(days, first = first, last = last),
        (Some(first), _) => Message::verbatim(first),
        _ => say!(unknown),
    };
    let hosts = each(|run| &run.header.environment.host);
    let measured = match hosts.is_empty() {
        true => say!(measured_on_day, days = days),
        false => say!(measured_on_day_by_host, days = days, hosts = super::names(&hosts)),
    };
    let versions = each(|run| &run.header.environment.dyno_version).join(", ");
    let texts = &paper.texts;
    let who = [Message::verbatim(texts.authors.join(", ")), texts.organisation.message()];
    let who = who.into_iter().chain([Message::verbatim(&texts.date)]);
    let mut parts: Vec<Message> = who.filter(|part| !part.is_empty()).collect();
    parts.extend([measured, Message::verbatim(format!("dyno {versions}"))]);
    let is_open = |run: &&RunFacts| run.header.status != RunStatus::Complete;
    parts.extend(paper.runs.iter().filter(is_open).map(|run| run.status.clone()));
    Message::joined(&parts, " · ", " · ")
}

/// What a run of less than the suite's full size is: its data and windows.
pub(super) fn rehearsal(paper: &Paper) -> Option<Message> {
    let share = |run: &RunFacts| run.header.plan.as_ref().map_or(1.0, |plan| plan.shrink);
    let least = paper.runs.iter().map(share).reduce(f64::min).filter(|share| *share < 1.0)?;
    let times = format::plain(1.0 / least);
    let windows = paper.trials.iter().map(|trial| trial.summary.window_s).filter(|s| *s > 0.0);
    let (low, high) = windows
        .fold((f64::INFINITY, 0.0_f64), |(low, high), window| (low.min(window), high.max(window)));
    Some(match high > 0.0 {
        true => say!(rehearsal, times = times, windows = facts::seconds(low, high)),
        false => say!(rehearsal_of_passes, times = times),
    })
}

/// What the figures are worth, where nothing but figures is printed: the banner, and how many findings belong to them.
pub(crate) fn standing(paper: &Paper) -> Message {
    let verdict = warnings::verdict(paper);
    match rehearsal(paper) {
        Some(rehearsal) => say!(standing_of_rehearsal, rehearsal = rehearsal, verdict = verdict),
        None => say!(standing_of_full_size, verdict = verdict),
    }
}
