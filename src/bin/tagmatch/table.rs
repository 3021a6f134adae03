//! Plain tables: columns as wide as needed, text left, numbers right.

/// A table in the making.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With these headings, each of which may have two lines. The first column is text, the others are numbers.
    pub(crate) fn new<T: Into<String>>(headings: impl IntoIterator<Item = T>) -> Self {
        let headings: Vec<String> = headings.into_iter().map(Into::into).collect();
        let lines = |heading: &String| match heading.split_once('\n') {
            Some((above, below)) => (above.to_owned(), below.to_owned()),
            None => (String::new(), heading.clone()),
        };
        let (above, below): (Vec<String>, Vec<String>) = headings.iter().map(lines).unzip();
        let rows = if above.iter().all(String::is_empty) { vec![below] } else { vec![above, below] };
        Self { rows }
    }

    /// Add a row.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The whole table, a line feed behind each row.
    pub(crate) fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
            })
            .map(|width| width.unwrap_or(0))
            .collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if column == 0 {
                    line += &format!("{cell:<width$}");
                } else {
                    line += &format!("  {cell:>width$}");
                }
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

/// Nanoseconds with three figures.
pub(crate) fn nanoseconds(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Or a dash, where there is nothing.
pub(crate) fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".into(), show)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["trace", "events"]);
        table.row(vec!["a".into(), "1234567".into()]);
        table.row(vec!["longer name".into(), "1".into()]);
        assert_eq!(table.text(), "trace         events\na            1234567\nlonger name        1\n");
    }

    #[test]
    fn a_heading_of_two_lines_is_above_its_column_and_others_are_on_the_second() {
        let mut table = Table::new(["trace", "in\nhardware"]);
        table.row(vec!["a".into(), "1".into()]);
        assert_eq!(table.text(), "             in\ntrace  hardware\na             1\n");
    }

    #[test]
    fn a_missing_value_is_a_dash() {
        assert_eq!(or_dash(None, nanoseconds), "-");
        assert_eq!(or_dash(Some(12.345), nanoseconds), "12.3");
        assert_eq!(or_dash(Some(1234.5), nanoseconds), "1234");
    }
}
