//! Lists against a deque of byte strings, with snapshots taken on the way.

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::pack::Element;

fn texts(items: Items<'_>) -> Vec<Vec<u8>> {
    items.map(|item| item.as_element().to_vec()).collect()
}

fn list(elements: &[&[u8]], limits: &ListLimits) -> List {
    let mut list = List::new();
    for element in elements {
        list.push(End::Back, *element, limits);
    }
    list
}

#[test]
fn handles_are_thin_and_short_lists_are_one_block() {
    assert_eq!(size_of::<List>(), 8);
    assert_eq!(size_of::<Option<List>>(), 8);
    assert_eq!(size_of::<Slot>(), 16);
    let short = list(&[b"abc"], &ListLimits::default());
    assert_eq!(short.memory_usage(), 32);
}

#[test]
fn a_long_list_costs_little_more_than_its_elements() {
    let mut list = List::new();
    let limits = ListLimits::default();
    for index in 0..100_000 {
        let text = format!("{index:0>100}x");
        list.push(End::Front, &text.as_bytes()[1..], &limits);
    }
    assert_eq!(list.len(), 100_000);
    list.check();
    let each = list.memory_usage() as f64 / 100_000.0;
    assert!(each < 104.4, "{each} bytes for each element of 100");
}

#[test]
fn a_large_element_is_kept_and_given_as_it_came() {
    let limits = ListLimits::default();
    let mut list = list(&[b"a", b"b"], &limits);
    let large = Arc::new(vec![b'x'; 1 << 20]);
    list.push(End::Front, Arc::clone(&large), &limits);
    list.push(End::Front, b"c", &limits);
    assert!(matches!(list.get(1), Some(ListItem::Plain(text)) if Arc::ptr_eq(text, &large)));
    assert!(matches!(list.nodes().nth(1), Some(NodeRef::Plain(text)) if text.len() == 1 << 20));
    assert_eq!(list.pop(End::Front).unwrap().as_element(), Element::Str(b"c"));
    assert!(
        matches!(list.pop(End::Front), Some(Popped::Plain(text)) if Arc::ptr_eq(&text, &large))
    );
    assert_eq!(list.node_count(), 1);
    list.check();
}

#[test]
fn the_packed_threshold_makes_even_short_elements_plain() {
    let limits = ListLimits::new(2, 4);
    let mut list = list(&[b"abcd", b"1234567"], &limits);
    assert!(list.is_listpack(), "a small list has no other nodes");
    for element in [&b"abc"[..], b"abcd", b"1234567"] {
        list.push(End::Back, element, &limits);
    }
    let plain = list.nodes().filter(|node| matches!(node, NodeRef::Plain(_))).count();
    assert_eq!(plain, 2);
}

#[test]
fn a_positive_fill_bounds_the_elements_of_a_node() {
    let limits = ListLimits::new(3, 1 << 30);
    let list = list(&[b"1", b"2", b"3", b"4", b"5", b"6", b"7"], &limits);
    assert_eq!(list.node_count(), 3);
}

#[test]
fn what_is_added_makes_a_listpack_a_chain_and_half_of_the_limit_a_listpack_again() {
    let limits = ListLimits::new(4, 1 << 30);
    let mut list = list(&[b"1", b"2", b"3", b"4"], &limits);
    assert_eq!(list.encoding(), "listpack");
    let mut other = list.clone();
    other.expect(1, 1, &limits);
    assert_eq!(other.encoding(), "quicklist");
    list.push(End::Back, b"5", &limits);
    assert_eq!(list.encoding(), "quicklist");
    for left in [4, 3, 2] {
        list.pop(End::Back);
        list.shrink(&limits);
        assert_eq!(list.encoding(), if left > 2 { "quicklist" } else { "listpack" });
    }
    other.choose_encoding(&limits);
    assert_eq!(other.encoding(), "listpack");
    // Replacing looks at the size with the new element before it looks at whether the index exists.
    assert!(!other.set(7, b"x", &limits));
    assert_eq!(other.encoding(), "quicklist");
    // Only the text counts, and whether all of it fits the bytes.
    let limits = ListLimits::new(-1, 1 << 30);
    let mut list = List::new();
    list.push(End::Back, &[b'x'; 4080], &limits);
    for pushed in 1..5 {
        list.push(End::Front, b"", &limits);
        assert_eq!(list.is_listpack(), pushed < 4);
    }
    // Two nodes remain, then one.
    list.trim(0, 2);
    list.shrink(&limits);
    assert!(!list.is_listpack());
    list.pop(End::Front);
    list.shrink(&limits);
    assert!(list.is_listpack());
}

