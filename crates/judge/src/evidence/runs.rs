//! Runs, targets and trials as a paper describes them.

use super::*;

pub(super) fn make_facts(index: usize, run: &RunData) -> RunFacts {
    let status = match run.status() {
        RunStatus::Running => say!(still_going_when_this_paper_was),
        RunStatus::Complete => match &run.header.finished_at {
            Some(ended) => say!(complete_at_time, time = ended),
            None => say!(complete_at_an_unknown_time),
        },
        RunStatus::Interrupted => match &run.header.finished_at {
            Some(ended) => say!(interrupted_at_time, time = ended),
            None => say!(cut_off_what_was_written_until),
        },
        RunStatus::Failed(why) => say!(failed_why, why),
    };
    // Errors and reconnects are counted in the trials: only the other events are listed.
    let events = run
        .events
        .iter()
        .filter(|event| !matches!(event.kind, EventKind::Error | EventKind::Reconnect));
    let command = run.header.command_line.iter().map(|word| shell_word(word));
    RunFacts {
        number: index + 1,
        folder: run.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        status,
        command: command.collect::<Vec<_>>().join(" "),
        events: events.cloned().collect(),
        link: None,
        warnings: run.warnings.to_vec(),
        header: run.header.clone(),
    }
}

pub(super) fn make_targets(
    runs: &[RunData],
    index: usize,
    run: &RunData,
    naming: &Naming<'_>,
) -> Vec<PaperTarget> {
    let mut targets: Vec<TargetFacts> = run.header.targets.clone();
    for trial in &run.trials {
        let name = &trial.summary.target;
        if !targets.iter().any(|target| target.name == *name) {
            targets.push(TargetFacts { name: name.clone(), ..TargetFacts::default() });
        }
    }
    let targets = targets.into_iter().map(|facts| {
        let trials = run.trials.iter().filter(|trial| trial.summary.target == facts.name);
        // In a trial that counts: what was wrong before may have been put right.
        let complete = trials.clone().filter(|trial| trial.summary.status == TrialStatus::Complete);
        let node = complete.chain(trials).filter_map(before_of_primary).next();
        let mut facts = TargetFacts { url: facts.url_in(&run.path), ..facts.clone() };
        if let Some(texts) = naming.target(run, &facts.name) {
            facts.class = texts.class.clone().unwrap_or(facts.class);
            facts.vcpu = texts.vcpu.or(facts.vcpu);
            facts.memory_gib = texts.memory_gib.or(facts.memory_gib);
        }
        facts.nodes.sort_by_key(|node| place_of_role(node.role.name()));
        PaperTarget {
            label: naming.label(runs, index, &facts.name),
            run: index + 1,
            product: product(run, &facts.name),
            route_words: nodes::route(&facts),
            part_of: facts.part_of.as_ref().map(|whole| naming.label(runs, index, whole)),
            facts,
            settings: node.map(settings::rows).unwrap_or_default(),
            all_settings: node.map(|node| node.settings.clone()).unwrap_or_default(),
            schema: node.map(|node| node.schema.clone()).unwrap_or_default(),
            not_readable: node.map_or(Vec::new(), |node| node.not_readable.to_vec()),
        }
    });
    targets.collect()
}

/// Returns true if a trial was repeated and counts for nothing: its load generator was starved, it failed, or the
/// other trial of its pair did.
pub(super) fn is_set_aside(run: &RunData, trial: &TrialSummary) -> bool {
    match trial.status {
        TrialStatus::Starved => true,
        TrialStatus::Failed(_) => {
            trial.stage.is_none()
                && run.trials.iter().any(|other| {
                    other.summary.step == trial.step
                        && other.summary.trial > trial.trial
                        && other.summary.status == TrialStatus::Complete
                })
        }
        _ => run.header.set_aside.contains(&trial.trial),
    }
}

/// The reason for setting a trial aside, in a sentence.
pub fn why_set_aside(trial: &TrialSummary) -> Message {
    match (&trial.status, &trial.conditions.generator.starved) {
        (TrialStatus::Failed(why), _) => why.clone(),
        (TrialStatus::Starved, Some(why)) => why.clone(),
        _ => say!(other_trial_of_its_pair),
    }
}

