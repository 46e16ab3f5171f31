//! Charts and documents as files of their own.

use crate::synthetic::{published, two_targets};
use dyno_report::{ChartFile, DocxFile, Lang, Paper, Picture, Templates};

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
            assert!(chart.svg.contains(" width=\"") && chart.width > 300.0 && chart.height > 60.0);
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

fn part<'a>(parts: &'a [DocxFile], name: &str) -> &'a str {
    let found = parts.iter().find(|part| part.name == name).unwrap_or_else(|| panic!("no {name}"));
    std::str::from_utf8(&found.bytes).expect("text")
}

#[test]
fn a_document_has_the_paper_and_its_pictures() {
    let paper = paper();
    let templates = Templates::default();
    let drawn = paper.docx_charts(&templates, Lang::Zh);
    let picture = |chart: &ChartFile| Picture {
        png: b"png".to_vec(),
        width: chart.width,
        height: chart.height,
    };
    let pictures: Vec<Picture> = drawn.iter().map(picture).collect();
    let parts = paper.docx_with(&templates, Lang::Zh, &pictures);
    assert_eq!(parts[0].name, "[Content_Types].xml", "readers look for it first");
    let document = part(&parts, "word/document.xml");
    let all = elements(document);
    let count = |name: &str| all.iter().filter(|element| *element == name).count();
    assert!(document.contains(&paper.title.render(Lang::Zh)));
    assert!(document.contains("<w:pStyle w:val=\"Heading1\"/>") && count("w:tbl") > 10);
    assert_eq!(count("w:drawing"), pictures.len());
    let relations = part(&parts, "word/_rels/document.xml.rels");
    for number in 1..=pictures.len() {
        assert!(relations.contains(&format!("media/{number}.png")));
        assert!(parts.iter().any(|part| part.name == format!("word/media/{number}.png")));
    }
    let styles = part(&parts, "word/styles.xml");
    for used in document.split("<w:pStyle w:val=\"").skip(1) {
        let used = used.split('"').next().expect("a name");
        assert!(styles.contains(&format!("w:styleId=\"{used}\"")), "{used}");
    }
    for name in ["[Content_Types].xml", "_rels/.rels", "docProps/core.xml", "word/styles.xml"] {
        elements(part(&parts, name));
    }
    // Every row of a table has as many columns as its grid.
    for table in document.split("<w:tbl>").skip(1) {
        let columns = table.matches("<w:gridCol ").count();
        for row in table.split("</w:tbl>").next().expect("a table").split("<w:tr>").skip(1) {
            let spans = row.split("<w:gridSpan w:val=\"").skip(1);
            let more: usize = spans
                .map(|span| span.split('"').next().unwrap().parse::<usize>().unwrap() - 1)
                .sum();
            assert_eq!(row.matches("<w:tc>").count() + more, columns);
        }
    }
    let without = paper.docx_with(&templates, Lang::En, &[]);
    assert!(!part(&without, "word/document.xml").contains("w:drawing"));
}
