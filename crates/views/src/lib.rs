//! Views: statements of SQL databases whose results are kept as documents.
//!
//! A file names databases and views. A [`View`] takes parameters: a request gives them as text, and
//! the file says how to read them. Values are always bound to a statement and never part of its
//! text. A [`Connection`] runs statements and makes JSON of their rows. The caller decides which
//! results are kept, and for how long.

mod address;
mod connection;
mod definition;
mod driver;
mod encryption;
mod kind;
mod mariadb;
mod offer;
mod parameter;
mod postgresql;
mod postgresql_tls;
mod sqlite;
mod statement;

pub use connection::Connection;
pub use definition::{Call, Database, View, Views};
pub use driver::Failure;
pub use offer::Offer;
pub use parameter::Value;
