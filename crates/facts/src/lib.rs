//! What run folders hold, and what papers say: plain records without I/O.

mod message;

pub use message::{Arg, Bilingual, Catalogue, Entry, Lang, Message, register};
