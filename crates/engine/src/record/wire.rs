//! The form in which what was measured travels from one load generator to another, in any format of serde:
//! exact, so that what is merged there is what one would have measured alone.

use super::Latencies;
use super::histogram::empty_histogram;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use dyno_core::{ErrorClass, Nanos, Tally};
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer as Reader, Serializer as _, V2DeflateSerializer};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::io::Read;

/// The first word of deflated cells.
const DEFLATED: u32 = 0x1c84_9314;
/// Many times what the cells of [`Latencies`] take.
const CELLS_BYTES_MAX: u32 = 4 << 20;

#[derive(Serialize, Deserialize)]
#[serde(remote = "Tally")]
pub(crate) struct TallyForm {
    #[serde(deserialize_with = "own_count")]
    reads: u64,
    #[serde(deserialize_with = "own_count")]
    writes: u64,
    #[serde(deserialize_with = "own_count")]
    others: u64,
    rows_read: u64,
    rows_written: u64,
    #[serde(deserialize_with = "own_count")]
    misses: u64,
    is_open: bool,
}

/// A count of what a load generator has done: few enough that sums of all packets of a run fit.
fn own_count<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let count = u64::deserialize(from)?;
    match count < 1 << 53 {
        true => Ok(count),
        false => {
            Err(D::Error::custom(format!("no load generator has executed {count} statements")))
        }
    }
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
            V2DeflateSerializer::new().serialize(&self.to_histogram(), &mut bytes).map_err(
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
        Ok(Latencies::from_parts(&histogram, sum, (form.min, form.max)))
    }
}

fn unpack(cells: &str) -> Result<Histogram<u64>, String> {
    if cells.is_empty() {
        return Ok(empty_histogram());
    }
    let bytes = BASE64_STANDARD_NO_PAD.decode(cells).map_err(|error| error.to_string());
    let histogram = bytes.and_then(|bytes| read_cells(&bytes));
    histogram.map_err(|error| format!("a histogram can't be unpacked: {error}"))
}

/// Reads a histogram that hdrhistogram has packed (V2, deflated), into one with the bounds of [`Latencies`]: later
/// additions can't fail.
pub fn read_cells(bytes: &[u8]) -> Result<Histogram<u64>, String> {
    // The reader takes as much memory as the cells claim to need, before it looks at them.
    match claimed_bytes(bytes) {
        Some(claimed) if claimed <= CELLS_BYTES_MAX => {}
        _ => return Err("its length can't be that of a histogram".to_owned()),
    }
    let read: Histogram<u64> =
        Reader::new().deserialize(&mut &*bytes).map_err(|error| error.to_string())?;
    let mut histogram = empty_histogram();
    histogram.add(&read).map_err(|error| error.to_string())?;
    Ok(histogram)
}

fn claimed_bytes(bytes: &[u8]) -> Option<u32> {
    let (cookie, rest) = bytes.split_first_chunk::<4>()?;
    let mut head = [0; 8];
    match u32::from_be_bytes(*cookie) {
        DEFLATED => ZlibDecoder::new(rest.get(4..)?).read_exact(&mut head).ok()?,
        _ => head = *bytes.first_chunk()?,
    }
    let [_, _, _, _, length @ ..] = head;
    Some(u32::from_be_bytes(length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::value::{Error, U64Deserializer};

    #[test]
    fn counts_of_a_packet_leave_room_for_their_sums() {
        let read = |count: u64| own_count(U64Deserializer::<Error>::new(count));
        assert_eq!(read((1 << 53) - 1), Ok((1 << 53) - 1));
        assert!(read(1 << 53).is_err() && read(u64::MAX).is_err());
    }

    #[test]
    fn cells_that_claim_gigabytes_are_refused_unread() {
        let mut plain = Vec::new();
        hdrhistogram::serialization::V2Serializer::new()
            .serialize(&empty_histogram(), &mut plain)
            .expect("memory");
        assert_eq!(read_cells(&plain).map(|read| read.len()), Ok(0));
        plain[4..8].copy_from_slice(&0xffff_0006_u32.to_be_bytes());
        let mut deflated = Vec::new();
        let mut packer =
            flate2::write::ZlibEncoder::new(&mut deflated, flate2::Compression::fast());
        std::io::Write::write_all(&mut packer, &plain).expect("memory");
        packer.finish().expect("memory");
        let length = (deflated.len() as u32).to_be_bytes();
        let deflated = [&DEFLATED.to_be_bytes()[..], &length, &deflated].concat();
        for cells in [plain, deflated, vec![0x1c]] {
            assert!(read_cells(&cells).is_err_and(|error| error.contains("its length")));
        }
    }
}
