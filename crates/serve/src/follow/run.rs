//! Follows one run, and the trial of it that runs or ran last.

use super::*;

/// Number of events that a page opened late shows.
const EVENTS: usize = 200;
/// The estimate of the remaining time is sent again when it is off by this many seconds.
const DRIFT_S: f64 = 2.0;

#[derive(Debug)]
pub(crate) struct RunFollower {
    pub(crate) path: PathBuf,
    header: RunHeader,
    header_changed: Changes,
    plan: Option<Plan>,
    pub(crate) view: RunView,
    pub(crate) progress: Progress,
    /// When the progress was last sent, and when the current step began if it is not a trial.
    reported_at: OffsetDateTime,
    since: String,
    folder: Changes,
    ended: BTreeMap<u32, TrialView>,
    pub(crate) current: Option<Current>,
    events: Tail,
    happened: Vec<EventView>,
    prepared: BTreeSet<String>,
}

impl RunFollower {
    pub(crate) fn new(path: PathBuf) -> Self {
        let header = RunHeader::default();
        RunFollower {
            view: RunView::new(&path, &header, &RunStatus::Running),
            header,
            header_changed: Changes::default(),
            plan: None,
            progress: Progress::default(),
            reported_at: OffsetDateTime::UNIX_EPOCH,
            since: String::new(),
            folder: Changes::default(),
            ended: BTreeMap::new(),
            current: None,
            events: Tail::new(path.join("events.jsonl")),
            happened: Vec::new(),
            prepared: BTreeSet::new(),
            path,
        }
    }

    /// Reads what was added to the run's folder since the last call.
    pub(crate) fn poll(&mut self) -> Vec<Update> {
        let mut updates = Vec::new();
        // First: when no one writes any more, what is read after it is all there is.
        let grows = is_growing(&self.path);
        self.poll_header(grows, &mut updates);
        self.poll_events(&mut updates);
        self.poll_trials(&mut updates);
        if let Some(current) = &mut self.current {
            updates.extend(current.poll());
            if !grows && current.view.status == "running" {
                current.cut_off();
                updates.push(Update::Trial(Box::new(current.view.clone())));
            }
        }
        self.poll_progress(grows, &mut updates);
        updates
    }

    /// Everything that has been read so far, for a page that was just opened.
    pub(crate) fn state(&self) -> State {
        let current = self.current.as_ref();
        let running = current.filter(|current| !self.ended.contains_key(&current.view.number));
        let trials = self.ended.values().chain(running.map(|current| &current.view));
        State {
            columns: view::columns(),
            run: Some(self.view.clone()),
            progress: self.progress.clone(),
            trials: trials.cloned().collect(),
            rows: current.map(|current| current.rows.clone()).unwrap_or_default(),
            nodes: current.map(|current| current.nodes.clone()).unwrap_or_default(),
            queries: current.map(|current| current.queries.clone()).unwrap_or_default(),
            events: self.happened.clone(),
        }
    }

    fn poll_header(&mut self, grows: bool, updates: &mut Vec<Update>) {
        if self.header_changed.since_last(&self.path.join("run.json"))
            && let Ok(header) = read_header(&self.path)
        {
            self.plan = Plan::from_header(&header);
            self.header = header;
            if self.since.is_empty() {
                self.since =
                    self.header.resumed_at.last().unwrap_or(&self.header.started_at).clone();
            }
        }
        let status = match &self.header.status {
            RunStatus::Running if !grows => RunStatus::Interrupted,
            status => status.clone(),
        };
        let view = RunView::new(&self.path, &self.header, &status);
        if view != self.view {
            self.view = view;
            updates.push(Update::Run(Box::new(self.view.clone())));
        }
    }

    fn poll_events(&mut self, updates: &mut Vec<Update>) {
        let text = self.events.lines();
        let new: Vec<Event> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if new.is_empty() {
            return;
        }
        for event in &new {
            if let Some(step) = &event.prepared {
                self.prepared.insert(step.clone());
                self.since.clone_from(&event.at);
            }
        }
        let last = &new[new.len().saturating_sub(EVENTS)..];
        let views: Vec<EventView> = last.iter().map(EventView::from).collect();
        self.happened.extend_from_slice(&views);
        let surplus = self.happened.len().saturating_sub(EVENTS);
        self.happened.drain(..surplus);
        updates.push(Update::Events(views));
    }

