//! Page one: what was compared, what came out in a sentence or two or line by line, the strip of four facts, and what
//! forbids quoting a figure.

use super::*;

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
        chart: charts::of_cover(paper, lang).or_else(|| of_family(paper, lang)),
        facts: facts(paper),
        warnings: warnings(paper),
        contents: say!(contents),
    }
}

/// The first chart of a family that draws its own.
fn of_family(paper: &Paper, lang: Lang) -> Option<Drawing> {
    paper.experiments.iter().find_map(|experiment| {
        let own = family_of(experiment)?.section(paper, experiment, lang)?;
        own.into_iter().find_map(|block| match block {
            Block::Figures { figures, .. } => figures.into_iter().next(),
            _ => None,
        })
    })
}

/// Authors and date of the measurement, and its end if it did not end well.
fn byline(paper: &Paper) -> Message {
    let each = |of: fn(&RunFacts) -> &str| {
        let words: Vec<String> = paper.runs.iter().map(|run| of(run).to_owned()).collect();
        unique(words.into_iter().filter(|word| !word.is_empty()).collect())
    };
    let day = |time: &str| time.get(..10).unwrap_or(time).to_owned();
    let began: Vec<String> = each(|run| &run.header.started_at).iter().map(|at| day(at)).collect();
    let days = match (began.iter().min(), began.iter().max()) {
        (Some(first), Some(last)) if first != last => say!(days, first, last),
        (Some(first), _) => Message::verbatim(first),
        _ => say!(unknown),
    };
    let hosts = each(|run| &run.header.environment.host);
    let measured = match hosts.is_empty() {
        true => say!(measured_on_day, days),
        false => say!(measured_on_day_by_host, days, hosts = names(&hosts)),
    };
    let versions = each(|run| &run.header.environment.dyno_version).join(", ");
    let texts = &paper.texts;
    let who = [Message::verbatim(texts.authors.join(", ")), texts.organization.message()];
    let who = who.into_iter().chain([Message::verbatim(&texts.date)]);
    let mut parts: Vec<Message> = who.filter(|part| !part.is_empty()).collect();
    parts.extend([measured, Message::verbatim(format!("dyno {versions}"))]);
    let is_open = |run: &&RunFacts| run.header.status != RunStatus::Complete;
    parts.extend(paper.runs.iter().filter(is_open).map(|run| run.status.clone()));
    Message::joined(&parts, " · ", " · ")
}

/// The banner of a run of less than the suite's full size: its data and windows.
pub(super) fn rehearsal(paper: &Paper) -> Option<Message> {
    let share = |run: &RunFacts| run.header.plan.as_ref().map_or(1.0, |plan| plan.shrink);
    let least = paper.runs.iter().map(share).reduce(f64::min).filter(|share| *share < 1.0)?;
    let times = format::plain(1.0 / least);
    Some(match windows(paper) {
        Some(windows) => say!(rehearsal, times, windows),
        None => say!(rehearsal_of_passes, times),
    })
}

impl Paper {
    /// Returns the banner of a rehearsal, and the number of findings that qualify its figures.
    pub fn standing(&self, lang: Lang) -> String {
        let verdict = verdict(self);
        let standing = match rehearsal(self) {
            Some(rehearsal) => say!(standing_of_rehearsal, rehearsal, verdict),
            None => say!(standing_of_full_size, verdict),
        };
        standing.line(lang)
    }
}

/// So many pairs of targets are told.
const MOST_PAIRS: usize = 3;
/// So many places are named with what holds there.
const MOST_PLACES: usize = 4;
/// An answer with more parts is a list.
const MOST_IN_TEXT: usize = 2;
/// From this ratio on a difference is told as so many times.
const TIMES: f64 = 2.0;

/// The suite's question, answered as a text, or as a list with its head; where each line names what it is about the
/// head is empty.
fn answer(paper: &Paper) -> (Message, Vec<Message>) {
    if paper.trials.is_empty() {
        return (summary::no_trial(paper), Vec::new());
    }
    let compared = paper.cover_comparisons().into_iter();
    let pairs = grouped(compared.map(|of| ([of.baseline.as_str(), &of.candidate], of)));
    let shown = pairs.iter().take(MOST_PAIRS);
    let answers: Vec<PairAnswer> =
        shown.map(|(labels, all)| pair_answer(paper, *labels, all)).collect();
    let is_list = answers.iter().map(|own| own.parts().count()).sum::<usize>() > MOST_IN_TEXT;
    let (head, mut lines) = match answers.as_slice() {
        [] => (Message::default(), reached(paper)),
        [only] if is_list => (only.head(), only.parts().cloned().collect()),
        all if is_list => (Message::default(), all.iter().flat_map(PairAnswer::lines).collect()),
        all => (Message::default(), all.iter().flat_map(PairAnswer::sentences).collect()),
    };
    if pairs.len() > MOST_PAIRS {
        lines.push(say!(further_comparisons, n = pairs.len() - MOST_PAIRS));
    }
    match lines.len() > MOST_IN_TEXT {
        true => (head, lines),
        false => (Message::sentences(&lines), Vec::new()),
    }
}

