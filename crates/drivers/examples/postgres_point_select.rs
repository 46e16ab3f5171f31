//! Client CPU per prepared point select on pgbench's table, for comparison with
//! `pgbench -n -S -M prepared -c SESSIONS -j 1 -T SECONDS`:
//!
//! ```text
//! cargo run --release --example postgres_point_select -- URL SESSIONS SECONDS ROWS [describe]
//! ```

use dyno_core::{Discard, Driver, Param, ParamType, Rng, SECOND, Session};
use dyno_drivers::Target;
use dyno_drivers::postgres::PostgresDriver;
use dyno_reactor::{now, run_all};
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::error::Error;

/// User and system time of this process.
fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

#[expect(clippy::print_stdout, reason = "an example prints what it measured")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, sessions, seconds, rows, describe @ ..] = &arguments[..] else {
        return Err("arguments: URL SESSIONS SECONDS ROWS [describe]".into());
    };
    let (sessions, seconds): (u32, u64) = (sessions.parse()?, seconds.parse()?);
    let rows: u64 = rows.parse()?;
    let driver =
        PostgresDriver::new(&url.parse::<Target>()?)?.with_describe_each(!describe.is_empty());
    let connected = Cell::new(0);
    let begin = Cell::new((0, 0.0));
    let tasks = (0..sessions).map(|number| {
        let (driver, connected, begin) = (&driver, &connected, &begin);
        async move {
            let mut session = driver.connect(number).await?;
            let sql = "SELECT abalance FROM pgbench_accounts WHERE aid = $1";
            let select = session.prepare(sql, &[ParamType::Int]).await?;
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
                session.execute(select, &[Param::Int(id)], &mut Discard).await?;
                queries += 1;
            }
            Ok::<u64, dyno_core::DbError>(queries)
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
