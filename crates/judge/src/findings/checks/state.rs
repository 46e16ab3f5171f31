//! B: time. E: the state of data, caches and machines.

use super::*;

/// Shorter windows see few checkpoints and other slow cycles, seconds.
const MIN_WINDOW_S: f64 = 60.0;
/// Number of checkpoint cycles that a window covers at least (catalog of checks).
const MIN_CYCLES: f64 = 2.0;
/// More are counted, not listed.
const MAX_LISTED: usize = 6;

pub(super) const TIME_RULES: &[Rule] = &[
    Rule::trial(Group::B, Level::W, checks::gaps, |trial| {
        let seconds: f64 = trial.gaps.iter().map(|gap| gap.to_s - gap.from_s).sum();
        // An outage that was requested is reported alongside its fault.
        let has_fault = trial.summary.fault.is_some();
        let seconds = Some(seconds).filter(|seconds| *seconds > 0.0 && !has_fault)?;
        Some(say!(s_without_a_commit, seconds = format::plain(seconds)))
    }),
    Rule::window(Group::B, Level::W, checks::warm_up, warm_up),
    Rule::window(Group::B, Level::W, checks::change_point, change_points),
    Rule::window(Group::B, Level::W, checks::slow_seconds, slow_seconds),
    Rule::window(Group::B, Level::I, checks::steadiness_unknown, |row| {
        row.is_steady.is_none().then(|| say!(too_few_intervals))
    }),
    Rule::trial(Group::B, Level::W, checks::checkpoint_cycles, checkpoint_cycles),
    Rule::trial(Group::B, Level::W, checks::cut_off, |trial| {
        let summary = &trial.summary;
        trial.is_cut_off().then(|| {
            let progress =
                KnownFamily::from_summary(summary).and_then(|family| family.progress(summary));
            let seconds = format::plain(summary.window_s);
            progress.unwrap_or_else(|| say!(seconds_s_measured, seconds))
        })
    }),
    Rule::case(Group::B, Level::W, checks::resumed_run, find_resumptions),
    Rule::experiment(Group::B, Level::I, checks::short_window, |experiment| {
        // The statements of a pass take the time that they take.
        let window_s = experiment.shortest_window_s.filter(|_| !experiment.is_pass())?;
        let is_short = window_s < MIN_WINDOW_S;
        is_short.then(|| Message::verbatim(format!("{} s", format::plain(window_s))))
    }),
];

/// Times at which runs were resumed, whether they had been interrupted or had ended with failed trials. A resumption
/// before the first trial lies between no trials.
fn find_resumptions(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (run, facts) in case.runs.iter().zip(&case.evidence.runs) {
        let resumptions = run.header.resumed_at.iter();
        let resumptions: Vec<Message> =
            resumptions.filter_map(|resumed| describe_resumption(run, resumed)).collect();
        let n = resumptions.len() + 1;
        let value = parts(resumptions).map(|resumed| say!(run_of_sessions, n, resumed));
        findings.extend(value.map(|value| Finding::new(SpotKind::Run.at(&facts.folder), value)));
    }
    findings
}

/// The trials between which a run was resumed at a time, in words; `None` if there are none on either side.
fn describe_resumption(run: &RunData, resumed: &str) -> Option<Message> {
    // The sum of stages began with the first of them.
    let trials = run.trials.iter().filter(|trial| trial.summary.stages.is_empty());
    // Times are whole seconds: what was cut off in the second of the resumption was cut off by the interruption.
    let (before, after): (Vec<&TrialData>, Vec<&TrialData>) = trials.partition(|trial| {
        let is_cut = trial.summary.status == TrialStatus::Interrupted;
        trial.summary.started_at.as_str() < resumed
            || (is_cut && trial.summary.started_at == resumed)
    });
    let before = before.iter().map(|trial| trial.summary.trial).max()?;
    let after = after.iter().map(|trial| trial.summary.trial).min()?;
    Some(say!(resumed_between, before, after, resumed))
}

/// Windows without a reason to be unsteady: steps of a search overload a server on purpose, and a fault disturbs.
pub(super) fn judged_windows<'a>(case: &Case<'a>) -> impl Iterator<Item = &'a SteadyRow> {
    let is_disturbed =
        |trial: &&Trial| trial.summary.purpose == Purpose::Search || trial.summary.fault.is_some();
    let disturbed: Vec<&String> =
        case.evidence.trials.iter().filter(is_disturbed).map(|trial| &trial.label).collect();
    case.verdicts.steady.iter().filter(move |row| !disturbed.contains(&&row.trial))
}

fn warm_up(row: &SteadyRow) -> Option<Message> {
    let drift = row.warm_up.filter(|warm_up| !warm_up.is_over)?.drift;
    let drift = format!("{:+.1}", 100.0 * drift);
    Some(say!(drift_over_the_thirds, drift))
}

fn change_points(row: &SteadyRow) -> Option<Message> {
    parts(row.changes.iter().map(|change| {
        say!(
            after_s_from_to_per_second,
            at = format::plain(change.at_s),
            before = format::short(change.before_per_s),
            after = format::short(change.after_per_s)
        )
    }))
}

