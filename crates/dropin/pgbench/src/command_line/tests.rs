use super::*;
use crate::settings::Length;

/// Takes every script without looking at it.
#[derive(Default)]
struct Recorded {
    lines: Vec<String>,
    scripts: Vec<(Source, u32)>,
}

impl Host for Recorded {
    fn say(&mut self, line: &str) {
        self.lines.push(line.to_owned());
    }

    fn load(&mut self, source: Source, weight: u32) -> Result<(), Refusal> {
        self.scripts.push((source, weight));
        Ok(())
    }

    fn complete(&mut self, _mode: QueryMode) -> Result<(), Refusal> {
        Ok(())
    }

    fn scripts(&self) -> (usize, u64) {
        (self.scripts.len(), self.scripts.iter().map(|(_, weight)| u64::from(*weight)).sum())
    }
}

fn read_line(line: &[&str]) -> (Result<Settings, Stop>, Recorded) {
    let words: Vec<String> = line.iter().map(|&word| word.to_owned()).collect();
    let mut host = Recorded::default();
    (read(&words, None, &mut host), host)
}

fn good(line: &[&str]) -> Settings {
    read_line(line).0.unwrap_or_else(|stop| panic!("{line:?}: {stop:?}"))
}

fn refusal(line: &[&str]) -> String {
    match read_line(line).0 {
        Err(Stop::Refused(refusal)) => refusal.to_string(),
        other => panic!("{line:?}: {other:?}"),
    }
}

#[test]
fn defaults_are_pgbenchs() {
    let (settings, host) = read_line(&[]);
    let settings = settings.expect("an empty command line is a run");
    assert_eq!(settings, Settings { seed: settings.seed, ..Settings::new(0) });
    assert_eq!(settings.length(), Length::Transactions(10));
    assert_eq!(host.scripts, [(Source::Builtin(scripts::find("tpcb-like").expect("it")), 1)]);
}

/// Every option of a run, in all spellings.
const ALL_OF_A_RUN: &str = "\
    -Mprepared -c 8 -j3 -T60 -C -P 5 -r -R 1.5e3 -L20.5 -l -Dx=1 --define=x=a=b \
    -nv -s 7 --log-prefix=p --sampling-rate=.5 --failures-detailed --max-tries=0 \
    --verbose-errors --progress-timestamp --random-seed=9 --exit-on-abort \
    --continue-on-error --debug -h a,b -p1 -U me -d first second \
    --percentiles=50,99 --json=j --hdr h --warmup=3 --check-balances";

#[test]
fn every_option_of_a_run_is_taken() {
    let settings = good(&ALL_OF_A_RUN.split_whitespace().collect::<Vec<_>>());
    let expected = Settings {
        mode: QueryMode::Prepared,
        clients: 8,
        threads: 3,
        seconds: Some(60),
        connect_each: true,
        progress_s: Some(5),
        report_per_command: true,
        rate_per_s: Some(1500.0),
        late_limit_us: 20_500,
        variables: [("x", "1"), ("x", "a=b")].map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec(),
        vacuum: false,
        vacuum_accounts: true,
        scale: Some(7),
        failures_detailed: true,
        max_tries: 0,
        verbose_errors: true,
        progress_timestamp: true,
        exit_on_abort: true,
        continue_on_error: true,
        debug: true,
        percentiles: vec![50.0, 99.0],
        json: Some("j".into()),
        hdr: Some("h".into()),
        warmup_s: 3,
        check_balances: true,
        connection: crate::settings::Connection {
            host: Some("a,b".to_owned()),
            port: Some("1".to_owned()),
            user: Some("me".to_owned()),
            dbname: Some("second".to_owned()),
            target: None,
        },
        log: crate::settings::LogSettings {
            wanted: true,
            prefix: Some("p".to_owned()),
            sampling_rate: Some(0.5),
            ..crate::settings::LogSettings::default()
        },
        ..Settings::new(9)
    };
    assert_eq!(settings, expected);
    assert_eq!((settings.variable("x"), settings.variable("y")), (Some("a=b"), None));
}

