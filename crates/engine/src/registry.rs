//! All commands, found by name: an engine receives them when it is made.

use resp::args::Arguments;

use crate::command::names::Names;
use crate::command::{Begin, Command, Find, Group, INTERNAL, KeySpec, NOT_KEY};
use crate::run::plain::is_plain;

pub use crate::command::RowId;
pub use crate::engine::{HttpRows, Registry, Row};

impl Row {
    fn new(id: RowId, command: &'static Command) -> Row {
        let one_key = match command.keys {
            [spec] => {
                let first = matches!(spec.begin, Begin::Index(1))
                    && matches!(spec.find, Find::Range { last: 0, .. });
                first && spec.flags & NOT_KEY == 0 && command.key_finder.is_none()
            }
            _ => false,
        };
        // WATCH changes its connection.
        let finds_keys =
            |spec: &KeySpec| spec.flags & NOT_KEY == 0 && !matches!(spec.begin, Begin::Unknown);
        let has_keys = !command.keys.is_empty()
            && command.keys.iter().all(finds_keys)
            && command.key_finder.is_none()
            && command.group != Group::Transactions;
        Row { id, command, one_key, plain: is_plain(command, has_keys) }
    }

    /// Whether it takes the short path where nothing is the matter: see
    /// [`crate::engine::Engine::execute_plainly`].
    #[inline]
    pub fn may_go_short(&self) -> bool {
        self.plain
    }

    /// Whether each command with the same first word has this row: no container, and no subcommand.
    #[inline]
    pub fn is_found_by_name(&self) -> bool {
        self.command.parent.is_none() && self.command.subcommands.is_empty()
    }
}

impl HttpRows {
    fn find(rows: &'static [Row]) -> Option<HttpRows> {
        let find = |name| {
            let is_wanted =
                |row: &&Row| row.command.parent == Some("http") && row.command.name == name;
            rows.iter().find(is_wanted)
        };
        Some(HttpRows {
            get: find("get")?,
            mget: find("mget")?,
            put: find("put")?,
            patch: find("patch")?,
            push: find("push")?,
            delete: find("delete")?,
            metrics: find("metrics")?,
            watch: find("watch")?,
            memory: find("memory")?,
            hot_keys: find("hotkeys")?,
            view: find("view")?,
            view_change: find("viewchange")?,
            view_forget: find("viewforget")?,
            node_get: find("nodeget")?,
            node_list: find("nodelist")?,
            node_put: find("nodeput")?,
            node_delete: find("nodedelete")?,
            node_wait: find("nodewait")?,
        })
    }
}

impl Registry {
    /// All rows of these families, each command followed by its subcommands. They are never freed: an
    /// engine gets its commands once.
    pub fn new(families: &[&'static [Command]]) -> Registry {
        let mut rows = Vec::new();
        for command in families.iter().copied().flatten() {
            rows.push(Row::new(rows.len(), command));
            for command in command.subcommands {
                rows.push(Row::new(rows.len(), command));
            }
        }
        let rows: &'static [Row] = Box::leak(rows.into_boxed_slice());
        let commands = rows.iter().filter(|row| row.command.parent.is_none());
        let names = Names::new(commands.map(|row| (row.command.name, row)));
        Registry { rows, names, http: HttpRows::find(rows) }
    }

    /// All rows, each command followed by its subcommands.
    pub fn rows(&self) -> &'static [Row] {
        self.rows
    }

    /// Those rows that clients can name.
    pub fn public_rows(&self) -> impl Iterator<Item = &'static Row> {
        self.rows.iter().filter(|row| !row.command.has(INTERNAL))
    }

    /// The commands of HTTP.
    ///
    /// # Panics
    /// If the families lack them.
    #[inline]
    pub fn http(&self) -> &HttpRows {
        self.http.as_ref().expect("the family of HTTP is one of them")
    }

    /// Finds a command by its name, in any case.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&'static Row> {
        // A short name is found by eight bytes, which do not show its length.
        self.names.find(name).filter(|row| row.command.name.len() == name.len())
    }

    /// Finds the row that runs these arguments: a container's subcommand if there is one.
    #[inline]
    pub fn resolve(&self, argv: Arguments<'_>) -> Option<&'static Row> {
        let row = self.find(argv.get(0)?)?;
        if row.command.subcommands.is_empty() || argv.len() < 2 {
            return Some(row);
        }
        Some(self.find_subcommand(row, argv.at(1)).unwrap_or(row))
    }

    /// Finds a subcommand of a container.
    pub fn find_subcommand(&self, row: &Row, name: &[u8]) -> Option<&'static Row> {
        let mut subcommands = row.command.subcommands.iter();
        let index =
            subcommands.position(|command| command.name.as_bytes().eq_ignore_ascii_case(name))?;
        Some(&self.rows[row.id + 1 + index])
    }
}