#[test]
fn a_list_that_was_drained_gives_its_memory_back() {
    let limits = ListLimits::default();
    let mut list = List::new();
    for index in 0..50_000 {
        list.push(End::Back, format!("element {index}").as_bytes(), &limits);
    }
    while list.len() > 2 {
        list.pop(End::Front);
        list.shrink(&limits);
    }
    assert!(list.memory_usage() <= 192, "{}", list.memory_usage());
    list.check();
}

#[test]
fn damaged_nodes_leave_the_list_as_it_was() {
    let limits = ListLimits::default();
    let mut list = list(&[b"a"], &limits);
    assert!(list.push_packed_node(b"\x09\0\0\0\x01\0\x81a\xff", &limits).is_err());
    assert_eq!(texts(list.iter()), [b"a"]);
}

#[test]
fn a_queue_does_not_grow() {
    let limits = ListLimits::default();
    let mut list = list(&[b"0", b"1", b"2"], &limits);
    for turn in 0..20_000 {
        list.push(End::Front, format!("job {turn}").as_bytes(), &limits);
        list.pop(End::Back);
    }
    assert!(list.memory_usage() <= 128, "{}", list.memory_usage());
}

#[derive(Debug, Clone)]
enum Step {
    Push(End, Vec<u8>),
    Many(End, Vec<u8>, usize),
    Pop(End),
    PopMany(End, usize),
    Set(i64, Vec<u8>),
    Insert(Side, usize, Vec<u8>),
    Remove(i64, usize),
    Trim(i64, i64),
    Freeze,
    Reload,
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (-3i64..300).prop_map(|value| value.to_string().into_bytes()),
        3 => vec(b'a'..b'd', 0..3),
        2 => (0usize..400).prop_map(|len| vec![b'x'; len]),
        1 => (6000usize..9000).prop_map(|len| vec![b'y'; len]),
    ]
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Front), Just(End::Back)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (end(), text()).prop_map(|(end, text)| Step::Push(end, text)),
        4 => (end(), text(), 1usize..40).prop_map(|(end, text, n)| Step::Many(end, text, n)),
        3 => end().prop_map(Step::Pop),
        1 => (end(), 1usize..60).prop_map(|(end, n)| Step::PopMany(end, n)),
        3 => (-100i64..100, text()).prop_map(|(index, text)| Step::Set(index, text)),
        4 => (any::<bool>(), any::<usize>(), text()).prop_map(|(before, pick, text)| {
            Step::Insert(if before { Side::Before } else { Side::After }, pick, text)
        }),
        3 => (-3i64..4, any::<usize>()).prop_map(|(count, pick)| Step::Remove(count, pick)),
        1 => (-120i64..60, -60i64..120).prop_map(|(start, stop)| Step::Trim(start, stop)),
        2 => Just(Step::Freeze),
        1 => Just(Step::Reload),
    ]
}

type Model = VecDeque<Vec<u8>>;

fn push_model(model: &mut Model, end: End, text: Vec<u8>) {
    match end {
        End::Front => model.push_front(text),
        End::Back => model.push_back(text),
    }
}

fn pop_model(model: &mut Model, end: End) -> Option<Vec<u8>> {
    match end {
        End::Front => model.pop_front(),
        End::Back => model.pop_back(),
    }
}

fn index_in(index: i64, len: usize) -> Option<usize> {
    let index = if index < 0 { index + len as i64 } else { index };
    usize::try_from(index).ok().filter(|&index| index < len)
}

fn remove_model(model: &mut Model, count: i64, text: &[u8]) -> usize {
    let mut matching: Vec<usize> = (0..model.len()).filter(|&at| model[at] == text).collect();
    if count < 0 {
        matching.reverse();
    }
    if count != 0 {
        matching.truncate(count.unsigned_abs() as usize);
    }
    matching.sort_unstable();
    for &at in matching.iter().rev() {
        model.remove(at);
    }
    matching.len()
}