#[test]
fn every_option_of_an_initialization_is_taken() {
    let settings = good(&[
        "-iqn",
        "-s20",
        "-F",
        "90",
        "-I",
        "dt gp",
        "--foreign-keys",
        "--partitions=4",
        "--partition-method=HASH",
        "--tablespace=a",
        "--index-tablespace=b",
        "--unlogged-tables",
        "-j",
        "2",
        "--resume",
        "bench",
    ]);
    let init = dyno_pgbench::init::InitOptions {
        steps: InitStep::parse_all("dtgp").expect("letters"),
        scale: 20,
        fillfactor: 90,
        vacuum: false,
        foreign_keys: true,
        partitions: 4,
        partition_method: PartitionMethod::Hash,
        tablespace: Some("a".to_owned()),
        index_tablespace: Some("b".to_owned()),
        unlogged: true,
        connections: 2,
        resume: true,
    };
    assert_eq!(settings.init, init);
    assert!(settings.initialize && settings.quiet);
}

#[test]
fn scripts_have_weights_and_keep_their_order() {
    let (settings, host) = read_line(&["-f", "a@b@3", "-S", "-btpcb@0", "-N", "-f-"]);
    settings.expect("a good command line");
    let builtin = |name| Source::Builtin(scripts::find(name).expect(name));
    let expected = [
        (Source::File("a@b".to_owned()), 3),
        (builtin("select-only"), 1),
        (builtin("tpcb-like"), 0),
        (builtin("simple-update"), 1),
        (Source::File("-".to_owned()), 1),
    ];
    assert_eq!(host.scripts, expected);
}

#[test]
fn seeds_are_said_when_they_are_given() {
    let (settings, host) = read_line(&["--random-seed=-1"]);
    assert_eq!(settings.expect("a seed").seed, u64::MAX);
    assert_eq!(host.lines, ["pgbench: setting random seed to 18446744073709551615"]);
    let mut host = Recorded::default();
    let seed = read(&[], Some("5"), &mut host).expect("a seed").seed;
    assert_eq!((seed, host.lines.len()), (5, 1));
    assert!(matches!(read(&[], Some("x"), &mut host), Err(Stop::Refused(_))));
    assert_ne!(good(&["--random-seed=rand"]).seed, good(&["--random-seed=rand"]).seed);
}

#[test]
fn urls_name_the_whole_database() {
    assert_eq!(good(&["sqlite:x.db"]).connection.target.as_deref(), Some("sqlite:x.db"));
    let target = good(&["-i", "--target", "mysql://h/x"]).connection.target;
    assert_eq!(target.as_deref(), Some("mysql://h/x"));
    // libpq reads these by itself.
    let dbname = good(&["postgres://h/x"]).connection.dbname;
    assert_eq!(dbname.as_deref(), Some("postgres://h/x"));
    assert!(refusal(&["--target=mysql://h/x", "db"]).contains("a database name can't be given"));
    assert!(refusal(&["-h", "a", "mysql://h/x"]).contains("-h/--host can't be given"));
}

#[test]
fn what_comes_first_is_said_first() {
    assert_eq!(
        refusal(&["-c", "0", "-j", "x"]),
        "pgbench: error: -c/--client must be in range 1..2147483647\n"
    );
    assert!(matches!(read_line(&["-b", "list", "-c", "0"]).0, Err(Stop::List)));
    let (shown, _) = read_line(&["--show-script=se", "-c0"]);
    assert_eq!(shown, Err(Stop::Show(scripts::find("select-only").expect("it"))));
}

#[test]
fn extras_are_checked() {
    for empty in ["--percentiles=", "--percentiles=,"] {
        assert!(refusal(&[empty]).contains("it takes at least one number"), "{empty}");
    }
    assert_eq!(
        refusal(&["--percentiles=0"]),
        "pgbench: error: invalid value \"0\" for option --percentiles: it takes a list of numbers \
         above 0 and up to 100, with commas, such as 50,95,99.9\n"
    );
    assert!(refusal(&["-i", "--json=x"]).contains("initialization (-i) mode"));
    assert!(refusal(&["--resume"]).contains("benchmarking mode"));
    assert_eq!(good(&["-c2", "-j9"]).threads, 2);
    for endless in ["inf", "nan", "1e999"] {
        let why = format!("pgbench: error: invalid rate limit: \"{endless}\"\n");
        assert_eq!(refusal(&["-R", endless]), why);
        assert!(refusal(&["-L", endless]).contains("invalid latency limit"), "{endless}");
    }
}
