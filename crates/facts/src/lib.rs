//! What run folders hold, and what papers say: plain records without I/O.

mod message;

pub use message::{Arg, Catalogue, Entry, Lang, Message, register};