/// Writes the nodes and reads them back, as a dump and a restore do.
fn reload(list: &List, limits: &ListLimits) -> List {
    let mut copy = List::new();
    for node in list.nodes() {
        match node {
            NodeRef::Packed(bytes) => copy.push_packed_node(bytes, limits).unwrap(),
            NodeRef::Plain(text) => copy.push(End::Back, Arc::new(text.to_vec()), limits),
        }
    }
    copy
}

fn apply(list: &mut List, model: &mut Model, step: Step, limits: &ListLimits) {
    let pick = |pick: usize| model.get(pick % model.len().max(1)).cloned().unwrap_or_default();
    match step {
        Step::Push(end, text) => {
            list.push(end, text.as_slice(), limits);
            push_model(model, end, text);
        }
        Step::Many(end, text, count) => {
            for _ in 0..count {
                list.push(end, Arc::new(text.clone()), limits);
                push_model(model, end, text.clone());
            }
        }
        Step::Pop(end) => {
            let popped = list.pop(end).map(|popped| popped.as_element().to_vec());
            assert_eq!(popped, pop_model(model, end));
            list.shrink(limits);
        }
        Step::PopMany(end, count) => {
            for _ in 0..count {
                let popped = list.pop_with(end, |item| item.as_element().to_vec());
                assert_eq!(popped, pop_model(model, end));
            }
            list.shrink(limits);
        }
        Step::Set(index, text) => {
            let at = index_in(index, model.len());
            assert_eq!(list.set(index, text.as_slice(), limits), at.is_some());
            if let Some(at) = at {
                model[at] = text;
            }
        }
        Step::Insert(side, index, text) => {
            let pivot = pick(index);
            let at = model.iter().position(|element| *element == pivot);
            assert_eq!(list.insert(side, &pivot, text.as_slice(), limits), at.is_some());
            if let Some(at) = at {
                model.insert(at + usize::from(side == Side::After), text);
            }
        }
        Step::Remove(count, index) => {
            let text = pick(index);
            assert_eq!(list.remove(count, &text, limits), remove_model(model, count, &text));
            list.shrink(limits);
        }
        Step::Trim(start, stop) => {
            let len = model.len() as i64;
            let absolute = |index: i64| if index < 0 { index + len } else { index };
            let kept = absolute(start).max(0)..=absolute(stop);
            let before = model.len();
            let mut index = -1;
            model.retain(|_| {
                index += 1;
                kept.contains(&index)
            });
            assert_eq!(list.trim(start, stop), before - model.len());
            list.shrink(limits);
        }
        Step::Freeze => {}
        Step::Reload => *list = reload(list, limits),
    }
}