pub(super) fn make_trials(
    runs: &[RunData],
    index: usize,
    run: &RunData,
    naming: &Naming<'_>,
) -> Vec<Trial> {
    let trials = run.trials.iter().map(|data| {
        let summary = completed(&data.summary);
        let is_last = run.trials.last().is_some_and(|last| last.summary.trial == summary.trial);
        let number = summary.trial;
        Trial {
            label: match runs {
                [_] => number.to_string(),
                _ => format!("{}/{number}", index + 1),
            },
            run: index + 1,
            target: naming.label(runs, index, &summary.target),
            place: target_place(run, &summary.target),
            status: match &summary.status {
                _ if data.is_partial && run.is_growing && is_last => "running",
                TrialStatus::Complete => "complete",
                TrialStatus::Interrupted => "interrupted",
                TrialStatus::Failed(_) => "failed",
                TrialStatus::Starved => "starved",
                TrialStatus::Stage => "stage",
            },
            adds_up: summary.counts.started == summary.counts.ended() + summary.in_flight,
            gaps: gaps(&data.series),
            counters: count_growth(data),
            series: data.series.clone(),
            nodes: data.nodes.clone(),
            level: KnownFamily::from_summary(&summary).and_then(|family| family.level(&summary)),
            summary,
            checks: Vec::new(),
        }
    });
    let mut trials: Vec<Trial> = trials.collect();
    reject_unsustained(run, &mut trials);
    trials
}

/// Takes the stages of long trials out: those that ended well, and, if their sum is present, those that were
/// repeated.
pub(super) fn stages(trials: Vec<Trial>) -> (Vec<Trial>, Vec<Trial>) {
    let sums = trials.iter().filter(|trial| !trial.summary.stages.is_empty());
    let sums: BTreeSet<(usize, String)> =
        sums.map(|trial| (trial.run, trial.summary.step.clone())).collect();
    trials.into_iter().partition(|trial| {
        let has_sum = sums.contains(&(trial.run, trial.summary.step.clone()));
        trial.summary.stage.is_some() && (trial.status == "stage" || has_sum)
    })
}

/// A rate that a search has found and then not held again is a step of it, not its result.
fn reject_unsustained(run: &RunData, trials: &mut [Trial]) {
    for facts in &run.header.experiments {
        let objective =
            facts.search.as_ref().and_then(|search| search.objective.parse::<Objective>().ok());
        let Some(objective) = objective else { continue };
        // A trial that did not end well proves nothing.
        let complete = trials
            .iter()
            .filter(|trial| trial.summary.experiment == facts.name && trial.status == "complete");
        let tested_rates = complete.filter_map(|trial| {
            let rate = trial.summary.tested_rate(&objective)?;
            Some((trial.target.clone(), trial.summary.workers, rate))
        });
        let tested_rates: Vec<_> = tested_rates.collect();
        for trial in trials.iter_mut().filter(|trial| trial.summary.experiment == facts.name) {
            let rate =
                trial.summary.rate_per_s.filter(|_| trial.summary.purpose == Purpose::Confirm);
            let Some(rate) = rate else { continue };
            let tests = tested_rates.iter().filter(|(target, workers, _)| {
                *target == trial.target && *workers == trial.summary.workers
            });
            if knee::has_failed(&tests.map(|(.., rate)| *rate).collect::<Vec<_>>(), rate) {
                trial.summary.purpose = Purpose::Search;
            }
        }
    }
}

/// Facts of the node that takes writes before a trial; of the first node, if none is known to take writes.
pub(super) fn before_of_primary(trial: &TrialData) -> Option<&ServerFacts> {
    let nodes = &trial.summary.conditions.nodes;
    let primary = nodes.iter().find(|(_, node)| node.role.as_deref() == Some("primary"));
    primary.and_then(|(name, _)| trial.before.get(name)).or_else(|| trial.before.values().next())
}

