//! Page one: what was compared, what came out in a sentence or two or line by line, the strip of four facts, and what
//! forbids quoting a figure.

use super::*;

/// Returns page one.
pub(super) fn cover(paper: &Paper, lang: Lang) -> Cover {
    let (answer, answers) = answer(paper);
    Cover {
        logo: paper.texts.logo.clone(),
        kicker: say!(database_performance_white_paper),
        title: paper.title.clone(),
        subtitle: paper.subtitle.clone(),
        byline: byline(paper),
        banner: rehearsal(paper).unwrap_or_default(),
        answer,
        answers,
        chart: charts::cover_chart(paper, lang).or_else(|| family_chart(paper, lang)),
        facts: cover_facts(paper),
        warnings: warnings(paper),
        contents: say!(contents),
    }
}

/// The first chart of a family that draws its own.
fn family_chart(paper: &Paper, lang: Lang) -> Option<Drawing> {
    paper.experiments.iter().find_map(|experiment| {
        let blocks = find_family(experiment)?.section(paper, experiment, lang)?;
        blocks.into_iter().find_map(|block| match block {
            Block::Figures { figures, .. } => figures.into_iter().next(),
            _ => None,
        })
    })
}

/// Authors and date of the measurement, and its end if it did not end well.
fn byline(paper: &Paper) -> Message {
    let start_times = unique_facts(paper, |run| &run.header.started_at);
    let start_days: Vec<String> =
        start_times.iter().map(|time| time.get(..10).unwrap_or(time).to_owned()).collect();
    let days = match (start_days.iter().min(), start_days.iter().max()) {
        (Some(first), Some(last)) if first != last => say!(days, first, last),
        (Some(first), _) => Message::verbatim(first),
        _ => say!(unknown),
    };
    let hosts = unique_facts(paper, |run| &run.header.environment.host);
    let measured = if hosts.is_empty() {
        say!(measured_on_day, days)
    } else {
        say!(measured_on_day_by_host, days, hosts = join_names(&hosts))
    };
    let versions = unique_facts(paper, |run| &run.header.environment.dyno_version).join(", ");
    let texts = &paper.texts;
    let credits = [Message::verbatim(texts.authors.join(", ")), texts.organization.message()];
    let credits = credits.into_iter().chain([Message::verbatim(&texts.date)]);
    let mut parts: Vec<Message> = credits.filter(|part| !part.is_empty()).collect();
    parts.extend([measured, Message::verbatim(format!("dyno {versions}"))]);
    let incomplete = paper.runs.iter().filter(|run| run.header.status != RunStatus::Complete);
    parts.extend(incomplete.map(|run| run.status.clone()));
    Message::joined(&parts, " · ", " · ")
}

/// Statements of the runs about one thing, each only once.
fn unique_facts(paper: &Paper, get: fn(&RunFacts) -> &str) -> Vec<String> {
    let words = paper.runs.iter().map(|run| get(run).to_owned());
    unique(words.filter(|word| !word.is_empty()).collect())
}

/// The banner of a run of less than the suite's full size: its data and windows.
pub(super) fn rehearsal(paper: &Paper) -> Option<Message> {
    let shares =
        paper.runs.iter().map(|run| run.header.plan.as_ref().map_or(1.0, |plan| plan.shrink));
    let smallest = shares.reduce(f64::min).filter(|share| *share < 1.0)?;
    let times = format::plain(1.0 / smallest);
    Some(match windows(paper) {
        Some(windows) => say!(rehearsal, times, windows),
        None => say!(rehearsal_of_passes, times),
    })
}

/// Pairs of targets in the answer.
const MAX_PAIRS: usize = 3;
/// Places that are named with their results.
const MAX_PLACES: usize = 4;
/// An answer with more parts is a list.
const MAX_PARTS_IN_TEXT: usize = 2;
/// From this ratio on, a difference is a multiple instead of a percentage.
const MIN_TIMES_RATIO: f64 = 2.0;

