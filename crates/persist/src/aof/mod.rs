//! The append-only file: a list of files, and what gets into them and out again.
//!
//! | file | what it answers |
//! |---|---|
//! | [`manifest`] | which files make up the data, in which order? |
//! | [`directory`] | how does that list change, so that it is right whenever the machine stops? |
//! | [`reader`] | which commands does a file contain, and where does it end or break off? |
//! | [`lost_end`] | did the machine stop before the end of a file was durable? |
//! | [`append_only`] | when does the append-only file begin, end, and become shorter? |
//! | `rewrite` | how is it rewritten? |
//!
//! Effects get into the files through `persist::journal`. This room may import it and the other
//! files of `persist`, but not `rdb`.

pub mod append_only;
pub mod directory;
pub mod lost_end;
pub mod manifest;
pub mod reader;
mod rewrite;