/// The results if nothing is compared.
fn reached(paper: &Paper) -> Vec<Message> {
    let (reached, has_more) = summary::first_reached(paper);
    let more = has_more.then(|| match paper.is_short() {
        true => say!(section_6_has_the_others),
        false => say!(section_1_lists_the_others),
    });
    reached.into_iter().chain(more).collect()
}

/// The answer about two targets.
struct PairAnswer {
    baseline: Message,
    candidate: Message,
    /// Their subject is the candidate.
    clauses: Vec<Message>,
    /// The absence of a verdict: a sentence with both names.
    nothing: Option<Message>,
    /// Sentences on what checks forbid.
    forbidden: Vec<Message>,
}

impl PairAnswer {
    fn head(&self) -> Message {
        say!(candidate_against_baseline, candidate = &self.candidate, baseline = &self.baseline)
    }

    fn parts(&self) -> impl Iterator<Item = &Message> {
        self.clauses.iter().chain(&self.nothing).chain(&self.forbidden)
    }

    /// The parts, each with both names.
    fn lines(&self) -> Vec<Message> {
        let named = self.clauses.iter().chain(&self.forbidden);
        let named = named.map(|part| Message::sentences(&[self.head(), part.clone()]));
        self.nothing.iter().cloned().chain(named).collect()
    }

    /// All clauses in one.
    fn sentences(&self) -> Vec<Message> {
        let (baseline, candidate) = (&self.baseline, &self.candidate);
        let compared = (!self.clauses.is_empty()).then(|| {
            let parts = clauses(&self.clauses);
            say!(compared_with, baseline, candidate, parts)
        });
        let others = self.nothing.iter().chain(&self.forbidden).cloned();
        compared.into_iter().chain(others).collect()
    }
}

fn pair_answer(paper: &Paper, labels: [&str; 2], all: &[&PairedComparison]) -> PairAnswer {
    let [baseline, candidate] = labels.map(|label| name(paper, label));
    let is_forbidden = |of: &&PairedComparison| paper.forbidding(&of.checks).next().is_some();
    let (forbidden, mut open): (Vec<&PairedComparison>, Vec<&PairedComparison>) =
        all.iter().copied().partition(is_forbidden);
    let decided: [(Call, Clause); 3] =
        [(Call::Faster, difference), (Call::Slower, difference), (Call::Equivalent, equivalence)];
    let mut clauses: Vec<Message> = Vec::new();
    for (call, clause) in decided {
        let is_own = |of: &&PairedComparison| of.rows.first().is_some_and(|row| row.call == call);
        let (own, rest): (Vec<&PairedComparison>, Vec<&PairedComparison>) =
            open.into_iter().partition(is_own);
        clauses.extend(of_each_experiment(&own, clause));
        open = rest;
    }
    let mut nothing = None;
    if !open.is_empty() && clauses.is_empty() {
        // Levels that a check forbids are counted too, as the summary counts them.
        let is_undecided =
            |of: &&PairedComparison| of.rows.first().is_none_or(|row| row.call.is_undecided());
        let all: Vec<&PairedComparison> = all.iter().copied().filter(is_undecided).collect();
        let (why, c, b) = (reasons(paper, &all), &candidate, &baseline);
        nothing = Some(match all.len() {
            1 => say!(no_verdict_at_the_level, candidate = c, baseline = b, why),
            n => say!(no_verdict_at_any, n, candidate = c, baseline = b, why),
        });
    } else if !open.is_empty() {
        let why = reasons(paper, &open);
        clauses.push(say!(no_verdict_at_places, places = places(&open), why));
    }
    let forbidden = forbidden_places(paper, &forbidden);
    PairAnswer { baseline, candidate, clauses, nothing, forbidden }
}

/// The clause about comparisons of one outcome.
type Clause = fn(&[&PairedComparison]) -> Message;