/// The suite's question, answered as a text, or as a list with its head; the head is empty if each line names what it
/// is about.
pub(super) fn answer(paper: &Paper) -> (Message, Vec<Message>) {
    if paper.trials.is_empty() {
        return (summary::no_trial(paper), Vec::new());
    }
    let comparisons = paper.cover_comparisons().into_iter();
    let pairs = grouped(comparisons.map(|c| ([c.baseline.as_str(), &c.candidate], c)));
    let answers: Vec<PairAnswer> = pairs
        .iter()
        .take(MAX_PAIRS)
        .map(|(labels, comparisons)| pair_answer(paper, *labels, comparisons))
        .collect();
    let n_parts = answers.iter().map(|answer| answer.parts().count()).sum::<usize>();
    let is_list = n_parts > MAX_PARTS_IN_TEXT;
    let (head, mut lines) = match answers.as_slice() {
        [] => (Message::default(), uncompared_results(paper)),
        [only] if is_list => (only.head(), only.parts().cloned().collect()),
        _ if is_list => (Message::default(), answers.iter().flat_map(PairAnswer::lines).collect()),
        _ => (Message::default(), answers.iter().flat_map(PairAnswer::sentences).collect()),
    };
    if !pairs.is_empty() {
        let faults = paper.faults();
        lines.splice(0..0, faults.iter().map(|fault| fault.sentence()));
    }
    if pairs.len() > MAX_PAIRS {
        lines.push(say!(further_comparisons, n = pairs.len() - MAX_PAIRS));
    }
    if lines.len() > MAX_PARTS_IN_TEXT {
        (head, lines)
    } else {
        (Message::sentences(&lines), Vec::new())
    }
}

/// The results if nothing is compared.
fn uncompared_results(paper: &Paper) -> Vec<Message> {
    let (results, has_more) = summary::first_results(paper);
    let reference = has_more.then(|| {
        if paper.is_short() {
            say!(section_6_has_the_others)
        } else {
            say!(section_1_lists_the_others)
        }
    });
    results.into_iter().chain(reference).collect()
}

/// The answer about two targets.
struct PairAnswer {
    baseline: Message,
    candidate: Message,
    /// Their subject is the candidate.
    clauses: Vec<Message>,
    /// The absence of a verdict: a sentence with both names.
    no_verdict: Option<Message>,
    /// Sentences on what checks forbid.
    forbidden: Vec<Message>,
}

impl PairAnswer {
    /// The two targets, as the subject of all parts.
    fn head(&self) -> Message {
        say!(candidate_against_baseline, candidate = &self.candidate, baseline = &self.baseline)
    }

    /// The clauses and sentences of the answer.
    fn parts(&self) -> impl Iterator<Item = &Message> {
        self.clauses.iter().chain(&self.no_verdict).chain(&self.forbidden)
    }

    /// The parts, each with both names.
    fn lines(&self) -> Vec<Message> {
        let parts = self.clauses.iter().chain(&self.forbidden);
        let lines = parts.map(|part| Message::sentences(&[self.head(), part.clone()]));
        self.no_verdict.iter().cloned().chain(lines).collect()
    }

    /// All clauses in one.
    fn sentences(&self) -> Vec<Message> {
        let (baseline, candidate) = (&self.baseline, &self.candidate);
        let comparison = (!self.clauses.is_empty()).then(|| {
            let parts = join_clauses(&self.clauses);
            say!(comparison_sentence, baseline, candidate, parts)
        });
        let objections = self.no_verdict.iter().chain(&self.forbidden).cloned();
        comparison.into_iter().chain(objections).collect()
    }
}

fn pair_answer(paper: &Paper, labels: [&str; 2], comparisons: &[&PairedComparison]) -> PairAnswer {
    let [baseline, candidate] = labels.map(|label| target_name(paper, label));
    let (forbidden, mut open): (Vec<&PairedComparison>, Vec<&PairedComparison>) = comparisons
        .iter()
        .copied()
        .partition(|comparison| paper.forbidding(&comparison.checks).next().is_some());
    let decided: [(Call, Clause); 3] = [
        (Call::Faster, difference_clause),
        (Call::Slower, difference_clause),
        (Call::Equivalent, equivalence_clause),
    ];
    let mut clauses: Vec<Message> = Vec::new();
    for (call, clause) in decided {
        let (matching, remaining): (Vec<&PairedComparison>, Vec<&PairedComparison>) = open
            .into_iter()
            .partition(|comparison| comparison.rows.first().is_some_and(|row| row.call == call));
        clauses.extend(experiment_clauses(&matching, clause));
        open = remaining;
    }
    let mut no_verdict = None;
    if !open.is_empty() && clauses.is_empty() {
        // Levels that a check forbids are counted too, as the summary counts them.
        let undecided: Vec<&PairedComparison> = comparisons
            .iter()
            .copied()
            .filter(|comparison| comparison.rows.first().is_none_or(|row| row.call.is_undecided()))
            .collect();
        let (reasons, c, b) = (join_reasons(paper, &undecided), &candidate, &baseline);
        no_verdict = Some(match undecided.len() {
            1 => say!(no_verdict_at_the_level, candidate = c, baseline = b, why = reasons),
            n => say!(no_verdict_at_any, n, candidate = c, baseline = b, why = reasons),
        });
    } else if !open.is_empty() {
        let (places, reasons) = (describe_places(&open), join_reasons(paper, &open));
        clauses.push(say!(no_verdict_at_places, places, why = reasons));
    }
    let forbidden = forbidden_places(paper, &forbidden);
    PairAnswer { baseline, candidate, clauses, no_verdict, forbidden }
}

