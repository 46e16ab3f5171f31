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

/// A number with as many decimals as its size deserves: 12,345 or 98.7 or 0.123.
pub fn number(value: f64) -> String {
    if value.abs() >= 1000.0 {
        let digits = format!("{value:.0}");
        return grouped(&digits);
    }
    if value.abs() >= 10.0 {
        format!("{value:.1}")
    } else if value.abs() < 0.0005 {
        "0".to_owned()
    } else {
        format!("{value:.3}")
    }
}

pub fn grouped(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let mut text = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
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

    #[test]
    fn numbers_keep_what_matters() {
        assert_eq!(number(1_234_567.8), "1,234,568");
        assert_eq!(number(-1234.0), "-1,234");
        assert_eq!(number(98.76), "98.8");
        assert_eq!(number(0.1234), "0.123");
        assert_eq!(number(0.0), "0");
    }
}
