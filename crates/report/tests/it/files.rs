//! Charts in separate files.

use crate::synthetic::{published, two_targets};
use dyno_report::{ChartFile, Lang, Paper, Templates};

fn paper() -> Paper {
    Paper::new(&[two_targets(&[1, 8], 2, 40)], &[published()])
}

fn charts(lang: Lang) -> Vec<ChartFile> {
    paper().charts(&Templates::default(), lang)
}

/// Panics where tags do not close each other; returns the names of elements.
fn elements(xml: &str) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    let mut all = Vec::new();
    for part in xml.split('<').skip(1) {
        let (tag, _) = part.split_once('>').unwrap_or_else(|| panic!("no end: {part}"));
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        match tag {
            tag if tag.starts_with(['?', '!']) => {}
            tag if tag.starts_with('/') => assert_eq!(open.pop().as_deref(), Some(name), "{tag}"),
            tag => {
                all.push(name.to_owned());
                if !tag.ends_with('/') {
                    open.push(name.to_owned());
                }
            }
        }
    }
    assert_eq!(open, Vec::<String>::new(), "all are closed");
    all
}

#[test]
fn a_chart_alone_is_well_formed_and_needs_nothing_else() {
    for lang in [Lang::En, Lang::Zh] {
        let charts = charts(lang);
        assert!(charts.len() > 5, "{} charts", charts.len());
        assert!(charts[0].name.starts_with("01-cover"), "{}", charts[0].name);
        for chart in &charts {
            let all = elements(&chart.svg);
            assert_eq!(all[..3], ["svg", "title", "style"], "{}", chart.name);
            assert!(chart.svg.contains(" width=\"") && chart.width > 300.0);
            let own = chart.svg.replace("http://www.w3.org/2000/svg", "");
            for outside in ["http", "url(", "@import", "href", "var(--", "<script"] {
                assert!(!own.contains(outside), "{}: {outside}", chart.name);
            }
        }
        let mut names: Vec<&str> = charts.iter().map(|chart| chart.name.as_str()).collect();
        names.dedup();
        assert_eq!(names.len(), charts.len(), "each has a name of its own");
    }
}

#[test]
fn the_numbers_behind_a_chart_are_those_of_the_paper() {
    let paper = paper();
    let charts = paper.charts(&Templates::default(), Lang::En);
    let experiment = &paper.experiments[0];
    let point = &experiment.points[0];
    let medians = [point.tps.median, point.qps.median].map(|median| median.to_string());
    let has_it = |chart: &&ChartFile| {
        chart.csv.lines().any(|line| {
            line.contains(&point.target) && medians.iter().any(|median| line.contains(median))
        })
    };
    let chart = charts.iter().find(has_it).expect("a chart of the throughput");
    let mut lines = chart.csv.lines();
    assert_eq!(lines.next(), Some("measure,against,at,series,value,low,high"));
    assert!(lines.all(|line| line.split(',').count() >= 7), "{}", chart.csv);
}

#[test]
fn markdown_shows_the_charts_that_are_files_beside_it() {
    let (paper, templates) = (paper(), Templates::default());
    let text = paper.markdown_with_images(&templates, Lang::Zh, "charts.zh", "svg");
    let files = paper.charts(&templates, Lang::Zh);
    let shown: Vec<&str> =
        text.split("](charts.zh/").skip(1).filter_map(|part| part.split('.').next()).collect();
    assert!(shown.len() > 5 && shown[0] == "01-cover", "{shown:?}");
    for name in shown {
        assert!(files.iter().any(|file| file.name == name), "{name}");
    }
    assert!(!paper.markdown(Lang::Zh).contains("!["));
}
