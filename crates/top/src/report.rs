//! A look as JSON, and as text without a screen.

use serde_json::{Map, Value as Json, json};

use crate::look::Look;
use crate::screen::{Chosen, Drawn, head};
use crate::table::{Table, table};
use crate::view::VIEWS;

/// All views as JSON: each is an array of objects, whose numbers are not rounded for people.
pub(crate) fn json(server: &str, now: &Look, before: Option<&Look>) -> Json {
    let mut views = Map::new();
    for view in VIEWS {
        let table = table(view, now, before);
        let rows = table.rows.iter().map(|row| {
            let fields = table.columns.iter().zip(row).map(|(name, cell)| {
                let value = match cell.value {
                    Some(_) if cell.text == "-" => Json::Null,
                    Some(value) => json!(value),
                    None => json!(cell.text),
                };
                ((*name).to_owned(), value)
            });
            Json::Object(fields.collect())
        });
        views.insert(view.name().to_owned(), Json::Array(rows.collect()));
    }
    let span = before.map(|before| (now.at_ns - before.at_ns) as f64 / 1e9);
    json!({
        "server": server,
        "product": now.product(),
        "seconds": span,
        "info": now.info,
        "views": views,
    })
}

/// The head and one view as text.
pub(crate) fn text(drawn: &Drawn<'_>, chosen: &Chosen) -> String {
    let mut text = head(drawn, chosen).join("\n") + "\n\n";
    text.push_str(&plain(drawn.table));
    text
}

fn plain(table: &Table) -> String {
    if table.rows.is_empty() {
        return format!("{}\n", table.empty);
    }
    let mut text = table.columns.join("\t") + "\n";
    for row in &table.rows {
        let cells: Vec<String> =
            row.iter().map(|cell| cell.text.replace(char::is_control, "?")).collect();
        text.push_str(&(cells.join("\t") + "\n"));
    }
    text
}
