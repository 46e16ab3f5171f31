//! Runs to the model of a paper.

use crate::format::{self, count_of, list_of, whole};
use crate::model::{
    ErrorRow, Experiment, Gap, KeyRow, LeftOut, Paper, Place, Point, RunFacts, Target, Trial,
};
use crate::{
    Published, PublishedTable, checks, comparison, points, settings, statements, tpcc, tpch,
};
use dyno_measure::{SCHEMA_VERSION, SeriesRow, TrialStatus};
use dyno_store::{EventKind, ExperimentFacts, RunData, RunStatus, TargetFacts, TrialData};

impl Paper {
    /// A paper about these runs, beside these published figures.
    pub fn new(runs: &[RunData], published: &[PublishedTable]) -> Paper {
        let targets: Vec<Target> =
            runs.iter().enumerate().flat_map(|(index, run)| targets(runs, index, run)).collect();
        let trials: Vec<Trial> =
            runs.iter().enumerate().flat_map(|(index, run)| trials(runs, index, run)).collect();
        let experiments = experiments(runs, &targets, &trials, published);
        let is_elsewhere = |table: &&PublishedTable| {
            !experiments.iter().any(|experiment| experiment.name == table.experiment)
        };
        let mut titles: Vec<String> = Vec::new();
        for run in runs {
            if !titles.contains(&run.header.title) {
                titles.push(run.header.title.clone());
            }
        }
        let mut run_facts: Vec<RunFacts> =
            runs.iter().enumerate().map(|(index, run)| run_facts(index, run)).collect();
        if let [run] = run_facts.as_mut_slice() {
            // The paper of one run stands in its folder.
            run.link = Some(String::new());
        }
        let mut paper = Paper {
            schema_version: SCHEMA_VERSION,
            title: list_of(&titles),
            summary: Vec::new(),
            key_rows: Vec::new(),
            runs: run_facts,
            targets,
            other_published: published.iter().filter(is_elsewhere).map(Published::from).collect(),
            comparisons: Vec::new(),
            experiments,
            trials,
            checks: Vec::new(),
            limits: Vec::new(),
        };
        checks::make(&mut paper);
        // With the numbers of the checks that the points have now.
        paper.comparisons = comparison::comparisons(&paper.experiments);
        paper.key_rows = key_rows(&paper);
        paper.summary = summary(&paper);
        paper.limits = limits(&paper);
        paper
    }
}

impl Paper {
    /// Says what leads from where the paper will stand to the folder of each run, in their order: a
    /// path with a slash at its end or an empty text; `None` leaves the files of a run unlinked.
    /// Without it the paper of one run links as if it stood in its folder, others don't link.
    #[must_use]
    pub fn linked(mut self, links: Vec<Option<String>>) -> Paper {
        for (run, link) in self.runs.iter_mut().zip(links) {
            run.link = link;
        }
        self
    }
}

fn run_facts(index: usize, run: &RunData) -> RunFacts {
    let ended = run.header.finished_at.as_deref().unwrap_or("an unknown time");
    let status = match run.status() {
        RunStatus::Running => "still going when this paper was made".to_owned(),
        RunStatus::Complete => format!("complete at {ended}"),
        RunStatus::Interrupted => match &run.header.finished_at {
            Some(ended) => format!("interrupted at {ended}"),
            None => "cut off; what was written until then is kept".to_owned(),
        },
        RunStatus::Failed(why) => format!("failed: {why}"),
    };
    // Errors and reconnects are counted in the trials; here is what is told nowhere else.
    let is_told = |kind: EventKind| !matches!(kind, EventKind::Error | EventKind::Reconnect);
    RunFacts {
        number: index + 1,
        folder: run.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        status,
        command: shell_line(&run.header.command_line),
        events: run.events.iter().filter(|event| is_told(event.kind)).cloned().collect(),
        link: None,
        warnings: run.warnings.clone(),
        header: run.header.clone(),
    }
}