fn target_place(run: &RunData, target: &str) -> TargetPlace {
    match run.header.targets.iter().find(|facts| facts.name == target) {
        Some(facts) if facts.url.expose().starts_with("sqlite:") => TargetPlace::Embedded,
        Some(facts) if facts.same_host => TargetPlace::SameHost,
        _ => TargetPlace::Elsewhere,
    }
}

fn count_growth(data: &TrialData) -> Vec<Counter> {
    let mut nodes = data.before.iter();
    let facts = nodes.find_map(|(node, before)| Some((before, data.after.get(node)?)));
    facts.map(|(before, after)| settings::counters(before, after)).unwrap_or_default()
}

/// Stretches of the measured window without a commit. Intervals shorter than half of the longest
/// one (the last of an interrupted trial) prove nothing, and so do stretches that a commit may well take.
fn gaps(series: &[SeriesRow]) -> Vec<Gap> {
    const SHORTEST_S: f64 = 0.1;
    let rows: Vec<&SeriesRow> = series.iter().filter(|row| row.phase == "measured").collect();
    let longest = rows.iter().map(|row| row.length_s).fold(0.0, f64::max);
    let mut gaps: Vec<Gap> = Vec::new();
    let mut is_open = false;
    for row in rows {
        let is_empty = row.committed == 0 && row.length_s >= longest / 2.0;
        let to_s = row.begins_s + row.length_s;
        match gaps.last_mut().filter(|_| is_open) {
            Some(gap) if is_empty => {
                gap.to_s = to_s;
                gap.errors += row.errors;
                gap.reconnects += row.reconnects;
            }
            Some(gap) => gap.reconnects += row.reconnects,
            None if is_empty => gaps.push(Gap {
                from_s: row.begins_s,
                to_s,
                errors: row.errors,
                reconnects: row.reconnects,
            }),
            None => {}
        }
        is_open = is_empty;
    }
    gaps.retain(|gap| gap.to_s - gap.from_s >= SHORTEST_S && !is_chance(gap, series));
    gaps
}

/// Terminals that think, and low rates, leave intervals without a commit when all is well: at the
/// rate of the rest of the window, a stretch has to expect `EXPECTED` commits for chance to leave it
/// empty only once in a thousand times.
fn is_chance(gap: &Gap, series: &[SeriesRow]) -> bool {
    const EXPECTED: f64 = 7.0;
    let rows = series.iter().filter(|row| row.phase == "measured");
    let committed: u64 = rows.clone().map(|row| row.committed).sum();
    let length_s = gap.to_s - gap.from_s;
    let rest_s = rows.map(|row| row.length_s).sum::<f64>() - length_s;
    committed > 0 && rest_s > 0.0 && committed as f64 / rest_s * length_s < EXPECTED
}

/// A longer first sentence of a description is not a subtitle.
const LONGEST_SUBTITLE: usize = 240;
/// A longer title of a target has no room alongside an axis or in a column: its name is shown instead.
const LONGEST_LABEL: usize = 28;

/// Whose words are taken, in which language.
#[derive(Clone, Copy, Debug, Default)]
pub struct Naming<'a> {
    /// Instead of those that the suite has.
    pub texts: Option<&'a PaperTexts>,
    pub lang: Lang,
    /// Targets without a title are called by product and version: readers of a paper don't know the names of its
    /// command line.
    pub by_product: bool,
}

