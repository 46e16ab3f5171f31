//! Rows and parameters between dyno and DuckDB.

use crate::queue::{binding_types, calls_of_row};
use duckdb::types::{TimeUnit, ToSqlOutput, Value, ValueRef};
use dyno_core::{AnswerRow, ColumnNames, Param};

binding_types!(duckdb, pub(super) struct DuckdbRow, BigInt, Double);

impl AnswerRow for DuckdbRow<'_, '_> {
    calls_of_row!();

    fn int(&self, column: usize) -> Option<i64> {
        match self.value(column) {
            ValueRef::Text(text) => Self::parsed(text),
            value => whole(&value)?.try_into().ok(),
        }
    }

    fn double(&self, column: usize) -> Option<f64> {
        match self.value(column) {
            ValueRef::Float(value) => Some(f64::from(value)),
            ValueRef::Double(value) => Some(value),
            ValueRef::Decimal(value) => value.to_string().parse().ok(),
            ValueRef::Text(text) => Self::parsed(text),
            value => whole(&value).map(|value| value as f64),
        }
    }

    fn string(&self, column: usize) -> Option<String> {
        Some(match self.value(column) {
            ValueRef::Null => return None,
            ValueRef::Boolean(value) => value.to_string(),
            ValueRef::Float(value) => format!("{value:?}"),
            ValueRef::Double(value) => format!("{value:?}"),
            ValueRef::Decimal(value) => value.to_string(),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                String::from_utf8_lossy(bytes).into_owned()
            }
            ValueRef::Date32(days) => date(i64::from(days)),
            ValueRef::Timestamp(unit, value) => timestamp(unit, value),
            value => match whole(&value) {
                Some(value) => value.to_string(),
                // Lists, structures and the like.
                None => format!("{:?}", value.to_owned()),
            },
        })
    }
}

fn whole(value: &ValueRef<'_>) -> Option<i128> {
    match *value {
        ValueRef::TinyInt(value) => Some(i128::from(value)),
        ValueRef::SmallInt(value) => Some(i128::from(value)),
        ValueRef::Int(value) => Some(i128::from(value)),
        ValueRef::BigInt(value) => Some(i128::from(value)),
        ValueRef::HugeInt(value) => Some(value),
        ValueRef::UTinyInt(value) => Some(i128::from(value)),
        ValueRef::USmallInt(value) => Some(i128::from(value)),
        ValueRef::UInt(value) => Some(i128::from(value)),
        ValueRef::UBigInt(value) => Some(i128::from(value)),
        _ => None,
    }
}

/// A day of the Gregorian calendar, counted from 1970-01-01.
fn date(days: i64) -> String {
    // Years that begin in March have their leap day at the end; all eras of 400 years are alike.
    const ERA_DAYS: i64 = 146_097;
    let from_march_0000 = days + 719_468;
    let (era, day) = (from_march_0000.div_euclid(ERA_DAYS), from_march_0000.rem_euclid(ERA_DAYS));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = (era * 400 + year, month + 3);
    let (year, month) = if month > 12 { (year + 1, month - 12) } else { (year, month) };
    format!("{year:04}-{month:02}-{day:02}")
}

fn timestamp(unit: TimeUnit, value: i64) -> String {
    let micros = unit.to_micros(value);
    let (second, micro) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let (day, second) = (second.div_euclid(86_400), second.rem_euclid(86_400));
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let text = format!("{} {hour:02}:{minute:02}:{second:02}", date(day));
    if micro == 0 { text } else { format!("{text}.{micro:06}") }
}