/// The clause about comparisons of one outcome.
type Clause = fn(&[&PairedComparison]) -> Message;

/// Comparisons of one experiment together.
fn by_experiment<'a, 'b>(
    comparisons: &'b [&'a PairedComparison],
) -> impl Iterator<Item = &'b [&'a PairedComparison]> {
    comparisons.chunk_by(|a, b| a.experiment_index == b.experiment_index)
}

/// A clause with medians for each experiment, and one without for those beyond the most.
fn experiment_clauses(comparisons: &[&PairedComparison], clause: Clause) -> Vec<Message> {
    let groups: Vec<&[&PairedComparison]> = by_experiment(comparisons).collect();
    let n_detailed = if groups.len() > MAX_PLACES { MAX_PLACES - 1 } else { groups.len() };
    let remaining: Vec<&PairedComparison> = groups[n_detailed..].concat();
    let detailed = groups[..n_detailed].iter().map(|group| with_medians(clause(group), group));
    detailed.chain((!remaining.is_empty()).then(|| clause(&remaining))).collect()
}

/// Adds the medians of both, at the last level if there are several; a figure that is only a bound is not a median.
fn with_medians(clause: Message, comparisons: &[&PairedComparison]) -> Message {
    let Some(comparison) = comparisons.last() else { return clause };
    let Some(row) = comparison.rows.first().filter(|row| row.bound.is_empty()) else {
        return clause;
    };
    let [a, b] = [row.candidate, row.baseline].map(|side| format::short(side.median));
    let metric = &row.name;
    let medians = if row.is_less_better {
        say!(medians_of_a_time, candidate = a, baseline = b, metric)
    } else {
        say!(medians_of_a_rate, candidate = a, baseline = b, metric)
    };
    match comparisons.len() {
        1 => say!(said_with_medians, said = clause, medians),
        _ => say!(verdict_with_medians, said = clause, medians, level = &comparison.level),
    }
}

fn equivalence_clause(comparisons: &[&PairedComparison]) -> Message {
    let margin = comparisons.iter().map(|comparison| comparison.margin).fold(0.0, f64::max);
    let places = describe_places(comparisons);
    say!(as_fast_within, margin = format::percent(margin), places)
}

/// The name in the paper, with product and version if it is a name of the command line only.
fn target_name(paper: &Paper, label: &str) -> Message {
    let untitled = paper.target(label).filter(|target| target.facts.name == label);
    match untitled.and_then(PaperTarget::major_product) {
        Some(product) if !label.contains(&product) => {
            Message::verbatim(format!("{label} ({product})"))
        }
        _ => Message::verbatim(label),
    }
}

