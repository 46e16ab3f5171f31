//! Clusters of real servers, and fleets of load generators.

mod direct_load;
mod endpoints;
mod fault;
mod fleet;
mod loads;
mod mine;
mod nats;
mod pair;
mod restarts;
mod routes;
mod shards;
mod topology;
mod verbs;