/// Comparisons of one experiment together.
fn by_experiment<'a, 'b>(
    all: &'b [&'a PairedComparison],
) -> impl Iterator<Item = &'b [&'a PairedComparison]> {
    all.chunk_by(|a, b| a.experiment_index == b.experiment_index)
}

/// A clause with medians for each experiment, and one without for those beyond the most.
fn of_each_experiment(all: &[&PairedComparison], clause: Clause) -> Vec<Message> {
    let groups: Vec<&[&PairedComparison]> = by_experiment(all).collect();
    let shown = if groups.len() > MOST_PLACES { MOST_PLACES - 1 } else { groups.len() };
    let rest: Vec<&PairedComparison> = groups[shown..].concat();
    let own = groups[..shown].iter().map(|own| with_medians(clause(own), own));
    own.chain((!rest.is_empty()).then(|| clause(&rest))).collect()
}

/// With the medians of both, at the last level where there are several; a figure that is only a bound is not a median.
fn with_medians(said: Message, own: &[&PairedComparison]) -> Message {
    let Some((of, row)) = own.last().and_then(|of| Some((of, of.rows.first()?))) else {
        return said;
    };
    if !row.bound.is_empty() {
        return said;
    }
    let [a, b] = [row.candidate, row.baseline].map(|side| format::short(side.median));
    let metric = &row.name;
    let medians = match row.is_less_better {
        true => say!(medians_of_a_time, candidate = a, baseline = b, metric),
        false => say!(medians_of_a_rate, candidate = a, baseline = b, metric),
    };
    match own.len() {
        1 => say!(said_with_medians, said, medians),
        _ => say!(said_with_medians_at, said, medians, level = &of.level),
    }
}

fn equivalence(own: &[&PairedComparison]) -> Message {
    let margin = own.iter().map(|of| of.margin).fold(0.0, f64::max);
    say!(as_fast_within, margin = format::percent(margin), places = places(own))
}

/// The name in the paper, with product and version if it is a name of the command line only.
fn name(paper: &Paper, label: &str) -> Message {
    let untitled = paper.target(label).filter(|target| target.facts.name == label);
    match untitled.and_then(PaperTarget::major_product) {
        Some(product) if !label.contains(&product) => {
            Message::verbatim(format!("{label} ({product})"))
        }
        _ => Message::verbatim(label),
    }
}

/// Amount by which the candidate is faster or slower, over all these levels.
fn difference(own: &[&PairedComparison]) -> Message {
    let rows = || own.iter().filter_map(|of| of.rows.first());
    // As speed: of times the smaller one is the faster one.
    let ends = |row: &VerdictRow| {
        let (low, high) = row.interval.map_or((row.ratio, row.ratio), |both| (both.low, both.high));
        if row.is_less_better { (1.0 / high, 1.0 / low) } else { (low, high) }
    };
    let ends = rows().map(ends).flat_map(|(low, high)| [low, high]);
    let (low, high) = extremes(ends).unwrap_or((1.0, 1.0));
    let place = places(own);
    let is_faster = rows().next().is_some_and(|row| row.call == Call::Faster);
    if is_faster && low >= TIMES {
        let range = low_to_high(format::short(low), format::short(high));
        return say!(times_as_fast_at, range, place);
    }
    let cost = rows()
        .next()
        .filter(|first| first.metric.is_cost() && rows().all(|row| row.metric == first.metric));
    let is_time = rows().all(|row| row.is_less_better);
    // In the words of the verdicts: half the time is not "50% faster".
    let (least, most) = match (is_faster, is_time) {
        (true, true) => (1.0 - 1.0 / low, 1.0 - 1.0 / high),
        (false, true) => (1.0 / high - 1.0, 1.0 / low - 1.0),
        (true, false) => (low - 1.0, high - 1.0),
        (false, false) => (1.0 - high, 1.0 - low),
    };
    let range = low_to_high(format::percent(least), format::percent(most));
    match (is_faster, cost.map(|row| &row.name), is_time) {
        (true, Some(cost), _) => say!(cheaper_at, range, cost, place),
        (false, Some(cost), _) => say!(dearer_at, range, cost, place),
        (true, _, true) => say!(faster_by_time_at, range, place),
        (false, _, true) => say!(slower_by_time_at, range, place),
        (true, ..) => say!(faster_by_at, range, place),
        (false, ..) => say!(slower_by_at, range, place),
    }
}