/// Amount by which the candidate is faster or slower, over all these levels.
fn difference_clause(comparisons: &[&PairedComparison]) -> Message {
    let rows: Vec<&VerdictRow> =
        comparisons.iter().filter_map(|comparison| comparison.rows.first()).collect();
    // As speed: of times the smaller one is the faster one.
    let ends = rows.iter().flat_map(|row| {
        let (low, high) =
            row.interval.map_or((row.ratio, row.ratio), |interval| (interval.low, interval.high));
        if row.is_less_better { [1.0 / high, 1.0 / low] } else { [low, high] }
    });
    let (low, high) = min_and_max(ends).unwrap_or((1.0, 1.0));
    let place = describe_places(comparisons);
    let is_faster = rows.first().is_some_and(|row| row.call == Call::Faster);
    if is_faster && low >= MIN_TIMES_RATIO {
        let range = low_to_high(format::short(low), format::short(high));
        return say!(times_as_fast, range, place);
    }
    let cost = rows.first().filter(|first| {
        first.metric.is_cost() && rows.iter().all(|row| row.metric == first.metric)
    });
    let is_time = rows.iter().all(|row| row.is_less_better);
    // In the words of the verdicts: half the time is not "50% faster".
    let (min, max) = match (is_faster, is_time) {
        (true, true) => (1.0 - 1.0 / low, 1.0 - 1.0 / high),
        (false, true) => (1.0 / high - 1.0, 1.0 / low - 1.0),
        (true, false) => (low - 1.0, high - 1.0),
        (false, false) => (1.0 - high, 1.0 - low),
    };
    let range = low_to_high(format::percent(min), format::percent(max));
    match (is_faster, cost.map(|row| &row.name), is_time) {
        (true, Some(cost), _) => say!(percent_cheaper, range, cost, place),
        (false, Some(cost), _) => say!(percent_more_expensive, range, cost, place),
        (true, _, true) => say!(percent_less_time, range, place),
        (false, _, true) => say!(percent_more_time, range, place),
        (true, ..) => say!(percent_faster, range, place),
        (false, ..) => say!(percent_slower, range, place),
    }
}

/// Experiments with their load levels.
fn describe_places(comparisons: &[&PairedComparison]) -> Message {
    let groups: Vec<&[&PairedComparison]> = by_experiment(comparisons).collect();
    let mut places: Vec<Message> = Vec::new();
    for group in groups.iter().take(MAX_PLACES) {
        let levels: Vec<Message> =
            group.iter().map(|comparison| comparison.level.clone()).collect();
        let levels = match levels.len() {
            0..=2 => join_list(&levels),
            n => say!(n_load_levels, n),
        };
        places.push(say!(experiment_at_levels, experiment = &group[0].title, levels));
    }
    if groups.len() > MAX_PLACES {
        places.push(say!(n_more_experiments, n = groups.len() - MAX_PLACES));
    }
    Message::list(&places)
}

/// Places where checks forbid a comparison: those that forbid the same comparisons share a sentence.
fn forbidden_places(paper: &Paper, comparisons: &[&PairedComparison]) -> Vec<Message> {
    let numbers: Vec<usize> = comparisons.iter().flat_map(|c| c.checks.iter().copied()).collect();
    let places = paper.forbidding(&numbers).map(|check| {
        let affected = comparisons.iter().copied().filter(|c| c.checks.contains(&check.number));
        (describe_places(&affected.collect::<Vec<_>>()), check.number)
    });
    let sentences = grouped(places).into_iter().map(|(places, numbers)| {
        say!(not_comparable_places, places, why = why_forbidden(paper, &numbers))
    });
    sentences.collect()
}

/// Reasons for the absence of a verdict, most frequent first.
fn join_reasons(paper: &Paper, open: &[&PairedComparison]) -> Message {
    let mut reasons =
        grouped(open.iter().map(|comparison| (no_verdict_reason(paper, comparison), ())));
    reasons.sort_by_key(|(_, hits)| std::cmp::Reverse(hits.len()));
    match reasons.as_slice() {
        [(only, _)] => only.clone(),
        _ => {
            let first = reasons.iter().take(3);
            let parts =
                first.map(|(reason, hits)| say!(at_n_of_them, n = hits.len(), why = reason));
            join_clauses(&parts.collect::<Vec<_>>())
        }
    }
}

fn no_verdict_reason(paper: &Paper, comparison: &PairedComparison) -> Message {
    let Some(row) = comparison.rows.first() else { return say!(because_no_pair_counts) };
    match row.call {
        Call::Explained => {
            let veto = comparison.deciding_vetoes().next();
            let check =
                veto.and_then(|veto| paper.checks.iter().find(|check| check.id == veto.check));
            check.map_or_else(
                || say!(because_of_a_check),
                |check| say!(because_check, id = check.id, number = check.number.to_string()),
            )
        }
        Call::TooFewPairs => {
            say!(because_of_few_pairs, least = comparison.least_pairs().to_string())
        }
        Call::Unproven => say!(because_of_many),
        _ => say!(because_of_variation),
    }
}

