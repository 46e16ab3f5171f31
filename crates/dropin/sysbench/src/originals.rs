//! sysbench's own scripts, recognised by their content: their tests are built in, other scripts are not executed.

use sha2::{Digest, Sha256};
use std::path::Path;

/// What the `oltp_*` scripts load.
pub(super) const COMMON: &str = "oltp_common";

/// The scripts of sysbench 1.0.20 and their digests.
const ORIGINALS: [(&str, &str); 12] = [
    ("bulk_insert", "ea91c80c7a1fed53e8a41cb4a60570e2f2db4bf0f0653404782687ed802e160b"),
    (COMMON, "1a0e8049af545d0c9bdd15ee179620e77e9638e53d41c4dfd72b5673ecd32320"),
    ("oltp_delete", "7eb5fb3c27f5d8b999d0f871636396bcdac261f5193fbf47de9d01cf9c61ac97"),
    ("oltp_insert", "8dc8149db17085398cc739e13b90b0c47ca02c6ba48a3f09c6a361cf4fea44ca"),
    ("oltp_point_select", "958e81b38687a71c718691f114975444ed302a2241011adf4bea784efb85cbe7"),
    ("oltp_read_only", "c1fc53b45c97ff71993b1d0a757a1a4e6697bdad94ae52b32af0f036dd9f546d"),
    ("oltp_read_write", "8da2b4d8c9b18a1525c2cfa278f57281cf1b51e33dde0f541aa5357a9c283ef3"),
    ("oltp_update_index", "456095583dd8171d5b71606a11b45612d3dde9103b6261fdfb8eab86dd6870bb"),
    ("oltp_update_non_index", "43420a4cb8f078069d7854bb24b9d1393a9e77a8d6defe5e6e4520d48b85ee6c"),
    ("oltp_write_only", "cb25097a8e4efce1aa402cdd8f91955bfc435420701dacf9b27e63dfc9dd9a01"),
    ("select_random_points", "648c30eb6857aeb3dd09fb18c67c3215b981809366eb660be91e8343c2fc57f6"),
    ("select_random_ranges", "bde33f164d0d5c17dabc4b9da39961e3ed4ce7d6f552109b69d9c774c1646d86"),
];

/// The name of the original script with the content of this file, whatever the file is called.
pub(super) fn original_name(file: &Path) -> Option<&'static str> {
    let digest = digest(&std::fs::read_to_string(file).ok()?);
    ORIGINALS.iter().find(|(_, known)| *known == digest).map(|(name, _)| *name)
}

/// SHA-256 of what is executed. Packages differ in the first line (`#!`), copies in blanks and line ends.
fn digest(script: &str) -> String {
    let mut hash = Sha256::new();
    for (index, line) in script.lines().enumerate() {
        let line = line.trim();
        // Brackets may begin or end a comment of several lines.
        let is_comment = line.starts_with("--") && !line.contains(['[', ']']);
        if !(line.is_empty() || is_comment || index == 0 && line.starts_with("#!")) {
            hash.update(line);
            hash.update("\n");
        }
    }
    dyno_core::hex(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_depend_on_what_is_executed() {
        let script =
            "#!/usr/bin/sysbench\n-- Deletes.\nfunction event()\n   con:query(\"x\")\nend\n";
        let copy = "#!/usr/bin/env sysbench\r\n\r\nfunction event()  \r\n\tcon:query(\"x\")\r\nend";
        assert_eq!(digest(script), digest(copy));
        for edited in [
            script.replace('x', "y"),
            script.replace("function", "--[[\nfunction"),
            script.replace("   con", "-- con"),
            format!("{script}done()\n"),
        ] {
            assert_ne!(digest(script), digest(&edited), "{edited}");
        }
    }
}
