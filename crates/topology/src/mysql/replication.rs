//! Replication of MariaDB and MySQL by global transaction identifiers.

use crate::admin::{Admin, Answer, REPLICATION};
use crate::{NodeProduct, Result, StateNode};

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stream {
    pub(crate) is_running: bool,
    pub(crate) error: Option<String>,
    /// Seconds behind the primary, by the node's own account.
    pub(crate) lag_s: Option<f64>,
}

fn replica(product: NodeProduct) -> &'static str {
    if product == NodeProduct::Mariadb { "slave" } else { "replica" }
}

fn source(product: NodeProduct) -> &'static str {
    if product == NodeProduct::Mariadb { "master" } else { "source" }
}

/// Has a node follow `source` from what it has.
pub(crate) fn follow(
    admin: &Admin,
    product: NodeProduct,
    source: &StateNode,
    password: &str,
) -> Result<()> {
    let (host, port, user, replica) = (&source.host, source.port, REPLICATION, replica(product));
    let change = match product {
        NodeProduct::Mariadb => format!(
            "CHANGE MASTER TO MASTER_HOST='{host}', MASTER_PORT={port}, MASTER_USER='{user}', \
       MASTER_PASSWORD='{password}', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1"
        ),
        _ => format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='{host}', SOURCE_PORT={port}, SOURCE_USER='{user}', \
       SOURCE_PASSWORD='{password}', SOURCE_AUTO_POSITION=1, SOURCE_SSL=1, SOURCE_CONNECT_RETRY=1"
        ),
    };
    let (stop, start) = (format!("STOP {replica}"), format!("START {replica}"));
    admin.ask_all(&[&stop, &change, &start]).map(drop)
}

/// The state of a node's replication; `None` where it has none.
pub(crate) fn stream(admin: &Admin, product: NodeProduct) -> Result<Option<Stream>> {
    let answer = admin.ask(&show(product))?;
    Ok((!answer.is_empty()).then(|| read(&answer)))
}

fn show(product: NodeProduct) -> String {
    format!("SHOW {} STATUS", replica(product))
}

fn read(answer: &Answer) -> Stream {
    let is_yes = |names: &[&str]| answer.named(names).eq_ignore_ascii_case("yes");
    let receives = is_yes(&["Slave_IO_Running", "Replica_IO_Running"]);
    let applies = is_yes(&["Slave_SQL_Running", "Replica_SQL_Running"]);
    let errors = [answer.named(&["Last_IO_Error"]), answer.named(&["Last_SQL_Error"])];
    let error = errors.into_iter().find(|error| !error.is_empty()).map(str::to_owned);
    let lag_s = answer.named(&["Seconds_Behind_Master", "Seconds_Behind_Source"]).parse().ok();
    Stream { is_running: receives && applies, error, lag_s }
}

/// What a node has executed, in the form of its product.
pub(crate) fn position(admin: &Admin, product: NodeProduct) -> Result<String> {
    let sql = if product == NodeProduct::Mariadb {
        // `gtid_current_pos` leaves out what another server wrote before this one's data were copied.
        "SELECT IF(@@GLOBAL.gtid_binlog_pos='', @@GLOBAL.gtid_current_pos, @@GLOBAL.gtid_binlog_pos)"
    } else {
        "SELECT @@GLOBAL.gtid_executed"
    };
    Ok(admin.ask(sql)?.single().replace(char::is_whitespace, ""))
}

/// Waits until a node has executed up to `position`; false when that took longer than `limit_s`.
pub(crate) fn wait_for(
    admin: &Admin,
    product: NodeProduct,
    position: &str,
    limit_s: u32,
) -> Result<bool> {
    let sql = if product == NodeProduct::Mariadb {
        format!("SELECT MASTER_GTID_WAIT('{position}', {limit_s})")
    } else {
        format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{position}', {limit_s})")
    };
    Ok(admin.ask(&sql)?.single() == "0")
}

/// Has the primary wait for its read-only nodes from now on, or not any more.
pub(crate) fn wait_for_replicas(admin: &Admin, product: NodeProduct, waits: bool) -> Result<()> {
    let word = source(product);
    let value = if waits { "ON" } else { "OFF" };
    admin.ask(&format!("SET GLOBAL rpl_semi_sync_{word}_enabled={value}")).map(drop)
}

/// How many read-only nodes acknowledge to this primary.
pub(crate) fn acknowledging(admin: &Admin, product: NodeProduct) -> Result<usize> {
    let word = source(product);
    let answer = admin.ask(&format!("SHOW STATUS LIKE 'Rpl_semi_sync_{word}_clients'"))?;
    Ok(answer.named(&["Value"]).parse().unwrap_or(0))
}