    fn poll_trials(&mut self, updates: &mut Vec<Update>) {
        let trials = self.path.join("trials");
        if self.folder.since_last(&trials) {
            let (ended, begun) = trial_files(&trials);
            for &number in &ended {
                if !self.ended.contains_key(&number) {
                    self.end_trial(number, updates);
                }
            }
            let last = begun.last().copied().filter(|number| Some(number) > ended.last());
            let shown_number = self.current.as_ref().map(|current| current.view.number);
            match (last, self.ended.last_key_value()) {
                (Some(number), _) if Some(number) != shown_number => {
                    self.begin_trial(number, updates)
                }
                (None, Some((number, view)))
                    if shown_number.is_none_or(|shown_number| shown_number < *number) =>
                {
                    let view = view.clone();
                    self.show_trial(view.clone(), view.started_at, updates);
                }
                _ => {}
            }
        }
    }

    fn end_trial(&mut self, number: u32, updates: &mut Vec<Update>) {
        let Some(summary) = read_trial_file::<TrialSummary>(&self.path, number, "json") else {
            return;
        };
        let view = TrialView::from_summary(&summary);
        if let Some(current) = &mut self.current
            && current.view.number == number
        {
            updates.extend(current.poll());
            current.view = view.clone();
            // The next step begins about now.
            self.since = now_text();
        }
        self.ended.insert(number, view.clone());
        updates.push(Update::Trial(Box::new(view)));
    }

    fn begin_trial(&mut self, number: u32, updates: &mut Vec<Update>) {
        let Some(start) = read_trial_file::<TrialStart>(&self.path, number, "partial.json") else {
            return;
        };
        let began_at = start.began_at.clone();
        self.show_trial(TrialView::running(start), began_at, updates);
    }

    fn show_trial(&mut self, view: TrialView, began_at: String, updates: &mut Vec<Update>) {
        updates.push(Update::Show(Box::new(view.clone())));
        self.current = Some(Current::new(&self.path, view, began_at));
    }

    fn poll_progress(&mut self, grows: bool, updates: &mut Vec<Update>) {
        let running = self.current.as_ref().filter(|current| current.view.status == "running");
        let executed = self.ended.values().filter(|view| view.status != "interrupted");
        let complete: BTreeSet<String> = executed.map(|view| view.identity.step.clone()).collect();
        let skipped: BTreeSet<String> = self.header.skipped.keys().cloned().collect();
        let settled = match &self.plan {
            Some(plan) => plan.settled(&complete, &skipped),
            None => complete.union(&skipped).cloned().collect(),
        };
        let sequential = self.header.experiments.iter().filter(|facts| {
            facts.comparison.as_ref().is_some_and(|facts| facts.stop.may_end_sooner())
        });
        let facts = RunFacts {
            ended: self.ended.values().map(|view| view.identity.step.as_str()).collect(),
            settled,
            complete,
            prepared: self.prepared.clone(),
            current: running
                .map(|current| (current.view.identity.step.as_str(), current.began_at.as_str())),
            since: &self.since,
            experiments: &self.header.experiments,
            spent_s: self.header.spent_s.clone(),
            sequential: sequential.map(|facts| facts.name.as_str()).collect(),
            is_running: grows && self.header.status == RunStatus::Running,
        };
        let now = OffsetDateTime::now_utc();
        let mut progress =
            progress::estimate(self.plan.as_ref().map_or(&[], |plan| &plan.steps), &facts, now);
        if self.header.status == RunStatus::Complete {
            // Nothing reports the removal of data at the end.
            progress.done = progress.total - progress.skipped;
        }
        let gone_s = (now - self.reported_at).as_seconds_f64();
        let is_as_expected = match (progress.remaining_s, self.progress.remaining_s) {
            (Some(new), Some(reported)) => (reported - gone_s - new).abs() < DRIFT_S,
            (new, reported) => new == reported,
        };
        let is_unchanged = Progress { remaining_s: None, ..progress.clone() }
            == Progress { remaining_s: None, ..self.progress.clone() };
        if !is_unchanged || !is_as_expected {
            self.progress = progress;
            self.reported_at = now;
            updates.push(Update::Progress(self.progress.clone()));
        }
    }
}

/// Numbers of the trials that have a summary, and of those that have begun.
fn trial_files(trials: &Path) -> (BTreeSet<u32>, BTreeSet<u32>) {
    let (mut ended, mut begun) = (BTreeSet::new(), BTreeSet::new());
    for entry in fs::read_dir(trials).into_iter().flatten().flatten() {
        let name = entry.file_name();
        match name.to_str().and_then(|name| name.split_once('.')) {
            Some((number, "json")) => ended.extend(number.parse::<u32>().ok()),
            Some((number, "partial.json")) => begun.extend(number.parse::<u32>().ok()),
            _ => {}
        }
    }
    (ended, begun)
}

