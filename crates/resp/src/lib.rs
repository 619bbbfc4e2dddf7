//! The Redis wire protocol: requests in, RESP2 and RESP3 replies out.
//!
//! Nothing here opens a socket. The server's side is [`request`] (bytes to arguments, which stay
//! slices of the read buffer) and [`reply`] (replies into an [`output`] that a vectored write can
//! send). The other side of the wire, for the command line tool, the load generator and tests, is
//! [`client`].
//!
//! | module | question |
//! |---|---|
//! | [`args`] | where do the arguments of a command lie? |
//! | [`aside`] | which commands does only Dunlin know? |
//! | [`request`] | where does a command end in the bytes received? |
//! | [`words`] | how is a line split into words and quoted strings? |
//! | [`output`] | which bytes are waiting to be sent? |
//! | `frame` | how are the bytes around a string written? |
//! | [`reply`] | how is an answer written for this client's protocol? |
//! | [`client`] | what did the server answer? |

pub mod args;
pub mod aside;
pub mod client;
mod frame;
pub mod output;
pub mod reply;
pub mod request;
pub mod words;
