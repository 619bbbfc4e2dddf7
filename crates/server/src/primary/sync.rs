//! A full sync: all data of the primary arrives, goes into tables of its own, and takes the place
//! of the present data in one instant.
//!
//! Until that instant clients are served from the present data. The file of the primary goes into
//! the tables as it comes, or by way of a file that has no name: `repl-diskless-load`.

use std::cell::{Cell, RefCell};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use config::{DisklessLoad, PrimaryAddress};
use engine::engine::Engine;
use engine::replication::{Incoming, LinkState, SyncProgress};
use persist::cuts::{Reader, Recall};
use persist::load::{Load, LoadError, OfPrimary};
use persist::stale;
use process::paths::{path, reason};
use replication::line::Lines;
use replication::payload::{End, Payload};
use store::Keyspace;

use super::apply::Applier;
use super::term::{Term, next_line};
use super::wire::{Trouble, Wire};

/// How often the primary hears that the replica is alive.
const SIGN_EVERY: Duration = Duration::from_secs(1);

/// Takes in all data that the primary sends, which belongs to this position.
pub(super) fn take_all(
    term: &Term<'_>,
    wire: &mut Wire,
    applier: &mut Applier<'_>,
    primary: &PrimaryAddress,
    position: Option<(String, u64)>,
) -> Result<(), Trouble> {
    term.set_link(LinkState::Syncing);
    let mut lines = Lines::default();
    let end = loop {
        if let Some(end) = End::parse(&next_line(term, wire, &mut lines)?)? {
            break end;
        }
    };
    let engine = &term.means.engine;
    let config = engine.config.snapshot();
    let is_empty = (0..engine.keyspace.databases()).all(|index| engine.keyspace.is_empty(index));
    let to_disk = match config.repl_diskless_load {
        DisklessLoad::Disabled => true,
        DisklessLoad::OnEmptyDb => !is_empty,
        DisklessLoad::SwapDb => false,
    };
    let size = match end {
        End::Length(length) => format!("receiving {length} bytes from master"),
        End::Mark(_) => "receiving streamed RDB from master with EOF".to_owned(),
    };
    let way = if to_disk { "to disk" } else { "to parser" };
    term.notice(format!("MASTER <-> REPLICA sync: {size} {way}"));
    let link = RefCell::new(wire);
    let mut arrival = Arrival {
        term,
        wire: &link,
        payload: Payload::new(end),
        arrived: Vec::new(),
        taken: 0,
        trouble: Cell::new(None),
        signed: Instant::now(),
    };
    let from = format!("the data of {}:{}", String::from_utf8_lossy(&primary.host), primary.port);
    let mut incoming = match to_disk {
        true => {
            let file = arrival.write_file(path(&config.dbfilename))?;
            term.notice("MASTER <-> REPLICA sync: Loading DB in memory");
            let loaded = load(term, &link, Path::new(&from), file);
            loaded.map_err(of_data)?
        }
        false => {
            term.notice("MASTER <-> REPLICA sync: Loading DB in memory");
            let loaded = load(term, &link, Path::new(&from), &mut arrival);
            // If the link is lost, that is the reason.
            let loaded = loaded.map_err(|error| match arrival.trouble.take() {
                Some(trouble) => trouble,
                None => of_data(error),
            })?;
            arrival.read_to_end()?;
            loaded
        }
    };
    incoming.position = position;
    link.borrow_mut().forgive_silence();
    replace(term, applier, incoming)?;
    term.notice("MASTER <-> REPLICA sync: Finished with success");
    Ok(())
}

fn of_data(error: LoadError) -> Trouble {
    match error {
        LoadError::Stopped => Trouble::Over,
        error => Trouble::Data { reason: error.of_stream(), lasting: error.is_lasting() },
    }
}

fn of_disk(error: &io::Error) -> Trouble {
    Trouble::Data { reason: format!("the file for it: {}", reason(error)), lasting: false }
}