fn read_trial_file<T: serde::de::DeserializeOwned>(
    run: &Path,
    number: u32,
    extension: &str,
) -> Option<T> {
    let file = run.join("trials").join(format!("{number}.{extension}"));
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

fn now_text() -> String {
    OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default()
}

/// Rows that are kept: a day of seconds.
const MOST_ROWS: usize = 100_000;

/// Adds an interval to those before it: what can be added.
fn add(sum: &mut SeriesRow, row: &SeriesRow) {
    sum.length_s += row.length_s;
    sum.committed += row.committed;
    sum.rolled_back += row.rolled_back;
    sum.failed += row.failed;
    sum.skipped += row.skipped;
    sum.retries += row.retries;
    sum.reconnects += row.reconnects;
    sum.errors += row.errors;
    sum.reads += row.reads;
    sum.writes += row.writes;
    sum.others += row.others;
    sum.loops_cpu_s += row.loops_cpu_s;
}

/// A trial and the files that grow with it.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) view: TrialView,
    /// When it began to connect, RFC 3339.
    began_at: String,
    rows: Vec<RowView>,
    pub(crate) nodes: Vec<NodeRow>,
    queries: Vec<QueryView>,
    /// The sum of its intervals, warm-up among them, and that of the measured window so far.
    pub(crate) totals: SeriesRow,
    measured: SeriesRow,
    /// The last interval, whatever its phase.
    pub(crate) last: Option<SeriesRow>,
    series: Tail,
    node_series: Tail,
    executed: Tail,
}

#[derive(Debug, Serialize)]
pub(crate) struct Stored {
    rows: Vec<RowView>,
    nodes: Vec<NodeRow>,
    queries: Vec<QueryView>,
}

pub(crate) fn read_stored(run: &Path, number: u32) -> Stored {
    let view = TrialView { number, ..TrialView::default() };
    let mut trial = Current::new(run, view, String::new());
    trial.poll();
    Stored { rows: trial.rows, nodes: trial.nodes, queries: trial.queries }
}

/// A line of `trials/<n>.executed.jsonl`; refresh functions are not shown.
#[derive(Deserialize)]
struct Executed {
    queries: Option<QueryView>,
}

impl Current {
    fn new(run: &Path, view: TrialView, began_at: String) -> Self {
        let stem = view.number;
        let tail =
            |extension: &str| Tail::new(run.join("trials").join(format!("{stem}.{extension}")));
        Current {
            view,
            began_at,
            rows: Vec::new(),
            nodes: Vec::new(),
            queries: Vec::new(),
            totals: SeriesRow::default(),
            measured: SeriesRow::default(),
            last: None,
            series: tail("csv"),
            node_series: tail("nodes.csv"),
            executed: tail("executed.jsonl"),
        }
    }

    /// Reads the lines added to the files of the trial since the last call, adds them to its totals, and returns them; damaged
    /// ones are left out.
    fn poll(&mut self) -> Vec<Update> {
        let mut updates = Vec::new();
        if let Some(text) = self.series.table() {
            // Damaged lines are left out silently while the trial runs.
            let (rows, _) = read_series(&text);
            let views: Vec<RowView> = rows.iter().map(RowView::from).collect();
            for row in &rows {
                add(&mut self.totals, row);
                if row.phase == "measured" {
                    add(&mut self.measured, row);
                }
            }
            self.last = rows.into_iter().next_back().or(self.last.take());
            append_capped(&mut self.rows, &views);
            updates.push(Update::Rows(views));
        }
        if let Some(text) = self.node_series.table() {
            let (rows, _) = read_nodes(&text);
            append_capped(&mut self.nodes, &rows);
            updates.push(Update::Nodes(rows));
        }
        let text = self.executed.lines();
        let ended =
            text.lines().filter_map(|line| serde_json::from_str::<Executed>(line).ok()?.queries);
        let queries: Vec<QueryView> = ended.collect();
        if !queries.is_empty() {
            append_capped(&mut self.queries, &queries);
            updates.push(Update::Queries(queries));
        }
        updates
    }

    /// Its writer was killed: there will be no summary but what its intervals add up to. Percentiles don't
    /// add up.
    fn cut_off(&mut self) {
        let totals = &self.measured;
        let seconds = totals.length_s;
        self.view.status = "interrupted";
        [self.view.tps, self.view.qps] =
            [totals.committed, totals.reads + totals.writes + totals.others]
                .map(|count| if seconds > 0.0 { count as f64 / seconds } else { 0.0 });
        self.view.errors = totals.errors;
        self.view.failed = totals.failed;
        self.view.retries = totals.retries;
    }
}

/// Adds rows and drops the oldest beyond [`MOST_ROWS`].
fn append_capped<T: Clone>(known: &mut Vec<T>, new: &[T]) {
    known.extend_from_slice(new);
    let surplus = known.len().saturating_sub(MOST_ROWS);
    known.drain(..surplus);
}
