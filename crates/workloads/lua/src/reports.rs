//! What the hooks `report_intermediate` and `report_cumulative` are given.

use mlua::{Lua, Table};

/// Which hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportHook {
    Intermediate,
    Cumulative,
}

impl ReportHook {
    pub(crate) fn name(self) -> &'static str {
        match self {
            ReportHook::Intermediate => "report_intermediate",
            ReportHook::Cumulative => "report_cumulative",
        }
    }
}

/// The figures of an interval, or of a whole run. Times are in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReportStat {
    pub threads_running: u32,
    pub time_interval_s: f64,
    pub time_total_s: f64,
    pub latency_percentile_s: f64,
    pub events: u64,
    pub reads: u64,
    pub writes: u64,
    pub others: u64,
    pub errors: u64,
    pub reconnects: u64,
    /// Of an interval: the length of the queue, and events that are executed; both 0 without a rate.
    pub queue: Option<(u64, u64)>,
    /// Of a whole run: least, greatest, mean and sum.
    pub latency_s: Option<[f64; 4]>,
}

impl ReportStat {
    pub(crate) fn table(&self, lua: &Lua) -> mlua::Result<Table> {
        let table = lua.create_table()?;
        table.set("threads_running", self.threads_running)?;
        table.set("time_interval", self.time_interval_s)?;
        table.set("time_total", self.time_total_s)?;
        table.set("latency_pct", self.latency_percentile_s)?;
        for (name, count) in [
            ("events", self.events),
            ("reads", self.reads),
            ("writes", self.writes),
            ("other", self.others),
            ("errors", self.errors),
            ("reconnects", self.reconnects),
        ] {
            table.set(name, count as f64)?;
        }
        if let Some((length, concurrency)) = self.queue {
            table.set("queue_length", length)?;
            table.set("concurrency", concurrency as f64)?;
        }
        for (name, value) in
            ["min", "max", "avg", "sum"].iter().zip(self.latency_s.iter().flatten())
        {
            table.set(format!("latency_{name}"), *value)?;
        }
        Ok(table)
    }
}
