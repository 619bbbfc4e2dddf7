use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word ^ (word >> 29)
}

fn find<const SHARED: bool>(table: &Table<SHARED>, word: u64) -> Option<Position> {
    table.find(mix(word), |candidate| candidate == word)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn behaves_as_a_set(steps in prop::collection::vec((0u8..10, 1u64..900), 1..3000)) {
        let (mut table, mut model) = (Table::<false>::new(), BTreeSet::new());
        // Ten steps in a direction at a time, so that tables both grow and shrink.
        for (index, (kind, word)) in steps.into_iter().enumerate() {
            let grow = (index / 600) % 2 == 0;
            if (kind < 7) == grow {
                if model.insert(word) {
                    prop_assert!(find(&table, word).is_none());
                    table.insert(mix(word), word, mix);
                }
            } else if model.remove(&word) {
                let position = find(&table, word).expect("the model has it");
                prop_assert_eq!(table.remove(position), word);
            }
            prop_assert_eq!(table.len(), model.len());
        }
        table.check(mix);
        for word in 1..900 {
            prop_assert_eq!(find(&table, word).is_some(), model.contains(&word));
        }
    }

    #[test]
    fn a_walk_meets_all_that_stays(start in 0u64..2000, end in 0u64..2000, every in 1usize..20) {
        let mut table = Table::<false>::new();
        (1..=start).for_each(|word| table.insert(mix(word), word, mix));
        let (mut next, mut seen, mut position) = (start, BTreeSet::new(), Some(0));
        let mut step = 0;
        while let Some(at) = position {
            position = table.walk(at, |word| { seen.insert(word); });
            step += 1;
            // The table grows or shrinks towards `end` while the walk is under way.
            for _ in 0..every {
                if next < end {
                    next += 1;
                    table.insert(mix(next), next, mix);
                } else if next > end {
                    let position = find(&table, next).expect("not removed yet");
                    table.remove(position);
                    next -= 1;
                }
            }
            prop_assert!(step < 10_000);
        }
        for word in 1..=start.min(end) {
            prop_assert!(seen.contains(&word), "{word} was there all the time");
        }
    }
}

#[test]
fn grows_past_one_segment_and_gives_it_back() {
    let mut table = Table::<true>::new();
    (1..=20_000u64).for_each(|word| table.insert(mix(word), word, mix));
    table.check(mix);
    assert!(table.memory() < 20_000 * 18, "{} bytes", table.memory());
    assert!(table.random(base::rng::below).is_some());
    (1..=20_000u64).for_each(|word| prefetch_all(&table, mix(word)));
    (1..=20_000u64).for_each(|word| {
        let position = find(&table, word).expect("was put in");
        table.remove(position);
    });
    assert_eq!(table.memory(), 0);
    assert_eq!(table.walk(0, |_| panic!("nothing is left")), None);
    // SAFETY: no other thread looks at the table.
    unsafe { retire::collect(|| true) };
}

/// Prefetches what a hash leads to, as a batch does step by step.
fn prefetch_all(table: &Table<true>, hash: u64) {
    table.prefetch_bucket(hash);
    if table.prefetch_entry(hash) {
        table.prefetch_chained(hash);
    }
}

#[test]
fn a_reader_without_the_lock_finds_chained_buckets() {
    let mut table = Table::<true>::new();
    // All in one bucket, of which the last word gives way to a further one.
    let hash = |word: u64| word << 56 | 7;
    for word in 1..=7u64 {
        table.insert(hash(word), word, hash);
        assert!(!table.prefetch_entry(hash(word)) && !table.prefetch_entry(hash(99)));
    }
    (8..=9u64).for_each(|word| table.insert(hash(word), word, hash));
    let behind: Vec<u64> = (1..=9).filter(|word| table.prefetch_entry(hash(*word))).collect();
    assert_eq!(behind, [7, 8, 9]);
    behind.into_iter().for_each(|word| table.prefetch_chained(hash(word)));
    for word in 5..=9u64 {
        let position = table.find(hash(word), |found| found == word).expect("was put in");
        table.remove(position);
    }
    assert!(!table.prefetch_entry(hash(9)), "it is chained no more");
    table.drain(|_| ());
    // SAFETY: no other thread looks at the table.
    unsafe { retire::collect(|| true) };
}

