//! What is said of the answers.

use crate::facts::{QueryFacts, QueryOutcome, TpchFacts};
use crate::paper::{AnswerCount, answers_words};
use dyno_facts::{CheckVerdict, DataCheck, Message, TrialStatus, TrialSummary, say};
use dyno_store::RunData;
use std::collections::BTreeMap;

/// The check of a trial's answers; `None` where it asked no queries.
pub(super) fn answers_check(summary: &TrialSummary) -> Option<DataCheck> {
    let facts = summary.own::<TpchFacts>()?;
    let queries = &facts.queries;
    if queries.is_empty() {
        return None;
    }
    let of = |verdict: CheckVerdict| {
        queries.iter().filter(move |query| verdict_of(query) == Some(verdict))
    };
    let (right, wrong) =
        (of(CheckVerdict::Passed).count(), of(CheckVerdict::Failed).collect::<Vec<_>>());
    let compared = right + wrong.len();
    let (verdict, evidence) = match wrong.as_slice() {
        [] if compared == 0 => (CheckVerdict::NotMade, unknown(facts, &summary.status)),
        [] => (CheckVerdict::Passed, share(right, compared, queries.len())),
        wrong => {
            let mut sentences = vec![share(right, compared, queries.len())];
            sentences.extend(wrong.iter().filter_map(|query| differences(query)));
            (CheckVerdict::Failed, Message::sentences(&sentences))
        }
    };
    Some(DataCheck { name: "answers".to_owned(), verdict, evidence })
}

/// Why nothing was compared.
fn unknown(facts: &TpchFacts, status: &TrialStatus) -> Message {
    if facts.queries.iter().all(|query| query.outcome != QueryOutcome::Answered) {
        return match status {
            TrialStatus::Interrupted => say!(answers_interrupted),
            _ => say!(answers_missing),
        };
    }
    let was_refreshed = facts.load.as_ref().is_some_and(|load| load.refresh_pairs > 0);
    if was_refreshed || !facts.refreshes.is_empty() {
        say!(answers_unknown_after_refresh)
    } else {
        say!(answers_unknown)
    }
}

fn verdict_of(query: &QueryFacts) -> Option<CheckVerdict> {
    query.answer.as_ref().map(|answer| answer.verdict)
}

/// How many are right of how many.
fn share(right: usize, compared: usize, executed: usize) -> Message {
    match executed - compared {
        0 => say!(answers_right, right = right, compared = compared),
        others => say!(answers_right_of_some, right = right, compared = compared, others = others),
    }
}

fn differences(query: &QueryFacts) -> Option<Message> {
    let answer = query.answer.as_ref()?;
    let (name, differences) =
        (format!("Q{}", query.query), Message::sentences(&answer.differences));
    Some(say!(answer_differs, query = name, against = &answer.against, differences = differences))
}

/// Experiment and target of trials that are looked at together.
type Group<'a> = (&'a str, &'a str);

/// The last line of a run, one for each experiment and target with queries, after the rows that
/// differ; empty where there are none.
pub(super) fn answers_lines(data: &RunData) -> String {
    // A step that was executed again counts as it ended last.
    let last: BTreeMap<&str, &TrialSummary> =
        data.trials.iter().map(|trial| (trial.summary.step.as_str(), &trial.summary)).collect();
    let mut groups: BTreeMap<Group<'_>, Vec<&TpchFacts>> = BTreeMap::new();
    for summary in last.into_values() {
        if let Some(facts) = summary.own::<TpchFacts>().filter(|facts| !facts.queries.is_empty()) {
            let group = (summary.experiment.as_str(), summary.target.as_str());
            groups.entry(group).or_default().push(facts);
        }
    }
    let is_alone = groups.len() == 1;
    let lines = groups.iter().map(|((experiment, target), trials)| {
        let whose = if is_alone { String::new() } else { format!(" of {experiment} on {target}") };
        let mut text = String::new();
        for facts in trials {
            facts.queries.iter().for_each(|query| push_differences(&mut text, facts, query));
        }
        let count = AnswerCount::of(trials.iter().copied());
        text + &format!("answers{whose}: {}\n", answers_words(&count))
    });
    lines.collect()
}

fn push_differences(text: &mut String, facts: &TpchFacts, query: &QueryFacts) {
    let Some(answer) = &query.answer else { return };
    if answer.verdict != CheckVerdict::Failed {
        return;
    }
    let (number, degree) = (query.query, facts.degree.asked);
    text.push_str(&format!("Q{number} at degree {degree} differs from {}:\n", answer.against));
    answer.differences.iter().for_each(|difference| text.push_str(&format!("  {difference}\n")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{AnswerFacts, DegreeFacts};

    fn query(number: u8, verdict: Option<CheckVerdict>) -> QueryFacts {
        let differences = match verdict {
            Some(CheckVerdict::Failed) => vec!["Row 1: 2 instead of 1.".into()],
            _ => Vec::new(),
        };
        let against = "the reference at scale factor 1".into();
        let answer = verdict.map(|verdict| AnswerFacts { verdict, against, differences });
        QueryFacts { query: number, answer, ..QueryFacts::default() }
    }

    fn pass(degree: u32, verdict_of: impl Fn(u8) -> Option<CheckVerdict>) -> TpchFacts {
        let queries = (1..=22).map(|number| query(number, verdict_of(number))).collect();
        let degree = DegreeFacts { asked: degree, ..DegreeFacts::default() };
        TpchFacts { queries, degree, ..TpchFacts::default() }
    }

    fn line(trials: &[&TpchFacts]) -> String {
        answers_words(&AnswerCount::of(trials.iter().copied())).to_string()
    }

    #[test]
    fn a_query_is_correct_when_no_execution_of_it_was_wrong() {
        let right = pass(0, |_| Some(CheckVerdict::Passed));
        assert_eq!(line(&[&right]), "22 of 22 correct");
        let wrong = pass(2, |number| {
            Some(if number == 6 { CheckVerdict::Failed } else { CheckVerdict::Passed })
        });
        assert_eq!(line(&[&right, &wrong]), "21 of 22 correct; wrong: Q6");
        let mut text = String::new();
        wrong.queries.iter().for_each(|query| push_differences(&mut text, &wrong, query));
        let expected = "Q6 at degree 2 differs from the reference at scale factor 1:\n  Row 1: 2 \
                        instead of 1.\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_trial_without_an_answer_is_not_said_to_lack_a_reference() {
        let mut facts = pass(0, |_| None);
        let unknown = |facts: &TpchFacts, status: TrialStatus| unknown(facts, &status).to_string();
        let no_reference = "There are no reference answers to compare with.";
        assert_eq!(unknown(&facts, TrialStatus::Interrupted), no_reference);
        facts.queries.truncate(1);
        facts.queries[0].outcome = QueryOutcome::Interrupted;
        let interrupted = "The trial was interrupted before a query was answered.";
        assert_eq!(unknown(&facts, TrialStatus::Interrupted), interrupted);
        facts.queries[0].outcome = QueryOutcome::TimedOut;
        assert_eq!(unknown(&facts, TrialStatus::Complete), "No query was answered.");
    }
}
