//! Floating-point numbers in the form of PostgreSQL 12 and newer (`extra_float_digits` 1): shortest digits that read
//! back, with an exponent below 1e-4 and from 1e+15 (float8) or 1e+06 (float4) on.

pub(super) fn float8_text(value: f64) -> String {
    special(value).map_or_else(|| place(&format!("{value:e}"), 15), String::from)
}

pub(super) fn float4_text(value: f32) -> String {
    special(value.into()).map_or_else(|| place(&format!("{value:e}"), 6), String::from)
}

fn special(value: f64) -> Option<&'static str> {
    match value {
        _ if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}

/// Rewrites `-d.ddde-x`, the form of `{:e}`, which has the shortest digits.
fn place(scientific: &str, exponent_from: i32) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= exponent_from {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let (sign, mantissa) =
        mantissa.strip_prefix('-').map_or(("", mantissa), |mantissa| ("-", mantissa));
    let digits = mantissa.replace('.', "");
    match usize::try_from(exponent) {
        Ok(whole) if digits.len() > whole + 1 => {
            format!("{sign}{}.{}", &digits[..=whole], &digits[whole + 1..])
        }
        Ok(whole) => format!("{sign}{digits:0<width$}", width = whole + 1),
        Err(_) => format!(
            "{sign}0.{digits:0>width$}",
            width = digits.len() - 1 + exponent.unsigned_abs() as usize
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_postgresql_does() {
        // Right-hand sides from `select x::float8` on PostgreSQL 15.
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-12.5, "-12.5"),
            (0.0001, "0.0001"),
            (0.00012, "0.00012"),
            (0.00001, "1e-05"),
            (123_456_789.0, "123456789"),
            (100_000_000_000_000.0, "100000000000000"),
            (1e15, "1e+15"),
            (-1.5e300, "-1.5e+300"),
            (0.1 + 0.2, "0.30000000000000004"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(float8_text(value), text);
        }
        for (value, text) in
            [(0.1, "0.1"), (100_000.0, "100000"), (1e6, "1e+06"), (1.5e-7, "1.5e-07")]
        {
            assert_eq!(float4_text(value), text);
        }
    }
}
