//! The box "Read this before quoting": every finding that forbids or qualifies a figure, in words.

use crate::blocks::{CoverWarnings, Level, Look, Span, TextLine};
use crate::evidence::{Check, Experiment, Paper, Spot, SpotKind, Trial};
use crate::text::{Lang, Message, first_sentence};
use dyno_facts::{TrialStatus, say};

/// Further caveats of several runs stand in section 4.4 alone.
const MOST_CAVEATS: usize = 12;
/// More experiments are counted instead: page one has no room for all their names.
const MOST_NAMED: usize = 3;

pub(super) fn warnings(paper: &Paper) -> CoverWarnings {
    let of = |level: Level| {
        let is = move |check: &&Check| check.level == level && !check.findings.is_empty();
        paper.checks.iter().filter(is)
    };
    let caveats: Vec<&Check> = of(Level::W).collect();
    let most = if paper.runs.len() > 1 { MOST_CAVEATS } else { usize::MAX };
    let (told, further) = caveats.split_at(caveats.len().min(most));
    let told = told.iter().map(|check| in_brief(paper, check));
    let mut items: Vec<TextLine> = of(Level::E).map(in_full).chain(told).collect();
    if !further.is_empty() {
        let mut line = vec![Span::plain(say!(further_caveats, n = further.len()))];
        line.extend(further.iter().map(|check| note(check)));
        items.push(line);
    }
    CoverWarnings { title: say!(read_this_before_quoting), verdict: verdict(paper), items }
}

/// How many findings forbid or qualify the figures, and which of those that don't forbid them are of disturbances: a
/// verdict that is missing beside may be missing because of these.
pub(super) fn verdict(paper: &Paper) -> Message {
    let [forbidding, caveats, _] = paper.check_counts();
    match (forbidding, caveats) {
        _ if paper.checks.is_empty() => say!(no_check_was_made),
        (0, _) if !paper.trials.iter().any(is_worth_quoting) => say!(no_trial_is_complete),
        (0, 0) => say!(no_check_has_objections),
        (0, n) if super::rehearsal(paper).is_some() => say!(caveats_of_rehearsal, n = n),
        (0, n) => match paper.disturbances() {
            (ids, _) if ids.is_empty() => say!(caveats_belong_beside, n = n),
            (ids, trials) => say!(
                caveats_beside_disturbed_trials,
                ids = Message::list(&ids),
                found = trials.to_string(),
                all = paper.trials.len().to_string(),
                n = n
            ),
        },
        (n, _) => say!(findings_forbid_quoting, n = n),
    }
}

fn is_worth_quoting(trial: &Trial) -> bool {
    !matches!(trial.summary.status, TrialStatus::Failed(_) | TrialStatus::Interrupted)
}

/// What forbids a figure says where, and what it means.
fn in_full(check: &Check) -> TextLine {
    let place = check.lines.first().cloned().unwrap_or_default();
    // A place that is a sentence has its full stop already.
    let [en, zh] = Lang::ALL.map(|lang| place.render(lang));
    let place = Message::both(en.trim_end_matches('.'), zh.trim_end_matches('。'));
    let mut line = vec![note(check)];
    line.extend(accepted(check));
    line.push(Span::plain(Message::sentences(&[
        check.meaning.clone(),
        say!(found_at, place = place),
    ])));
    line
}

/// What qualifies a figure, and the results that it concerns where these are not all.
fn in_brief(paper: &Paper, check: &Check) -> TextLine {
    let mut line = vec![note(check)];
    line.extend(accepted(check));
    let meaning = first_sentence(&check.meaning);
    let own = experiments_of(paper, check);
    line.push(Span::plain(match own.len() {
        0 => meaning,
        all if all == paper.experiments.len() => meaning,
        found if found > MOST_NAMED => {
            let [found, all] = [found, paper.experiments.len()].map(|n| n.to_string());
            say!(caveat_concerns_so_many, caveat = meaning, found = found, all = all)
        }
        _ => say!(caveat_concerns, caveat = meaning, results = Message::list(&own)),
    }));
    line
}

/// The titles of the experiments in which it found something; none where it concerns targets or runs.
fn experiments_of(paper: &Paper, check: &Check) -> Vec<Message> {
    let is_of = |experiment: &Experiment, spot: &Spot| {
        let has = |name: &String| match spot.kind {
            SpotKind::Trial => paper
                .trials
                .iter()
                .any(|trial| trial.label == *name && trial.summary.experiment == experiment.name),
            SpotKind::Comparison => paper
                .verdicts
                .comparisons
                .iter()
                .any(|of| of.name == *name && of.experiment == experiment.name),
            SpotKind::Experiment => *name == experiment.name,
            SpotKind::Target | SpotKind::Run => false,
        };
        spot.names.iter().any(has)
    };
    let found = |experiment: &&Experiment| {
        check.findings.iter().any(|finding| is_of(experiment, &finding.place))
    };
    let own = paper.experiments.iter().filter(found);
    own.map(|experiment| say!(quoted_title, title = &experiment.title)).collect()
}

fn note(check: &Check) -> Span {
    let text = format!("{:?}{}", check.level, check.number).into();
    Span { text, look: Look::Note(check.level), to: Some(format!("#check-{}", check.number)) }
}

fn accepted(check: &Check) -> Option<Span> {
    check.is_accepted.then(|| Span::plain(say!(accepted_by_the_suite)))
}
