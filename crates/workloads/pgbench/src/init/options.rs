//! Options of `-i`, and those that a dialect does not support.

use dyno_core::Dialect;
use dyno_load::{LoadError, LoadErrorKind};
use std::fmt;

/// Accounts per unit of scale; also the rows that a parallel load commits at once.
pub const ACCOUNTS_PER_BRANCH: u32 = 100_000;
pub const TELLERS_PER_BRANCH: u32 = 10;
/// The largest scale: tellers are numbered by a 32-bit integer.
pub const SCALE_MAX: u32 = i32::MAX as u32 / TELLERS_PER_BRANCH;
/// From this scale on account numbers are 64-bit integers.
pub const BIGINT_SCALE: u32 = 20_000;

dyno_core::named! {
    /// One step of the initialization. The letters are pgbench's.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum InitStep {
        /// `d`: drops the four tables.
        DropTables = "drop tables",
        /// `t`: creates them.
        CreateTables = "create tables",
        /// `g`: fills them with rows made here.
        ClientData = "client-side generate",
        /// `G`: fills them with rows made by the server.
        ServerData = "server-side generate",
        /// `v`: vacuums and analyzes them; MySQL and SQLite only analyze.
        Vacuum = "vacuum",
        /// `p`: creates the primary keys.
        PrimaryKeys = "primary keys",
        /// `f`: creates the foreign keys.
        ForeignKeys = "foreign keys",
    }
}

/// `step g (client-side generate)`
impl fmt::Display for InitStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {} ({})", self.letter(), self.name())
    }
}

/// The letters of `--init-steps` and the lines that pgbench prints when the steps begin.
const STEPS: [(char, &str); 7] = [
    ('d', "dropping old tables..."),
    ('t', "creating tables..."),
    ('g', "generating data (client-side)..."),
    ('G', "generating data (server-side)..."),
    ('v', "vacuuming..."),
    ('p', "creating primary keys..."),
    ('f', "creating foreign keys..."),
];

impl InitStep {
    /// The letter of `--init-steps`.
    pub fn letter(self) -> char {
        STEPS[self as usize].0
    }

    /// The line that pgbench prints when the step begins.
    pub fn announcement(self) -> &'static str {
        STEPS[self as usize].1
    }

    /// The steps of an `--init-steps` option: letters in any order with repeats, blanks ignored.
    ///
    /// # Errors
    /// An empty text or an unknown letter, in pgbench's words: the message, and the line after `detail:`.
    pub fn parse_all(text: &str) -> Result<Vec<InitStep>, (String, Option<&'static str>)> {
        if text.is_empty() {
            return Err(("no initialization steps specified".to_owned(), None));
        }
        let letters = text.chars().filter(|&letter| letter != ' ');
        let steps = letters.map(|letter| {
            InitStep::ALL.into_iter().find(|step| step.letter() == letter).ok_or_else(|| {
                let message = format!("unrecognized initialization step \"{letter}\"");
                (message, Some("Allowed step characters are: \"dtgGvpf\"."))
            })
        });
        steps.collect()
    }
}

