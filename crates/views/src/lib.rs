//! Views: statements of SQL databases whose results are kept as documents.
//!
//! A file names databases and views. A [`View`] takes parameters, which a request gives as text and the
//! file says how to read; what a statement gets is always bound to it and never part of its text. A
//! [`Connection`] runs statements and makes JSON of their rows. What is kept, and for how long, is the
//! business of whoever asks.

mod connection;
mod definition;
mod driver;
mod kind;
mod mariadb;
mod offer;
mod parameter;
mod postgresql;
mod sqlite;
mod statement;

pub use connection::Connection;
pub use definition::{Call, Database, View, Views};
pub use driver::Failure;
pub use offer::Offer;
pub use parameter::Value;
