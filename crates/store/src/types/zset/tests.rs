use std::collections::{BTreeMap, BTreeSet};

use base::rng::Rng;
use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { entries: 12, value: 10 };

/// Texts that look like integers and others, few enough to meet again, some beyond the limit.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => (-12i64..12).prop_map(|value| value.to_string().into_bytes()),
        8 => "[a-c]{0,3}".prop_map(String::into_bytes),
        1 => (0u8..4, 10usize..150).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

/// Mostly few scores, so that members decide; sometimes any that a client may send.
fn score() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => (-3i32..3).prop_map(f64::from),
        2 => prop_oneof![Just(-0.0), Just(0.5), Just(f64::INFINITY), Just(f64::NEG_INFINITY)],
        1 => any::<f64>().prop_filter("not a number", |score| !score.is_nan()),
        1 => (-70i32..70).prop_map(|exponent| f64::from(exponent).exp2()),
    ]
}

#[derive(Debug, Clone)]
enum Step {
    Insert(Vec<u8>, f64),
    Remove(Vec<u8>),
    PopMin,
    PopMax,
    RemoveRanks(usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        40 => (text(), score()).prop_map(|(member, score)| Step::Insert(member, score)),
        6 => text().prop_map(Step::Remove),
        2 => Just(Step::PopMin),
        2 => Just(Step::PopMax),
        1 => (0usize..30, 0usize..5).prop_map(|(start, len)| Step::RemoveRanks(start, len)),
    ];
    prop::collection::vec(step, 1..100)
}

type Pair = (Vec<u8>, f64);

#[derive(Default)]
struct Model(BTreeMap<Vec<u8>, f64>);

impl Model {
    fn ranked(&self) -> Vec<Pair> {
        let mut pairs: Vec<Pair> = self.0.clone().into_iter().collect();
        pairs.sort_by(|left, right| {
            left.1.partial_cmp(&right.1).unwrap().then_with(|| left.0.cmp(&right.0))
        });
        pairs
    }

    fn take(&mut self, index: impl Fn(usize) -> usize) -> Option<Pair> {
        let ranked = self.ranked();
        let pair = ranked.get(index(ranked.len()))?.clone();
        self.0.remove(&pair.0);
        Some(pair)
    }
}

fn owned((member, score): (Element<'_>, f64)) -> Pair {
    (member.to_vec(), score)
}

fn popped(pair: Option<(OwnedElement, f64)>) -> Option<Pair> {
    pair.map(|(member, score)| owned((member.as_element(), score)))
}

/// Everything that reads, against the model.
fn compare(zset: &Zset, model: &Model) {
    let ranked = model.ranked();
    zset.check();
    assert_eq!(zset.len(), ranked.len());
    assert_eq!(zset.iter().len(), ranked.len());
    assert_eq!(zset.is_empty(), ranked.is_empty());
    assert_eq!(zset.iter().map(owned).collect::<Vec<_>>(), ranked);
    assert_eq!(zset.clone().iter().map(owned).collect::<Vec<_>>(), ranked);
    let mut backwards: Vec<Pair> = zset.iter().rev().map(owned).collect();
    backwards.reverse();
    assert_eq!(backwards, ranked);
    for (rank, (member, score)) in ranked.iter().enumerate() {
        assert_eq!(zset.rank(member), Some(rank));
        assert_eq!(zset.score(member), Some(*score));
        assert!(zset.contains(member));
    }
    assert!(!zset.contains(b"no such member"));
    assert_eq!(zset.rank(b"no such member"), None);

    let (mut scanned, mut position) = (BTreeMap::new(), Some(0));
    while let Some(at) = position {
        position = zset.scan(at, |member, score| {
            scanned.insert(member.to_vec(), score);
        });
    }
    assert_eq!(scanned, model.0);
}

fn compare_ranges(zset: &Zset, model: &Model, bounds: (f64, f64), ranks: Range<usize>) {
    let ranked = model.ranked();
    let (low, high) = bounds;
    let place = |is_before: &dyn Fn(f64) -> bool| {
        ranked.iter().take_while(|(_, score)| is_before(*score)).count()
    };
    let starts = [
        (ScoreBound::Inclusive(low), place(&|score| score < low)),
        (ScoreBound::Exclusive(low), place(&|score| score <= low)),
    ];
    let ends = [
        (ScoreBound::Inclusive(high), place(&|score| score <= high)),
        (ScoreBound::Exclusive(high), place(&|score| score < high)),
    ];
    for (min, start) in starts {
        for (max, end) in ends {
            assert_eq!(zset.rank_range_by_score(min, max), start..end.max(start));
        }
    }

    let end = ranks.end.min(ranked.len());
    let expected = &ranked[ranks.start.min(end)..end];
    assert_eq!(zset.range(ranks.clone()).map(owned).collect::<Vec<_>>(), expected);
    let mut meeting = zset.range(ranks);
    let (mut front, mut back) = (vec![], vec![]);
    while let Some(pair) = meeting.next() {
        front.push(owned(pair));
        back.extend(meeting.next_back().map(owned));
    }
    back.reverse();
    front.append(&mut back);
    assert_eq!(front, expected);
}

fn bound(kind: usize, member: &str) -> LexBound<'_> {
    match kind {
        0 => LexBound::Lowest,
        1 => LexBound::Highest,
        2 => LexBound::Inclusive(member.as_bytes()),
        _ => LexBound::Exclusive(member.as_bytes()),
    }
}