dyno_core::named! {
    /// Division of `pgbench_accounts`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum PartitionMethod {
        /// Ranges of `aid`.
        #[default]
        Range = "range",
        /// The hash of `aid`.
        Hash = "hash",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitOptions {
    /// The steps of `--init-steps`, before `vacuum`, `foreign_keys` and `resume` have changed them.
    pub steps: Vec<InitStep>,
    /// 100,000 accounts, 10 tellers and 1 branch per unit; 1 to [`SCALE_MAX`].
    pub scale: u32,
    /// Percent of a page that is filled, 10 to 100.
    pub fillfactor: u8,
    /// False (`-n`) leaves out [`InitStep::Vacuum`].
    pub vacuum: bool,
    /// True (`--foreign-keys`) appends [`InitStep::ForeignKeys`] if it isn't there.
    pub foreign_keys: bool,
    /// Partitions of `pgbench_accounts`; 0 is an ordinary table.
    pub partitions: u32,
    /// Method of the division; without effect unless there are partitions.
    pub partition_method: PartitionMethod,
    pub tablespace: Option<String>,
    /// Tablespace of the indexes of the primary keys.
    pub index_tablespace: Option<String>,
    /// Tables without a write-ahead log.
    pub unlogged: bool,
    /// Sessions that load accounts at the same time. 1 loads as pgbench does: all rows of all
    /// tables in one transaction. More commit every [`ACCOUNTS_PER_BRANCH`] rows.
    pub connections: u32,
    /// Keeps what an interrupted load has committed and does only what is missing. Nothing is
    /// dropped or truncated then.
    pub resume: bool,
}

impl Default for InitOptions {
    fn default() -> Self {
        InitOptions {
            steps: vec![
                InitStep::DropTables,
                InitStep::CreateTables,
                InitStep::ClientData,
                InitStep::Vacuum,
                InitStep::PrimaryKeys,
            ],
            scale: 1,
            fillfactor: 100,
            vacuum: true,
            foreign_keys: false,
            partitions: 0,
            partition_method: PartitionMethod::Range,
            tablespace: None,
            index_tablespace: None,
            unlogged: false,
            connections: 1,
            resume: false,
        }
    }
}

impl InitOptions {
    pub fn effective_steps(&self) -> Vec<InitStep> {
        let mut steps = self.steps.clone();
        steps.retain(|step| match step {
            InitStep::DropTables => !self.resume,
            InitStep::Vacuum => self.vacuum,
            _ => true,
        });
        if self.foreign_keys && !steps.contains(&InitStep::ForeignKeys) {
            steps.push(InitStep::ForeignKeys);
        }
        steps
    }

    /// Rows of `pgbench_accounts`.
    pub fn accounts(&self) -> i64 {
        i64::from(self.scale) * i64::from(ACCOUNTS_PER_BRANCH)
    }

    /// Rows of `pgbench_tellers`.
    pub fn tellers(&self) -> i64 {
        i64::from(self.scale) * i64::from(TELLERS_PER_BRANCH)
    }

    /// Says what can't be done, before anything is touched.
    ///
    /// # Errors
    /// The first option that is out of range or that the dialect has no equivalent of.
    pub fn check(&self, dialect: Dialect) -> Result<(), LoadError> {
        let is_sqlite = dialect == Dialect::Sqlite;
        let product = if is_sqlite { "SQLite" } else { "MySQL" };
        let makes_rows = self.steps.contains(&InitStep::ServerData);
        let has_foreign_keys = self.effective_steps().contains(&InitStep::ForeignKeys);
        if !(1..=SCALE_MAX).contains(&self.scale) {
            let problem = format!("the scale must be between 1 and {SCALE_MAX}");
            return refuse_option(problem, "give a scale in this range with -s");
        }
        if !(10..=100).contains(&self.fillfactor) {
            let problem = "the fillfactor must be between 10 and 100".to_owned();
            return refuse_option(problem, "give a fillfactor in this range with -F");
        }
        if self.connections == 0 {
            let problem = "the number of connections must be at least 1".to_owned();
            return refuse_option(problem, "give a number of connections with -j");
        }
        if self.resume && makes_rows {
            let problem = "step G can't be resumed: the server makes all rows of a table at once";
            return refuse_option(problem.to_owned(), "use step g, or run without --resume");
        }
        let postgres_only = [
            ("step G", makes_rows),
            ("--fillfactor", self.fillfactor != 100),
            ("--tablespace", self.tablespace.is_some()),
            ("--index-tablespace", self.index_tablespace.is_some()),
            ("--unlogged-tables", self.unlogged),
            ("--partitions", self.partitions > 0),
        ];
        let lacking = postgres_only.into_iter().find(|(_, is_given)| *is_given);
        if let Some((option, _)) = lacking.filter(|_| dialect != Dialect::Postgres) {
            let problem = format!("{option}: {product} has no such thing");
            return refuse_option(problem, &format!("leave out {option}"));
        }
        if is_sqlite && has_foreign_keys {
            let problem = "--foreign-keys: SQLite can't add foreign keys to a table that exists";
            return refuse_option(problem.to_owned(), "leave out --foreign-keys (step f)");
        }
        Ok(())
    }
}

fn refuse_option(problem: String, hint: &str) -> Result<(), LoadError> {
    Err(LoadError::new(LoadErrorKind::Option, problem, Some(hint.to_owned())))
}
