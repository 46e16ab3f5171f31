//! What `-i` is asked to do, and what of it a dialect can't do.

use dyno_core::Dialect;
use dyno_load::LoadError;
use std::fmt;

/// Accounts per unit of scale; also the rows that a parallel load commits at once.
pub const ACCOUNTS_PER_BRANCH: u32 = 100_000;
pub const TELLERS_PER_BRANCH: u32 = 10;
/// The largest scale: tellers are numbered by a 32-bit integer.
pub const SCALE_MAX: u32 = i32::MAX as u32 / TELLERS_PER_BRANCH;
/// From this scale on account numbers are 64-bit integers.
pub const BIGINT_SCALE: u32 = 20_000;

/// MySQL's limit on the partitions of one table.
const MYSQL_PARTITIONS_MAX: u32 = 8192;

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepsError {
    message: String,
    detail: Option<&'static str>,
}

impl StepsError {
    /// pgbench's second line, after `detail:`.
    pub fn detail(&self) -> Option<&'static str> {
        self.detail
    }
}

impl fmt::Display for StepsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StepsError {}

impl InitStep {
    /// The letter of `--init-steps`.
    pub fn letter(self) -> char {
        match self {
            InitStep::DropTables => 'd',
            InitStep::CreateTables => 't',
            InitStep::ClientData => 'g',
            InitStep::ServerData => 'G',
            InitStep::Vacuum => 'v',
            InitStep::PrimaryKeys => 'p',
            InitStep::ForeignKeys => 'f',
        }
    }

    /// The line that pgbench prints when the step begins.
    pub fn announcement(self) -> &'static str {
        match self {
            InitStep::DropTables => "dropping old tables...",
            InitStep::CreateTables => "creating tables...",
            InitStep::ClientData => "generating data (client-side)...",
            InitStep::ServerData => "generating data (server-side)...",
            InitStep::Vacuum => "vacuuming...",
            InitStep::PrimaryKeys => "creating primary keys...",
            InitStep::ForeignKeys => "creating foreign keys...",
        }
    }

    /// The steps of an `--init-steps` option: letters in any order with repeats, blanks ignored.
    ///
    /// # Errors
    /// An empty text or an unknown letter, in pgbench's words.
    pub fn parse_all(text: &str) -> Result<Vec<InitStep>, StepsError> {
        if text.is_empty() {
            let message = "no initialization steps specified".to_owned();
            return Err(StepsError { message, detail: None });
        }
        let step = |letter| {
            InitStep::ALL.into_iter().find(|step| step.letter() == letter).ok_or_else(|| {
                StepsError {
                    message: format!("unrecognized initialization step \"{letter}\""),
                    detail: Some("Allowed step characters are: \"dtgGvpf\"."),
                }
            })
        };
        text.chars().filter(|&letter| letter != ' ').map(step).collect()
    }
}

dyno_core::named! {
    /// How `pgbench_accounts` is divided.
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
    /// How they divide it; without effect when there are none.
    pub partition_method: PartitionMethod,
    pub tablespace: Option<String>,
    /// Where the indexes of the primary keys go.
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

fn refused(problem: impl Into<String>, hint: impl Into<String>) -> LoadError {
    LoadError::Option { problem: problem.into(), hint: Some(hint.into()) }
}

impl InitOptions {
    pub fn effective_steps(&self) -> Vec<InitStep> {
        let wanted = |step: &InitStep| match step {
            InitStep::DropTables => !self.resume,
            InitStep::Vacuum => self.vacuum,
            _ => true,
        };
        let mut steps: Vec<InitStep> = self.steps.iter().copied().filter(wanted).collect();
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
        self.check_ranges()?;
        if self.resume && self.steps.contains(&InitStep::ServerData) {
            return Err(refused(
                "step G can't be resumed: the server makes all rows of a table at once",
                "use step g, or run without --resume",
            ));
        }
        match dialect {
            Dialect::Postgres => Ok(()),
            Dialect::Mysql => self.check_mysql(),
            Dialect::Sqlite => self.check_sqlite(),
        }
    }

    fn check_ranges(&self) -> Result<(), LoadError> {
        if !(1..=SCALE_MAX).contains(&self.scale) {
            let problem = format!("the scale must be between 1 and {SCALE_MAX}");
            return Err(refused(problem, "give a scale in this range with -s"));
        }
        if !(10..=100).contains(&self.fillfactor) {
            return Err(refused(
                "the fillfactor must be between 10 and 100",
                "give a fillfactor in this range with -F",
            ));
        }
        if self.connections == 0 {
            return Err(refused(
                "the number of connections must be at least 1",
                "give a number of connections with -j",
            ));
        }
        Ok(())
    }

    /// Options of PostgreSQL's storage that nothing else has.
    fn check_storage(&self, product: &str) -> Result<(), LoadError> {
        let given = [
            ("--fillfactor", self.fillfactor != 100),
            ("--tablespace", self.tablespace.is_some()),
            ("--index-tablespace", self.index_tablespace.is_some()),
            ("--unlogged-tables", self.unlogged),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((option, _)) => Err(refused(
                format!(
                    "{option} is an option of PostgreSQL's storage, {product} has no such thing"
                ),
                format!("leave out {option}"),
            )),
        }
    }

    fn check_mysql(&self) -> Result<(), LoadError> {
        self.check_storage("MySQL")?;
        if self.partitions > MYSQL_PARTITIONS_MAX {
            return Err(refused(
                format!("MySQL allows at most {MYSQL_PARTITIONS_MAX} partitions of a table"),
                "give fewer --partitions",
            ));
        }
        if self.partitions > 0 && self.effective_steps().contains(&InitStep::ForeignKeys) {
            return Err(refused(
                "MySQL has no foreign keys to or from partitioned tables",
                "leave out either --partitions or --foreign-keys (step f)",
            ));
        }
        Ok(())
    }

    fn check_sqlite(&self) -> Result<(), LoadError> {
        self.check_storage("SQLite")?;
        if self.partitions > 0 {
            return Err(refused(
                "--partitions: SQLite has no partitioned tables",
                "leave out --partitions",
            ));
        }
        if self.effective_steps().contains(&InitStep::ForeignKeys) {
            return Err(refused(
                "--foreign-keys: SQLite can't add foreign keys to a table that exists",
                "leave out --foreign-keys (step f)",
            ));
        }
        Ok(())
    }
}