fn check_reads(list: &List, model: &Model) {
    let all: Vec<Vec<u8>> = model.iter().cloned().collect();
    let len = all.len();
    assert_eq!(texts(list.iter()), all);
    let mut folded = vec![];
    list.iter().for_each(|item| folded.push(item.as_element().to_vec()));
    assert_eq!(folded, all);
    for start in [0, len / 3, len / 2, len.saturating_sub(1), len] {
        let forward = list.range(start, 7, End::Front);
        let expected: Vec<_> = all.iter().skip(start).take(7).cloned().collect();
        assert_eq!(forward.len(), expected.len());
        assert_eq!(texts(forward), expected);
        let mut folded = vec![];
        list.range(start, 7, End::Back).for_each(|item| folded.push(item.as_element().to_vec()));
        let upto = if start < len { start + 1 } else { 0 };
        let expected: Vec<_> = all[..upto].iter().rev().take(7).cloned().collect();
        assert_eq!(texts(list.range(start, 7, End::Back)), expected);
        assert_eq!(folded, expected);
        for index in [start as i64, -(start as i64)] {
            let found = list.get(index).map(|item| item.as_element().to_vec());
            assert_eq!(found.as_ref(), index_in(index, len).map(|at| &all[at]));
        }
    }
    let matching: Vec<usize> = (0..len).filter(|&at| all[at] == b"a").collect();
    assert_eq!(list.positions(b"a", End::Front, 0, usize::MAX, usize::MAX), matching);
    let expected: Vec<usize> = matching.iter().rev().skip(1).take(2).copied().collect();
    assert_eq!(list.positions(b"a", End::Back, 1, 2, usize::MAX), expected);
    let expected: Vec<usize> = matching.iter().copied().filter(|&at| at < 5).collect();
    assert_eq!(list.positions(b"a", End::Front, 0, usize::MAX, 5), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_list_is_a_deque(
        steps in vec(step(), 1..70),
        fill in prop_oneof![Just(-2), Just(-1), Just(-5), Just(1), Just(4)],
        threshold in prop_oneof![Just(1usize << 30), Just(100)],
    ) {
        let limits = ListLimits::new(fill, threshold);
        let (mut list, mut model) = (List::new(), Model::new());
        let mut frozen: Vec<(FrozenList, Model)> = vec![];
        for step in steps {
            if matches!(step, Step::Freeze) {
                frozen.push((list.freeze(), model.clone()));
            }
            apply(&mut list, &mut model, step, &limits);
            list.check();
            prop_assert_eq!(list.len(), model.len());
            prop_assert_eq!(list.is_empty(), model.is_empty());
            check_reads(&list, &model);
        }
        drop(list);
        for (list, model) in frozen {
            list.check();
            prop_assert!(texts(list.iter()) == model.into_iter().collect::<Vec<_>>());
        }
    }
}

/// Limits under which an element of 20 bytes has a node of its own.
const PLAIN: fn() -> ListLimits = || ListLimits::new(-2, 20);

#[test]
fn a_directory_shrinks_with_its_list() {
    let long = || {
        let mut list = List::new();
        (0..10).for_each(|_| list.push(End::Back, &[b'k'; 20], &PLAIN()));
        (0..20_000).for_each(|_| list.push(End::Back, &[b'd'; 20], &PLAIN()));
        list
    };
    let assert_small = |list: &List, how: &str| {
        list.check();
        assert_eq!(list.len(), 10);
        let bytes = list.memory_usage();
        assert!(bytes < 4096, "{bytes} bytes after {how}");
    };
    let mut list = long();
    assert_eq!(list.trim(0, 9), 20_000);
    assert_small(&list, "LTRIM");
    let mut list = long();
    assert_eq!(list.remove(0, &[b'd'; 20], &PLAIN()), 20_000);
    assert_small(&list, "LREM");
    let mut list = long();
    (0..20_000).for_each(|_| drop(list.pop(End::Back)));
    assert_small(&list, "RPOP");
    let mut list = long();
    list.trim(10, -1);
    (0..19_990).for_each(|_| drop(list.pop(End::Front)));
    assert_small(&list, "LPOP");
}

#[test]
fn a_size_is_estimated_from_some_nodes() {
    let mut list = List::new();
    list.expect(5_000, 500_000, &PLAIN());
    (0..5_000).for_each(|_| list.push(End::Back, &[b'e'; 100], &PLAIN()));
    let (exact, estimated) = (list.memory_usage(), list.memory_estimate(64));
    assert!(exact.abs_diff(estimated) < exact / 50, "{estimated} for {exact}");
}

#[test]
fn replacing_an_element_moves_few_nodes_of_the_directory() {
    let limits = ListLimits::default();
    let mut list = List::new();
    let mut model: Vec<Vec<u8>> = (0..4000).map(|_| vec![b'a'; 100]).collect();
    model.iter().for_each(|element| list.push(End::Back, &element[..], &limits));
    let mut rng = base::rng::Rng::from_seed(26);
    for _ in 0..3000 {
        let index = rng.index(model.len());
        let size = [1, 50, 3000, 6000, 20_000][rng.index(5)];
        let element = vec![b'b'; size];
        let before = super::directory::MOVED.get();
        assert!(list.set(index as i64, &element[..], &limits));
        let moved = super::directory::MOVED.get() - before;
        assert!(moved <= 64, "{moved} of {} nodes for {size} bytes at {index}", list.node_count());
        model[index] = element;
        if rng.index(100) == 0 {
            list.check();
        }
    }
    assert!(
        list.iter().map(|item| item.as_element().to_vec()).eq(model),
        "the elements are those of the model"
    );
}
