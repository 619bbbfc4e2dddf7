//! The tree against a sorted vector.

use std::cell::Cell;

use proptest::prelude::*;

use super::*;

/// An element as a sorted set would own it.
#[derive(Debug)]
struct Element {
    score: Cell<f64>,
    member: Vec<u8>,
}

impl RankedItem for &Element {
    fn score(&self) -> f64 {
        self.score.get()
    }

    fn member(&self) -> &[u8] {
        &self.member
    }
}

/// Elements with distinct members; `spread` is the number of distinct scores.
fn elements(count: usize, spread: usize) -> Vec<Element> {
    (0..count)
        .map(|number| {
            // A fixed permutation of the numbers makes scores and members disagree in order.
            let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
            let score = Cell::new((mixed % spread) as f64);
            Element { score, member: mixed.to_string().into_bytes() }
        })
        .collect()
}

fn sorted(elements: &[Element]) -> Vec<&Element> {
    let mut items: Vec<&Element> = elements.iter().collect();
    items.sort_by(|a, b| compare(a.score(), a.member(), b.score(), b.member()));
    items
}

fn assert_same(tree: &Ranked<&Element>, model: &[&Element]) {
    tree.check();
    assert_eq!(tree.len(), model.len());
    assert!(tree.iter().zip(model).all(|(item, other)| std::ptr::eq(item, *other)));
    assert!(tree.iter().rev().zip(model.iter().rev()).all(|(a, b)| std::ptr::eq(a, *b)));
}

fn bytes_per_element(tree: &Ranked<&Element>) -> f64 {
    tree.memory_usage() as f64 / tree.len() as f64
}

#[test]
fn ascending_inserts_and_bulk_builds_leave_full_nodes() {
    let elements = elements(40_000, usize::MAX);
    let items = sorted(&elements);
    let mut tree = Ranked::new();
    for item in &items {
        tree.insert(*item);
    }
    assert_same(&tree, &items);
    assert!(bytes_per_element(&tree) < 9.0, "{}", bytes_per_element(&tree));

    let built = Ranked::from_sorted(items.iter().copied());
    assert_same(&built, &items);
    assert!(bytes_per_element(&built) < 9.0, "{}", bytes_per_element(&built));
}

#[test]
fn random_and_descending_inserts_fill_nodes_well() {
    let elements = elements(40_000, 1 << 30);
    let mut random = Ranked::new();
    for element in &elements {
        random.insert(element);
    }
    let items = sorted(&elements);
    assert_same(&random, &items);
    assert!(bytes_per_element(&random) < 12.0, "{}", bytes_per_element(&random));

    let mut descending = Ranked::new();
    for item in items.iter().rev() {
        descending.insert(*item);
    }
    assert_same(&descending, &items);
    assert!(bytes_per_element(&descending) < 12.0, "{}", bytes_per_element(&descending));
}

#[test]
fn a_queue_keeps_its_invariants() {
    let elements = elements(5_000, usize::MAX);
    let items = sorted(&elements);
    let mut tree = Ranked::new();
    for (number, item) in items.iter().enumerate() {
        tree.insert(*item);
        if number >= 700 {
            let popped = tree.pop_first().expect("700 are left");
            assert!(std::ptr::eq(popped, items[number - 700]));
        }
        if number % 97 == 0 {
            tree.check();
        }
    }
    for number in (4_300..5_000).rev() {
        let popped = tree.pop_last().expect("not yet empty");
        assert!(std::ptr::eq(popped, items[number]));
        tree.check();
    }
    assert!(tree.is_empty() && tree.pop_last().is_none() && tree.pop_first().is_none());
}

#[test]
fn signed_zeros_are_equal_and_infinities_are_ordinary() {
    let scores = [f64::NEG_INFINITY, -0.0, 0.0, f64::INFINITY];
    let elements = ["d", "b", "a", "c"].map(|member| member.as_bytes().to_vec());
    let elements: Vec<Element> = scores
        .into_iter()
        .zip(elements)
        .map(|(score, member)| Element { score: Cell::new(score), member })
        .collect();
    let mut tree = Ranked::new();
    elements.iter().for_each(|element| tree.insert(element));
    let members: Vec<&[u8]> = tree.iter().map(|item| &item.member[..]).collect();
    assert_eq!(members, [b"d", b"a", b"b", b"c"]);
    assert_eq!(tree.rank_of(0.0, b"b"), Some(2));
    assert_eq!(tree.rank_of(-0.0, b"a"), Some(1));
    assert_eq!(tree.count_below(f64::INFINITY), 3);
    assert_eq!(tree.count_up_to(f64::NEG_INFINITY), 1);
    assert_eq!(tree.count_up_to(-0.0), 3);
}

#[test]
fn a_removed_element_may_be_freed_at_once() {
    let elements = elements(3_000, 5);
    let items = sorted(&elements);
    let mut tree = Ranked::from_sorted(items.iter().copied());
    let mut next = 500;
    tree.remove_ranks(500, 2_600, |item| {
        assert!(std::ptr::eq(item, items[next]));
        next += 1;
        // A freed element could contain anything. The tree must not look at it again.
        item.score.set(f64::NAN);
    });
    assert_eq!(next, 2_600);
    let left: Vec<&Element> = items[..500].iter().chain(&items[2_600..]).copied().collect();
    assert_same(&tree, &left);
}