/// Experiments with their load levels.
fn places(all: &[&PairedComparison]) -> Message {
    let groups: Vec<&[&PairedComparison]> = by_experiment(all).collect();
    let place = |own: &&[&PairedComparison]| {
        let levels: Vec<Message> = own.iter().map(|of| of.level.clone()).collect();
        let levels = match levels.len() {
            0..=2 => listed(&levels),
            n => say!(n_load_levels, n),
        };
        say!(experiment_at_levels, experiment = &own[0].title, levels)
    };
    let mut places: Vec<Message> = groups.iter().take(MOST_PLACES).map(place).collect();
    if groups.len() > MOST_PLACES {
        places.push(say!(n_more_experiments, n = groups.len() - MOST_PLACES));
    }
    Message::list(&places)
}

/// Places where checks forbid a comparison: those that forbid the same comparisons are told together.
fn forbidden_places(paper: &Paper, all: &[&PairedComparison]) -> Vec<Message> {
    let numbers: Vec<usize> = all.iter().flat_map(|of| of.checks.iter().copied()).collect();
    let place = |check: &Check| {
        let is_own = |of: &&PairedComparison| of.checks.contains(&check.number);
        let own: Vec<&PairedComparison> = all.iter().copied().filter(is_own).collect();
        (places(&own), check.number)
    };
    let groups = grouped(paper.forbidding(&numbers).map(place)).into_iter();
    let sentence = |(places, numbers): (Message, Vec<usize>)| {
        say!(not_comparable_at, places, why = why_forbidden(paper, &numbers))
    };
    groups.map(sentence).collect()
}

/// Reasons for the absence of a verdict, most frequent first.
fn reasons(paper: &Paper, open: &[&PairedComparison]) -> Message {
    let mut reasons = grouped(open.iter().map(|of| (reason(paper, of), ())));
    reasons.sort_by_key(|(_, all)| std::cmp::Reverse(all.len()));
    match reasons.as_slice() {
        [(only, _)] => only.clone(),
        all => {
            let part = |(why, all): &(Message, Vec<()>)| say!(at_n_of_them, n = all.len(), why);
            clauses(&all.iter().take(3).map(part).collect::<Vec<_>>())
        }
    }
}

fn reason(paper: &Paper, of: &PairedComparison) -> Message {
    let Some(row) = of.rows.first() else { return say!(because_no_pair_counts) };
    match row.call {
        Call::Explained => {
            let of_veto = |id: &str| paper.checks.iter().find(|check| check.id == id);
            let rule = of.deciding_vetoes().next().and_then(|veto| of_veto(veto.check));
            rule.map_or_else(
                || say!(because_of_a_check),
                |check| say!(because_check, id = check.id, number = check.number.to_string()),
            )
        }
        Call::TooFewPairs => say!(because_of_few_pairs, least = of.least_pairs().to_string()),
        Call::Unproven => say!(because_of_many),
        _ => say!(because_of_variation),
    }
}

/// The checks that forbid a figure, in words.
pub(crate) fn why_forbidden(paper: &Paper, numbers: &[usize]) -> Message {
    let told = paper.forbidding(numbers).map(|check| {
        let number = format!("{:?}{}", Level::E, check.number);
        say!(check_in_words, number, meaning = first_sentence(&check.meaning))
    });
    Message::sentences(&told.collect::<Vec<_>>())
}

/// A sentence with the checks that forbid its figures.
pub(crate) fn with_objections(paper: &Paper, said: Message, numbers: &[usize]) -> Message {
    match paper.forbidding(numbers).next() {
        None => said,
        Some(_) => {
            let objection = say!(not_usable_because, why = why_forbidden(paper, numbers));
            Message::sentences(&[said, objection])
        }
    }
}

/// So many lines stand below each name.
const MOST_LINES: usize = 4;

fn facts(paper: &Paper) -> Vec<Fact> {
    vec![
        fact(say!(systems), systems(paper)),
        fact(say!(data_against_memory), data(paper)),
        fact(say!(load), load(paper)),
        fact(say!(durability_2), durability(paper)),
    ]
}

/// Without anything known the fact says so.
fn fact(name: Message, mut lines: Vec<Message>) -> Fact {
    if lines.is_empty() {
        lines.push(say!(not_known));
    }
    let more = lines.len().saturating_sub(MOST_LINES);
    if more > 0 {
        lines.truncate(MOST_LINES);
        lines.push(say!(and_more, n = more));
    }
    let first = lines.remove(0);
    Fact { name, value: vec![Span::plain(first)], below: lines }
}

