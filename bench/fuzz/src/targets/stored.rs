//! Files of run folders.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dyno_engine::record::Latencies;
use dyno_facts::{RunHeader, TrialStart, TrialSummary};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write;

/// The cookie of a compressed histogram of HdrHistogram, version 2.
const COMPRESSED: u32 = 0x1c84_9314;

/// The input is the payload of a histogram before its compression, so that damage gets past it; then, unchanged, a log
/// of intervals and the form in which load generators send histograms.
pub(super) fn histograms(input: &[u8]) {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    let packed = packed.write_all(input).and_then(|()| packed.finish()).expect("memory");
    let mut cells = COMPRESSED.to_be_bytes().to_vec();
    cells.extend((packed.len() as u32).to_be_bytes());
    cells.extend(&packed);
    let cells = STANDARD.encode(cells);
    read_log(&format!("Tag=one,0.000,1.000,0.0,{cells}\n"));
    let form = serde_json::json!({ "cells": cells.trim_end_matches('='), "sum": [0, 1], "min": 1, "max": 1 });
    read_form(&form.to_string());
    let text = String::from_utf8_lossy(input);
    read_log(&text);
    read_form(&text);
}

fn read_log(text: &str) {
    let (by_kind, damaged) = dyno_store::read_histograms(text);
    assert!(damaged <= text.lines().count());
    by_kind.values().for_each(use_up);
}

fn read_form(text: &str) {
    if let Ok(latencies) = serde_json::from_str::<Latencies>(text) {
        let mut twice = latencies.clone();
        twice.add(&latencies);
        use_up(&latencies);
        let again = serde_json::to_string(&latencies).expect("what was read can be written");
        let again: Latencies = serde_json::from_str(&again).expect("what was written is read");
        assert_eq!(again.count(), latencies.count());
    }
}

fn use_up(latencies: &Latencies) {
    let _ = (latencies.mean(), latencies.percentile(99.9), latencies.count());
}

/// The input is each of the text files of a run folder.
pub(super) fn run_folder(input: &[u8]) {
    let text = &String::from_utf8_lossy(input);
    let (rows, damaged) = dyno_store::read_series(text);
    assert!(rows.len() + damaged.len() <= text.lines().count());
    let (rows, damaged) = dyno_store::read_nodes(text);
    assert!(rows.len() + damaged.len() <= text.lines().count());
    for line in text.lines() {
        let _ = serde_json::from_str::<dyno_facts::Event>(line)
            .map(|event| event.text.to_string().len());
    }
    if let Ok(summary) = serde_json::from_slice::<TrialSummary>(input) {
        let _ = (summary.data_qps(), summary.figures());
        serde_json::to_string(&summary).expect("what was read can be written");
    }
    let _ = serde_json::from_slice::<TrialStart>(input);
    if let Ok(header) = serde_json::from_slice::<RunHeader>(input) {
        serde_json::to_string(&header).expect("what was read can be written");
    }
}
