//! One copy of the data on its way to several replicas.
//!
//! The thread that walks through a cut writes here, and the thread that serves replicas takes what
//! was written, chunk by chunk, for each replica at its own pace. What all have taken goes. So one
//! walk serves all that attach together, and nothing is copied for one of them.
//!
//! The buffer is bounded. While it is full the walk waits for the slowest replica, but not for
//! long: one that takes nothing is left behind. Meanwhile writers of the data copy for the cut what
//! they change. Before these copies make clients wait, the buffer takes more, up to the limit of a
//! replica's output, and then the slowest replica is left behind at once.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::passing::Passing;
use parking_lot::{Condvar, Mutex};

/// Bytes that wait for the slowest replica while nothing presses.
const BUFFERED: usize = 8 << 20;
/// How long a replica may take nothing while others wait for it, at most.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the walk waits before it looks again at who keeps it.
const LOOK: Duration = Duration::from_millis(20);

/// What a replica finds at its place.
pub(super) enum Next {
    /// The next chunk.
    Chunk(Arc<Vec<u8>>),
    /// Nothing yet.
    Nothing,
    /// Nothing more: the copy is complete.
    End,
    /// Nothing more: the copy has failed.
    Failed,
    /// It was too slow, and the walk has gone on without it.
    LeftBehind,
}

struct Reader {
    /// The number of its client.
    id: u64,
    /// The chunk that it takes next.
    at: u64,
    /// When it took one last.
    moved: Instant,
}

#[derive(Default)]
struct Shared {
    chunks: VecDeque<(Arc<Vec<u8>>, Passing)>,
    /// The number of the first of them.
    first: u64,
    bytes: usize,
    readers: Vec<Reader>,
    /// Whether the copy is complete, when it has ended.
    ended: Option<bool>,
}

/// See the module's text.
pub(super) struct FanOut {
    shared: Mutex<Shared>,
    taken: Condvar,
    /// Wakes the thread that serves replicas.
    wake: Box<dyn Fn() + Send + Sync>,
    /// Whether copies for the cut are about to make clients wait.
    presses: Box<dyn Fn() -> bool + Send + Sync>,
    /// Whether the walk is to end.
    is_over: Box<dyn Fn() -> bool + Send + Sync>,
    /// Bytes that may wait then.
    most: usize,
    /// How long a replica may take nothing while no other waits for it.
    patience: Duration,
}

impl FanOut {
    pub(super) fn new(
        readers: impl Iterator<Item = u64>,
        (most, patience): (usize, Duration),
        wake: impl Fn() + Send + Sync + 'static,
        presses: impl Fn() -> bool + Send + Sync + 'static,
        is_over: impl Fn() -> bool + Send + Sync + 'static,
    ) -> FanOut {
        let moved = Instant::now();
        let readers = readers.map(|id| Reader { id, at: 0, moved }).collect();
        FanOut {
            shared: Mutex::new(Shared { readers, ..Shared::default() }),
            taken: Condvar::new(),
            wake: Box::new(wake),
            presses: Box::new(presses),
            is_over: Box::new(is_over),
            most: most.max(BUFFERED),
            patience,
        }
    }

    /// The chunk of this number, for a replica that needs none before it.
    pub(super) fn take(&self, id: u64, at: u64) -> Next {
        let mut shared = self.shared.lock();
        let Some(reader) = shared.readers.iter_mut().find(|own| own.id == id) else {
            return Next::LeftBehind;
        };
        if reader.at != at {
            (reader.at, reader.moved) = (at, Instant::now());
            shared.let_go();
            self.taken.notify_one();
        }
        let index = (at - shared.first) as usize;
        match (shared.chunks.get(index), shared.ended) {
            (Some((chunk, _)), _) => Next::Chunk(Arc::clone(chunk)),
            (None, Some(true)) => Next::End,
            (None, Some(false)) => Next::Failed,
            (None, None) => Next::Nothing,
        }
    }

    /// A replica needs nothing more.
    pub(super) fn leave(&self, id: u64) {
        let mut shared = self.shared.lock();
        shared.readers.retain(|own| own.id != id);
        shared.let_go();
        self.taken.notify_one();
    }

    /// Whether the walk still waits for a replica.
    pub(super) fn reads(&self, id: u64) -> bool {
        self.shared.lock().readers.iter().any(|own| own.id == id)
    }

    /// Whether nobody takes anything any more.
    #[cfg(test)]
    fn is_deserted(&self) -> bool {
        self.shared.lock().readers.is_empty()
    }

    /// Bytes that wait for the slowest replica.
    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.shared.lock().bytes
    }

    /// The copy has ended; whether it is complete.
    pub(super) fn end(&self, complete: bool) {
        self.shared.lock().ended = Some(complete);
        (self.wake)();
    }

    /// Waits until there is room. Leaves behind who keeps the walk for too long.
    fn wait_for_room(&self) -> io::Result<()> {
        let mut shared = self.shared.lock();
        loop {
            if shared.readers.is_empty() || (self.is_over)() {
                // Not as interrupted: whoever writes would try again for ever.
                return Err(io::Error::other("no replica waits for it any more"));
            }
            if shared.bytes < BUFFERED {
                return Ok(());
            }
            let presses = (self.presses)();
            if presses && shared.bytes < self.most {
                return Ok(());
            }
            if shared.leave_behind(presses, self.patience) {
                (self.wake)();
                continue;
            }
            self.taken.wait_for(&mut shared, LOOK);
        }
    }
}

