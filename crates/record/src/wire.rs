//! The form in which what was measured travels from one load generator to another, in any format of serde:
//! exact, so that what is merged there is what one would have measured alone.

use crate::Latencies;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use dyno_core::{ErrorClass, Nanos, Tally};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer as Reader, Serializer as _, V2DeflateSerializer};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(remote = "Tally")]
pub(crate) struct TallyForm {
    reads: u64,
    writes: u64,
    others: u64,
    rows_read: u64,
    rows_written: u64,
    misses: u64,
}

pub mod error_class {
    use super::*;

    pub fn serialize<S: Serializer>(class: &ErrorClass, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(class.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ErrorClass, D::Error> {
        let name = String::deserialize(from)?;
        let class = ErrorClass::ALL.into_iter().find(|class| class.name() == name);
        class.ok_or_else(|| D::Error::custom(format!("there is no class of errors `{name}`")))
    }
}

#[derive(Serialize, Deserialize)]
struct LatenciesForm {
    /// HdrHistogram's own compressed form in base64; empty where nothing was recorded.
    cells: String,
    /// The upper and the lower half of the sum: not all formats have numbers of 128 bits.
    sum: [u64; 2],
    min: Nanos,
    max: Nanos,
}

impl Serialize for Latencies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        if self.count() > 0 {
            V2DeflateSerializer::new().serialize(self.histogram(), &mut bytes).map_err(
                |error| S::Error::custom(format!("a histogram can't be packed: {error}")),
            )?;
        }
        let (min, max) = self.bounds();
        let sum = [(self.sum() >> 64) as u64, self.sum() as u64];
        let cells = BASE64_STANDARD_NO_PAD.encode(bytes);
        LatenciesForm { cells, sum, min, max }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Latencies {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let form = LatenciesForm::deserialize(from)?;
        let sum = u128::from(form.sum[0]) << 64 | u128::from(form.sum[1]);
        let histogram = unpack(&form.cells).map_err(D::Error::custom)?;
        Ok(Latencies::from_parts(histogram, sum, (form.min, form.max)))
    }
}

fn unpack(cells: &str) -> Result<Histogram<u64>, String> {
    let mut histogram = Latencies::new().histogram().clone();
    if cells.is_empty() {
        return Ok(histogram);
    }
    let wrong = |what: &dyn std::fmt::Display| format!("a histogram can't be unpacked: {what}");
    let bytes = BASE64_STANDARD_NO_PAD.decode(cells).map_err(|error| wrong(&error))?;
    let packed: Histogram<u64> =
        Reader::new().deserialize(&mut bytes.as_slice()).map_err(|error| wrong(&error))?;
    // Of the same bounds, whatever was sent: later additions can't fail.
    histogram.add(&packed).map_err(|error| wrong(&error))?;
    Ok(histogram)
}