/// A command that a POSIX shell reads back as the same words.
fn shell_line(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    let quoted = |word: &String| {
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// The target's name; where runs share the name, the run's number with it.
fn label(runs: &[RunData], index: usize, name: &str) -> String {
    let has_it = |run: &&RunData| {
        run.header.targets.iter().any(|target| target.name == name)
            || run.trials.iter().any(|trial| trial.summary.target == name)
    };
    match runs.iter().filter(has_it).count() {
        0 | 1 => name.to_owned(),
        _ => format!("{name}, run {}", index + 1),
    }
}

fn targets(runs: &[RunData], index: usize, run: &RunData) -> Vec<Target> {
    let mut known: Vec<TargetFacts> = run.header.targets.clone();
    for trial in &run.trials {
        let name = &trial.summary.target;
        if !known.iter().any(|target| target.name == *name) {
            known.push(TargetFacts { name: name.clone(), ..TargetFacts::default() });
        }
    }
    let target = |facts: TargetFacts| {
        let own = run.trials.iter().filter(|trial| trial.summary.target == facts.name);
        let node = own.filter_map(|trial| trial.before.values().next()).next();
        let stated = [&facts.product, &facts.version];
        let told = node.map(|node| [&node.product, &node.version]);
        let words = if facts.product.is_empty() { told.unwrap_or(stated) } else { stated };
        let words: Vec<&str> =
            words.iter().map(|word| word.as_str()).filter(|word| !word.is_empty()).collect();
        Target {
            label: label(runs, index, &facts.name),
            run: index + 1,
            product: words.join(" "),
            name: facts.name,
            urls: facts.urls,
            class: facts.class,
            same_host: facts.same_host,
            settings: node.map(settings::rows).unwrap_or_default(),
            all_settings: node.map(|node| node.settings.clone()).unwrap_or_default(),
            not_readable: node.map(|node| node.not_readable.clone()).unwrap_or_default(),
        }
    };
    known.into_iter().map(target).collect()
}

fn trials(runs: &[RunData], index: usize, run: &RunData) -> Vec<Trial> {
    let trial = |data: &TrialData| {
        let summary = data.summary.clone();
        let is_last = run.trials.last().is_some_and(|last| last.summary.trial == summary.trial);
        let number = summary.trial;
        Trial {
            label: if runs.len() > 1 {
                format!("{}/{number}", index + 1)
            } else {
                number.to_string()
            },
            run: index + 1,
            target: label(runs, index, &summary.target),
            place: place(run, &summary.target),
            status: match &summary.status {
                _ if data.is_partial && run.is_growing && is_last => "running",
                TrialStatus::Complete => "complete",
                TrialStatus::Interrupted => "interrupted",
                TrialStatus::Failed(_) => "failed",
            },
            adds_up: summary.counts.started == summary.counts.ended() + summary.in_flight,
            gaps: gaps(&data.series),
            counters: counters(data),
            series: data.series.clone(),
            summary,
            checks: Vec::new(),
        }
    };
    run.trials.iter().map(trial).collect()
}

fn place(run: &RunData, target: &str) -> Place {
    match run.header.targets.iter().find(|facts| facts.name == target) {
        Some(facts) if facts.urls.iter().any(|url| url.starts_with("sqlite:")) => Place::Embedded,
        Some(facts) if facts.same_host => Place::SameHost,
        _ => Place::Elsewhere,
    }
}

fn counters(data: &TrialData) -> Vec<crate::Counter> {
    let both = data.before.iter().find_map(|(node, before)| Some((before, data.after.get(node)?)));
    both.map(|(before, after)| settings::counters(before, after)).unwrap_or_default()
}

/// Stretches of the measured window without a commit. Intervals shorter than half of the longest
/// one (the last of an interrupted trial) prove nothing.
fn gaps(series: &[SeriesRow]) -> Vec<Gap> {
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
    gaps.retain(|gap| !is_chance(gap, series));
    gaps
}

/// Terminals that think, and low rates, leave intervals without a commit when all is well: at the
/// rate of the rest of the window, a stretch has to expect so many for chance to leave it empty
/// only once in a thousand times.
fn is_chance(gap: &Gap, series: &[SeriesRow]) -> bool {
    const EXPECTED: f64 = 7.0;
    let rows = || series.iter().filter(|row| row.phase == "measured");
    let committed: u64 = rows().map(|row| row.committed).sum();
    let length_s = gap.to_s - gap.from_s;
    let rest_s = rows().map(|row| row.length_s).sum::<f64>() - length_s;
    committed > 0 && rest_s > 0.0 && committed as f64 / rest_s * length_s < EXPECTED
}

fn experiments(
    runs: &[RunData],
    targets: &[Target],
    trials: &[Trial],
    published: &[PublishedTable],
) -> Vec<Experiment> {
    let mut known: Vec<ExperimentFacts> = Vec::new();
    for facts in runs.iter().flat_map(|run| &run.header.experiments) {
        if !known.iter().any(|other| other.name == facts.name) {
            known.push(facts.clone());
        }
    }
    for trial in trials {
        let name = &trial.summary.experiment;
        if !known.iter().any(|facts| facts.name == *name) {
            let test = trial.summary.test.clone();
            known.push(ExperimentFacts {
                name: name.clone(),
                title: name.clone(),
                test,
                ..ExperimentFacts::default()
            });
        }
    }
    let experiment = |facts: ExperimentFacts| {
        let place = |trial: &&Trial| targets.iter().position(|target| target.label == trial.target);
        let mut own: Vec<&Trial> =
            trials.iter().filter(|trial| trial.summary.experiment == facts.name).collect();
        own.sort_by_key(place);
        let measured =
            own.iter().map(|trial| trial.summary.window_s).filter(|window| *window > 0.0);
        let published: Vec<&PublishedTable> =
            published.iter().filter(|table| table.experiment == facts.name).collect();
        let points = points::points(&own);
        Experiment {
            method: method(&facts, &own),
            is_open_loop: own.iter().any(|trial| trial.summary.rate_per_s.is_some()),
            shortest_window_s: measured.reduce(f64::min),
            statements: statements::rows(&own),
            access: statements::access(&own),
            tpcc: tpcc::section(&own, targets),
            tpch: tpch::section(&own, &points, targets, &published),
            points,
            errors: errors(&own),
            published: published.into_iter().map(Published::from).collect(),
            left_out: left_out(runs, &facts.name),
            title: if facts.title.is_empty() { facts.name.clone() } else { facts.title },
            name: facts.name,
            test: facts.test,
            options: facts.options,
            scripts: facts.scripts,
        }
    };
    known.into_iter().map(experiment).collect()
}

/// The steps of an experiment that were skipped, repeats told once.
fn left_out(runs: &[RunData], experiment: &str) -> Vec<LeftOut> {
    let mut rows: Vec<LeftOut> = Vec::new();
    for (id, why) in runs.iter().flat_map(|run| &run.header.skipped) {
        let Some(step) = id.strip_prefix(experiment).and_then(|rest| rest.strip_prefix('/')) else {
            continue;
        };
        let step = step.split("/repeat=").next().unwrap_or(step);
        let row = LeftOut { what: step.replace('/', ", "), why: why.clone() };
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows
}

fn method(facts: &ExperimentFacts, trials: &[&Trial]) -> Vec<String> {
    let Some(first) = trials.first() else {
        return vec!["No trial of this experiment has been executed.".to_owned()];
    };
    if let Some(own) = tpch::method(trials) {
        return own.iter().map(|sentence| sentence.to_string()).collect();
    }
    let range = |values: Vec<f64>, text: fn(f64) -> String| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        if text(low) == text(high) { text(low) } else { format!("{} to {}", text(low), text(high)) }
    };
    let warm = range(trials.iter().map(|trial| trial.summary.warmup_s).collect(), format::plain);
    let window = range(trials.iter().map(|trial| trial.summary.window_s).collect(), format::plain);
    let planned = match facts.window_s {
        Some(window_s) => format!(" ({} s planned)", format::plain(window_s)),
        None => String::new(),
    };
    let workers =
        range(trials.iter().map(|trial| f64::from(trial.summary.workers)).collect(), whole);
    let noun = if workers == "1" { "worker" } else { "workers" };
    let mut seeds: Vec<u64> = trials.iter().map(|trial| trial.summary.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let seeds: Vec<String> = seeds.iter().take(6).map(u64::to_string).collect();
    let mut sentences = vec![format!(
        "{} with {workers} {noun}: {warm} s of warm-up, then a measured window of {window} s{planned}. Connecting, preparing and warm-up lie outside of the window. Seed {}.",
        if facts.test.is_empty() { &first.summary.test } else { &facts.test },
        list_of(&seeds)
    )];
    let rates: Vec<f64> = trials.iter().filter_map(|trial| trial.summary.rate_per_s).collect();
    if let Some(own) = tpcc::method(trials) {
        sentences.extend(own.iter().map(|sentence| sentence.to_string()));
    } else if rates.is_empty() {
        sentences.push("Closed loop: a worker begins its next transaction as soon as the last one has ended. Latency is service time, from the begin of a transaction to its end, retries included; requests that were not sent while the server stood still have none.".to_owned());
    } else {
        sentences.push(format!(
            "Open loop: transactions fall due at random times (Poisson) at {} per second, whether earlier ones have ended or not. Latency is counted from the due time to the end, retries included, so that a stall shows in full.",
            range(rates, format::plain)
        ));
    }
    sentences
}

fn errors(trials: &[&Trial]) -> Vec<ErrorRow> {
    let mut rows: Vec<ErrorRow> = Vec::new();
    for trial in trials {
        for error in &trial.summary.errors {
            let same = |row: &&mut ErrorRow| {
                row.target == trial.target
                    && (&row.class, row.errno, &row.sqlstate)
                        == (&error.class, error.errno, &error.sqlstate)
            };
            match rows.iter_mut().find(same) {
                Some(row) => {
                    row.count += error.count;
                    row.trials.push(trial.label.clone());
                }
                None => rows.push(ErrorRow {
                    target: trial.target.clone(),
                    class: error.class.clone(),
                    errno: error.errno,
                    sqlstate: error.sqlstate.clone(),
                    count: error.count,
                    message: error.message.clone(),
                    trials: vec![trial.label.clone()],
                }),
            }
        }
    }
    rows
}

/// The point with the most throughput per experiment and target; complete ones are preferred.
fn key_rows(paper: &Paper) -> Vec<KeyRow> {
    let mut rows = Vec::new();
    for (experiment_index, experiment) in paper.experiments.iter().enumerate() {
        for target in &paper.targets {
            let is_own = |point: &&Point| point.target == target.label && point.tpch.is_none();
            let own = experiment.points.iter().filter(is_own);
            let rank = |point: &Point| (point.status == "complete", point.throughput().median);
            let best =
                own.reduce(|best, point| if rank(point) > rank(best) { point } else { best });
            rows.extend(best.map(|point| KeyRow {
                experiment: experiment.title.clone(),
                experiment_index,
                point: point.clone(),
            }));
        }
    }
    rows
}

fn summary(paper: &Paper) -> Vec<String> {
    let count =
        |status: &str| paper.trials.iter().filter(|trial| trial.status == status).count() as u64;
    let points: usize = paper.experiments.iter().map(|experiment| experiment.points.len()).sum();
    let describe = |target: &Target| match target.product.as_str() {
        "" => target.label.clone(),
        product => format!("{} ({product})", target.label),
    };
    let is_measured =
        |target: &&Target| paper.trials.iter().any(|trial| trial.target == target.label);
    let targets: Vec<String> = paper.targets.iter().filter(is_measured).map(describe).collect();
    if paper.trials.is_empty() {
        return vec!["No trial has been executed yet.".to_owned()];
    }
    let mut sentences = vec![format!(
        "dyno measured {} at {} on {}.",
        count_of(count("complete"), "complete trial", "complete trials"),
        match paper.experiments.iter().any(|experiment| experiment.tpch.is_some()) {
            true => count_of(points as u64, "point", "points"),
            false => count_of(points as u64, "load level", "load levels"),
        },
        list_of(&targets)
    )];
    let cut = count("interrupted") + count("running");
    let others = [
        (cut, count_of(cut, "trial was cut off", "trials were cut off")),
        (count("failed"), count_of(count("failed"), "trial failed", "trials failed")),
    ];
    let others: Vec<String> =
        others.into_iter().filter(|(number, _)| *number > 0).map(|(_, words)| words).collect();
    if !others.is_empty() {
        sentences.push(format!("Beside these, {}.", list_of(&others)));
    }
    let best = |row: &KeyRow| {
        let point = &row.point;
        if let Some(tpcc) = &point.tpcc {
            return tpcc::words::best(&row.experiment, &point.target, tpcc).to_string();
        }
        let p95 = point.p95_us.map_or(String::new(), |p95| {
            format!(", 95th percentile {} ms", format::ms(p95.median))
        });
        format!(
            "{}: {} reached {} transactions/s ({} statements/s) with {}{p95}.",
            row.experiment,
            point.target,
            format::short(point.tps.median),
            format::short(point.qps.median),
            count_of(u64::from(point.workers), "worker", "workers"),
        )
    };
    const MOST: usize = 3;
    let of_tpch = |experiment: &Experiment| -> Vec<String> {
        let tables = experiment.tpch.iter().flat_map(|section| &section.tables);
        tables.map(|table| tpch::words::best(&experiment.title, table).to_string()).collect()
    };
    let told: Vec<String> = paper.key_rows.iter().map(best).collect();
    let told: Vec<String> =
        told.into_iter().chain(paper.experiments.iter().flat_map(of_tpch)).collect();
    sentences.extend(told.iter().take(MOST).cloned());
    if told.len() > MOST {
        sentences.push("The table has the others.".to_owned());
    }
    sentences
}

fn limits(paper: &Paper) -> Vec<String> {
    let mut limits = Vec::new();
    let has_found =
        |id: &str| paper.checks.iter().any(|check| check.id == id && !check.findings.is_empty());
    let tests: Vec<&str> =
        paper.experiments.iter().map(|experiment| experiment.test.as_str()).collect();
    let is_tpc = |test: &&str| {
        let test = test.to_ascii_lowercase();
        ["tpc", "pgbench"].iter().any(|family| test.contains(family))
    };
    if tests.iter().any(is_tpc) || paper.experiments.iter().any(|e| e.tpcc.is_some()) {
        limits.push("This is not a TPC result: the workload is derived from a TPC benchmark, was neither audited nor run under all rules of its specification, and is not comparable with published TPC results.".to_owned());
    }
    if has_found("few-repeats") {
        limits.push("Points were repeated too seldom for a verdict: from a difference between two figures nothing follows about which target is faster. Differences between runs of the same system are often larger than the noise within one run.".to_owned());
    }
    let is_sweep = paper.key_rows.iter().any(|row| {
        let points = &paper.experiments[row.experiment_index].points;
        points.iter().filter(|point| point.target == row.point.target).count() > 1
    });
    if is_sweep {
        limits.push("The best of several load levels was chosen after measuring and not measured again; such a choice overstates the maximum by some 2 to 3 %.".to_owned());
    }
    if has_found("same-host") {
        limits.push("Load generator and server shared a machine; the figures hold for this arrangement only.".to_owned());
    }
    if paper.experiments.iter().any(|experiment| !experiment.published.is_empty()) {
        limits.push("Published figures come from other machines, versions and years. They stand here for orientation; a ratio to them is no comparison of products.".to_owned());
    }
    let has_transactions = paper.trials.iter().any(|trial| trial.summary.tpch.is_none());
    if has_transactions || paper.trials.is_empty() {
        limits
            .push("Percentiles with fewer than 10 samples beyond them are not printed.".to_owned());
    }
    limits.push(format!(
        "A test of another workload, data size or setting than {} may rank differently.",
        if tests.len() == 1 { "this one" } else { "these" }
    ));
    limits
}