/// A table, and the promise of the test that it is changed by one thread alone.
struct Watched(std::cell::UnsafeCell<Table<true>>);

// SAFETY: one thread makes exclusive references, one after another; the others only prefetch.
unsafe impl Sync for Watched {}

/// Growth through all forms of the root and back, while one thread reads without the lock and
/// another frees what was retired. Miri looks for what could go wrong: `make miri`.
#[test]
fn a_reader_without_the_lock_sees_whole_blocks() {
    const WORDS: u64 = if cfg!(miri) { 430 } else { 4000 };
    let table = Watched(std::cell::UnsafeCell::new(Table::new()));
    let gates = crate::locks::gate::Gates::new();
    let under_way = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        let (table, gates, under_way) = (&table, &gates, &under_way);
        scope.spawn(move || {
            let gate = gates.register();
            for step in 1..=2 * WORDS {
                let inside = gate.enter();
                // SAFETY: this is the one thread that makes exclusive references.
                let table = unsafe { &mut *table.0.get() };
                if step <= WORDS {
                    table.insert(mix(step), step, mix);
                } else {
                    let position = find(table, step - WORDS).expect("was put in");
                    table.remove(position);
                }
                drop(inside);
            }
            under_way.store(false, Relaxed);
        });
        scope.spawn(move || {
            let gate = gates.register();
            let mut word = 0;
            while under_way.load(Relaxed) {
                let inside = gate.enter();
                for _ in 0..8 {
                    word = word % WORDS + 1;
                    // SAFETY: a shared reference, of which only atomics are read, inside a gate.
                    prefetch_all(unsafe { &*table.0.get() }, mix(word));
                }
                drop(inside);
            }
        });
        scope.spawn(move || {
            while under_way.load(Relaxed) {
                // SAFETY: the thread that reads without the lock is inside one of these gates.
                unsafe { retire::collect(|| gates.pass()) };
                std::thread::yield_now();
            }
        });
    });
    // SAFETY: no other thread is left.
    unsafe { retire::collect(|| true) };
}

#[test]
fn hashes_that_agree_still_chain() {
    let mut table = Table::<false>::new();
    (1..=100u64).for_each(|word| table.insert(7, word, |_| 7));
    for word in 1..=100u64 {
        let position = table.find(7, |candidate| candidate == word).expect("chained");
        table.remove(position);
    }
    assert!(table.is_empty());
}

/// A table of words that hash as told.
fn table_of(words: std::ops::RangeInclusive<u64>, hash_of: impl Fn(u64) -> u64) -> Table {
    let mut table = Table::new();
    words.for_each(|word| table.insert(hash_of(word), word, &hash_of));
    table.check(&hash_of);
    table
}

/// The hashes of all words from `first` on agree, so that they make one long chain.
fn lopsided(first: u64) -> impl Fn(u64) -> u64 {
    move |word| if word < first { mix(word) } else { 5 }
}

/// Draws until every word was drawn. With this many draws, a word of `len` is missed with a chance
/// of one in five hundred million.
fn assert_all_are_drawn(table: &Table) {
    let (len, mut rng) = (table.len(), base::rng::Rng::from_seed(24));
    let mut seen = BTreeSet::new();
    let draws = len as f64 * ((len as f64).ln() + 20.0);
    for _ in 0..draws as usize {
        seen.extend(table.random(|bound| rng.below(bound)));
        if seen.len() == len {
            return;
        }
    }
    panic!("{} of {len} words were never drawn", len - seen.len());
}

/// Pearson's test: the sum of squared deviations is as far from its mean as five in a million are.
fn assert_chances_are_equal(table: &Table, words: std::ops::RangeInclusive<u64>) {
    const DRAWS_PER_WORD: usize = 100;
    let (len, mut rng) = (table.len(), base::rng::Rng::from_seed(25));
    let mut counts = vec![0u32; len];
    for _ in 0..len * DRAWS_PER_WORD {
        let word = table.random(|bound| rng.below(bound)).expect("the table has words");
        counts[(word - words.start()) as usize] += 1;
    }
    let expected = DRAWS_PER_WORD as f64;
    let deviation = |&count: &u32| (f64::from(count) - expected).powi(2) / expected;
    let sum: f64 = counts.iter().map(deviation).sum();
    let freedom = (len - 1) as f64;
    let bound = 4.6 * (2.0 * freedom).sqrt();
    assert!((sum - freedom).abs() < bound, "{len} words: {sum} is not {freedom} +- {bound}");
}

