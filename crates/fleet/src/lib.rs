//! Several load generators over NATS: the work of one trial is split over them, they start together, and
//! what they measured is merged exactly.
//!
//! [`Fleet`] is the coordinator's side, [`Generator`] that of a load generator. Neither prints, and neither knows
//! workloads: the coordinator is given a plan and gives back a result, a load generator gives out orders and is told
//! what became of them.
//!
//! A trial: the coordinator asks each load generator to connect; when all are ready, they are told a moment
//! of their own monotonic clocks to begin at. Intervals are joined as they come ([`dyno_engine::Joined`]).
//! A load generator that gives no sign of life for 10 s is given up; one that nobody asks for 20 s is free
//! again.

mod call;
mod clock;
mod drive;
mod error;
mod fleet;
mod flow;
mod generator;
mod nats;
mod packet;
mod protocol;
mod trial;

dyno_facts::catalogue!();

pub use clock::ClockOffset;
pub use drive::{Done, Performance, Task};
pub use error::FleetError;
pub use fleet::{Fleet, FleetOptions, PATIENCE};
pub use generator::{Assignment, Event, Generator, LEASE, Reporter};
pub use nats::{NatsOptions, NatsSecret};
pub use protocol::{FLEET, Hello, Order, TargetSecret, Versions, check_name};
