//! Published figures beside measured ones.

pub(crate) mod comparison;
pub(crate) mod published;