#[derive(Clone, Debug)]
enum Step {
    Insert { element: usize, count: usize },
    Remove { element: usize, count: usize },
    Rescore { element: usize, score: f64 },
    RemoveRanks { start: usize, count: usize },
    Rebuild,
    Clear,
}

const POPULATION: usize = 9_000;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..POPULATION, 1..5_000usize)
            .prop_map(|(element, count)| Step::Insert { element, count }),
        2 => (0..POPULATION, 1..4_000usize)
            .prop_map(|(element, count)| Step::Remove { element, count }),
        6 => (0..POPULATION, -3..20i32)
            .prop_map(|(element, score)| Step::Rescore { element, score: score.into() }),
        2 => (0..POPULATION, 0..4_000usize)
            .prop_map(|(start, count)| Step::RemoveRanks { start, count }),
        1 => Just(Step::Rebuild),
        1 => Just(Step::Clear),
    ];
    prop::collection::vec(step, 1..40)
}

/// The model: a sorted vector of the elements present.
struct Model<'a> {
    present: Vec<&'a Element>,
}

impl<'a> Model<'a> {
    fn place(&self, item: &Element) -> Result<usize, usize> {
        self.present.binary_search_by(|other| {
            compare(other.score.get(), &other.member, item.score.get(), &item.member)
        })
    }
}

fn apply<'a>(
    step: &Step,
    elements: &'a [Element],
    tree: &mut Ranked<&'a Element>,
    model: &mut Model<'a>,
) {
    let some = |from: usize, count: usize| elements.iter().cycle().skip(from).take(count);
    match *step {
        Step::Insert { element, count } => {
            for item in some(element, count) {
                if let Err(place) = model.place(item) {
                    model.present.insert(place, item);
                    tree.insert(item);
                }
            }
        }
        Step::Remove { element, count } => {
            for item in some(element, count) {
                let expected = model.place(item).ok().map(|place| model.present.remove(place));
                let removed = tree.remove(item.score.get(), &item.member);
                assert_eq!(removed.map(std::ptr::from_ref), expected.map(std::ptr::from_ref));
            }
        }
        Step::Rescore { element, score } => {
            let item = &elements[element];
            let place = model.place(item);
            let was_present = tree.rescore(item, score, |item, score| item.score.set(score));
            assert_eq!(was_present, place.is_ok());
            if let Ok(place) = place {
                model.present.remove(place);
                let place = model.place(item).expect_err("removed just now");
                model.present.insert(place, item);
            }
        }
        Step::RemoveRanks { start, count } => {
            let end = (start + count).min(model.present.len());
            let expected: Vec<_> =
                model.present.drain(start.min(end)..end).map(std::ptr::from_ref).collect();
            let mut removed = Vec::new();
            tree.remove_ranks(start, start + count, |item| {
                removed.push(std::ptr::from_ref(item));
            });
            assert_eq!(removed, expected);
        }
        Step::Rebuild => *tree = Ranked::from_sorted(model.present.iter().copied()),
        Step::Clear => {
            model.present.clear();
            tree.clear();
        }
    }
}

fn assert_answers(tree: &Ranked<&Element>, model: &Model<'_>, elements: &[Element]) {
    assert_same(tree, &model.present);
    for element in elements.iter().step_by(31) {
        let expected = model.place(element).ok();
        assert_eq!(tree.rank_of(element.score.get(), &element.member), expected);
        let same = |item: &&Element| std::ptr::eq(*item, element);
        assert!(expected.is_none_or(|rank| tree.get(rank).is_some_and(|item| same(&item))));
    }
    for score in [-4.0, -0.5, 0.0, 3.0, 7.5, 19.0, 30.0] {
        let below = model.present.partition_point(|item| item.score.get() < score);
        let up_to = model.present.partition_point(|item| item.score.get() <= score);
        assert_eq!(tree.count_below(score), below);
        assert_eq!(tree.count_up_to(score), up_to);
        let before = |item: &Element| (item.score.get(), &item.member[..]) < (score, b"5");
        assert_eq!(
            tree.partition_point(|item| before(item)),
            model.present.partition_point(|item| before(item)),
        );
        // A range from there, eaten from both ends.
        let mut range = tree.range(below..up_to + 9);
        let mut expected = model.present[below..(up_to + 9).min(model.present.len())].iter();
        while let Some(item) = expected.next() {
            assert_eq!(range.len(), expected.len() + 1);
            assert!(range.next().is_some_and(|other| std::ptr::eq(other, *item)));
            let last = expected.next_back().map(|item| std::ptr::from_ref(*item));
            assert_eq!(range.next_back().map(std::ptr::from_ref), last);
        }
        assert!(range.next().is_none() && range.next_back().is_none());
    }
    assert!(tree.get(model.present.len()).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn behaves_as_a_sorted_vector(steps in steps(), spread in 1..60usize) {
        let elements = elements(POPULATION, spread);
        let mut tree = Ranked::new();
        let mut model = Model { present: Vec::new() };
        for step in &steps {
            apply(step, &elements, &mut tree, &mut model);
            assert_answers(&tree, &model, &elements);
        }
    }
}
