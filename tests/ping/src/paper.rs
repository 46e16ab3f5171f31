//! What papers say of it: a table.

use crate::family::PingFacts;
use dyno_facts::{FamilyRecord, Lang, Message};
use dyno_report::blocks::{Blocks, PaperRows};
use dyno_report::format::NumberFormat::Whole;
use dyno_report::{Experiment, FamilyPaper, JudgedFamily, Paper, Trial};

pub(crate) struct PingPaper;

impl JudgedFamily for PingPaper {
    fn name(&self) -> &'static str {
        PingFacts::FAMILY
    }
}

impl FamilyPaper for PingPaper {
    fn title(&self) -> Message {
        "Pings".into()
    }

    fn section(&self, paper: &Paper, experiment: &Experiment, _: Lang) -> Option<Blocks> {
        let facts = |trial: &'_ Trial| trial.summary.own::<PingFacts>().cloned();
        let mut blocks = Blocks::default();
        blocks.table(
            PaperRows::new("Answers of each trial", paper.trials_in(experiment))
                .text("Trial", |trial| &trial.label)
                .col("Number expected", Whole, |trial| facts(trial).map(|facts| facts.number))
                .col("Other answers", Whole, |trial| facts(trial).map(|facts| facts.wrong)),
        );
        Some(blocks)
    }
}
