//! Known scripts, by the SHA-1 of their texts.
//!
//! Scripts from SCRIPT LOAD stay until SCRIPT FLUSH. Scripts from EVAL are dropped when there are
//! too many of them, the least recently used first: programs that put values into the text of a
//! script would otherwise fill the memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use base::limits;
use hashbrown::HashMap;
use parking_lot::RwLock;
use sha1::{Digest, Sha1};

use crate::script::emptying;
use crate::script::shebang::ScriptFlags;

/// 40 hexadecimal digits in lower case.
pub type Sha = [u8; 40];

/// The SHA-1 of a text.
pub fn sha_of(text: &[u8]) -> Sha {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; 40];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(Sha1::digest(text)) {
        pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
    digits
}

/// Milliseconds for which a script takes all slots after it has waited for one for long.
const TAKES_ALL_FOR: u64 = 1000;

/// A script.
pub struct Script {
    /// Its number: no other text ever has it.
    pub id: u64,
    /// Its name.
    pub sha: Sha,
    /// The flags in its first line.
    pub flags: ScriptFlags,
    text: Box<[u8]>,
    /// Where in the text the code begins.
    code_at: usize,
    /// It is among those that are known.
    known: AtomicBool,
    /// It came with SCRIPT LOAD.
    loaded: AtomicBool,
    /// The last use, as [`crate::turn::Turn::clock`], to the millisecond.
    used: AtomicU64,
    /// Until when it takes all slots at the start, in milliseconds of the monotonic clock.
    takes_all_until: AtomicU64,
    /// It stops the world from the start: see [`crate::script::emptying`].
    pub may_empty: bool,
}

impl Script {
    /// The whole text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The text that is compiled.
    pub fn code(&self) -> &[u8] {
        &self.text[self.code_at..]
    }

    /// Whether it can still be called.
    pub fn is_known(&self) -> bool {
        self.known.load(Relaxed)
    }

    /// Notes a use. Other threads read it too, so this writes once a millisecond at most.
    fn note_use(&self, clock: u64) {
        let millisecond = clock / 1000;
        if self.used.load(Relaxed) != millisecond {
            self.used.store(millisecond, Relaxed);
        }
    }

    /// It has waited for long for a slot after it had written: for some time it takes all slots at
    /// the start. That is slow, and who had the slot may be gone soon.
    pub fn note_wait(&self, monotonic: u64) {
        self.takes_all_until.store(monotonic + TAKES_ALL_FOR, Relaxed);
    }

    /// Whether it takes all slots at the start.
    pub fn takes_all(&self, monotonic: u64) -> bool {
        self.takes_all_until.load(Relaxed) > monotonic
    }

    /// It stays: SCRIPT LOAD. Must be called while it is known and cannot be forgotten.
    fn keep(&self) {
        self.loaded.store(true, Relaxed);
    }

    fn memory(&self) -> usize {
        self.text.len() + size_of::<Script>()
    }
}

/// All known scripts.
#[derive(Default)]
pub struct Cache {
    scripts: RwLock<HashMap<Sha, Arc<Script>>>,
    /// Grows when a script goes.
    generation: AtomicU64,
    bytes: AtomicUsize,
    evicted: AtomicU64,
}

/// How a script comes to be known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// By EVAL.
    Eval,
    /// By SCRIPT LOAD.
    Load,
}

impl Cache {
    /// A script by its name, which may be in any case.
    pub fn find(&self, sha: &[u8]) -> Option<Arc<Script>> {
        let sha = Sha::try_from(sha).ok()?.to_ascii_lowercase();
        self.scripts.read().get(&Sha::try_from(sha).ok()?).cloned()
    }

    /// Makes a script stay that is known, by its text. Meanwhile it is not forgotten.
    pub fn keep(&self, text: &[u8]) -> Option<Arc<Script>> {
        let scripts = self.scripts.read();
        let script = scripts.get(&sha_of(text))?;
        script.keep();
        Some(Arc::clone(script))
    }

