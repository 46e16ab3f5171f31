//! Errors of a fleet.

pub use dyno_core::HintedError as FleetError;

pub(crate) type FleetResult<T> = Result<T, FleetError>;
