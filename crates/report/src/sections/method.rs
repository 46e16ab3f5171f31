//! How it was measured.

use super::{clauses, names, separated};
use crate::blocks::{Blocks, Line, Span, code};
use crate::evidence::{Experiment, Paper};
use crate::format;
use crate::text::{Lang, Message};
use dyno_facts::say;

pub(super) fn blocks(paper: &Paper, _: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.section("5", say!(method), "method");
    blocks.paragraph(Message::sentences(&paper.method));
    for experiment in &paper.experiments {
        blocks.heading(3, "", &experiment.title, "");
        blocks.paragraph(Message::sentences(&experiment.method));
        blocks.paragraph(Message::sentences(&comparison(experiment)));
        if let Some(objective) = &experiment.objective {
            blocks.paragraph(say!(objective_of_the_search_for_the, objective = objective));
        }
        if !experiment.gates.is_empty() {
            let gates: Vec<Message> = experiment.gates.iter().map(Message::from).collect();
            blocks.paragraph(say!(gates_gates, gates = clauses(&gates)));
        }
        if !experiment.options.is_empty() {
            let options = experiment.options.iter();
            let options = options.map(|(name, value)| code(format!("{name}={value}")));
            let mut line: Line = vec![Span::plain(say!(options_of_the_workload)), Span::plain(" ")];
            line.extend(separated(options, " "));
            blocks.paragraph(line);
        }
        scripts(experiment, &mut blocks);
    }
    blocks.heading(3, "", say!(commands_as_they_were_given), "");
    paper.runs.iter().for_each(|run| blocks.code(&run.command));
    blocks
}

/// What is compared, and when repetition ends.
fn comparison(experiment: &Experiment) -> Vec<Message> {
    let Some(facts) = &experiment.comparison else { return Vec::new() };
    let mut sentences = vec![
        say!(
            compared_with_baseline_candidates,
            baseline = &facts.baseline,
            candidates = names(&facts.candidates)
        ),
        say!(
            at_least_and_at_most_pairs,
            least = facts.pairs_least.to_string(),
            most = facts.pairs_most.to_string()
        ),
    ];
    sentences.extend(facts.half_width.map(|share| {
        let percent = format::percent(share);
        say!(repetition_ends_when_the_95_percent, percent = percent)
    }));
    sentences.extend(
        facts.budget_s.map(|seconds| say!(it_also_ends_after_s, seconds = format::whole(seconds))),
    );
    if !facts.data_state.is_empty() {
        let state = &facts.data_state;
        sentences.push(say!(the_data_before_each_trial, state = state));
    }
    sentences
}

fn scripts(experiment: &Experiment, blocks: &mut Blocks) {
    for script in &experiment.scripts {
        let title = match experiment.scripts.len() {
            1 => say!(script_name, name = &script.name),
            _ => say!(
                script_name_weight_weight,
                name = &script.name,
                weight = script.weight.to_string()
            ),
        };
        let mut inner = Blocks::default();
        inner.code(&script.text);
        blocks.details(title, false, inner);
        blocks.bulky();
    }
}
