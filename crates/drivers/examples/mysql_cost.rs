//! What a MySQL session costs its client: loads a table of sysbench's shape, then runs prepared
//! point selects on many connections of one loop, and prints CPU per row and per query.
//!
//! `cargo run --release -p dyno-drivers --example mysql_cost -- URL [CONNECTIONS [SECONDS [ROWS]]]`
//! The table `dyno_cost` in the database of the URL is replaced and dropped at the end.

use dyno_core::{
    DbError, Discard, Driver, Param, ParamType, Rng, RowSource, RowWriter, SECOND, Session,
};
use dyno_drivers::mysql::MysqlDriver;
use dyno_reactor::{block_on, monotonic_now, now, run_all};
use std::error::Error;

/// Rows as sysbench makes them: groups of eleven digits in two texts.
struct SysbenchRows {
    rng: Rng,
    next: i64,
    last: i64,
}

fn digits(rng: &mut Rng, text: &mut [u8]) {
    for group in text.chunks_mut(12) {
        let mut bits = rng.next_u64();
        for byte in group.iter_mut() {
            *byte = b'0' + (bits % 10) as u8;
            bits /= 10;
        }
        if let Some(dash) = group.get_mut(11) {
            *dash = b'-';
        }
    }
}

impl RowSource for SysbenchRows {
    fn next_row<W: RowWriter>(&mut self, out: &mut W) -> bool {
        if self.next > self.last {
            return false;
        }
        let (mut c, mut pad) = ([0; 119], [0; 59]);
        digits(&mut self.rng, &mut c);
        digits(&mut self.rng, &mut pad);
        out.int(self.next);
        out.int(self.rng.uniform(1, self.last as u64) as i64);
        out.text(&c);
        out.text(&pad);
        self.next += 1;
        true
    }

    fn restart(&mut self) {
        self.next = 1;
    }
}

/// User and system time of this process so far, in microseconds.
fn cpu_us() -> f64 {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    clock.tv_sec as f64 * 1e6 + clock.tv_nsec as f64 / 1e3
}

async fn load(driver: &MysqlDriver, rows: i64) -> Result<(u64, &'static str), DbError> {
    let mut session = driver.connect(0).await?;
    for sql in [
        "DROP TABLE IF EXISTS dyno_cost",
        "CREATE TABLE dyno_cost (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL) ENGINE=InnoDB",
    ] {
        session.query(sql, &mut Discard).await?;
    }
    let mut source = SysbenchRows { rng: Rng::new(1, "cost", 0), next: 1, last: rows };
    let report = session.bulk_load("dyno_cost", &["id", "k", "c", "pad"], &mut source).await?;
    session.close().await;
    Ok((report.rows, report.method.name()))
}

async fn worker(
    driver: &MysqlDriver,
    number: u32,
    rows: u64,
    seconds: u64,
) -> Result<u64, DbError> {
    let mut session = driver.connect(number).await?;
    let sql = "SELECT c FROM dyno_cost WHERE id=?";
    let select = session.prepare(sql, &[ParamType::Int]).await?;
    let mut rng = Rng::new(2, "cost", u64::from(number));
    let end = now() + seconds * SECOND;
    let mut count = 0;
    while now() < end {
        let id = rng.uniform(1, rows) as i64;
        let done = session.execute(select, &[Param::Int(id)], &mut Discard).await?;
        assert_eq!(done.rows, 1, "the row {id} is there");
        count += 1;
    }
    Ok(count)
}

#[expect(clippy::print_stdout, reason = "an example tells its results")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("give the URL of a MySQL server")?;
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (connections, seconds, rows) = (number(64)?, number(5)?, number(200_000)?);
    let driver = MysqlDriver::new(&url.parse()?)?;

    let (cpu, clock) = (cpu_us(), monotonic_now());
    let (loaded, method) = block_on(load(&driver, rows as i64))??;
    let took_s = (monotonic_now() - clock) as f64 / SECOND as f64;
    let row_us = (cpu_us() - cpu) / loaded as f64;
    println!("{method}: {loaded} rows in {took_s:.2} s, {row_us:.3} us of client CPU per row");

    let (cpu, clock) = (cpu_us(), monotonic_now());
    let workers = (0..connections).map(|n| worker(&driver, n as u32, rows, seconds));
    let counts = run_all(workers)?.into_iter().collect::<Result<Vec<u64>, DbError>>()?;
    let total: u64 = counts.iter().sum();
    let took_s = (monotonic_now() - clock) as f64 / SECOND as f64;
    println!(
        "{connections} connections: {:.0} queries/s, {:.2} us of client CPU per query",
        total as f64 / took_s,
        (cpu_us() - cpu) / total as f64
    );
    let drop_table = async {
        let mut session = driver.connect(0).await?;
        session.query("DROP TABLE dyno_cost", &mut Discard).await
    };
    block_on(drop_table)??;
    Ok(())
}