    /// Makes a script known. A script that is known already stays the same.
    pub fn add(&self, script: Script, origin: Origin, clock: u64) -> Arc<Script> {
        let mut scripts = self.scripts.write();
        let script = match scripts.get(&script.sha) {
            Some(known) => Arc::clone(known),
            None => {
                let script = Arc::new(script);
                self.bytes.fetch_add(script.memory(), Relaxed);
                scripts.insert(script.sha, Arc::clone(&script));
                script
            }
        };
        script.note_use(clock);
        match origin {
            Origin::Load => script.keep(),
            Origin::Eval => self.evict(&mut scripts, &script),
        }
        script
    }

    /// A script that other threads do not know yet.
    pub fn make(id: u64, text: &[u8], flags: ScriptFlags, code_at: usize) -> Script {
        Script {
            id,
            sha: sha_of(text),
            flags,
            text: text.into(),
            code_at,
            known: AtomicBool::new(true),
            loaded: AtomicBool::new(false),
            used: AtomicU64::new(0),
            takes_all_until: AtomicU64::new(0),
            may_empty: emptying::is_named_in(text),
        }
    }

    /// Forgets the scripts of EVAL that were used least recently, while there are too many; never
    /// `newest`.
    fn evict(&self, scripts: &mut HashMap<Sha, Arc<Script>>, newest: &Script) {
        let passing = |script: &&Arc<Script>| !script.loaded.load(Relaxed);
        while scripts.values().filter(passing).count() > limits::EVAL_SCRIPTS {
            let others = scripts.values().filter(passing).filter(|script| script.id != newest.id);
            let oldest = others.min_by_key(|script| (script.used.load(Relaxed), script.id));
            let Some(sha) = oldest.map(|script| script.sha) else { return };
            if let Some(script) = scripts.remove(&sha) {
                self.forget(&script);
                self.evicted.fetch_add(1, Relaxed);
            }
        }
    }

    fn forget(&self, script: &Script) {
        script.known.store(false, Relaxed);
        self.bytes.fetch_sub(script.memory(), Relaxed);
        self.generation.fetch_add(1, Relaxed);
    }

    /// Forgets all.
    pub fn flush(&self) {
        for (_, script) in self.scripts.write().drain() {
            self.forget(&script);
        }
    }

    /// Scripts.
    pub fn len(&self) -> usize {
        self.scripts.read().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that they take.
    pub fn memory(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Scripts that were dropped to make room.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }

    /// Sets [`Cache::evicted`] to nothing.
    pub fn reset_statistics(&self) {
        self.evicted.store(0, Relaxed);
    }
}

/// The scripts that one thread has looked up, by their texts and names, so that it rarely needs the
/// shared ones.
#[derive(Default)]
pub struct Lookups {
    generation: u64,
    by_text: HashMap<Box<[u8]>, Arc<Looked>>,
    by_sha: HashMap<Sha, Arc<Looked>>,
}

/// A script as one thread has it: the count of its uses is not shared.
pub struct Looked(Arc<Script>);

impl std::ops::Deref for Looked {
    type Target = Script;

    fn deref(&self) -> &Script {
        &self.0
    }
}

impl Lookups {
    /// Forgets scripts that were dropped.
    fn follow(&mut self, cache: &Cache) {
        let generation = cache.generation.load(Relaxed);
        let is_full = self.by_text.len() + self.by_sha.len() > 2 * limits::EVAL_SCRIPTS;
        if self.generation != generation || is_full {
            self.generation = generation;
            self.by_text.clear();
            self.by_sha.clear();
        }
    }

    /// Finds a script by its text.
    pub fn by_text(&mut self, cache: &Cache, text: &[u8], clock: u64) -> Option<Arc<Looked>> {
        self.follow(cache);
        if let Some(script) = self.by_text.get(text) {
            script.note_use(clock);
            return Some(Arc::clone(script));
        }
        let script = cache.find(&sha_of(text))?;
        Some(self.note(script, Some(text), clock))
    }