/// The stalls of a trial, each with what the server did at that time.
fn slow_seconds(row: &SteadyRow) -> Option<Message> {
    let mut texts: Vec<Message> = row.stalls.iter().take(MAX_LISTED).map(describe_stall).collect();
    if let Some(n) = row.stalls.len().checked_sub(MAX_LISTED).filter(|n| *n > 0) {
        texts.push(say!(n_more, n));
    }
    parts(texts)
}

fn describe_stall((stall, events): &(Stall, Vec<Message>)) -> Message {
    let text = say!(
        to_s_per_second,
        from = format::plain(stall.from_s),
        to = format::plain(stall.to_s),
        lowest = format::short(stall.lowest_per_s)
    );
    // That nothing was committed is what a stall is, and no reason for it.
    let reasons = events.iter().filter(|event| **event != "No transaction was committed.");
    let reasons: Vec<Message> = reasons.cloned().collect();
    if reasons.is_empty() {
        text
    } else {
        say!(stall_events, stall = text, events = Message::sentences(&reasons))
    }
}

fn checkpoint_cycles(trial: &Trial) -> Option<Message> {
    let summary = &trial.summary;
    let intervals =
        nodes_of(trial).filter(|(_, node)| node.checkpoints.is_none_or(|seen| seen < 2));
    let interval_s =
        intervals.filter_map(|(_, node)| node.checkpoint_interval_s).reduce(f64::max)?;
    let is_short = summary.window_s < MIN_CYCLES * interval_s;
    (is_short && summary.statements.writes > 0 && !summary.is_pass()).then(|| {
        say!(
            window_of_s_a_checkpoint_every,
            window = format::plain(summary.window_s),
            interval = format::plain(interval_s)
        )
    })
}

/// Share of the load generator's CPU, taken by the hypervisor, or held back by a quota.
const STEAL: f64 = 0.01;
const THROTTLED: f64 = 0.01;
/// Pages of 4 KiB: a MiB in and out may be chance.
const SWAPPED_PAGES: u64 = 256;
const MEMORY_PRESSURE: f64 = 0.01;
/// Requests that memory answers once it is warm (PolarDB's paper, chapter 7).
const WARM_HITS: f64 = 0.99;
/// innodb_max_dirty_pages_pct_lwm of MySQL 8.0: from here on pages are flushed alongside the load.
const DIRTY: f64 = 0.10;
/// InnoDB flushes in haste from three quarters of its log on.
const CHECKPOINT_AGE: f64 = 0.75;
/// Old row versions: as many lengthen every scan noticeably.
const PURGE_BACKLOG: u64 = 100_000;
/// Growth of the data in one trial.
const GROWTH: f64 = 0.05;
/// Servers estimate the sizes of small tables, give them whole extents, and notice late what was loaded.
const SIZE_NOISE_BYTES: f64 = (16 << 20) as f64;
/// A server at its limit leaves less of its CPU idle.
const BUSY_SERVER: f64 = 0.70;

pub(super) const RULES: &[Rule] = &[
    Rule::pair(Group::E, Level::W, checks::memory_class, memory_class),
    Rule::experiment(Group::E, Level::W, checks::data_at_edge, |experiment| {
        sizes(experiment, |times| (IN_MEMORY..=BEYOND_MEMORY).contains(&times))
    }),
    Rule::experiment(Group::E, Level::I, checks::data_in_memory, |experiment| {
        sizes(experiment, |times| times < IN_MEMORY)
    }),
    Rule::trial(Group::E, Level::W, checks::cold, |trial| {
        let times = trial.summary.data.as_ref()?.size_to_memory()?;
        (times < IN_MEMORY).then(|| misses(trial))?
    }),
    Rule::trial(Group::E, Level::I, checks::disk_reads, |trial| {
        let times = trial.summary.data.as_ref().and_then(DataFacts::size_to_memory);
        times.is_none_or(|times| times >= IN_MEMORY).then(|| misses(trial))?
    }),
    Rule::trial(Group::E, Level::W, checks::unsettled_start, |trial| each_node(trial, backlog)),
    Rule::trial(Group::E, Level::I, checks::background, |trial| {
        each_node(trial, |node| commas(&node.background))
    }),
    Rule::trial(Group::E, Level::W, checks::growth, |trial| {
        each_node(trial, |node| {
            let growth = node.growth_share.zip(node.data_bytes);
            let grown_bytes = growth.map(|(share, bytes)| share * bytes as f64);
            let is_counted = grown_bytes.is_none_or(|bytes| bytes > SIZE_NOISE_BYTES);
            above(node.growth_share.filter(|_| is_counted), GROWTH)
        })
    }),
    Rule::case(Group::E, Level::W, checks::idle_server, idle_server),
    Rule::trial(Group::E, Level::W, checks::steal, |trial| {
        above(Some(trial.summary.generator.host.steal_share), STEAL)
    }),
    Rule::trial(Group::E, Level::W, checks::throttled, |trial| {
        above(generator(trial)?.throttled_share, THROTTLED)
    }),
    Rule::trial(Group::E, Level::W, checks::swap, swap),
    Rule::trial(Group::E, Level::I, checks::governor, |trial| {
        let governor = generator(trial)?.governor.as_deref()?;
        (governor != "performance" && !governor.is_empty()).then(|| Message::verbatim(governor))
    }),
];