fn compare_random(zset: &Zset, model: &Model, rng: &mut Rng) {
    let is_there = |member: Element<'_>, score| model.0.get(&member.to_vec()) == Some(&score);
    assert_eq!(zset.random(rng).is_some(), !model.0.is_empty());
    for count in [0, 1, 3, 30] {
        let mut distinct = BTreeSet::new();
        zset.random_distinct(count, rng, |member, score| {
            assert!(is_there(member, score));
            assert!(distinct.insert(member.to_vec()));
        });
        assert_eq!(distinct.len(), count.min(model.0.len()));
        let mut repeated = 0;
        zset.random_repeating(count, rng, |member, score| {
            assert!(is_there(member, score));
            repeated += 1;
        });
        assert_eq!(repeated, if model.0.is_empty() { 0 } else { count });
    }
}

proptest! {
    #[test]
    fn behaves_as_an_ordered_map(
        steps in steps(),
        bounds in (score(), score()),
        ranks in (0usize..30, 0usize..30),
        seed: u64,
    ) {
        let (mut zset, mut model) = (Zset::new(), Model::default());
        let mut packed = true;
        for step in steps {
            match step {
                Step::Insert(member, score) => {
                    let expected = match model.0.get(&member) {
                        None => Insertion::Added,
                        Some(old) if *old == score => Insertion::Same,
                        Some(_) => Insertion::Updated,
                    };
                    prop_assert_eq!(zset.insert(&member, score, LIMITS), expected);
                    packed &= member.len() <= LIMITS.value;
                    if expected != Insertion::Same {
                        model.0.insert(member, score);
                    }
                    packed &= model.0.len() <= LIMITS.entries;
                }
                Step::Remove(member) => {
                    prop_assert_eq!(zset.remove(&member), model.0.remove(&member));
                }
                Step::PopMin => prop_assert_eq!(popped(zset.pop_min()), model.take(|_| 0)),
                Step::PopMax => {
                    prop_assert_eq!(popped(zset.pop_max()), model.take(|len| len.wrapping_sub(1)));
                }
                Step::RemoveRanks(start, len) => {
                    let removed = zset.remove_ranks(start..start + len);
                    let expected = (0..len).filter(|_| model.take(|_| start).is_some()).count();
                    prop_assert_eq!(removed, expected);
                }
            }
            prop_assert_eq!(zset.encoding(), if packed { "listpack" } else { "skiplist" });
        }
        compare(&zset, &model);
        compare_ranges(&zset, &model, bounds, ranks.0..ranks.1);
        compare_random(&zset, &model, &mut Rng::from_seed(seed));
        if let Some(listpack) = zset.as_listpack() {
            let bytes = Listpack::from_bytes(listpack.as_bytes()).unwrap();
            let loaded = Zset::from_listpack(bytes, Limits { entries: 3, value: 10 }).unwrap();
            prop_assert_eq!(loaded.is_packed(), model.0.len() <= 3);
            compare(&loaded, &model);
        }
        zset.unpack();
        compare(&zset, &model);
        compare_ranges(&zset, &model, bounds, ranks.0..ranks.1);
    }

    #[test]
    fn members_of_one_score_are_ranged_by_name(
        members in prop::collection::btree_set("[ab1]{0,3}", 0..30),
        bounds in ("[ab1]{0,3}", "[ab1]{0,3}"),
        kinds in (0usize..4, 0usize..4),
    ) {
        let limits = Limits { entries: 15, value: 10 };
        let mut zset = Zset::new();
        for member in members.iter().rev() {
            zset.insert(member.as_bytes(), 0.0, limits);
        }
        let (low, high) = (bounds.0.as_str(), bounds.1.as_str());
        let (min, max) = (bound(kinds.0, low), bound(kinds.1, high));
        let above = |member: &str| match min {
            LexBound::Lowest => true,
            LexBound::Highest => false,
            LexBound::Inclusive(_) => member >= low,
            LexBound::Exclusive(_) => member > low,
        };
        let below = |member: &str| match max {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Inclusive(_) => member <= high,
            LexBound::Exclusive(_) => member < high,
        };
        let expected: Vec<_> =
            members.iter().filter(|member| above(member) && below(member)).collect();
        let range = zset.rank_range_by_lex(min, max, false);
        prop_assert_eq!(zset.rank_range_by_lex(min, max, true).len(), range.len());
        let found: Vec<_> = zset.range(range).map(|pair| owned(pair).0).collect();
        prop_assert_eq!(found.len(), expected.len());
        prop_assert!(found.iter().zip(expected).all(|(found, name)| found == name.as_bytes()));
    }

    #[test]
    fn a_builder_sorts_and_packs(pairs in prop::collection::vec((text(), score()), 0..40)) {
        let (mut builder, mut model) = (ZsetBuilder::new(), Model::default());
        for (index, (member, score)) in pairs.iter().enumerate() {
            match index % 3 {
                0 => {
                    let is_new = !model.0.contains_key(member);
                    prop_assert_eq!(builder.add(member, *score), is_new);
                    model.0.entry(member.clone()).or_insert(*score);
                }
                1 => {
                    builder.merge(member, *score, f64::max);
                    let kept = model.0.entry(member.clone()).or_insert(*score);
                    *kept = kept.max(*score);
                }
                _ => {
                    prop_assert_eq!(builder.remove(member), model.0.remove(member).is_some());
                }
            }
            prop_assert_eq!(builder.score(member), model.0.get(member).copied());
        }
        prop_assert_eq!(builder.len(), model.0.len());
        let fits = model.0.len() <= LIMITS.entries
            && model.0.keys().all(|member| member.len() <= LIMITS.value);
        let zset = builder.finish(LIMITS);
        prop_assert_eq!(zset.is_packed(), fits);
        compare(&zset, &model);
    }

    #[test]
    fn any_listpack_is_taken_or_refused(
        elements in prop::collection::vec(prop_oneof![text(), "[-0-9e.]{1,6}".prop_map(String::into_bytes)], 0..12)
    ) {
        let listpack = Listpack::from_elements(elements.iter().map(Vec::as_slice));
        if let Ok(zset) = Zset::from_listpack(listpack, LIMITS) {
            zset.check();
            prop_assert_eq!(zset.len() * 2, elements.len());
        }
    }
}

