//! How to run it again.

use super::environment::is_of_several;
use super::known;
use crate::blocks::{Blocks, PaperRows, Span, TextLine, code};
use crate::evidence::{Paper, RunFacts};
use crate::format::shell_word;
use crate::text::{Lang, Message};
use dyno_facts::{RunPlan, say};
use serde_json::json;

pub(super) fn blocks(paper: &Paper, _: Lang) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.section("10", say!(reproduce), "reproduce");
    let how = say!(one_command_runs_the_stored_plan);
    blocks.paragraph(how);
    if is_of_several(paper) {
        of_several(paper, &mut blocks);
        return blocks;
    }
    for run in &paper.runs {
        blocks.code(format!("dyno reproduce {}", shell_word(&run.folder)));
        blocks.paragraph(say!(it_was_given_as));
        blocks.code(&run.command);
        let facts = facts(paper, run);
        let title = say!(what_fixes_run, run = &run.folder);
        blocks.table(
            PaperRows::new(title, &facts)
                .look("text")
                .text(say!(fact), |(name, _)| name)
                .text(say!(value_word), |(_, value)| value.clone()),
        );
        let mut inner = Blocks::default();
        inner.code(plan(run));
        blocks.details(say!(the_plan_of_run, run = &run.folder), false, inner);
        blocks.bulky();
        let mut words =
            vec![say!(passwords_are_removed_give_them_in, variable = "`DYNO_PASSWORD_NAME`")];
        if !run.header.resumed_at.is_empty() {
            let times = run.header.resumed_at.join(", ");
            words.push(say!(the_run_was_taken_up_again, times = times));
        }
        words.push(say!(every_interval_histogram_event_and_setting, run = &run.folder));
        blocks.fine(crate::blocks::coded(Message::sentences(&words)));
    }
    blocks
}

/// Commands of all runs, and a row for what determines each of them.
fn of_several(paper: &Paper, blocks: &mut Blocks) {
    let lines =
        |of: &dyn Fn(&RunFacts) -> String| paper.runs.iter().map(of).collect::<Vec<_>>().join("\n");
    blocks.code(lines(&|run| format!("dyno reproduce {}", shell_word(&run.folder))));
    blocks.paragraph(say!(they_were_given_as));
    blocks.code(lines(&|run| run.command.clone()));
    blocks.table(
        PaperRows::new(say!(what_fixes_the_runs), &paper.runs)
            .look("text")
            .text(say!(run), |run| &run.folder)
            .text(say!(seed_2), |run| run.header.seed.to_string())
            .text(say!(version_of_dyno), |run| &run.header.environment.dyno_version)
            .text(say!(hash_of_the_plan), |run| {
                run.header.plan.as_ref().map(|plan| code(&plan.hash))
            }),
    );
    let variable = "`DYNO_PASSWORD_NAME`";
    let words = say!(passwords_are_removed_give_them_in, variable = variable);
    blocks.fine(crate::blocks::coded(words));
}

fn facts(paper: &Paper, run: &RunFacts) -> Vec<(Message, TextLine)> {
    let plain = |value: String| vec![Span::plain(value)];
    let env = &run.header.environment;
    let mut facts = vec![
        (say!(suite), plain(run.header.suite.clone())),
        (say!(seed_2), plain(run.header.seed.to_string())),
        (say!(version_of_dyno), plain(env.dyno_version.clone())),
        (say!(sha_256_of_the_binary), vec![code(known(&env.binary_sha256))]),
    ];
    if let Some(hash) = run.header.plan.as_ref().map(|plan| plan.hash.as_str()) {
        facts.push((say!(hash_of_the_plan), vec![code(hash)]));
    }
    let own = paper.targets.iter().filter(|target| target.run == run.number);
    facts.extend(own.map(|target| {
        let name = say!(version_of_target, target = &target.label);
        (name, vec![Span::plain(known(&target.product))])
    }));
    facts
}

/// The plan as it is stored, without the list of its steps: they follow from the rest.
fn plan(run: &RunFacts) -> String {
    let header = &run.header;
    let plan = header.plan.clone().map(|plan| RunPlan { steps: Vec::new(), ..plan });
    let plan = json!({
        "plan": plan, "seed": header.seed, "targets": header.targets, "experiments": header.experiments,
    });
    serde_json::to_string_pretty(&plan).unwrap_or_default()
}