#[test]
fn every_word_can_be_drawn() {
    for len in [1, 7, 8, 13, 14, 50, 700, 11_000] {
        assert_all_are_drawn(&table_of(1..=len, mix));
    }
    // Chains that are longer than hashes make by chance, and longer than the table counts.
    assert_all_are_drawn(&table_of(1..=500, lopsided(400)));
    assert_all_are_drawn(&table_of(1..=1200, lopsided(300)));
}

#[test]
fn words_are_drawn_with_equal_chances() {
    for len in [2, 13, 14, 100, 3_000] {
        assert_chances_are_equal(&table_of(1..=len, mix), 1..=len);
    }
    assert_chances_are_equal(&table_of(1..=500, lopsided(400)), 1..=500);
    assert_chances_are_equal(&table_of(1..=1200, lopsided(300)), 1..=1200);
}

#[test]
fn draws_are_quick_again_when_a_long_chain_is_gone() {
    for long in [80, 1_000] {
        let hash_of = lopsided(2_001);
        let mut table = table_of(1..=2_000 + long, &hash_of);
        for word in 2_001..=2_000 + long {
            let position = table.find(5, |candidate| candidate == word).expect("was put in");
            table.remove(position);
        }
        let before = table.longest_chain();
        assert!(before > 9, "{before} further buckets");
        let mut rng = base::rng::Rng::from_seed(26);
        let mut drawn = 0;
        while table.longest_chain() == before {
            table.random(|bound| rng.below(bound));
            drawn += 1;
            assert!(drawn < 1_000_000, "the bound stays");
        }
        table.check(&hash_of);
        assert_chances_are_equal(&table, 1..=2_000);
    }
}

#[test]
#[should_panic(expected = "full tables are refused before")]
fn a_count_of_words_does_not_wrap() {
    let mut table = Table::<false>::new();
    table.insert(1, 1, mix);
    table.len.store(u32::MAX, Relaxed);
    table.insert(2, 2, mix);
}

/// Goes through all numbers of words that a table of keys has while its bucket is small, and
/// beyond, there and back, and finds every word each time.
#[test]
fn a_small_bucket_becomes_a_full_one_and_keeps_its_words() {
    let mut table = Table::<true>::new();
    let block = |table: &Table<true>| match table.root() {
        Root::Single(_, capacity) => bucket_layout(capacity).size(),
        _ => 0,
    };
    for last in 1..=20 {
        table.insert(mix(last), last, mix);
        table.check(mix);
        assert!((1..=last).all(|word| find(&table, word).is_some()));
        assert_eq!(block(&table) == 32, last <= FEW as u64, "{last} words");
    }
    for last in (1..=20).rev() {
        let position = find(&table, last).expect("it is there");
        assert_eq!(table.remove(position), last);
        table.check(mix);
        assert!((1..last).all(|word| find(&table, word).is_some()));
    }
    assert_eq!(block(&table), 0);
    // Words are added to the small bucket and removed, drawn, walked over and drained there.
    for word in 1..100u64 {
        table.insert(mix(word), word, mix);
        if word > 3 {
            let position = find(&table, word - 3).expect("it is there");
            table.remove(position);
        }
        table.check(mix);
        let mut walked = Vec::new();
        assert_eq!(table.walk(0, |found| walked.push(found)), None);
        walked.sort_unstable();
        assert_eq!(walked, (word.saturating_sub(2).max(1)..=word).collect::<Vec<_>>());
        for number in 0..table.len() as u64 {
            assert!(walked.contains(&table.random(|_| number).expect("there are words")));
        }
        prefetch_all(&table, mix(word));
    }
    let mut drained = Vec::new();
    table.drain(|word| drained.push(word));
    drained.sort_unstable();
    assert_eq!(drained, [97, 98, 99]);
}
