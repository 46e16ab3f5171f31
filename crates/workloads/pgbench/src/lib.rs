//! The pgbench family: its scripts, its random numbers, its tables.
//!
//! - [`random`]: the random functions, equal bit for bit to pgbench 15 to 18.
//! - [`script`]: the script language: text to commands.
//! - [`run`]: one transaction of a script on a session.
//! - [`log`]: the lines of transaction logs.
//! - `init`: tables and rows.
//! - [`check`]: balances before and after a run; whether each row of the history that was acknowledged is there.
//! - [`options`]: those of suites, statements of one's own, and how much of the data they make hot.

pub mod check;
mod family;
pub mod init;
pub mod log;
pub mod options;
pub mod random;
pub mod run;
pub mod script;

dyno_facts::catalog!();

pub use family::{DRIVE_ON, FAMILY, PAPER};