/// Loads data beside the present data.
fn load(
    term: &Term<'_>,
    wire: &RefCell<&mut Wire>,
    from: &Path,
    input: impl Read,
) -> Result<Incoming, LoadError> {
    let engine: &Engine = &term.means.engine;
    let keyspace = Keyspace::new(engine.keyspace.databases());
    let signed = Cell::new(Instant::now());
    let stopped = || {
        if signed.get().elapsed() >= SIGN_EVERY
            && let Ok(mut wire) = wire.try_borrow_mut()
        {
            signed.set(Instant::now());
            // A lost link shows when it is read.
            let _ = wire.send_sign_of_life();
        }
        !term.lasts()
    };
    let disk = Arc::clone(&term.means.disk);
    let load = Load::beside(engine, &keyspace, disk, &stopped);
    let OfPrimary { libraries, selected } = load.of_primary(from, input)?;
    Ok(Incoming { keyspace, libraries, position: None, selected })
}

/// Puts the data in the place of the present data.
fn replace(term: &Term<'_>, applier: &mut Applier<'_>, incoming: Incoming) -> Result<(), Trouble> {
    let means = term.means;
    // The files have the old data until there is one with the new.
    means.append_only.suspend();
    // What is being saved is the old data.
    let right = means.cuts.take_at_once(Reader::Snapshot, Recall::OtherData);
    // The files keep the old data when the server stops.
    let right = right.ok_or(Trouble::Over)?;
    means.engine.replication.offer(incoming);
    let taken = applier.take_in(term, &right);
    drop(right);
    means.append_only.resume();
    taken
}

/// The file of the primary while it arrives.
struct Arrival<'a, 'w> {
    term: &'a Term<'a>,
    wire: &'a RefCell<&'w mut Wire>,
    payload: Payload,
    /// Bytes of the file that have arrived, of which so many were taken.
    arrived: Vec<u8>,
    taken: usize,
    /// Why nothing more arrives.
    trouble: Cell<Option<Trouble>>,
    signed: Instant,
}

impl Arrival<'_, '_> {
    /// Waits for more of the file. Returns whether there is more.
    fn wait(&mut self) -> Result<bool, Trouble> {
        while self.taken == self.arrived.len() {
            if self.payload.is_over() {
                return Ok(false);
            }
            self.term.go_on()?;
            (self.taken, _) = (0, self.arrived.clear());
            let mut wire = self.wire.borrow_mut();
            let bytes = wire.look()?;
            let taken = self.payload.take(bytes, &mut self.arrived);
            wire.take(taken);
            if self.signed.elapsed() >= SIGN_EVERY {
                self.signed = Instant::now();
                wire.send_sign_of_life()?;
            }
            if taken > 0 {
                let now = base::clock::monotonic_ms();
                let (total, received) = (self.payload.total(), self.payload.received());
                let replication = &self.term.means.engine.replication;
                replication.note_sync(self.term.number, SyncProgress { total, received, at: now });
            }
        }
        Ok(true)
    }

    /// Receives what is left, which is of no use: at most the mark.
    fn read_to_end(&mut self) -> Result<(), Trouble> {
        while self.wait()? {
            self.taken = self.arrived.len();
        }
        Ok(())
    }

    /// Receives all of it into a file without a name, and returns that from its beginning.
    fn write_file(&mut self, snapshot: &Path) -> Result<File, Trouble> {
        let name = stale::unfinished(snapshot, "sync-");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let made = options.open(&name);
        let mut file = made.map_err(|error| of_disk(&error))?;
        // Whatever happens to the process, nothing stays.
        std::fs::remove_file(&name).map_err(|error| of_disk(&error))?;
        while self.wait()? {
            let bytes = &self.arrived[self.taken..];
            file.write_all(bytes).map_err(|error| of_disk(&error))?;
            self.taken = self.arrived.len();
        }
        file.rewind().map_err(|error| of_disk(&error))?;
        Ok(file)
    }
}

impl Read for Arrival<'_, '_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self.wait() {
            Ok(true) => {
                let bytes = &self.arrived[self.taken..];
                let read = bytes.len().min(room.len());
                room[..read].copy_from_slice(&bytes[..read]);
                self.taken += read;
                Ok(read)
            }
            Ok(false) => Ok(0),
            Err(trouble) => {
                let error = io::Error::other(trouble.to_string());
                self.trouble.set(Some(trouble));
                Err(error)
            }
        }
    }
}