impl<'a> Naming<'a> {
    /// The publisher's texts for a run.
    pub(super) fn texts(&self, run: Option<&'a RunData>) -> Option<&'a PaperTexts> {
        self.texts.or_else(|| Some(&suite_facts(run?)?.publication))
    }

    /// Texts of the publisher about a target.
    pub(super) fn target(&self, run: &'a RunData, name: &str) -> Option<&'a TargetTexts> {
        self.texts(Some(run))?.targets.get(name)
    }

    /// The name that tables show, another for each target: by the publisher, by the suite where its title is short,
    /// by product and version, by its name; where runs share a name, with the run's number.
    pub(super) fn label(&self, runs: &'a [RunData], index: usize, name: &str) -> String {
        let run = &runs[index];
        let (short_label, is_product) = self.short_label(run, name);
        let is_shared = runs.iter().any(|run| {
            let mut names = target_names(run).into_iter().filter(|other| other != name);
            names.any(|other| self.short_label(run, &other).0 == short_label)
        });
        let label = match (is_shared, is_product) {
            (false, _) => short_label,
            (true, true) => name.to_owned(),
            (true, false) => format!("{short_label} ({name})"),
        };
        let named_in = runs.iter().filter(|run| target_names(run).iter().any(|n| n == name));
        match named_in.count() {
            0 | 1 => label,
            _ => say!(label_of_run, label, n = index + 1).render(self.lang),
        }
    }

    /// Its name as long as no other target has the same name, and whether no one has chosen
    /// it.
    fn short_label(&self, run: &'a RunData, name: &str) -> (String, bool) {
        let title = self.title(run, name).map(|title| (title, false));
        let label = title.or_else(|| {
            let product = major_product(&product(run, name)).filter(|_| self.by_product);
            Some((product?, true))
        });
        label.unwrap_or_else(|| (name.to_owned(), false))
    }

    /// The publisher's name for it, or the suite's, if that is short.
    fn title(&self, run: &'a RunData, name: &str) -> Option<String> {
        let published = self.target(run, name).map(|texts| texts.name.message().render(self.lang));
        let facts = run.header.targets.iter().find(|facts| facts.name == name);
        let suite_title = facts.map(|facts| Message::either(&facts.title, &facts.title_zh));
        let suite_title = suite_title.map(|title| title.render(self.lang));
        let suite_title = suite_title.filter(|title| title.chars().count() <= LONGEST_LABEL);
        [published, suite_title].into_iter().flatten().find(|title| !title.is_empty())
    }
}

/// The targets that a run names or has measured.
fn target_names(run: &RunData) -> Vec<String> {
    let names = run.header.targets.iter().map(|target| target.name.clone());
    unique(names.chain(run.trials.iter().map(|trial| trial.summary.target.clone())).collect())
}

/// Product and version of a target: as stated, else as its node says that takes writes, else as its first one does.
pub(super) fn product(run: &RunData, name: &str) -> String {
    let facts = run.header.targets.iter().find(|facts| facts.name == name);
    let stated_words = facts.map(|facts| [&facts.product, &facts.version]);
    let words = stated_words.filter(|words| !words[0].is_empty());
    let words = words.or_else(|| {
        let mut trials = run.trials.iter().filter(|trial| trial.summary.target == name);
        trials.find_map(before_of_primary).map(|node| [&node.product, &node.version])
    });
    let words = words
        .or(stated_words)
        .into_iter()
        .flatten()
        .map(String::as_str)
        .filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

fn suite_facts(run: &RunData) -> Option<&SuiteFacts> {
    run.header.plan.as_ref().map(|plan| &plan.suite)
}

/// The publisher's title, or that of the suite; of several suites how many there are.
pub(super) fn title(runs: &[RunData], texts: &PaperTexts) -> Message {
    if !texts.title.is_empty() {
        return texts.title.message();
    }
    let titles = runs.iter().map(|run| {
        let title_zh = suite_facts(run).map_or("", |suite| suite.title_zh.as_str());
        Message::either(&run.header.title, title_zh)
    });
    let titles = unique(titles.collect::<Vec<_>>());
    match titles.as_slice() {
        [first, _, ..] => say!(and_other_suites, title = first, n = titles.len() - 1),
        _ => Message::list(&titles),
    }
}

/// The publisher's subtitle, or the first sentence of the suite's description.
pub(super) fn subtitle(runs: &[RunData], texts: &PaperTexts) -> Message {
    if !texts.subtitle.is_empty() {
        return texts.subtitle.message();
    }
    let mut descriptions = runs.iter().filter_map(suite_facts);
    let Some(first) = descriptions.next() else { return Message::default() };
    if descriptions.any(|other| other.description != first.description) {
        return Message::default();
    }
    let texts = [(&first.description, ". ", "."), (&first.description_zh, "。", "。")];
    let [en, zh] = texts.map(|(text, end, stop)| {
        let text = text.split("\n\n").next().unwrap_or_default();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let first = text.split_once(end).map(|(first, _)| format!("{first}{stop}"));
        let sentence = first.unwrap_or(text);
        if sentence.chars().count() > LONGEST_SUBTITLE { String::new() } else { sentence }
    });
    Message::either(&en, &zh)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::tests::trial;
    use dyno_facts::{StageFacts, StageOf};

    /// Intervals of these lengths, commits and errors.
    fn series(rows: &[(f64, u64, u64)]) -> Vec<SeriesRow> {
        let mut begins_s = 0.0;
        let rows = rows.iter().map(|&(length_s, committed, errors)| {
            let phase = "measured".to_owned();
            let row = SeriesRow {
                begins_s,
                length_s,
                committed,
                errors,
                reconnects: 2 * errors,
                phase,
                ..SeriesRow::default()
            };
            begins_s += length_s;
            row
        });
        rows.collect()
    }

    fn find_gaps(rows: &[(f64, u64, u64)]) -> Vec<(f64, f64, u64, u64)> {
        let gaps = gaps(&series(rows));
        gaps.iter().map(|gap| (gap.from_s, gap.to_s, gap.errors, gap.reconnects)).collect()
    }

    #[test]
    fn stretches_without_a_commit_are_gaps_unless_chance_explains_them() {
        // Neighbors are one gap; sessions come back with the interval that follows.
        let rows = [(1.0, 50, 1), (1.0, 0, 2), (1.0, 0, 3), (1.0, 50, 4), (1.0, 50, 8)];
        assert_eq!(find_gaps(&rows), [(1.0, 3.0, 5, 18)]);
        assert_eq!(find_gaps(&[(1.0, 50, 0), (1.0, 0, 1)]), [(1.0, 2.0, 1, 2)]);
        // Seven commits to be expected, and fewer.
        assert_eq!(find_gaps(&[(1.0, 7, 0), (1.0, 7, 0), (1.0, 0, 0)]).len(), 1);
        assert_eq!(find_gaps(&[(1.0, 7, 0), (1.0, 6, 0), (1.0, 0, 0)]).len(), 0);
        assert_eq!(find_gaps(&[(2.0, 7, 0), (2.0, 0, 0)]).len(), 1);
        // Much shorter intervals, and much shorter gaps.
        assert_eq!(find_gaps(&[(1.0, 90, 0), (0.49, 0, 0)]).len(), 0);
        assert_eq!(find_gaps(&[(1.0, 90, 0), (0.5, 0, 0)]).len(), 1);
        assert_eq!(find_gaps(&[(0.09, 90, 0), (0.09, 0, 0)]).len(), 0);
        assert_eq!(find_gaps(&[(1.0, 0, 0), (1.0, 0, 0)]), [(0.0, 2.0, 0, 0)], "nothing at all");
        let mut warm_up = series(&[(1.0, 50, 0), (1.0, 0, 0)]);
        warm_up[1].phase = "warm_up".to_owned();
        assert_eq!(gaps(&warm_up), []);
    }

    fn make_stage(number: u32, step: &str, stage: bool, status: &'static str) -> Trial {
        let mut summary = TrialSummary { trial: number, ..TrialSummary::default() };
        step.clone_into(&mut summary.identity.step);
        summary.identity.stage = stage.then_some(StageOf { number: 1, of: 2 });
        Trial { status, ..trial(summary) }
    }

    #[test]
    fn stages_are_not_trials_themselves() {
        let mut sum = make_stage(3, "a", false, "complete");
        sum.summary.stages = vec![StageFacts { trial: 1, ..StageFacts::default() }];
        let all_trials = vec![
            make_stage(1, "a", true, "stage"),
            make_stage(2, "a", true, "failed"),
            sum,
            make_stage(4, "b", true, "stage"),
            make_stage(5, "b", true, "failed"),
            make_stage(6, "c", false, "failed"),
        ];
        let (stages, trials) = stages(all_trials);
        let numbers =
            |trials: &[Trial]| trials.iter().map(|trial| trial.summary.trial).collect::<Vec<_>>();
        assert_eq!((numbers(&stages), numbers(&trials)), (vec![1, 2, 4], vec![3, 5, 6]));
    }
}