/// The checks that forbid a figure, in words.
pub(crate) fn why_forbidden(paper: &Paper, numbers: &[usize]) -> Message {
    let reasons = paper.forbidding(numbers).map(|check| {
        let number = format!("{:?}{}", Level::E, check.number);
        say!(check_in_words, number, meaning = first_sentence(&check.meaning))
    });
    Message::sentences(&reasons.collect::<Vec<_>>())
}

/// A sentence with the checks that forbid its figures.
pub(crate) fn with_objections(paper: &Paper, sentence: Message, numbers: &[usize]) -> Message {
    match paper.forbidding(numbers).next() {
        None => sentence,
        Some(_) => {
            let objection = say!(not_usable_because, why = why_forbidden(paper, numbers));
            Message::sentences(&[sentence, objection])
        }
    }
}

/// Lines below each name.
const MAX_LINES: usize = 4;

fn cover_facts(paper: &Paper) -> Vec<Fact> {
    vec![
        fact(say!(systems), describe_systems(paper)),
        fact(say!(data_against_memory), describe_data(paper)),
        fact(say!(load), describe_load(paper)),
        fact(say!(durability_fact), describe_durabilities(paper)),
    ]
}

/// Without anything known the fact says so.
fn fact(name: Message, mut lines: Vec<Message>) -> Fact {
    if lines.is_empty() {
        lines.push(say!(not_known));
    }
    let n_hidden = lines.len().saturating_sub(MAX_LINES);
    if n_hidden > 0 {
        lines.truncate(MAX_LINES);
        lines.push(say!(and_more, n = n_hidden));
    }
    let first = lines.remove(0);
    Fact { name, value: vec![Span::plain(first)], below: lines }
}

/// Targets that were measured; all if none was.
fn measured_targets(paper: &Paper) -> Vec<&PaperTarget> {
    let targets = paper.targets.iter();
    let measured =
        targets.filter(|target| paper.trials.iter().any(|trial| trial.target == target.label));
    let measured: Vec<&PaperTarget> = measured.collect();
    if measured.is_empty() { paper.targets.iter().collect() } else { measured }
}

fn describe_systems(paper: &Paper) -> Vec<Message> {
    let systems = measured_targets(paper).into_iter().map(|target| {
        let product = shown_product(&target.product);
        let has_label = product.starts_with(&target.label);
        let label = (!has_label).then_some(&target.label).into_iter();
        let product = Some(&product).filter(|product| !product.is_empty());
        let mut parts: Vec<Message> = label.chain(product).map(Message::verbatim).collect();
        if !target.facts.class.is_empty() {
            parts.push(Message::verbatim(&target.facts.class));
        }
        Message::joined(&parts, ", ", "，")
    });
    unique(systems.collect())
}

