//! What was found in the evidence: checks, verdicts, published figures.

pub(crate) mod checks;
pub(crate) mod comparison;
pub(crate) mod published;
pub(crate) mod verdict;
