//! What papers say of TPC-H.

use crate::support::{elements, golden};
use crate::synthetic::tpch::{published, tpch};
use dyno_report::Paper;

#[test]
fn html_is_well_formed_and_has_the_charts() {
    let paper = Paper::new(&[tpch()], &published());
    let html = paper.html().expect("rendered");
    if let Some(folder) = std::env::var_os("DYNO_PAPERS") {
        std::fs::write(std::path::Path::new(&folder).join("tpch.html"), &html).expect("written");
    }
    let elements = elements(&html);
    let count = |name: &str| elements.iter().filter(|element| *element == name).count();
    assert_eq!(count("table"), count("caption"), "every table says what it shows");
    golden("tpch.md", &paper.markdown().expect("rendered"));
}
