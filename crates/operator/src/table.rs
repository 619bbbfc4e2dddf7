//! Text in columns.

use crate::print::word;

/// Rows under their headings, each column as wide as its widest cell.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| word(cell)).collect()).collect();
    let width_of = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([headings[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..headings.len()).map(width_of).collect();
    let mut text = String::new();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut own = String::new();
        for (cell, width) in cells.zip(&widths) {
            own.push_str(&format!("{cell:width$}  "));
        }
        text.push_str(own.trim_end());
        text.push('\n');
    };
    line(&mut headings.iter().copied());
    for row in &rows {
        line(&mut row.iter().map(String::as_str));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_their_headings() {
        let rows = [vec!["a".to_owned(), "long".to_owned()], vec![String::new(), "é".to_owned()]];
        assert_eq!(table(&["one", "b"], &rows), "one  b\na    long\n     é\n");
    }

    #[test]
    fn a_cell_is_no_further_line() {
        let rows = [vec!["a\n! no".to_owned(), "\u{1b}[2J\u{202e}x".to_owned()]];
        assert_eq!(table(&["one", "b"], &rows), "one     b\na?! no  ?[2J?x\n");
    }
}
