//! Charts in separate files.

use crate::synthetic::{published, two_targets};
use dyno_report::{Lang, Paper};

/// A paper with charts of two targets at two load levels.
fn paper() -> Paper {
    Paper::new(&[two_targets(&[1, 8], 2, 40)], &[published()])
}

/// Returns the names of elements; panics if tags do not close each other.
fn elements(xml: &str) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    let mut names = Vec::new();
    for part in xml.split('<').skip(1) {
        let (tag, _) = part.split_once('>').unwrap_or_else(|| panic!("no end: {part}"));
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        match tag {
            tag if tag.starts_with(['?', '!']) => {}
            tag if tag.starts_with('/') => assert_eq!(open.pop().as_deref(), Some(name), "{tag}"),
            tag => {
                names.push(name.to_owned());
                if !tag.ends_with('/') {
                    open.push(name.to_owned());
                }
            }
        }
    }
    assert_eq!(open, Vec::<String>::new(), "all are closed");
    names
}

#[test]
fn a_chart_alone_is_well_formed_and_needs_nothing_else() {
    for lang in [Lang::En, Lang::Zh] {
        let charts = paper().charts(lang);
        assert!(charts.len() > 5, "{} charts", charts.len());
        assert!(charts[0].0.starts_with("01-cover"), "{}", charts[0].0);
        for (name, svg) in &charts {
            let names = elements(svg);
            assert_eq!(names[..3], ["svg", "title", "style"], "{name}");
            assert!(svg.contains(" width=\""));
            let without_namespace = svg.replace("http://www.w3.org/2000/svg", "");
            for outside in ["http", "url(", "@import", "href", "var(--", "<script"] {
                assert!(!without_namespace.contains(outside), "{name}: {outside}");
            }
        }
        let mut names: Vec<&str> = charts.iter().map(|(name, _)| name.as_str()).collect();
        names.dedup();
        assert_eq!(names.len(), charts.len(), "each has a separate name");
    }
}

#[test]
fn markdown_shows_the_charts_that_are_files_beside_it() {
    let paper = paper();
    let text = paper.markdown_with_images(Lang::Zh, "charts.zh");
    let files = paper.charts(Lang::Zh);
    let names: Vec<&str> =
        text.split("](charts.zh/").skip(1).filter_map(|part| part.split('.').next()).collect();
    assert!(names.len() > 5 && names[0] == "01-cover", "{names:?}");
    for name in names {
        assert!(files.iter().any(|(file, _)| file == name), "{name}");
    }
    assert!(!paper.markdown(Lang::Zh).contains("!["));
}
