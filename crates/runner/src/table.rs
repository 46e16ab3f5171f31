//! Plain tables for the terminal.

/// Lays out rows under a header; the first `left` columns are aligned left, the others right.
pub fn layout(header: &[&str], rows: &[Vec<String>], left: usize) -> String {
    let widths: Vec<usize> = header
        .iter()
        .enumerate()
        .map(|(column, title)| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).chain([title.chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    let titles: Vec<String> = header.iter().map(|&title| title.to_owned()).collect();
    for row in [&titles].into_iter().chain(rows) {
        let cells: Vec<String> =
            row.iter()
                .zip(&widths)
                .enumerate()
                .map(|(column, (cell, &width))| {
                    if column < left {
                        format!("{cell:<width$}")
                    } else {
                        format!("{cell:>width$}")
                    }
                })
                .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows =
            [vec!["a".to_owned(), "1".to_owned()], vec!["long".to_owned(), "12345".to_owned()]];
        assert_eq!(layout(&["name", "n"], &rows, 1), "name      n\na         1\nlong  12345\n");
    }
}