#[test]
fn is_one_pointer() {
    assert_eq!(size_of::<Option<Zset>>(), 8);
    fn assert_send<T: Send + Sync>() {}
    assert_send::<Zset>();
}

#[test]
fn scores_are_stored_as_redis_does() {
    let stored = |score| {
        let mut zset = Zset::new();
        zset.insert(b"a", score, LIMITS);
        zset.as_listpack().unwrap().get(1).unwrap().to_owned_element()
    };
    // As a reference server dumps them: integers up to half the range of 64 bits.
    let integers = [
        (1.0, 1),
        (-1.0, -1),
        (-0.0, 0),
        (1e17, 100_000_000_000_000_000),
        (4.6e18, 4_600_000_000_000_000_000),
        (4_611_686_018_427_387_904.0, 4_611_686_018_427_387_904),
        (-4_611_686_018_427_387_904.0, -4_611_686_018_427_387_904),
    ];
    for (score, integer) in integers {
        assert_eq!(stored(score), OwnedElement::Int(integer));
    }
    let texts = [
        (1.5, "1.5"),
        (0.1, "0.1"),
        (1e-5, "0.00001"),
        (4.7e18, "4.7e+18"),
        (-4.7e18, "-4.7e+18"),
        (1e20, "1e+20"),
        (3.3333333333333335, "3.3333333333333335"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
    ];
    for (score, text) in texts {
        assert_eq!(stored(score).as_element(), Element::Str(text.as_bytes()));
    }
}

#[test]
fn listpacks_that_are_no_sorted_set_are_refused() {
    let load = |elements: &[&str]| {
        let elements = elements.iter().map(|element| element.as_bytes());
        Zset::from_listpack(Listpack::from_elements(elements), LIMITS).map(|zset| zset.len())
    };
    assert_eq!(load(&["a", "1", "b", "1", "10", "inf"]), Ok(3));
    assert_eq!(load(&["a", "1", "b"]), Err(Malformed::Unpaired));
    assert_eq!(load(&["a", "x"]), Err(Malformed::Score));
    assert_eq!(load(&["a", "nan"]), Err(Malformed::Score));
    assert_eq!(load(&["a", "2", "b", "1"]), Err(Malformed::Order));
    assert_eq!(load(&["b", "1", "a", "1"]), Err(Malformed::Order));
    assert_eq!(load(&["a", "1", "a", "1"]), Err(Malformed::Order));
    assert_eq!(load(&["a", "1", "a", "2"]), Err(Malformed::Duplicate));
}

#[test]
fn thousands_of_members_come_and_go() {
    let mut zset = Zset::new();
    let text = |number: u32| format!("member:{number:05}").into_bytes();
    let score = |number: u32| f64::from(number.wrapping_mul(2_654_435_761) >> 20);
    for number in 0..3000 {
        assert_eq!(zset.insert(&text(number), score(number), LIMITS), Insertion::Added);
        assert_eq!(zset.insert(&text(number), score(number), LIMITS), Insertion::Same);
        zset.insert(&text(number / 2), score(number + 1), LIMITS);
    }
    zset.check();
    zset.clone().check();
    let all = zset.memory_usage(usize::MAX);
    assert!(all < 3000 * 70, "{all} bytes");
    assert_eq!(zset.memory_usage(5), all);
    assert_eq!(zset.remove_ranks(100..1100), 1000);
    assert_eq!(zset.remove_ranks(5000..6000), 0);
    zset.check();
    let mut previous = None;
    while let Some((_, score)) = zset.pop_min() {
        assert!(previous.is_none_or(|previous| previous <= score));
        previous = Some(score);
    }
    assert!(zset.is_empty());
    zset.check();
}