/// Without the package that it came in: `MariaDB 10.11.14`, `ShardingSphere-Proxy 5.1.0 (MariaDB 10.11.19)`.
pub(super) fn shown_product(words: &str) -> String {
    const PROXY: &str = "ShardingSphere-Proxy ";
    if let Some((server, version)) = words.split_once(PROXY) {
        return format!("{PROXY}{version} ({})", shown_product(server));
    }
    let words = words.split(" (").next().unwrap_or_default().split(' ');
    let words = words.map(|word| {
        let is_version = word.starts_with(|c: char| c.is_ascii_digit());
        if is_version { word.split('-').next().unwrap_or_default() } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The size of the data, in bytes and by the memory for them: the range over all experiments.
fn describe_data(paper: &Paper) -> Vec<Message> {
    let points = paper.experiments.iter().flat_map(|experiment| &experiment.points);
    let data_facts: Vec<&DataFacts> =
        points.filter_map(|point| Some(&point.data.as_ref()?.facts)).collect();
    let mut lines = Vec::new();
    let times_memory = data_facts.iter().filter_map(|data| data.size_to_memory());
    if let Some((low, high)) = min_and_max(times_memory) {
        let range = low_to_high(format::short(low), format::short(high));
        lines.push(say!(times_the_memory, range));
        lines.push(join_clauses(&unique(vec![fit_in_memory(low), fit_in_memory(high)])));
    }
    let sizes = data_facts.iter().filter_map(|data| data.size_bytes).map(|bytes| bytes as f64);
    if let Some((low, high)) = min_and_max(sizes) {
        let range = low_to_high(format::bytes(low), format::bytes(high));
        lines.push(if lines.is_empty() {
            say!(data_of_unknown_share, range)
        } else {
            say!(data_size, range)
        });
    }
    lines
}

fn describe_load(paper: &Paper) -> Vec<Message> {
    let measured: Vec<&Experiment> =
        paper.experiments.iter().filter(|experiment| !experiment.points.is_empty()).collect();
    let tests = measured.iter().map(|experiment| experiment.test.clone());
    let tests = unique(tests.filter(|test| !test.is_empty()).collect());
    let mut lines = Vec::new();
    match tests.as_slice() {
        [] => {}
        few if few.len() <= 3 => lines.push(join_names(few)),
        // As many as have a name on this page.
        _ => {
            let titles = measured.iter().map(|experiment| {
                find_family(experiment)
                    .map_or_else(|| say!(other_workloads), |family| family.title())
            });
            let families = join_list(&unique(titles.collect()));
            lines.push(say!(experiments_of_families, n = measured.len(), families));
        }
    }
    let with_clients: Vec<&Experiment> =
        measured.iter().copied().filter(|experiment| !experiment.is_pass()).collect();
    let loads = with_clients.iter().flat_map(|experiment| &experiment.points).map(Point::load);
    let clients = min_and_max(loads);
    if let Some((low, high)) = clients.filter(|(_, high)| *high > 0.0) {
        let range = low_to_high(format::whole(low), format::whole(high));
        lines.push(if with_clients.iter().all(|experiment| experiment.has_terminals()) {
            say!(range_of_terminals, n = range)
        } else {
            say!(range_of_workers, n = range)
        });
    }
    match windows(paper) {
        Some(range) => {
            lines.push(say!(trials_with_windows, n = paper.trials.len(), windows = range))
        }
        None if paper.trials.is_empty() => {}
        None => lines.push(say!(trial_count, n = paper.trials.len())),
    }
    lines
}

/// The lengths of the measured windows.
fn windows(paper: &Paper) -> Option<Message> {
    let windows = paper.trials.iter().map(|trial| trial.summary.window_s).filter(|s| *s > 0.0);
    let (low, high) = min_and_max(windows)?;
    let [low, high] = [low, high].map(|seconds| {
        if seconds >= 10.0 {
            format::whole(seconds)
        } else {
            format::plain((seconds * 10.0).round() / 10.0)
        }
    });
    Some(say!(n_seconds, range = low_to_high(low, high)))
}

/// The failures that a commit survives on each target, like ones together.
fn describe_durabilities(paper: &Paper) -> Vec<Message> {
    let targets = measured_targets(paper).into_iter();
    let groups = targets.map(|target| (describe_durability(target), &target.label));
    match grouped(groups).as_slice() {
        [(only, _)] => vec![only.clone()],
        groups => {
            let lines = groups
                .iter()
                .map(|(words, labels)| say!(labels_words, labels = join_names(labels), words));
            lines.collect()
        }
    }
}

fn describe_durability(target: &PaperTarget) -> Message {
    let weak = target.settings.iter().filter(|row| row.is_weak);
    let weak: Vec<Message> =
        weak.map(|row| Message::verbatim(format!("{} = {}", row.name, row.value))).collect();
    match (&target.facts.durability, weak.is_empty(), target.settings.is_empty()) {
        (_, false, _) => say!(a_commit_may_be_lost, settings = join_list(&weak)),
        (Some(stated), ..) => say!(stated_durability, stated),
        (None, true, false) => say!(commits_survive_a_power_loss),
        (None, true, true) => say!(not_known),
    }
}

/// Further caveats appear in section 4.4 alone.
const MAX_CAVEATS: usize = 4;
/// More experiments are counted instead: page one has no room for all their names.
const MAX_NAMED_EXPERIMENTS: usize = 3;

/// Findings that forbid quoting, then caveats, then the number of further ones.
fn warnings(paper: &Paper) -> CoverWarnings {
    let unusable =
        paper.checks.iter().filter(|check| check.level == Level::E && !check.findings.is_empty());
    let mut items: Vec<TextLine> = unusable.map(objection_line).collect();
    let mut numbers: Vec<usize> = Vec::new();
    for caveat in paper.caveats().iter().take(MAX_CAVEATS) {
        items.push(caveat_line(paper, caveat));
        numbers.extend(caveat.checks.iter().map(|check| check.number));
    }
    let accepted = paper.checks.iter().filter(|check| check.level == Level::W && check.is_accepted);
    let open = paper.open_checks(Level::W).filter(|check| !numbers.contains(&check.number));
    let further: Vec<&Check> = open.chain(accepted).collect();
    if !further.is_empty() {
        let mut line = vec![Span::plain(say!(further_caveats, n = further.len()))];
        line.extend(further.iter().map(|check| note(check.level, check.number)));
        items.push(line);
    }
    CoverWarnings { title: say!(read_this_before_quoting), verdict: verdict(paper), items }
}

/// Number of findings that forbid or qualify the figures, and the disturbances among those that don't forbid them: a
/// verdict that is missing alongside may be missing because of these.
fn verdict(paper: &Paper) -> Message {
    let [forbidding, caveats, _] = paper.check_counts();
    match (forbidding, caveats) {
        _ if paper.checks.is_empty() => say!(no_check_was_made),
        (0, _) if !paper.trials.iter().any(is_worth_quoting) => say!(no_trial_is_complete),
        (0, 0) => say!(no_check_has_objections),
        (0, n) if rehearsal(paper).is_some() => say!(caveats_of_rehearsal, n),
        (0, n) => match paper.disturbances() {
            (ids, _) if ids.is_empty() => say!(caveats_belong_beside, n),
            (ids, trials) => say!(
                caveats_beside_disturbed_trials,
                ids = Message::list(&ids),
                found = trials.to_string(),
                all = paper.trials.len().to_string(),
                n
            ),
        },
        (n, _) => say!(findings_forbid_quoting, n),
    }
}

fn is_worth_quoting(trial: &Trial) -> bool {
    !matches!(trial.summary.status, TrialStatus::Failed(_) | TrialStatus::Interrupted)
}

/// A finding that forbids a figure: places and meaning.
fn objection_line(check: &Check) -> TextLine {
    let place = check.lines.first().cloned().unwrap_or_default();
    // A place that is a sentence has its full stop already.
    let [en, zh] = Lang::ALL.map(|lang| place.render(lang));
    let place = Message::both(en.trim_end_matches('.'), zh.trim_end_matches('。'));
    let mut line = vec![note(check.level, check.number)];
    line.extend(acceptance(check));
    line.push(Span::plain(Message::sentences(&[
        check.meaning.clone(),
        say!(found_in_place, place),
    ])));
    line
}

/// A caveat with its effect, and the results that it concerns if these are not all.
fn caveat_line(paper: &Paper, caveat: &Caveat<'_>) -> TextLine {
    let mut line: TextLine =
        caveat.checks.iter().map(|check| note(check.level, check.number)).collect();
    let text = caveat.sentence();
    let titles = affected_titles(paper, caveat.checks[0]);
    line.push(Span::plain(match titles.len() {
        0 => text,
        n if n == paper.experiments.len() => text,
        n if n > MAX_NAMED_EXPERIMENTS => {
            let total = paper.experiments.len().to_string();
            say!(caveat_concerns_so_many, caveat = text, found = n.to_string(), all = total)
        }
        _ => say!(caveat_concerns, caveat = text, results = Message::list(&titles)),
    }));
    line
}

/// The titles of the experiments in which it found something; none if it concerns targets or runs.
fn affected_titles(paper: &Paper, check: &Check) -> Vec<Message> {
    let affected = paper.experiments.iter().filter(|experiment| {
        check.findings.iter().any(|finding| is_within(&finding.place, experiment, paper))
    });
    affected.map(|experiment| say!(quoted_title, title = &experiment.title)).collect()
}

fn is_within(spot: &Spot, experiment: &Experiment, paper: &Paper) -> bool {
    match spot.kind {
        SpotKind::Trial => paper.trials.iter().any(|trial| {
            trial.summary.experiment == experiment.name && spot.names.contains(&trial.label)
        }),
        SpotKind::Comparison => paper.verdicts.comparisons.iter().any(|comparison| {
            comparison.experiment == experiment.name && spot.names.contains(&comparison.name)
        }),
        SpotKind::Experiment => spot.names.contains(&experiment.name),
        SpotKind::Target | SpotKind::Run => false,
    }
}

/// The note that the suite has accepted a finding.
fn acceptance(check: &Check) -> Option<Span> {
    check.is_accepted.then(|| Span::plain(say!(accepted_by_the_suite)))
}