pub(crate) fn set_read_only(product: NodeProduct, is_read_only: bool) -> &'static str {
    match (product, is_read_only) {
        (NodeProduct::Mariadb, true) => "SET GLOBAL read_only=ON",
        (NodeProduct::Mariadb, false) => "SET GLOBAL read_only=OFF",
        (_, true) => "SET GLOBAL super_read_only=ON",
        // This leaves super_read_only, too.
        (_, false) => "SET GLOBAL read_only=OFF",
    }
}

/// Ends receiving; what was received goes on being applied.
pub(crate) fn stop_receiving(admin: &Admin, product: NodeProduct) -> Result<()> {
    admin.ask(&format!("STOP {} IO_THREAD", replica(product))).map(drop)
}

/// What a node has received, applied or not.
pub(crate) fn received(admin: &Admin, product: NodeProduct) -> Result<String> {
    let answer = admin.ask(&show(product))?;
    Ok(answer.named(&["Gtid_IO_Pos", "Retrieved_Gtid_Set"]).replace(char::is_whitespace, ""))
}

/// Ends replication and forgets whom the node followed.
pub(crate) fn follow_nobody(admin: &Admin, product: NodeProduct) -> Result<()> {
    let word = replica(product);
    admin.ask_all(&[&format!("STOP {word}"), &format!("RESET {word} ALL")]).map(drop)
}

/// Has a node acknowledge what it receives, from its next connection to the primary on.
pub(crate) fn acknowledge(admin: &Admin, product: NodeProduct, acknowledges: bool) -> Result<()> {
    let word = replica(product);
    let value = if acknowledges { "ON" } else { "OFF" };
    admin.ask(&format!("SET GLOBAL rpl_semi_sync_{word}_enabled={value}")).map(drop)
}

/// True when a node has executed everything in `position`.
pub(crate) fn has(admin: &Admin, product: NodeProduct, position: &str) -> Result<bool> {
    let own = self::position(admin, product)?;
    if product == NodeProduct::Mariadb {
        return Ok(includes(&own, position));
    }
    let sql = format!("SELECT GTID_SUBSET('{position}', @@GLOBAL.gtid_executed)");
    Ok(admin.ask(&sql)?.single() == "1")
}

/// True when a node has transactions that the primary lacks: written as the primary, received by no other node.
pub(crate) fn has_diverged(admin: &Admin, primary: &Admin, product: NodeProduct) -> Result<bool> {
    if product == NodeProduct::Mariadb {
        let sql = "SELECT @@GLOBAL.gtid_binlog_state";
        let (own, its) = (admin.ask(sql)?, primary.ask(sql)?);
        return Ok(!includes_state(its.single(), own.single()));
    }
    let own = position(admin, product)?;
    Ok(!has(primary, product, &own)?)
}

/// Lets replication go on after the last transaction that the node has, by any server.
pub(crate) fn begin_from_own(admin: &Admin, product: NodeProduct) -> Result<()> {
    follow_nobody(admin, product)?;
    if product == NodeProduct::Mariadb {
        let own = position(admin, product)?;
        admin.ask(&format!("SET GLOBAL gtid_slave_pos='{own}'"))?;
    }
    Ok(())
}

/// Domain, server and number of each of MariaDB's identifiers.
fn identifiers(text: &str) -> impl Iterator<Item = (u64, u64, u64)> {
    text.split(',').filter_map(|part| {
        let mut numbers = part.trim().split('-').map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?))
    })
}

/// True when position `a` isn't before `b` in any domain: numbers grow from server to server.
fn includes(a: &str, b: &str) -> bool {
    identifiers(b).all(|(domain, _, number)| {
        identifiers(a).any(|(other, _, reached)| other == domain && reached >= number)
    })
}

/// True when binary log `a` has the last transaction of each server in `b`.
fn includes_state(a: &str, b: &str) -> bool {
    identifiers(b).all(|(domain, server, number)| {
        identifiers(a)
            .any(|(other, by, reached)| (other, by) == (domain, server) && reached >= number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_compared_by_domain() {
        assert!(includes("1-2-700", "1-1-500"));
        assert!(!includes("1-1-499", "1-1-500"));
        assert!(!includes("", "1-1-1"));
        assert!(includes("1-1-1", ""));
    }

    #[test]
    fn a_transaction_that_only_one_server_has_is_seen() {
        assert!(includes_state("1-1-498,1-2-700", "1-1-498"));
        assert!(!includes_state("1-1-498,1-2-700", "1-1-500"));
        assert!(!includes_state("1-2-700", "1-1-500"));
    }
}
