//! Packed blocks against plain models, against bytes of the reference server, and against hostile
//! bytes.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Text of many kinds: integers of every width, near-integers, strings with every form of header.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (any::<i64>(), 0u32..64).prop_map(|(v, shift)| (v >> shift).to_string().into_bytes()),
        2 => vec(any::<u8>(), 0..12),
        2 => "0?-?0?[0-9]{0,3}".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 60..70),
        1 => (4090usize..4100).prop_map(|len| vec![b'y'; len]),
    ]
}

fn texts(listpack: &ListpackSlice) -> Vec<Vec<u8>> {
    listpack.elements().map(|element| element.to_vec()).collect()
}

fn pack(elements: &[Vec<u8>]) -> Listpack {
    Listpack::from_elements(elements.iter().map(Vec::as_slice))
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn handles_are_thin() {
    assert_eq!(size_of::<Listpack>(), 8);
    assert_eq!(size_of::<Option<Listpack>>(), 8);
    assert_eq!(size_of::<Option<Intset>>(), 8);
    assert_eq!(Listpack::new().memory_usage(), 8);
}

/// The bytes `DUMP` shows of a list made by one RPUSH on the reference server.
#[test]
fn bytes_are_those_of_the_reference_server() {
    let elements = [
        "",
        "a",
        "0123",
        "0",
        "127",
        "128",
        "-1",
        "-4096",
        "4095",
        "4096",
        "-4097",
        "32767",
        "-32768",
        "32768",
        "8388607",
        "-8388608",
        "8388608",
        "2147483647",
        "-2147483648",
        "2147483648",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "-0",
        "+1",
    ];
    let entries = "8001 816102 843031323305 0001 7f01 c08002 dfff02 d00002 cfff02 f1001003 f1ffef03
        f1ff7f03 f1008003 f200800004 f2ffff7f04 f200008004 f30000800005 f3ffffff7f05 f30000008005
        f4000000800000000009 f4ffffffffffffff7f09 f4000000000000008009
        933932323333373230333638353437373538303814 822d3003 822b3103";
    let listpack = Listpack::from_elements(elements.map(str::as_bytes));
    assert_eq!(listpack.entry_bytes(), unhex(entries));
    assert_eq!(texts(&listpack), elements.map(|text| text.as_bytes().to_vec()));

    let hash = unhex("14000000 0400 816602 817602 816e02 f1393003 ff");
    let listpack = Listpack::from_bytes(&hash).unwrap();
    assert_eq!(texts(&listpack), ["f", "v", "n", "12345"].map(|text| text.as_bytes().to_vec()));
    assert_eq!(pack(&texts(&listpack)).as_bytes(), hash);
}

/// Heads and back lengths at the lengths where those of the reference server change.
#[test]
fn long_strings_have_the_reference_servers_heads_and_back_lengths() {
    let cases = [
        (63, "bf", "40"),
        (64, "e040", "42"),
        (125, "e07d", "7f"),
        (126, "e07e", "0180"),
        (4095, "efff", "2081"),
        (4096, "f000100000", "2085"),
        (16_377, "f0f93f0000", "7ffe"),
        (16_378, "f0fa3f0000", "00ffff"),
        (16_379, "f0fb3f0000", "018080"),
        (2_097_145, "f0f9ff1f00", "7ffffe"),
        (2_097_146, "f0faff1f00", "00ffffff"),
        (2_097_147, "f0fbff1f00", "01808080"),
    ];
    for (len, head, backlen) in cases {
        let listpack = pack(&[vec![b'x'; len], b"7".to_vec()]);
        let entry = &listpack.entry_bytes()[..listpack.entry_bytes().len() - 2];
        let (head, backlen) = (unhex(head), unhex(backlen));
        assert!(entry.starts_with(&head), "{len}");
        assert_eq!(&entry[head.len() + len..], backlen, "{len}");
        assert!(ListpackSlice::from_bytes(listpack.as_bytes()).is_ok());
        assert_eq!(listpack.get(-2).unwrap().len(), len);
    }
}

#[test]
fn intset_bytes_are_those_of_the_reference_server() {
    let mut set = Intset::new();
    for value in [1, 2, -3] {
        assert!(set.add(value));
    }
    assert_eq!(set.as_bytes(), unhex("02000000 03000000 fdff 0100 0200"));
    set.add(100_000);
    let wider = "04000000 04000000 fdffffff 01000000 02000000 a0860100";
    assert_eq!(set.as_bytes(), unhex(wider));
    set.add(5_000_000_000);
    let widest = "08000000 05000000 fdffffffffffffff 0100000000000000 0200000000000000
        a086010000000000 00f2052a01000000";
    assert_eq!(set.as_bytes(), unhex(widest));
    assert_eq!(Intset::from_bytes(set.as_bytes()).unwrap().as_bytes(), set.as_bytes());
}

#[test]
fn a_count_of_unknown_is_counted() {
    let mut bytes = pack(&vec![b"1".to_vec(); 70_000]);
    assert_eq!(bytes.as_bytes()[4..6], [0xFF, 0xFF]);
    assert_eq!(bytes.len(), 70_000);
    bytes.remove_range(0, 69_999);
    bytes.push_front(b"a");
    assert_eq!(bytes.len(), 2);
    let known = Listpack::from_bytes(bytes.as_bytes()).unwrap();
    assert_eq!(known.as_bytes()[4..6], [2, 0]);
}

#[test]
fn an_entry_in_a_longer_encoding_than_needed_is_still_found() {
    // 5 as a 64-bit integer, then "5" as a string, as a hostile dump may contain them.
    let bytes = unhex("14000000 0200 f4050000000000000009 813502 ff");
    let listpack = Listpack::from_bytes(&bytes).unwrap();
    assert_eq!(listpack.find(b"5", 0), listpack.first());
    assert_eq!(
        listpack.find_from(listpack.last().unwrap(), &Needle::new(b"5"), 0),
        listpack.last()
    );
    assert_eq!(listpack.find(b"05", 0), None);
}

#[test]
fn every_kind_of_damage_is_refused() {
    let valid = unhex("14000000 0400 816602 817602 816e02 f1393003 ff");
    assert!(Listpack::from_bytes(&valid).is_ok());
    let damaged = |at: usize, byte: u8| {
        let mut bytes = valid.clone();
        bytes[at] = byte;
        Listpack::from_bytes(&bytes).map(|_| ())
    };
    assert_eq!(Listpack::from_bytes(&[]).map(|_| ()), Err(PackError::Length));
    assert_eq!(Listpack::from_bytes(&valid[..19]).map(|_| ()), Err(PackError::Length));
    assert_eq!(damaged(0, 0x15), Err(PackError::Length));
    assert_eq!(damaged(19, 0), Err(PackError::Length));
    assert_eq!(damaged(4, 3), Err(PackError::Count));
    assert_eq!(damaged(6, 0xBF), Err(PackError::Entry));
    assert_eq!(damaged(6, 0xF5), Err(PackError::Entry));
    assert_eq!(damaged(6, 0xFF), Err(PackError::Entry));
    assert_eq!(damaged(8, 3), Err(PackError::Entry));
    assert_eq!(damaged(15, 0xF0), Err(PackError::Entry));

    let refused = |text: &str| Intset::from_bytes(&unhex(text)).map(|_| ()).unwrap_err();
    assert_eq!(refused("02000000"), PackError::Length);
    assert_eq!(refused("02000000 02000000 0100"), PackError::Length);
    assert_eq!(refused("02000000 ffffffff 0100"), PackError::Length);
    assert_eq!(refused("03000000 01000000 010000"), PackError::Width);
    assert_eq!(refused("02000000 00000000"), PackError::Empty);
    assert_eq!(refused("02000000 02000000 0100 0100"), PackError::Order);
    assert_eq!(refused("02000000 02000000 0200 0100"), PackError::Order);
}

#[derive(Debug, Clone)]
enum Step {
    PushFront(Vec<u8>),
    PushBack(Vec<u8>),
    InsertBefore(usize, Vec<u8>),
    InsertAfter(usize, Vec<u8>),
    Replace(usize, Vec<u8>),
    Remove(usize, usize),
    PopBack,
    SplitAndAppend(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        text().prop_map(Step::PushFront),
        text().prop_map(Step::PushBack),
        (any::<usize>(), text()).prop_map(|(index, text)| Step::InsertBefore(index, text)),
        (any::<usize>(), text()).prop_map(|(index, text)| Step::InsertAfter(index, text)),
        (any::<usize>(), text()).prop_map(|(index, text)| Step::Replace(index, text)),
        (any::<usize>(), 0usize..4).prop_map(|(index, count)| Step::Remove(index, count)),
        Just(Step::PopBack),
        any::<usize>().prop_map(Step::SplitAndAppend),
    ]
}

fn apply(listpack: &mut Listpack, model: &mut Vec<Vec<u8>>, step: Step) {
    let place = |index: usize| index % model.len().max(1);
    let seek = |index: usize| listpack.seek(place(index) as i64);
    match step {
        Step::PushFront(text) => {
            listpack.push_front(text.as_slice());
            model.insert(0, text);
        }
        Step::PushBack(text) => {
            listpack.push_back(text.as_slice());
            model.push(text);
        }
        Step::PopBack => {
            let popped = listpack.pop(-1).map(|element| element.as_element().to_vec());
            assert_eq!(popped, model.pop());
        }
        Step::InsertBefore(index, text) => {
            let (Some(position), index) = (seek(index), place(index)) else { return };
            listpack.insert_before(position, text.as_slice());
            model.insert(index, text);
        }
        Step::InsertAfter(index, text) => {
            let (Some(position), index) = (seek(index), place(index)) else { return };
            let inserted = listpack.insert_after(position, text.as_slice());
            assert!(listpack.element(inserted).equals(&text));
            model.insert(index + 1, text);
        }
        Step::Replace(index, text) => {
            let (Some(position), index) = (seek(index), place(index)) else { return };
            listpack.replace(position, text.as_slice());
            model[index] = text;
        }
        Step::Remove(index, count) => {
            let (Some(position), index) = (seek(index), place(index)) else { return };
            let removed = listpack.remove(position, count);
            assert_eq!(model.drain(index..(index + count).min(model.len())).count(), removed);
        }
        Step::SplitAndAppend(index) => {
            let (Some(position), index) = (seek(index), place(index)) else { return };
            let rest = listpack.split_off(position);
            assert_eq!(listpack.len(), index);
            assert_eq!(texts(&rest), model[index..]);
            listpack.append(&rest);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_listpack_is_a_vector(steps in vec(step(), 1..60)) {
        let (mut listpack, mut model) = (Listpack::new(), vec![]);
        for step in steps {
            apply(&mut listpack, &mut model, step);
            ListpackSlice::from_bytes(listpack.as_bytes()).unwrap();
            prop_assert_eq!(listpack.len(), model.len());
            prop_assert_eq!(texts(&listpack), &model[..]);
        }
        // Its bytes do not depend on its history.
        let fresh = pack(&model);
        prop_assert_eq!(listpack.as_bytes(), fresh.as_bytes());
        prop_assert!(listpack.clone().as_bytes() == fresh.as_bytes());
    }

    #[test]
    fn reading_is_the_same_from_both_ends(model in vec(text(), 0..40), at in -50i64..50) {
        let listpack = pack(&model);
        let mut backwards: Vec<_> = listpack.iter().rev().collect();
        backwards.reverse();
        prop_assert_eq!(&backwards, &listpack.iter().collect::<Vec<_>>());
        let index = if at < 0 { at + model.len() as i64 } else { at };
        let expected = usize::try_from(index).ok().and_then(|index| model.get(index));
        prop_assert_eq!(listpack.get(at).map(|element| element.to_vec()), expected.cloned());
        for (index, (position, element)) in listpack.iter().enumerate() {
            prop_assert_eq!(listpack.seek(index as i64), Some(position));
            prop_assert_eq!(listpack.element(position), element);
            prop_assert_eq!(element.len(), model[index].len());
            let next = listpack.next(position);
            prop_assert_eq!(next, listpack.seek(index as i64 + 1));
            prop_assert_eq!(next.map_or(listpack.last(), |next| listpack.prev(next)), Some(position));
        }
        let picks: Vec<usize> = (0..model.len() * 2).map(|index| index / 2).collect();
        let mut seen = vec![];
        listpack.visit(picks.iter().copied(), |position| seen.push(position));
        let expected: Vec<_> = picks.iter().filter_map(|&at| listpack.seek(at as i64)).collect();
        prop_assert_eq!(seen, expected);
    }

    #[test]
    fn finding_is_comparing_texts(model in vec(text(), 1..30), pick: usize, skip in 0usize..3) {
        let listpack = pack(&model);
        let needle = &model[pick % model.len()];
        let expected = (0..model.len()).step_by(skip + 1).find(|&index| &model[index] == needle);
        let expected = expected.and_then(|index| listpack.seek(index as i64));
        prop_assert_eq!(listpack.find(needle, skip), expected);
    }

    #[test]
    fn random_bytes_are_refused_or_readable(mut bytes in vec(any::<u8>(), 0..200)) {
        let _ = Intset::from_bytes(&bytes);
        if bytes.len() >= EMPTY_LISTPACK_BYTES {
            // Let them past the checks of the header.
            let total = bytes.len() as u32;
            bytes[..4].copy_from_slice(&total.to_le_bytes());
            bytes[4..6].copy_from_slice(&[0xFF; 2]);
            *bytes.last_mut().unwrap() = 0xFF;
        }
        if let Ok(listpack) = Listpack::from_bytes(&bytes) {
            prop_assert_eq!(listpack.elements().count(), listpack.elements().rev().count());
        }
    }

    #[test]
    fn damaged_bytes_are_refused_or_readable(
        model in vec(text(), 1..10),
        damage in vec((any::<usize>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = pack(&model).as_bytes().to_vec();
        let len = bytes.len();
        for (at, byte) in damage {
            bytes[at % len] = byte;
        }
        if let Ok(listpack) = Listpack::from_bytes(&bytes) {
            prop_assert_eq!(listpack.elements().count(), listpack.len());
            prop_assert_eq!(listpack.elements().rev().count(), listpack.len());
            let _ = listpack.find(b"12", 1);
        }
    }

    #[test]
    fn an_intset_is_an_ordered_set(
        steps in vec((any::<bool>(), (any::<i64>(), 0u32..64).prop_map(|(v, shift)| v >> shift)), 1..80)
    ) {
        let (mut set, mut model) = (Intset::new(), BTreeSet::new());
        for (add, value) in steps {
            if add {
                prop_assert_eq!(set.add(value), model.insert(value));
            } else {
                let value = model.range(value..).next().copied().unwrap_or(value);
                prop_assert_eq!(set.contains(value), model.contains(&value));
                prop_assert_eq!(set.remove(value), model.remove(&value));
            }
            set.check();
            prop_assert_eq!(set.len(), model.len());
            prop_assert!(set.iter().eq(model.iter().copied()));
            prop_assert!(set.iter().rev().eq(model.iter().rev().copied()));
        }
        prop_assert_eq!(set.get(set.len()), None);
        for (index, &value) in model.iter().enumerate() {
            prop_assert_eq!(set.get(index), Some(value));
        }
        if !model.is_empty() {
            let copy = Intset::from_bytes(set.as_bytes()).unwrap();
            prop_assert!(copy.as_bytes() == set.clone().as_bytes());
        }
    }
}