    /// Finds a script by the SHA-1 of its text, in hexadecimal digits.
    pub fn by_sha(&mut self, cache: &Cache, sha: &[u8], clock: u64) -> Option<Arc<Looked>> {
        self.follow(cache);
        if let Some(script) = Sha::try_from(sha).ok().and_then(|sha| self.by_sha.get(&sha)) {
            script.note_use(clock);
            return Some(Arc::clone(script));
        }
        let script = cache.find(sha)?;
        Some(self.note(script, None, clock))
    }

    /// Remembers a script.
    pub fn note(&mut self, script: Arc<Script>, text: Option<&[u8]>, clock: u64) -> Arc<Looked> {
        script.note_use(clock);
        let looked = Arc::new(Looked(script));
        match text {
            Some(text) => self.by_text.insert(text.into(), Arc::clone(&looked)),
            None => self.by_sha.insert(looked.sha, Arc::clone(&looked)),
        };
        looked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(cache: &Cache, text: &str, origin: Origin, second: u64) -> Arc<Script> {
        let script = Cache::make(second, text.as_bytes(), 0, 0);
        cache.add(script, origin, second * 1_000_000)
    }

    #[test]
    fn names_are_those_of_the_reference() {
        assert_eq!(&sha_of(b""), b"da39a3ee5e6b4b0d3255bfef95601890afd80709");
    }

    #[test]
    fn scripts_of_eval_go_when_there_are_too_many() {
        let cache = Cache::default();
        let kept = add(&cache, "loaded", Origin::Load, 1);
        let first = add(&cache, "first", Origin::Eval, 2);
        let second = add(&cache, "second", Origin::Eval, 3);
        for count in 0..limits::EVAL_SCRIPTS - 2 {
            add(&cache, &format!("script {count}"), Origin::Eval, 10 + count as u64);
        }
        assert_eq!((cache.len(), cache.evicted()), (limits::EVAL_SCRIPTS + 1, 0));
        // A use keeps it.
        let mut lookups = Lookups::default();
        assert!(lookups.by_text(&cache, b"first", 2_000_000_000).is_some());
        add(&cache, "one more", Origin::Eval, 3000);
        assert!(first.is_known() && kept.is_known() && !second.is_known());
        assert_eq!(cache.evicted(), 1);
        assert!(lookups.by_sha(&cache, &sha_of(b"second"), 0).is_none());
        let upper = sha_of(b"first").to_ascii_uppercase();
        assert!(lookups.by_sha(&cache, &upper, 0).is_some());
        cache.flush();
        assert!(cache.is_empty() && cache.memory() == 0);
        assert!(lookups.by_text(&cache, b"first", 0).is_none());
    }

    #[test]
    fn a_script_that_was_loaded_is_known_whatever_others_forget_meanwhile() {
        let (cache, newest) = (Cache::default(), AtomicUsize::new(0));
        let text = |number: usize| format!("script {number}");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..20_000 {
                    add(&cache, &text(number), Origin::Eval, number as u64);
                    newest.store(number, Relaxed);
                }
            });
            let (mut loaded, mut number) = (Vec::new(), 0);
            while number < 19_999 {
                number = newest.load(Relaxed);
                // The ones that go next.
                for oldest in number.saturating_sub(limits::EVAL_SCRIPTS)..number {
                    if let Some(script) = cache.keep(text(oldest).as_bytes()) {
                        loaded.push(script);
                        break;
                    }
                }
            }
            assert!(loaded.iter().all(|script| script.is_known()));
        });
    }

    #[test]
    fn a_script_that_has_waited_takes_all_slots_for_a_while() {
        let script = add(&Cache::default(), "s", Origin::Eval, 1);
        assert!(!script.takes_all(5000));
        script.note_wait(5000);
        assert!(script.takes_all(5000) && script.takes_all(5999));
        assert!(!script.takes_all(6000));
    }

    #[test]
    fn a_script_that_is_loaded_later_stays() {
        let cache = Cache::default();
        let script = add(&cache, "s", Origin::Eval, 1);
        add(&cache, "s", Origin::Load, 1);
        for count in 0..=limits::EVAL_SCRIPTS {
            add(&cache, &format!("script {count}"), Origin::Eval, 10);
        }
        assert!(script.is_known());
    }
}
