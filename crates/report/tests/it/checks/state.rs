//! E: state.

use super::quiet::{BASELINE, CANDIDATE, one, quiet};
use super::{AS_IT_IS, Case, candidate, check, generator, nodes, trials};
use dyno_report::{Lang, Paper};
use dyno_store::RunData;

const GIB: u64 = 1 << 30;

/// Sets the size of the data of all trials.
fn data(runs: &mut [RunData], size_bytes: u64) {
    trials(runs, |trial| {
        trial.data.as_mut().expect("data").size_bytes = Some(size_bytes);
    });
}

/// A load level below the first, run again so that the maximum is not a chance.
fn sweep(runs: &mut [RunData], cpu_share: f64) {
    for (number, target) in [(13, BASELINE), (14, CANDIDATE)] {
        runs[0].trials.push(one(number, target, 1, 4));
    }
    trials(runs, |trial| {
        let is_top = trial.workers == 16;
        for node in trial.conditions.nodes.values_mut() {
            node.cpu_share = Some(if is_top { cpu_share } else { 0.3 });
        }
    });
}

pub(super) const CASES: &[Case] = &[
    Case {
        id: "memory-class",
        evidence: "new: 0.5 times innodb_buffer_pool_size",
        fires: |runs| {
            candidate(runs, |trial| {
                trial.data.as_mut().expect("data").memory_bytes = Some(32 * GIB);
            });
        },
        silent: |runs| {
            candidate(runs, |trial| {
                trial.data.as_mut().expect("data").memory_bytes = Some(16 * GIB);
            });
        },
    },
    Case {
        id: "data-at-edge",
        evidence: "old: 1.1 times innodb_buffer_pool_size",
        fires: |runs| data(runs, 9 * GIB),
        silent: |runs| data(runs, 10 * GIB),
    },
    Case {
        id: "data-in-memory",
        evidence: "old: 0.5 times innodb_buffer_pool_size",
        fires: |runs| data(runs, 4 * GIB),
        silent: |runs| data(runs, 7 * GIB),
    },
    Case {
        id: "cold",
        evidence: "98.0% from memory, 50,000 pages read",
        fires: |runs| {
            data(runs, 4 * GIB);
            nodes(runs, |node| node.hit_share = Some(0.98));
        },
        silent: |runs| nodes(runs, |node| node.hit_share = Some(0.98)),
    },
    Case {
        id: "disk-reads",
        evidence: "98.0% from memory",
        fires: |runs| nodes(runs, |node| node.hit_share = Some(0.98)),
        silent: |runs| nodes(runs, |node| node.hit_share = Some(0.99)),
    },
    Case {
        id: "unsettled-start",
        evidence: "20% of the pages dirty; checkpoint age 80%; 200,000 old row versions",
        fires: |runs| {
            nodes(runs, |node| {
                node.dirty_share = Some(0.2);
                node.checkpoint_age_share = Some(0.8);
                node.purge_backlog = Some(200_000);
            });
        },
        silent: |runs| {
            nodes(runs, |node| {
                node.dirty_share = Some(0.1);
                node.checkpoint_age_share = Some(0.75);
                node.purge_backlog = Some(100_000);
            });
        },
    },
    Case {
        id: "background",
        evidence: "autovacuum: sbtest3",
        fires: |runs| nodes(runs, |node| node.background = vec!["autovacuum: sbtest3".to_owned()]),
        silent: AS_IT_IS,
    },
    Case {
        id: "growth",
        evidence: "6.0%",
        fires: |runs| nodes(runs, |node| node.growth_share = Some(0.06)),
        silent: |runs| nodes(runs, |node| node.growth_share = Some(0.05)),
    },
    Case {
        id: "idle-server",
        evidence: "60% busy",
        fires: |runs| sweep(runs, 0.6),
        silent: |runs| sweep(runs, 0.7),
    },
    Case {
        id: "steal",
        evidence: "2.0%",
        fires: |runs| trials(runs, |trial| trial.generator.host.steal_share = 0.02),
        silent: |runs| trials(runs, |trial| trial.generator.host.steal_share = 0.01),
    },
    Case {
        id: "throttled",
        evidence: "5.0%",
        fires: |runs| generator(runs, |known| known.throttled_share = Some(0.05)),
        silent: |runs| generator(runs, |known| known.throttled_share = Some(0.01)),
    },
    Case {
        id: "swap",
        evidence: "1,000 pages swapped; waited for memory 2.0% of the window",
        fires: |runs| {
            generator(runs, |known| {
                known.swapped_pages = Some(1000);
                known.memory_pressure_share = Some(0.02);
            });
        },
        silent: |runs| {
            generator(runs, |known| {
                known.swapped_pages = Some(200);
                known.memory_pressure_share = Some(0.01);
            });
        },
    },
    Case {
        id: "governor",
        evidence: "performance, powersave",
        fires: |runs| {
            generator(runs, |known| known.governor = Some("performance, powersave".to_owned()));
        },
        silent: |runs| generator(runs, |known| known.governor = None),
    },
];

/// A read as the server counts it may be answered by the cache of the operating system.
#[test]
fn pages_from_outside_the_buffers_are_not_said_to_come_from_the_disk() {
    let mut runs = quiet();
    data(&mut runs, 16 * GIB);
    let paper = Paper::new(&runs, &[]);
    for id in ["memory-class", "cold", "disk-reads"] {
        let meaning = check(&paper, id).meaning.to_string();
        assert!(meaning.contains("(the operating system's cache or the disk)"), "{id}: {meaning}");
    }
    let text = paper.markdown(Lang::En);
    assert!(text.contains("larger than the buffers") && !text.contains("disk-bound"), "{text}");
}

#[test]
fn growth_of_small_data_is_none() {
    let findings = [16 << 20, (16 << 20) + 8].map(|bytes: u64| {
        let mut runs = quiet();
        nodes(&mut runs, |node| {
            (node.growth_share, node.data_bytes) = (Some(8.0), Some(bytes / 8));
        });
        !check(&Paper::new(&runs, &[]), "growth").lines.is_empty()
    });
    assert_eq!(findings, [false, true], "servers know the sizes of small tables only roughly");
}
