//! Runs and trials for the page: plain values, ready for JSON.

use super::*;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RunView {
    pub(crate) folder: String,
    pub(crate) title: String,
    pub(crate) suite: String,
    pub(crate) status: &'static str,
    pub(crate) why: Bilingual,
    pub(crate) started_at: String,
    pub(crate) finished_at: Option<String>,
    pub(crate) host: String,
    /// Their names, products and classes.
    pub(crate) targets: Vec<Value>,
    /// Their names, titles, tests, windows, and the objective of a search for the highest rate.
    pub(crate) experiments: Vec<Value>,
}

impl RunView {
    /// `status` follows from the header and the writer's lock.
    pub(crate) fn new(path: &Path, header: &RunHeader, status: &RunStatus) -> Self {
        let targets = header.targets.iter().map(|target| {
            let product = format!("{} {}", target.product, target.version);
            json!({ "name": target.name, "product": product.trim(), "class": target.class })
        });
        let experiments = header.experiments.iter().map(|experiment| {
            json!({
                "name": experiment.name,
                "title": experiment.title,
                "test": experiment.load(),
                "window_s": experiment.duration_s,
                "objective": experiment.search.as_ref().map(|search| &search.objective),
            })
        });
        let (status, why) = run_status(status);
        RunView {
            folder: folder_name(path),
            title: header.title.clone(),
            suite: header.suite.clone(),
            status,
            why,
            started_at: header.started_at.clone(),
            finished_at: header.finished_at.clone(),
            host: header.environment.host.clone(),
            targets: targets.collect(),
            experiments: experiments.collect(),
        }
    }
}

pub(crate) fn folder_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A word for a status, and the reason of a failure.
pub(crate) fn run_status(status: &RunStatus) -> (&'static str, Bilingual) {
    match status {
        RunStatus::Running => ("running", Bilingual::default()),
        RunStatus::Complete => ("complete", Bilingual::default()),
        RunStatus::Interrupted => ("interrupted", Bilingual::default()),
        RunStatus::Failed(why) => ("failed", why.into()),
    }
}

/// A trial, while it runs or after it. Latencies in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct TrialView {
    pub(crate) number: u32,
    #[serde(flatten)]
    pub(crate) identity: TrialIdentity,
    /// Parallel degree of a pass over queries.
    pub(crate) degree: Option<String>,
    pub(crate) status: &'static str,
    pub(crate) why: Bilingual,
    pub(crate) started_at: String,
    pub(crate) tps: f64,
    pub(crate) qps: f64,
    pub(crate) mean_us: f64,
    pub(crate) p95_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) max_us: f64,
    pub(crate) errors: u64,
    pub(crate) failed: u64,
    pub(crate) retries: u64,
    pub(crate) measures: Measures,
    /// Seconds of a pass over queries.
    pub(crate) pass_s: Option<f64>,
    pub(crate) kinds: Vec<String>,
}

impl TrialView {
    /// A trial without a summary so far.
    pub(crate) fn running(start: TrialStart) -> Self {
        let kinds = start.kinds.clone();
        let summary = start.summary(TrialStatus::Complete);
        TrialView { status: "running", kinds, ..TrialView::from_summary(&summary) }
    }

    pub(crate) fn from_summary(summary: &TrialSummary) -> Self {
        let summary = &completed(summary);
        let (status, why) = match &summary.status {
            TrialStatus::Complete => ("complete", Bilingual::default()),
            TrialStatus::Stage => ("stage", Bilingual::default()),
            TrialStatus::Interrupted => ("interrupted", Bilingual::default()),
            TrialStatus::Failed(why) => ("failed", why.into()),
            TrialStatus::Starved => {
                let reason = summary.conditions.generator.starved.as_ref();
                ("starved", reason.map(Into::into).unwrap_or_default())
            }
        };
        let latency = &summary.latency;
        let degree = level(&summary.step, "degree=");
        let pass_s = degree.is_some().then_some(summary.window_s);
        TrialView {
            number: summary.trial,
            // What the page does not show stays here.
            identity: TrialIdentity { data: None, own: None, ..summary.identity.clone() },
            degree,
            status,
            why,
            started_at: summary.started_at.clone(),
            tps: summary.tps,
            qps: summary.qps,
            mean_us: latency.mean_us,
            p95_us: latency.p95_us,
            p99_us: latency.p99_us,
            max_us: latency.max_us,
            errors: summary.errors.iter().map(|error| error.count).sum(),
            failed: summary.counts.failed,
            retries: summary.counts.retries,
            measures: summary.measures.clone(),
            pass_s,
            kinds: summary.kinds.iter().map(|kind| kind.name.clone()).collect(),
        }
    }
}

