//! In what a measurement and a published one differ.

use crate::evidence::{Experiment, PaperTarget, Point};
use crate::format::{bytes, plain, whole};
use crate::text::Message;
use dyno_facts::{PublishedRow, say};

/// How something was measured here.
pub(super) struct Here<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) target: &'a PaperTarget,
    pub(super) point: &'a Point,
    pub(super) vcpu: Option<f64>,
    pub(super) window_s: Option<f64>,
}

/// Two numbers are alike where they differ by less than this share: memory of 15.6 GiB is sold as 16.
const ALIKE: f64 = 0.05;

/// Those that both sides state, the product in front.
pub(super) fn differences(here: &Here<'_>, row: &PublishedRow) -> Vec<Message> {
    let mut told = Vec::new();
    if !here.target.product.is_empty() {
        told.push(say!(measured_on_product, product = &here.target.product));
    }
    told.extend(of_machines(here, row));
    told.extend(of_load(here, row));
    told.extend(of_data(here, row));
    if here.target.facts.same_host {
        told.push(say!(load_generator_and_server_share_a));
    }
    told
}

/// Both numbers where they differ.
fn unlike(here: Option<f64>, there: Option<f64>) -> Option<(String, String)> {
    let (here, there) = (here?, there?);
    let is_unlike = (here - there).abs() > ALIKE * here.abs().max(there.abs());
    is_unlike.then(|| (number(here), number(there)))
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 { whole(value) } else { plain(value) }
}

fn of_machines(here: &Here<'_>, row: &PublishedRow) -> Vec<Message> {
    let vcpu = match here.vcpu {
        Some(vcpu) => unlike(Some(vcpu), row.vcpu())
            .map(|(here, there)| say!(vcpu_instead_of, here = here, there = there)),
        None => row.vcpu().map(|_| say!(vcpu_not_stated)),
    };
    let memory = row.number("memory_gib").or_else(|| row.number("compute_memory_gib"));
    let memory = unlike(here.target.facts.memory_gib, memory)
        .map(|(here, there)| say!(gib_of_memory_instead_of, here = here, there = there));
    let generators = row.number("load_generators").filter(|count| *count > 1.0);
    let generators =
        generators.map(|there| say!(n_1_load_generator_instead_of, there = number(there)));
    [vcpu, memory, generators].into_iter().flatten().collect()
}

fn of_load(here: &Here<'_>, row: &PublishedRow) -> Vec<Message> {
    let workers = unlike(Some(here.point.load()), row.workers()).map(|(own, there)| {
        match here.point.terminals() {
            Some(_) => say!(terminals_instead_of, n = own, there = there),
            None => say!(workers_instead_of, n = own, there = there),
        }
    });
    let length = unlike(here.window_s, row.number("duration_s"))
        .map(|(here, there)| say!(s_measured_instead_of_s, here = here, there = there));
    let pauses = here.point.is_paced.then(|| say!(keying_and_think_times));
    let schedule = here.experiment.is_open_loop.then(|| say!(transactions_on_a_schedule));
    [workers, length, pauses, schedule].into_iter().flatten().collect()
}

fn of_data(here: &Here<'_>, row: &PublishedRow) -> Vec<Message> {
    let data = here.point.data.as_ref().map(|data| &data.facts);
    let count = |rows: u64| Some(rows as f64);
    let scale = here.point.scale().and_then(|scale| {
        let (here, there) = unlike(Some(scale.value), row.number(scale.name))?;
        Some(say!(scale_instead_of, here = here, there = there, scale = &scale.label))
    });
    let option = |name: &str| {
        // sysbench writes its options with underscores as well as with dashes.
        let options = &here.experiment.options;
        let value = options.get(name).or_else(|| options.get(&name.replace('_', "-")))?;
        value.parse::<f64>().ok()
    };
    let told = [
        scale,
        unlike(option("tables"), row.number("tables"))
            .map(|(here, there)| say!(tables_instead_of, n = here, there = there)),
        unlike(option("table_size"), row.number("table_size"))
            .map(|(here, there)| say!(rows_per_table_instead_of, here = here, there = there)),
        unlike(data.and_then(|data| count(data.rows)), row.number("rows"))
            .map(|(here, there)| say!(rows_instead_of, here = here, there = there)),
        unlike(data.and_then(|data| count(data.hot_rows?)), row.number("hot_rows"))
            .map(|(here, there)| say!(hot_rows_instead_of, here = here, there = there)),
        memory_for_data(here, row),
    ];
    told.into_iter().flatten().collect()
}

/// Where data lie in memory that lay on the disk there, or the other way round, is told by sizes.
fn memory_for_data(here: &Here<'_>, row: &PublishedRow) -> Option<Message> {
    let data = here.point.data.as_ref()?;
    let (size, memory) = (data.facts.size_bytes?, data.facts.memory_bytes?);
    row.number("memory_gib")?;
    Some(say!(
        size_of_data_setting_memory,
        size = bytes(size as f64),
        setting = &data.facts.memory_setting,
        memory = bytes(memory as f64)
    ))
}
