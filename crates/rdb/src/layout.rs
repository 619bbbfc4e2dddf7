//! The layouts of values, which their type bytes name.
//!
//! The numbers grew over fifteen years, and then in two families of servers independently: 22 is a
//! hash whose fields expire in both, with different layouts.

use crate::opcodes::kind;

/// The family of servers from which a file comes, by the first bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `REDIS`: all versions of Redis, and of Valkey before 9.
    Redis,
    /// `VALKEY`: Valkey 9 and later.
    Valkey,
}

impl std::fmt::Display for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Dialect::Redis => "Redis",
            Dialect::Valkey => "Valkey",
        })
    }
}

/// The layout of a value. "Counted" means a number of items and then the items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "`name` says what each is")]
pub enum Layout {
    String,
    List,
    ListZiplist,
    ListOfZiplists,
    ListOfNodes,
    Set,
    SetIntset,
    SetListpack,
    Hash,
    HashZipmap,
    HashZiplist,
    HashListpack,
    HashExpiring,
    HashExpiringEarly,
    HashExpiringValkey,
    HashExpiringListpack,
    HashExpiringListpackEarly,
    Zset,
    ZsetBinary,
    ZsetZiplist,
    ZsetListpack,
    Stream1,
    Stream2,
    Stream3,
    Stream4,
    Stream5,
    Module,
    ModuleEarly,
}

impl Layout {
    /// The layout for a type byte in a file of that dialect; `None` if it is unknown.
    pub fn from_byte(byte: u8, dialect: Dialect) -> Option<Layout> {
        Some(match byte {
            kind::STRING => Layout::String,
            kind::LIST => Layout::List,
            kind::SET => Layout::Set,
            kind::ZSET => Layout::Zset,
            kind::HASH => Layout::Hash,
            kind::ZSET_BINARY => Layout::ZsetBinary,
            kind::MODULE_EARLY => Layout::ModuleEarly,
            kind::MODULE => Layout::Module,
            kind::HASH_ZIPMAP => Layout::HashZipmap,
            kind::LIST_ZIPLIST => Layout::ListZiplist,
            kind::SET_INTSET => Layout::SetIntset,
            kind::ZSET_ZIPLIST => Layout::ZsetZiplist,
            kind::HASH_ZIPLIST => Layout::HashZiplist,
            kind::LIST_OF_ZIPLISTS => Layout::ListOfZiplists,
            kind::STREAM_1 => Layout::Stream1,
            kind::HASH_LISTPACK => Layout::HashListpack,
            kind::ZSET_LISTPACK => Layout::ZsetListpack,
            kind::LIST_OF_NODES => Layout::ListOfNodes,
            kind::STREAM_2 => Layout::Stream2,
            kind::SET_LISTPACK => Layout::SetListpack,
            kind::STREAM_3 => Layout::Stream3,
            kind::HASH_EXPIRING_VALKEY if dialect == Dialect::Valkey => Layout::HashExpiringValkey,
            _ if dialect == Dialect::Valkey => return None,
            kind::HASH_EXPIRING_EARLY => Layout::HashExpiringEarly,
            kind::HASH_EXPIRING_LISTPACK_EARLY => Layout::HashExpiringListpackEarly,
            kind::HASH_EXPIRING => Layout::HashExpiring,
            kind::HASH_EXPIRING_LISTPACK => Layout::HashExpiringListpack,
            kind::STREAM_4 => Layout::Stream4,
            kind::STREAM_5 => Layout::Stream5,
            _ => return None,
        })
    }

    /// The name of the type, as TYPE answers it; `module` for values of any module.
    pub fn type_name(self) -> &'static str {
        match self {
            Layout::String => "string",
            Layout::List | Layout::ListZiplist | Layout::ListOfZiplists | Layout::ListOfNodes => {
                "list"
            }
            Layout::Set | Layout::SetIntset | Layout::SetListpack => "set",
            Layout::Hash
            | Layout::HashZipmap
            | Layout::HashZiplist
            | Layout::HashListpack
            | Layout::HashExpiring
            | Layout::HashExpiringEarly
            | Layout::HashExpiringValkey
            | Layout::HashExpiringListpack
            | Layout::HashExpiringListpackEarly => "hash",
            Layout::Zset | Layout::ZsetBinary | Layout::ZsetZiplist | Layout::ZsetListpack => {
                "zset"
            }
            Layout::Stream1
            | Layout::Stream2
            | Layout::Stream3
            | Layout::Stream4
            | Layout::Stream5 => "stream",
            Layout::Module | Layout::ModuleEarly => "module",
        }
    }

    /// The layout in words.
    pub fn name(self) -> &'static str {
        match self {
            Layout::String => "string",
            Layout::List => "counted list",
            Layout::ListZiplist => "list as a ziplist",
            Layout::ListOfZiplists => "list of ziplists",
            Layout::ListOfNodes => "list of nodes",
            Layout::Set => "counted set",
            Layout::SetIntset => "set as an intset",
            Layout::SetListpack => "set as a listpack",
            Layout::Hash => "counted hash",
            Layout::HashZipmap => "hash as a zipmap",
            Layout::HashZiplist => "hash as a ziplist",
            Layout::HashListpack => "hash as a listpack",
            Layout::HashExpiring => "counted hash whose fields expire",
            Layout::HashExpiringEarly => "counted hash whose fields expire, pre-release",
            Layout::HashExpiringValkey => "counted hash whose fields expire, Valkey",
            Layout::HashExpiringListpack => "hash as a listpack whose fields expire",
            Layout::HashExpiringListpackEarly => {
                "hash as a listpack whose fields expire, pre-release"
            }
            Layout::Zset => "counted sorted set with scores in text",
            Layout::ZsetBinary => "counted sorted set",
            Layout::ZsetZiplist => "sorted set as a ziplist",
            Layout::ZsetListpack => "sorted set as a listpack",
            Layout::Stream1 => "stream, first form",
            Layout::Stream2 => "stream, second form",
            Layout::Stream3 => "stream, third form",
            Layout::Stream4 => "stream of Redis 8.6",
            Layout::Stream5 => "stream of Redis 8.8",
            Layout::Module => "module's value",
            Layout::ModuleEarly => "module's value, pre-release",
        }
    }
}