impl Shared {
    fn end(&self) -> u64 {
        self.first + self.chunks.len() as u64
    }

    /// Lets go what all have taken.
    fn let_go(&mut self) {
        let needed = self.readers.iter().map(|own| own.at).min().unwrap_or(u64::MAX);
        while self.first < needed
            && let Some((chunk, _)) = self.chunks.pop_front()
        {
            self.bytes -= chunk.len();
            self.first += 1;
        }
    }

    /// Leaves those behind that need the first chunk and have not moved for long, or at once if
    /// their being slow presses. Returns whether there are any.
    fn leave_behind(&mut self, presses: bool, patience: Duration) -> bool {
        let (first, end, count) = (self.first, self.end(), self.readers.len());
        let others_wait = self.readers.iter().any(|own| own.at == end);
        // Those that wait must not become impatient themselves.
        let patience = if others_wait { PATIENCE.min(patience / 2) } else { patience };
        self.readers.retain(|own| own.at > first || !(presses || own.moved.elapsed() > patience));
        let some = self.readers.len() < count;
        if some {
            self.let_go();
        }
        some
    }
}

/// The end at which the copy comes in.
pub(super) struct FanIn(pub(super) Arc<FanOut>);

impl Write for FanIn {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.wait_for_room()?;
        let chunk = Arc::new(bytes.to_vec());
        let mut shared = self.0.shared.lock();
        shared.bytes += bytes.len();
        shared.chunks.push_back((chunk, Passing::new(bytes.len())));
        drop(shared);
        (self.0.wake)();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fan_out(presses: bool, most: usize, patience: Duration) -> Arc<FanOut> {
        let readers = [1, 2].into_iter();
        let wait = (most, patience);
        Arc::new(FanOut::new(readers, wait, || (), move || presses, || false))
    }

    fn chunk(fan_out: &FanOut, id: u64, at: u64) -> Option<Vec<u8>> {
        match fan_out.take(id, at) {
            Next::Chunk(chunk) => Some(chunk.to_vec()),
            _ => None,
        }
    }

    #[test]
    fn each_takes_all_at_its_own_pace() {
        let fan_out = fan_out(false, 0, PATIENCE);
        let mut input = FanIn(Arc::clone(&fan_out));
        input.write_all(b"one").unwrap();
        input.write_all(b"two").unwrap();
        assert_eq!(chunk(&fan_out, 1, 0), Some(b"one".to_vec()));
        assert_eq!(chunk(&fan_out, 1, 1), Some(b"two".to_vec()));
        assert!(matches!(fan_out.take(1, 2), Next::Nothing));
        assert_eq!(fan_out.waiting(), 6, "the other one has taken nothing");
        assert_eq!(chunk(&fan_out, 2, 0), Some(b"one".to_vec()));
        assert_eq!(chunk(&fan_out, 2, 1), Some(b"two".to_vec()));
        assert_eq!(fan_out.waiting(), 3);
        fan_out.end(true);
        assert!(matches!(fan_out.take(1, 2), Next::End));
        fan_out.leave(1);
        fan_out.leave(2);
        assert!(fan_out.is_deserted() && fan_out.waiting() == 0);
    }

    #[test]
    fn one_that_takes_nothing_is_left_behind() {
        const PAUSE: Duration = Duration::from_millis(50);
        let begun = Instant::now();
        let fan_out = fan_out(false, 0, PAUSE);
        let mut input = FanIn(Arc::clone(&fan_out));
        let big = vec![b'x'; BUFFERED];
        input.write_all(&big).unwrap();
        assert!(matches!(fan_out.take(2, 0), Next::Chunk(_)));
        assert!(matches!(fan_out.take(2, 1), Next::Nothing));
        input.write_all(b"more").unwrap();
        assert!(begun.elapsed() > PAUSE / 2, "the other one had its time");
        assert!(matches!(fan_out.take(1, 0), Next::LeftBehind));
        assert_eq!(chunk(&fan_out, 2, 1), Some(b"more".to_vec()));
    }

    #[test]
    fn when_clients_would_wait_the_buffer_grows_and_then_nobody_is_waited_for() {
        let fan_out = fan_out(true, 2 * BUFFERED, Duration::from_secs(60));
        let mut input = FanIn(Arc::clone(&fan_out));
        let big = vec![b'x'; BUFFERED];
        let begun = Instant::now();
        input.write_all(&big).unwrap();
        input.write_all(&big).unwrap();
        assert!(!fan_out.is_deserted());
        assert!(input.write_all(&big).is_err(), "both are left behind, so the copy is of no use");
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}
