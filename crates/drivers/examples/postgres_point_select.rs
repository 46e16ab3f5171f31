//! Client CPU per point select on pgbench's table, for comparison with
//! `pgbench -n -S -M MODE -c SESSIONS -j 1 -T SECONDS`:
//!
//! ```text
//! cargo run --release --example postgres_point_select -- URL SESSIONS SECONDS ROWS MODE
//! ```
//!
//! MODE is pgbench's `simple`, `extended` or `prepared`, in which the same messages are sent as by
//! pgbench, or `typed`: prepared, but with types, in binary and not described each time.

use dyno_core::{DbError, Discard, Driver, Param, ParamType, Rng, SECOND, Session};
use dyno_drivers::Target;
use dyno_drivers::postgres::PostgresDriver;
use dyno_reactor::{now, run_all};
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::error::Error;
use std::fmt::Write;

/// User and system time of this process.
fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

#[expect(clippy::print_stdout, reason = "an example prints what it measured")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, sessions, seconds, rows, mode] = &arguments[..] else {
        return Err("arguments: URL SESSIONS SECONDS ROWS simple|extended|prepared|typed".into());
    };
    let (sessions, seconds): (u32, u64) = (sessions.parse()?, seconds.parse()?);
    let rows: u64 = rows.parse()?;
    let mode = mode.as_str();
    let driver =
        PostgresDriver::new(&url.parse::<Target>()?)?.with_describe_each(mode == "prepared");
    let connected = Cell::new(0);
    let begin = Cell::new((0, 0.0));
    let tasks = (0..sessions).map(|number| {
        let (driver, connected, begin) = (&driver, &connected, &begin);
        async move {
            let mut session = driver.connect(number).await?;
            let sql = "SELECT abalance FROM pgbench_accounts WHERE aid = $1";
            let kind = if mode == "typed" { ParamType::Int } else { ParamType::Inferred };
            let select = session.prepare(sql, &[kind]).await?;
            let mut text = String::new();
            let mut rng = Rng::new(1, "keys", number.into());
            connected.set(connected.get() + 1);
            while connected.get() < sessions {
                dyno_reactor::yield_now().await;
            }
            if begin.get().0 == 0 {
                begin.set((now(), cpu_us()));
            }
            let end = begin.get().0 + seconds * SECOND;
            let mut queries = 0_u64;
            while now() < end {
                let id = rng.uniform(1, rows) as i64;
                let params = [Param::Int(id)];
                match mode {
                    "simple" => {
                        text.clear();
                        write!(text, "SELECT abalance FROM pgbench_accounts WHERE aid = {id};")
                            .map_err(|error| DbError::workload(error.to_string()))?;
                        session.query(&text, &mut Discard).await?
                    }
                    "extended" => session.execute_once(sql, &params, &mut Discard).await?,
                    _ => session.execute(select, &params, &mut Discard).await?,
                };
                queries += 1;
            }
            Ok::<u64, DbError>(queries)
        }
    });
    let counts = run_all(tasks)?.into_iter().collect::<Result<Vec<u64>, _>>()?;
    let queries: u64 = counts.iter().sum();
    let cpu = cpu_us() - begin.get().1;
    let elapsed_s = (now() - begin.get().0) as f64 / SECOND as f64;
    println!(
        "{sessions} sessions: {:.0} queries/s, {:.2} us client CPU per query",
        queries as f64 / elapsed_s,
        cpu / queries as f64
    );
    Ok(())
}
