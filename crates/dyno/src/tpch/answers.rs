//! What is said of the answers.

use dyno_measure::{DataCheck, QueryFacts, TrialSummary, Verdict};

/// The check of a trial's answers; `None` where it asked no queries.
pub(crate) fn answers_check(summary: &TrialSummary) -> Option<DataCheck> {
    let queries = &summary.tpch.as_ref()?.queries;
    if queries.is_empty() {
        return None;
    }
    let of =
        |verdict: Verdict| queries.iter().filter(move |query| verdict_of(query) == Some(verdict));
    let (right, wrong) = (of(Verdict::Passed).count(), of(Verdict::Failed).collect::<Vec<_>>());
    let compared = right + wrong.len();
    let (verdict, evidence) = match wrong.as_slice() {
        [] if compared == 0 => (
            Verdict::NotMade,
            "There is nothing that the answers could be held against.".to_owned(),
        ),
        [] => (Verdict::Passed, format!("{}.", share(right, compared, queries.len()))),
        wrong => {
            let told = wrong.iter().map(|query| differences(query));
            let told = told.collect::<Vec<_>>().join(" ");
            (Verdict::Failed, format!("{}. {told}", share(right, compared, queries.len())))
        }
    };
    Some(DataCheck { name: "answers".to_owned(), verdict, evidence })
}

fn verdict_of(query: &QueryFacts) -> Option<Verdict> {
    query.answer.as_ref().map(|answer| answer.verdict)
}

/// How many are right of how many.
fn share(right: usize, compared: usize, executed: usize) -> String {
    let mut text = format!("{right} of {compared} answers are right");
    if compared < executed {
        text.push_str(&format!("; {} were not compared", executed - compared));
    }
    text
}

/// In what an answer is wrong.
fn differences(query: &QueryFacts) -> String {
    let Some(answer) = &query.answer else { return String::new() };
    format!("Q{} differs from {}: {}", query.query, answer.against, answer.differences.join(" "))
}
