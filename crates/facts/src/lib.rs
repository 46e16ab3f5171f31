//! Every record of a run folder, declared once: who writes, reads, merges or prints it borrows it from here.
//!
//! Only data and what follows from them, as in [`statistics`]: nothing is read, written or asked.

mod conditions;
mod experiment;
pub mod format;
mod header;
mod message;
mod metric;
mod secret;
pub mod statistics;
mod target;
mod texts;
mod trial;

pub use conditions::*;
pub use experiment::*;
pub use format::text_table;
pub use header::*;
pub use message::{Arg, Bilingual, Catalog, CheckTexts, Lang, Message, MessageTexts, register};
pub use metric::{Better, LatencyUs, Measures, Metric};
pub use secret::{
    SecretCommand, SecretUrl, has_secret, is_masked, mask_line, mask_script, mask_secrets,
    password_variable,
};
pub use target::*;
pub use texts::*;
pub use trial::*;
