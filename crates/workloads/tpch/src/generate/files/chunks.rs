//! Pieces of a table that threads make apart.

use crate::generate::row_count;
use crate::schema::SchemaTable;

/// A chunk's size: far more work than what a generator costs to begin, and it stays in the cache.
const CHUNK_BYTES: u64 = 512 << 10;

/// The mean length of a table's line in bytes, at scale factor 1.
pub(super) fn row_bytes(table: SchemaTable) -> u64 {
    match table {
        SchemaTable::Region => 78,
        SchemaTable::Nation => 89,
        SchemaTable::Supplier => 141,
        SchemaTable::Part => 121,
        SchemaTable::Partsupp => 149,
        SchemaTable::Customer => 163,
        SchemaTable::Orders => 115,
        SchemaTable::Lineitem => 127,
    }
}

/// Into how many chunks each of `parts` parts of a table goes.
///
/// A part is `rows / parts` rows, the last one more; so chunks of a part are parts of the table only if
/// their number divides the rows of the part. A prime number of rows makes one chunk: slower with
/// several threads, but right.
pub(super) fn chunks_of_part(table: SchemaTable, scale: f64, parts: u32) -> u32 {
    // Lines are made by orders, partsupp by parts.
    let (maker, rows_each) = match table {
        SchemaTable::Region | SchemaTable::Nation => return 1,
        SchemaTable::Partsupp => (SchemaTable::Part, 4),
        SchemaTable::Lineitem => (SchemaTable::Orders, 4),
        other => (other, 1),
    };
    let unit_bytes = rows_each * row_bytes(table);
    let part_units = row_count(maker, scale) / u64::from(parts.max(1));
    // The number of a chunk in the whole table is an i32 in tpchgen.
    let chunks_max = (i32::MAX as u64 / u64::from(parts.max(1))).max(1);
    let wanted = (part_units * unit_bytes / CHUNK_BYTES).clamp(1, chunks_max);
    let fits = |chunks: &u64| parts == 1 || part_units.is_multiple_of(*chunks);
    (1..=wanted).rev().find(fits).unwrap_or(1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::part_row_count;

    #[test]
    fn chunks_of_a_part_have_its_rows() {
        for (scale, parts) in [(1.0, 1), (0.7, 1), (1.0, 4), (1.0, 7), (3.333, 3), (10.0, 16)] {
            for table in [
                SchemaTable::Orders,
                SchemaTable::Part,
                SchemaTable::Customer,
                SchemaTable::Supplier,
            ] {
                let chunks = chunks_of_part(table, scale, parts);
                for part in 1..=parts {
                    let first = (part - 1) * chunks + 1;
                    let rows = (first..first + chunks)
                        .map(|chunk| part_row_count(table, scale, chunk, parts * chunks));
                    assert_eq!(
                        rows.sum::<u64>(),
                        part_row_count(table, scale, part, parts),
                        "{table:?} {scale} {part}/{parts}"
                    );
                }
            }
        }
    }

    #[test]
    fn large_tables_make_many_chunks() {
        assert_eq!(chunks_of_part(SchemaTable::Lineitem, 1.0, 1), 1453);
        assert!(chunks_of_part(SchemaTable::Lineitem, 1.0, 4) > 100);
        assert!(chunks_of_part(SchemaTable::Lineitem, 100_000.0, 1000) > 1000);
        // Seven doesn't divide the orders; what each part has is still divided.
        assert!(chunks_of_part(SchemaTable::Orders, 1.0, 7) > 1);
    }
}
