//! The composite of a power test and the throughput test that follows it at once (clause 5.4.3). The
//! database remembers the first for the second: they may be trials of different runs of dyno.

use super::options::{RunOptions, TpchTest};
use crate::facts::TpchFacts;
use crate::metrics::{qphh, qphh_formula};
use crate::refresh::RefreshPosition;
use crate::state::{fact, set_fact};
use dyno_core::{AdminDriver, AdminSession, DbError, Driver, Session};
use dyno_load::settings::adopt;

/// The name under which the database keeps the last power test.
const POWER: &str = "power";

/// A power test: its metric, its degree and its pair of refresh functions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LastPower {
    power: f64,
    degree: u32,
    pair: u32,
}

impl LastPower {
    fn parse(text: &str) -> Option<LastPower> {
        let mut words = text.split(' ');
        Some(LastPower {
            power: words.next()?.parse().ok()?,
            degree: words.next()?.parse().ok()?,
            pair: words.next()?.parse().ok()?,
        })
    }

    /// Whether a throughput test that begins at `position` is the second half of the same run.
    fn is_followed_by(self, options: &RunOptions, position: RefreshPosition) -> bool {
        matches!(options.test, TpchTest::Throughput { refresh: true, .. })
            && self.degree == options.degree
            && position == RefreshPosition::start_of(self.pair + 1)
    }
}

/// The last power test of the database, if any was whole.
pub(super) async fn last_power(
    session: &mut AdminSession<'_>,
) -> Result<Option<LastPower>, DbError> {
    Ok(fact(session, POWER).await?.as_deref().and_then(LastPower::parse))
}

/// Remembers a whole power test in the database.
pub(super) async fn remember(driver: &AdminDriver<'_>, facts: &TpchFacts) -> Result<(), DbError> {
    // Of a query that was given up only a bound is known: a composite would be none.
    let whole = facts.metrics.as_ref().filter(|metrics| metrics.penalised.is_empty());
    let power = whole.and_then(|metrics| metrics.power);
    let (Some(power), Some(refresh)) = (power, facts.refreshes.first()) else { return Ok(()) };
    let value = format!("{power} {} {}", facts.degree.asked, refresh.pair);
    let mut session = driver.connect(0).await?;
    adopt(&mut session).await?;
    let noted = set_fact(&mut session, POWER, &value).await;
    session.close().await;
    noted
}

/// Adds the composite to a throughput test that followed a power test at once.
pub(super) fn add(
    facts: &mut TpchFacts,
    options: &RunOptions,
    last: Option<LastPower>,
    position: RefreshPosition,
) {
    let Some(last) = last.filter(|last| last.is_followed_by(options, position)) else { return };
    let Some(metrics) = &mut facts.metrics else { return };
    let Some(throughput) = metrics.throughput else { return };
    metrics.qphh = Some(qphh(last.power, throughput));
    metrics.formulas.push(qphh_formula(last.power, throughput));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_throughput_test_that_follows_at_once_has_the_composite() {
        let last = LastPower::parse("100.5 2 1").unwrap();
        assert_eq!(last, LastPower { power: 100.5, degree: 2, pair: 1 });
        let options = |degree, refresh| RunOptions {
            degree,
            test: TpchTest::Throughput { streams: 2, refresh },
            ..RunOptions::default()
        };
        assert!(last.is_followed_by(&options(2, true), RefreshPosition::start_of(2)));
        assert!(
            !last.is_followed_by(&options(2, true), RefreshPosition::start_of(4)),
            "not at once"
        );
        assert!(
            !last.is_followed_by(&options(0, true), RefreshPosition::start_of(2)),
            "other degree"
        );
        assert!(
            !last.is_followed_by(&options(2, false), RefreshPosition::start_of(2)),
            "no refresh"
        );
        assert_eq!(LastPower::parse("100.5 2"), None);
    }
}