/// Targets whose data have such a size by the memory for them. An embedded database shares its memory
/// with the load generator and the system's cache.
fn sizes(experiment: &Experiment, is_found: fn(f64) -> bool) -> Option<Message> {
    let mut texts: Vec<Message> = Vec::new();
    for point in &experiment.points {
        let Some((times, text)) = describe_size(point) else { continue };
        if is_found(times) && !texts.contains(&text) {
            texts.push(text);
        }
    }
    parts(texts)
}

/// Ratio of the data of a point to the memory, and its words.
fn describe_size(point: &Point) -> Option<(f64, Message)> {
    let data = point.data.as_ref()?;
    let times = data.size_to_memory?;
    let text = say!(
        target_times_times_setting,
        target = &point.target,
        times = format!("{times:.1}"),
        setting = &data.facts.memory_setting
    );
    Some((times, text))
}

/// One of the targets holds its data in memory and the other doesn't.
fn memory_class(pair: &TargetPair<'_>) -> Option<Message> {
    let [a, b] = pair.labels().map(|label| {
        let mut points = pair.experiment.points.iter().filter(|point| point.target == label);
        points.find_map(describe_size)
    });
    let ((a, text_a), (b, text_b)) = (a?, b?);
    (a.min(b) < IN_MEMORY && a.max(b) > BEYOND_MEMORY).then(|| parts([text_a, text_b]))?
}

/// The nodes on which more than one page request in a hundred was not answered by their buffers: the system's cache may
/// have answered it, or the disk.
fn misses(trial: &Trial) -> Option<Message> {
    each_node(trial, |node| {
        let hits = node.hit_share.filter(|share| *share < WARM_HITS)?;
        let hits = Message::verbatim(format!("{:.1}%", 100.0 * hits));
        Some(match node.pages_read {
            Some(pages) => say!(from_memory_pages_read, hits, pages),
            None => say!(hits_from_memory, hits),
        })
    })
}

/// Work left over from the load before: pages to write, and old row versions to remove.
fn backlog(node: &NodeConditions) -> Option<Message> {
    let dirty = node.dirty_share.filter(|share| *share > DIRTY);
    let age = node.checkpoint_age_share.filter(|share| *share > CHECKPOINT_AGE);
    let purge = node.purge_backlog.filter(|backlog| *backlog > PURGE_BACKLOG);
    let texts = [
        dirty.map(|share| say!(of_the_pages_dirty, share = percent(share))),
        age.map(|share| say!(checkpoint_age_share, share = percent(share))),
        purge.map(|rows| say!(old_row_versions, rows)),
    ];
    parts(texts.into_iter().flatten())
}

/// The best points of sweeps whose server had CPU to spare.
fn idle_server(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for experiment in case.measured_experiments().filter(|experiment| !experiment.is_pass()) {
        for target in &case.evidence.targets {
            let points = experiment.points.iter().filter(|point| point.target == target.label);
            let count = points.clone().count();
            let best =
                points.max_by(|a, b| a.throughput().median.total_cmp(&b.throughput().median));
            let Some(best) = best.filter(|_| count > 1) else { continue };
            for trial in case.evidence.point_trials(best) {
                let idle = server_cpu(trial).filter(|share| *share < BUSY_SERVER);
                let value = idle.map(|share| say!(share_busy, share = percent(share)));
                let place = SpotKind::Trial.at(&trial.label);
                findings.extend(value.map(|value| Finding::new(place, value)));
            }
        }
    }
    findings
}

/// The busiest node's CPU, where dyno can see it.
fn server_cpu(trial: &Trial) -> Option<f64> {
    let busiest = nodes_of(trial).filter_map(|(_, node)| node.cpu_share).reduce(f64::max);
    let is_same_host = trial.place == TargetPlace::SameHost;
    busiest.or_else(|| is_same_host.then_some(trial.summary.generator.host.cpu_share))
}

/// The pages that the load generator's machine swapped, and how long it waited for memory, if either is too much.
fn swap(trial: &Trial) -> Option<Message> {
    let conditions = generator(trial)?;
    let pages = conditions.swapped_pages.filter(|pages| *pages > SWAPPED_PAGES);
    let pressure = conditions.memory_pressure_share.filter(|share| *share > MEMORY_PRESSURE);
    let texts = [
        pages.map(|pages| say!(n_pages_swapped, n = pages)),
        pressure.map(|share| say!(waited_for_memory_of_the_window, share = percent(share))),
    ];
    parts(texts.into_iter().flatten())
}
