//! Threads beside the workers: what each does, and with what.
//!
//! | file | what it answers |
//! |---|---|
//! | [`cron`] | what happens periodically? |
//! | [`freeing`] | which thread gives memory back? |
//! | [`changes`] | which thread tells the followers of the journal? |
//! | [`job_thread`] | how does a thread do jobs for clients that wait? |
//! | [`background`] | which thread does work that could make a worker wait for a slow disk? |
//! | [`node_reader`] | which thread answers reads of nodes that would keep a worker busy for long? |
//! | [`cluster`] | which thread makes the server a node of a cluster? |
//! | [`internal_client`] | how does a thread that serves no connection run commands? |
//! | [`moving`] | which threads move keys to other servers? |
//! | [`slots`] | which threads move slots to other servers, and delete what has gone? |
//! | [`supervision`] | which thread tells systemd how the server is? |
//! | [`views`] | which threads ask databases, and keep the results? |

pub mod background;
pub mod changes;
pub mod cluster;
pub mod cron;
pub mod freeing;
pub mod internal_client;
pub mod job_thread;
pub mod moving;
pub mod node_reader;
pub mod slots;
pub mod supervision;
pub mod views;
mod wire;
