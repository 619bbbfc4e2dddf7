//! The thread that frees memory when that would take a worker too long.

use std::io;
use std::sync::mpsc::{self, Sender};

use process::thread;

/// Something to be freed.
type Garbage = Box<dyn Send>;

/// See the docs of the module. The thread ends when this is dropped.
pub struct Freeing(Sender<Garbage>);

impl Freeing {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn start() -> io::Result<Freeing> {
        let (sender, receiver) = mpsc::channel::<Garbage>();
        thread::start("freeing", move || {
            for garbage in receiver {
                drop(garbage);
                process::memory::publish();
            }
        })?;
        Ok(Freeing(sender))
    }

    /// Gives something to the thread.
    pub fn free_later(&self, garbage: Garbage) {
        // If the thread is gone, the error gives the garbage back, and it is freed here.
        let _ = self.0.send(garbage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NotesDrop(Sender<()>);

    impl Drop for NotesDrop {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
        }
    }

    #[test]
    fn everything_is_freed() {
        let (told, freed) = mpsc::channel();
        let freeing = Freeing::start().unwrap();
        for _ in 0..100 {
            freeing.free_later(Box::new(NotesDrop(told.clone())));
        }
        drop(told);
        assert_eq!(freed.iter().count(), 100);
    }
}
