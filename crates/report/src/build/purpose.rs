//! What the measurement was made for, and what its claims hold for.

use crate::model::Paper;
use crate::say;
use crate::text::Text;

/// Purpose first, then the reach of the claims.
pub(super) fn sentences(paper: &Paper) -> Vec<Text> {
    let names =
        |labels: Vec<&str>| Text::list(&labels.into_iter().map(Text::from).collect::<Vec<_>>());
    let mut sentences = Vec::new();
    let compared: Vec<&dyno_store::ComparisonFacts> =
        paper.experiments.iter().filter_map(|experiment| experiment.comparison.as_ref()).collect();
    for facts in &compared {
        let candidates = names(facts.candidates.iter().map(String::as_str).collect());
        let sentence = match facts.is_aa {
            true => say!(
                "The same system was measured as two targets, to learn how large a difference noise alone makes."
            ),
            false => say!(
                "The question is whether {candidates} is faster or slower than {baseline}, and by how much.",
                candidates = candidates,
                baseline = &facts.baseline,
            ),
        };
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    if compared.is_empty() {
        let labels: Vec<&str> = paper.targets.iter().map(|target| target.label.as_str()).collect();
        sentences.push(match labels.len() {
            0 => say!("No target was named."),
            1 => say!(
                "The question is what {target} does under these workloads, and at which latency.",
                target = names(labels)
            ),
            _ if paper.verdicts.is_empty() => say!(
                "The question is what {targets} do under these workloads, each by itself. The suite asks for no comparison of them, so differences carry no verdict.",
                targets = names(labels)
            ),
            _ => say!(
                "The question is what {targets} do under these workloads. They are held against each other as well, although the suite did not interleave their trials.",
                targets = names(labels)
            ),
        });
    }
    sentences.push(say!("A claim holds for the versions, settings, data sizes, load levels and machines that are disclosed here, and for the time of the measurement."));
    sentences.push(say!("What a check marks with E supports no claim; what it marks with W is to be quoted with its caveat."));
    sentences
}
