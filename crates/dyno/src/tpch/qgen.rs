//! `dyno tpch qgen`.

use super::usable_scale;
use crate::Done;
use crate::choice;
use dyno_core::Dialect;
use dyno_runner::failure::Failure;
use dyno_runner::output;
use dyno_tpch::parameters::{ParameterChoice, order, parameters, seed_is_usable};
use dyno_tpch::queries::{LAST, Q15, text};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Parameters are qgen's for the same seed and scale factor. The texts are those that dyno runs: limits are
part of the statement, and query 15 is the approved variant 15A, one statement.

Data: the queries, each ended by a semicolon; with --parameters a line for each query instead, as
qgen -l writes it: its number and its parameters, with tabs between.

Examples:
  dyno tpch qgen -d > queries.sql                      all 22, parameters of the validation
  dyno tpch qgen -r 1122064500 -p 2 -s 10              the second stream of a throughput test
  dyno tpch qgen -d --dialect mysql 13 | mysql tpch
  dyno tpch qgen -r 101000000 --parameters")]
pub(crate) struct Arguments {
    /// Queries by their numbers; default: all, in the order of the stream.
    #[arg(value_name = "QUERY", value_parser = clap::value_parser!(u8).range(1..=i64::from(LAST)))]
    queries: Vec<u8>,
    /// Parameters of the validation (clause 2.4); the fraction of query 11 follows the scale factor.
    #[arg(short, long, conflicts_with = "seed")]
    default: bool,
    /// Seed of the parameters; default: the time of day.
    #[arg(short = 'r', long, value_name = "SEED")]
    seed: Option<u64>,
    /// Order of this stream: 0 is the power test, 1 and more are those of the throughput test. Without
    /// it, from query 1 to query 22.
    #[arg(short = 'p', long, value_name = "STREAM")]
    stream: Option<u32>,
    /// Scale factor: query 11 depends on it.
    #[arg(short, long, value_name = "S", default_value_t = 1.0)]
    scale: f64,
    /// For which database; `postgres` is the specification's text, for all that speak standard SQL.
    #[arg(long, value_name = "DIALECT", default_value = "postgres", value_parser = choice(DIALECTS))]
    dialect: Dialect,
    /// Query 15 as the specification has it: a view is created, queried and dropped. The view is named
    /// after the stream.
    #[arg(long)]
    view: bool,
    /// Print the parameters alone.
    #[arg(long, conflicts_with_all = ["dialect", "view"])]
    parameters: bool,
}

const DIALECTS: &[(&str, Dialect)] =
    &[("postgres", Dialect::Postgres), ("mysql", Dialect::Mysql), ("sqlite", Dialect::Sqlite)];

pub(super) fn run(arguments: &Arguments) -> Done {
    let scale = usable_scale(arguments.scale)?;
    let choice = seed_choice(arguments)?;
    let queries = match (arguments.queries.as_slice(), arguments.stream) {
        ([], Some(stream)) => order(stream).to_vec(),
        ([], None) => (1..=LAST).collect(),
        (chosen, _) => chosen.to_vec(),
    };
    let print = |query: &u8| {
        let values = parameters(*query, scale, choice);
        if arguments.parameters {
            return format!("{query}\t{}\n", values.join("\t"));
        }
        let text = text(*query, &values, arguments.dialect, form(arguments));
        format!("-- TPC-H query {query}: {}\n{text};\n\n", values.join(", "))
    };
    output::data(&queries.iter().map(print).collect::<String>());
    Ok(())
}

fn seed_choice(arguments: &Arguments) -> Result<ParameterChoice, Failure> {
    match arguments.seed {
        _ if arguments.default => Ok(ParameterChoice::Default),
        Some(seed) if seed_is_usable(seed) => Ok(ParameterChoice::Seed(seed)),
        Some(seed) => Err(Failure::usage(format!(
            "The seed {seed} draws the same parameters for ever, as every multiple of 2147483647 does."
        ))
        .with_hint("Clause 2.1.3.3 takes the end of the load as month, day, hour, minute, second.")),
        None => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            // A second that is a multiple of the modulus comes in 2038.
            let seed = now.map_or(1, |now| now.as_secs());
            output::talk(&format!("seed: {seed}"));
            Ok(ParameterChoice::Seed(seed))
        }
    }
}

fn form(arguments: &Arguments) -> Q15 {
    if arguments.view { Q15::View(arguments.stream.unwrap_or(0)) } else { Q15::Cte }
}
