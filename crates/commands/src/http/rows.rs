//! The rows of the internal commands that requests of HTTP become.

use engine::engine::Row;

/// The internal commands that requests of HTTP are made of.
pub struct HttpRows {
    /// GET of a key.
    pub get: &'static Row,
    /// GET of many keys.
    pub mget: &'static Row,
    /// PUT.
    pub put: &'static Row,
    /// PATCH.
    pub patch: &'static Row,
    /// POST.
    pub push: &'static Row,
    /// DELETE.
    pub delete: &'static Row,
    /// Metrics for Prometheus.
    pub metrics: &'static Row,
    /// How the server does.
    pub overview: &'static Row,
    /// The condition of a transaction.
    pub watch: &'static Row,
    /// Its memory.
    pub memory: &'static Row,
    /// Keys that commands name often.
    pub hot_keys: &'static Row,
    /// GET of a result of a database.
    pub view: &'static Row,
    /// POST to a view.
    pub view_change: &'static Row,
    /// DELETE of results.
    pub view_forget: &'static Row,
    /// GET of a node.
    pub node_get: &'static Row,
    /// The same, away from the workers.
    pub node_list: &'static Row,
    /// PUT and POST of a node.
    pub node_put: &'static Row,
    /// DELETE of a node.
    pub node_delete: &'static Row,
    /// An event of a node.
    pub node_wait: &'static Row,
    /// Copies of what a request has written.
    pub await_copies: &'static Row,
}

impl HttpRows {
    /// Finds them among all rows.
    ///
    /// # Panics
    /// If one of them is missing.
    pub(crate) fn find(rows: &'static [Row]) -> HttpRows {
        let find = |name| {
            let is_wanted =
                |row: &&Row| row.command.parent == Some("http") && row.command.name == name;
            rows.iter().find(is_wanted).unwrap_or_else(|| panic!("HTTP needs {name}"))
        };
        HttpRows {
            get: find("get"),
            mget: find("mget"),
            put: find("put"),
            patch: find("patch"),
            push: find("push"),
            delete: find("delete"),
            metrics: find("metrics"),
            overview: find("overview"),
            watch: find("watch"),
            memory: find("memory"),
            hot_keys: find("hotkeys"),
            view: find("view"),
            view_change: find("viewchange"),
            view_forget: find("viewforget"),
            node_get: find("nodeget"),
            node_list: find("nodelist"),
            node_put: find("nodeput"),
            node_delete: find("nodedelete"),
            node_wait: find("nodewait"),
            await_copies: find("awaitcopies"),
        }
    }
}