/// Targets that were measured; all where none was.
fn measured(paper: &Paper) -> Vec<&PaperTarget> {
    let is_measured =
        |target: &&PaperTarget| paper.trials.iter().any(|trial| trial.target == target.label);
    let own: Vec<&PaperTarget> = paper.targets.iter().filter(is_measured).collect();
    if own.is_empty() { paper.targets.iter().collect() } else { own }
}

fn systems(paper: &Paper) -> Vec<Message> {
    let line = |target: &PaperTarget| {
        let product = shown_product(&target.product);
        let is_told = product.starts_with(&target.label);
        let label = (!is_told).then_some(&target.label).into_iter();
        let product = Some(&product).filter(|product| !product.is_empty());
        let mut parts: Vec<Message> = label.chain(product).map(Message::verbatim).collect();
        if !target.facts.class.is_empty() {
            parts.push(Message::verbatim(&target.facts.class));
        }
        Message::joined(&parts, ", ", "，")
    };
    unique(measured(paper).into_iter().map(line).collect())
}

/// Without the package that it came in: `MariaDB 10.11.14`, `ShardingSphere-Proxy 5.1.0 (MariaDB 10.11.19)`.
pub(super) fn shown_product(words: &str) -> String {
    const PROXY: &str = "ShardingSphere-Proxy ";
    if let Some((server, version)) = words.split_once(PROXY) {
        return format!("{PROXY}{version} ({})", shown_product(server));
    }
    let words = words.split(" (").next().unwrap_or_default().split(' ');
    let is_version = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let word = |word: &str| match is_version(word) {
        true => word.split('-').next().unwrap_or_default().to_owned(),
        false => word.to_owned(),
    };
    words.map(word).collect::<Vec<_>>().join(" ")
}

/// Sizes are told of each experiment's data; alike ones once.
fn data(paper: &Paper) -> Vec<Message> {
    let points = paper.experiments.iter().flat_map(|experiment| &experiment.points);
    let known: Vec<&DataFacts> =
        points.filter_map(|point| Some(&point.data.as_ref()?.facts)).collect();
    let mut lines = Vec::new();
    if let Some((low, high)) = extremes(known.iter().filter_map(|data| data.size_to_memory())) {
        let range = low_to_high(format::short(low), format::short(high));
        lines.push(say!(times_the_memory, range));
        lines.push(clauses(&unique(vec![fit_in_memory(low), fit_in_memory(high)])));
    }
    let sizes = known.iter().filter_map(|data| data.size_bytes).map(|bytes| bytes as f64);
    if let Some((low, high)) = extremes(sizes) {
        let range = low_to_high(format::bytes(low), format::bytes(high));
        lines.push(match lines.is_empty() {
            true => say!(data_of_unknown_share, range),
            false => say!(data_of, range),
        });
    }
    lines
}

fn load(paper: &Paper) -> Vec<Message> {
    let measured = || paper.experiments.iter().filter(|own| !own.points.is_empty());
    let tests = unique(measured().map(|own| own.test.clone()).filter(|t| !t.is_empty()).collect());
    let mut lines = Vec::new();
    match tests.as_slice() {
        [] => {}
        few if few.len() <= 3 => lines.push(names(few)),
        // As many as have a name on this page.
        _ => {
            let title = |own: &Experiment| {
                family_of(own).map_or_else(|| say!(other_workloads), |family| family.title())
            };
            let families = listed(&unique(measured().map(title).collect()));
            let n = measured().count();
            lines.push(say!(experiments_of_families, n, families));
        }
    }
    let of_clients = || measured().filter(|own| !own.is_pass());
    let clients = extremes(of_clients().flat_map(|own| &own.points).map(Point::load));
    if let Some((low, high)) = clients.filter(|(_, high)| *high > 0.0) {
        let range = low_to_high(format::whole(low), format::whole(high));
        lines.push(match of_clients().all(|own| own.has_terminals()) {
            true => say!(range_of_terminals, n = range),
            false => say!(range_of_workers, n = range),
        });
    }
    match windows(paper) {
        Some(range) => {
            lines.push(say!(trials_with_windows, n = paper.trials.len(), windows = range))
        }
        None if paper.trials.is_empty() => {}
        None => lines.push(say!(n_trials_2, n = paper.trials.len())),
    }
    lines
}

/// The lengths of the measured windows.
fn windows(paper: &Paper) -> Option<Message> {
    let windows = paper.trials.iter().map(|trial| trial.summary.window_s).filter(|s| *s > 0.0);
    let (low, high) = extremes(windows)?;
    let shown = |seconds: f64| match seconds >= 10.0 {
        true => format::whole(seconds),
        false => format::plain((seconds * 10.0).round() / 10.0),
    };
    Some(say!(n_seconds, range = low_to_high(shown(low), shown(high))))
}

