//! `--help`.

/// The options, as pgbench lays them out, and what is different.
pub(super) fn text() -> String {
    format!("{USAGE}{DIFFERENCES}")
}

const USAGE: &str = "\
pgbench is a benchmarking tool for PostgreSQL.
This is dyno's own: that of version 15, with what later versions added.

Usage:
  pgbench [OPTION]... [DBNAME]
  dyno pgbench [OPTION]... [DBNAME]

Initialization options:
  -i, --initialize         invokes initialization mode
  -I, --init-steps=[dtgGvpf]+ (default \"dtgvp\")
                           run selected initialization steps
  -F, --fillfactor=NUM     set fill factor
  -j, --jobs=NUM           load accounts over NUM connections at the same time (default: 1)
  -n, --no-vacuum          do not run VACUUM during initialization
  -q, --quiet              quiet logging (one message each 5 seconds)
  -s, --scale=NUM          scaling factor
  --foreign-keys           create foreign key constraints between tables
  --index-tablespace=TABLESPACE
                           create indexes in the specified tablespace
  --partition-method=(range|hash)
                           partition pgbench_accounts with this method (default: range)
  --partitions=NUM         partition pgbench_accounts into NUM parts (default: 0)
  --resume                 keep what an interrupted load has stored and load what is missing
  --tablespace=TABLESPACE  create tables in the specified tablespace
  --unlogged-tables        create tables as unlogged tables

Options to select what to run:
  -b, --builtin=NAME[@W]   add builtin script NAME weighted at W (default: 1)
                           (use \"-b list\" to list available scripts)
  -f, --file=FILENAME[@W]  add script FILENAME weighted at W (default: 1)
  -N, --skip-some-updates  skip updates of pgbench_tellers and pgbench_branches
                           (same as \"-b simple-update\")
  -S, --select-only        perform SELECT-only transactions
                           (same as \"-b select-only\")

Benchmarking options:
  -c, --client=NUM         number of concurrent database clients (default: 1)
  -C, --connect            establish new connection for each transaction
  -D, --define=VARNAME=VALUE
                           define variable for use by custom script
  -j, --jobs=NUM           number of threads (default: 1)
  -l, --log                write transaction times to log file
  -L, --latency-limit=NUM  count transactions lasting more than NUM ms as late
  -M, --protocol=simple|extended|prepared
                           protocol for submitting queries (default: simple)
  -n, --no-vacuum          do not run VACUUM before tests
  -P, --progress=NUM       show thread progress report every NUM seconds
  -r, --report-per-command report latencies, failures, and retries per command
  -R, --rate=NUM           target rate in transactions per second
  -s, --scale=NUM          report this scale factor in output
  -t, --transactions=NUM   number of transactions each client runs (default: 10)
  -T, --time=NUM           duration of benchmark test in seconds
  -v, --vacuum-all         vacuum all four standard tables before tests
  --aggregate-interval=NUM aggregate data over NUM seconds
  --continue-on-error      count a transaction with an SQL error as failed and go on
  --exit-on-abort          exit when any client is aborted
  --failures-detailed      report the failures grouped by basic types
  --log-prefix=PREFIX      prefix for transaction time log file
                           (default: \"pgbench_log\")
  --max-tries=NUM          max number of tries to run transaction (default: 1)
  --progress-timestamp     use Unix epoch timestamps for progress
  --random-seed=SEED       set random seed (\"time\", \"rand\", integer)
  --sampling-rate=NUM      fraction of transactions to log (e.g., 0.01 for 1%)
  --show-script=NAME       show builtin script code, then exit
  --verbose-errors         print messages of all errors

Common options:
  -d, --debug              print debugging output
  -d, --dbname=DBNAME      database name to connect to (-d without a name is --debug)
  -h, --host=HOSTNAME      database server host or socket directory
  -p, --port=PORT          database server port number
  -U, --username=USERNAME  connect as specified database user
  -V, --version            output version information, then exit
  -?, --help               show this help, then exit

Options of dyno (off by default, so that reports look as ever):
  --target=URL             any database: mysql://USER@HOST/DB, sqlite:FILE, postgres://...;
                           such a URL may also stand in the place of DBNAME
  -c LIST                  several numbers, such as 1,2,4: a run of each, and a table at the end; -l then
                           writes PREFIX.PID.level1 in the first run, .level2 in the second, ...
  --percentiles=LIST       add a line per percentile of the latency, such as 50,95,99.9; without
                           connecting, also with -C, as in --json and in the table of -c LIST
  --json=FILE              write the result as JSON (\"-\" is standard output)
  --paper                  run each number of -c as `dyno run` does, checks and looks at the server
                           included, and write a paper of them into a folder below dyno-runs; needs -T
  --hdr=FILE               write latencies as an HdrHistogram interval log
  --warmup=NUM             run NUM seconds before measuring
  --check-balances         after the run, check that accounts, tellers, branches and history
                           changed alike (reads all accounts before and after)
  load_balance_hosts=rotate
                           in a connection string: client N connects to host N modulo their number
                           (else each client takes the first host that answers, as in libpq)

";

const DIFFERENCES: &str = "\
Better than the original:
  Connecting and preparing are outside of the measured time, -T included; clients connect at the
  same time, not one after the other. With -C connecting is inside, as ever.
  A client that stops after an error makes the run fail visibly: standard error states how many
  clients stopped and how many of the transactions asked for were executed (exit code 2).
  A run in which nothing was executed is an error (exit code 1), and so is one with
  --continue-on-error in which no transaction succeeded because of errors that are no conflicts.
  The latency average is measured, not computed from the time of the run; with -C, and where
  transactions failed, it is computed as ever (unless -P, -R or -L): connecting and failures are in it.
  Statistics of -r and of several scripts are exact under any -j.
  Nothing that one client does stalls another: not \\shell, not a slow connect, not the first
  PREPARE.
  A script of -f that uses :scale without -s on larger tables gets a warning: all its clients
  would use the first part of the data only.
  The limit of open files is raised as far as the system allows.
  Passwords in URIs and connection strings are wiped from the process list.
  While `dyno run` or another -i works on the tables, -i does not begin, and a run gets a warning.
  -i fails where the server stored fewer rows than were sent.
  The same scripts and -i work on MySQL-protocol servers and on SQLite.

Kept as it is: with -R each of the -j threads draws arrivals of its own at its share of the rate,
which wait for the clients of that thread only. The latency so depends on -j; with -j 1, and in
dyno run, all clients take from one queue.

Exit codes: 0 fine, 1 wrong option or script, no connection, or nothing executed or successful, 2 at
least one client stopped before the others, 130 stopped with Ctrl-C, 143 stopped by SIGTERM (the
report of what was done until then is printed).
";