/// The load level in a step's id: `16` of `q/main/degree=16/repeat=1`.
fn level(step: &str, key: &str) -> Option<String> {
    step.split('/').find_map(|part| part.strip_prefix(key)).map(str::to_owned)
}

/// A number of an interval: its name and its getter.
type RowNumber = (&'static str, fn(&SeriesRow) -> f64);

/// The numbers of a [`RowView`], in their order.
const ROW: [RowNumber; 15] = [
    ("begins_s", |row| row.begins_s),
    ("length_s", |row| row.length_s),
    // 0 in warm-up.
    ("measured", |row| f64::from(u8::from(row.phase == "measured"))),
    ("tps", |row| row.tps),
    ("qps", |row| row.qps),
    ("mean_us", |row| row.mean_us),
    ("p50_us", |row| row.p50_us),
    ("p95_us", |row| row.p95_us),
    ("p99_us", |row| row.p99_us),
    ("max_us", |row| row.max_us),
    ("errors", |row| row.errors as f64),
    ("retries", |row| row.retries as f64),
    ("host_cpu_share", |row| row.host_cpu_share),
    ("host_steal_share", |row| row.host_steal_share),
    ("loops_cpus", |row| row.loops_cpu_s / row.length_s.max(1e-9)),
];

/// Returns the names of the numbers of a [`RowView`].
pub(crate) fn columns() -> Vec<&'static str> {
    ROW.iter().map(|(name, _)| *name).collect()
}

/// An interval as the numbers in [`ROW`], rounded to thousandths: rows are most of what the page is sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct RowView([f64; ROW.len()]);

impl From<&SeriesRow> for RowView {
    fn from(row: &SeriesRow) -> Self {
        RowView(ROW.map(|(_, number)| (number(row) * 1e3).round() / 1e3))
    }
}

/// Something that happened alongside the numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct EventView {
    at: String,
    trial: Option<u32>,
    kind: EventKind,
    count: u64,
    /// The text, in both languages if dyno's own words are in it.
    text: Bilingual,
}

impl From<&Event> for EventView {
    fn from(event: &Event) -> Self {
        EventView {
            at: event.at.clone(),
            trial: event.trial,
            kind: event.kind,
            count: event.count,
            text: (&event.text).into(),
        }
    }
}

/// A query that has ended, in a trial that is a pass over queries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct QueryView {
    query: u8,
    stream: u32,
    seconds: f64,
    /// `answered`, `timed_out`, `failed` or `interrupted`.
    #[serde(deserialize_with = "outcome")]
    outcome: String,
}

/// The name of an outcome, whatever it carries.
fn outcome<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(name) => name,
        Value::Object(carried) => carried.into_iter().map(|(name, _)| name).collect(),
        _ => String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_numbers_that_are_announced() {
        let row = SeriesRow {
            begins_s: 1.0,
            length_s: 0.5,
            phase: "measured".to_owned(),
            tps: 12.000_04,
            loops_cpu_s: 0.25,
            ..SeriesRow::default()
        };
        let text = serde_json::to_string(&RowView::from(&row)).expect("JSON");
        assert_eq!(text, "[1.0,0.5,1.0,12.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.5]");
    }

    #[test]
    fn a_step_tells_its_level() {
        assert_eq!(level("q/main/degree=16/repeat=1", "degree=").as_deref(), Some("16"));
        assert_eq!(level("q/main/workers=8", "degree="), None);
    }
}