/// The failures that a commit survives on each target, like ones together.
fn durability(paper: &Paper) -> Vec<Message> {
    let words = |target: &PaperTarget| {
        let weak: Vec<Message> = target
            .settings
            .iter()
            .filter(|row| row.is_weak)
            .map(|row| Message::verbatim(format!("{} = {}", row.name, row.value)))
            .collect();
        match (&target.facts.durability, weak.is_empty(), target.settings.is_empty()) {
            (_, false, _) => say!(a_commit_may_be_lost, settings = listed(&weak)),
            (Some(stated), ..) => say!(stated_durability, stated),
            (None, true, false) => say!(commits_survive_a_power_loss),
            (None, true, true) => say!(not_known),
        }
    };
    let groups = measured(paper).into_iter().map(|target| (words(target), &target.label));
    match grouped(groups).as_slice() {
        [(only, _)] => vec![only.clone()],
        all => {
            let line = |(words, labels): &(Message, Vec<&String>)| {
                say!(labels_words, labels = names(labels), words)
            };
            all.iter().map(line).collect()
        }
    }
}

/// Further caveats of several runs stand in section 4.4 alone.
const MOST_CAVEATS: usize = 12;
/// More experiments are counted instead: page one has no room for all their names.
const MOST_NAMED: usize = 3;

fn warnings(paper: &Paper) -> CoverWarnings {
    let of = |level: Level| {
        let is = move |check: &&Check| check.level == level && !check.findings.is_empty();
        paper.checks.iter().filter(is)
    };
    let caveats: Vec<&Check> = of(Level::W).collect();
    let most = if paper.runs.len() > 1 { MOST_CAVEATS } else { usize::MAX };
    let (told, further) = caveats.split_at(caveats.len().min(most));
    let told = told.iter().map(|check| in_brief(paper, check));
    let mut items: Vec<TextLine> = of(Level::E).map(in_full).chain(told).collect();
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
fn in_full(check: &Check) -> TextLine {
    let place = check.lines.first().cloned().unwrap_or_default();
    // A place that is a sentence has its full stop already.
    let [en, zh] = Lang::ALL.map(|lang| place.render(lang));
    let place = Message::both(en.trim_end_matches('.'), zh.trim_end_matches('。'));
    let mut line = vec![note(check.level, check.number)];
    line.extend(accepted(check));
    line.push(Span::plain(Message::sentences(&[check.meaning.clone(), say!(found_at, place)])));
    line
}

/// A finding that qualifies a figure, and the results that it concerns if these are not all.
fn in_brief(paper: &Paper, check: &Check) -> TextLine {
    let mut line = vec![note(check.level, check.number)];
    line.extend(accepted(check));
    let meaning = first_sentence(&check.meaning);
    let own = experiments_of(paper, check);
    line.push(Span::plain(match own.len() {
        0 => meaning,
        all if all == paper.experiments.len() => meaning,
        found if found > MOST_NAMED => {
            let [found, all] = [found, paper.experiments.len()].map(|n| n.to_string());
            say!(caveat_concerns_so_many, caveat = meaning, found, all)
        }
        _ => say!(caveat_concerns, caveat = meaning, results = Message::list(&own)),
    }));
    line
}

/// The titles of the experiments in which it found something; none where it concerns targets or runs.
fn experiments_of(paper: &Paper, check: &Check) -> Vec<Message> {
    let is_of = |experiment: &Experiment, spot: &Spot| {
        let has = |name: &String| match spot.kind {
            SpotKind::Trial => paper
                .trials
                .iter()
                .any(|trial| trial.label == *name && trial.summary.experiment == experiment.name),
            SpotKind::Comparison => paper
                .verdicts
                .comparisons
                .iter()
                .any(|of| of.name == *name && of.experiment == experiment.name),
            SpotKind::Experiment => *name == experiment.name,
            SpotKind::Target | SpotKind::Run => false,
        };
        spot.names.iter().any(has)
    };
    let found = |experiment: &&Experiment| {
        check.findings.iter().any(|finding| is_of(experiment, &finding.place))
    };
    let own = paper.experiments.iter().filter(found);
    own.map(|experiment| say!(quoted_title, title = &experiment.title)).collect()
}

fn accepted(check: &Check) -> Option<Span> {
    check.is_accepted.then(|| Span::plain(say!(accepted_by_the_suite)))
}
