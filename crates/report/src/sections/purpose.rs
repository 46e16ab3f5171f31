//! What the measurement was made for, and what its claims hold for.

use crate::evidence::Paper;
use crate::text::Message;
use dyno_facts::say;

/// Purpose first, then the reach of the claims.
pub(super) fn sentences(paper: &Paper) -> Vec<Message> {
    let names = |labels: Vec<&str>| {
        Message::list(&labels.into_iter().map(Message::from).collect::<Vec<_>>())
    };
    let mut sentences = Vec::new();
    let compared: Vec<&dyno_facts::ComparisonFacts> =
        paper.experiments.iter().filter_map(|experiment| experiment.comparison.as_ref()).collect();
    // What the suite calls a target is not always what the paper calls it.
    let label = |name: &str| {
        let own = paper.targets.iter().find(|target| target.facts.name == name);
        own.map_or_else(|| name.to_owned(), |target| target.label.clone())
    };
    for facts in &compared {
        let candidates: Vec<String> = facts.candidates.iter().map(|name| label(name)).collect();
        let candidates = names(candidates.iter().map(String::as_str).collect());
        let sentence = match facts.is_aa {
            true => say!(the_same_system_was_measured_as),
            false => say!(
                the_question_is_whether_is_faster,
                candidates = candidates,
                baseline = label(&facts.baseline),
            ),
        };
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    if compared.is_empty() {
        let labels: Vec<&str> = paper.targets.iter().map(|target| target.label.as_str()).collect();
        sentences.push(match labels.len() {
            0 => say!(no_target_was_named),
            1 => say!(the_question_is_what_does_under, target = names(labels)),
            _ if paper.verdicts.comparisons.is_empty() => {
                say!(the_question_is_what_do_under, targets = names(labels))
            }
            _ => say!(the_question_is_what_do_under_these, targets = names(labels)),
        });
    }
    sentences.push(say!(a_claim_holds_for_the_versions));
    sentences.push(say!(what_a_check_marks_with_e));
    sentences
}
