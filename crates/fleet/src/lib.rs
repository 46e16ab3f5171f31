//! Several load generators over NATS: they split the work of one trial and start together; their measurements are
//! merged exactly.
//!
//! [`Fleet`] is the coordinator's side, [`Generator`] that of a load generator. Neither prints or knows workloads: the
//! coordinator takes a plan and returns a result, a load generator hands out orders and takes their results.
//!
//! A trial: the coordinator has each load generator connect; when all are ready, each gets its own moment
//! monotonic clock to begin at. Intervals are joined as they come ([`dyno_engine::Joined`]). A load generator that
//! is silent for 10 s is given up; one that no one asks for 20 s is free again. All messages are sealed with the
//! fleet's key ([`FleetKey`]).

mod clock;
mod drive;
mod fleet;
mod generator;
mod nats;
mod protocol;
mod trial;

dyno_facts::catalog!();

pub use clock::ClockOffset;
#[doc(hidden)]
pub use clock::probe;
pub use drive::{Performance, Task};
pub use dyno_core::Error as FleetError;
pub use fleet::{Fleet, FleetOptions, PATIENCE, Present, WAIT, present};
pub use generator::{Assignment, Generator, GeneratorEvent, LEASE, Reporter};
pub use nats::{FleetKey, NatsOptions, NatsSecret};
pub use protocol::{FLEET, GeneratorOrder, Hello, TargetSecret, Versions, check_name};

pub(crate) type FleetResult<T> = Result<T, FleetError>;
