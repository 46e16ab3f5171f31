//! Several load generators over NATS: the work of one trial is split over them, they start together, and
//! what they measured is merged exactly.
