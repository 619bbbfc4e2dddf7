use std::cell::Cell;

use base::rng::Rng;

use super::*;

thread_local! {
    static CLONES: Cell<usize> = const { Cell::new(0) };
}

/// A node: a name, and how many elements it has.
#[derive(Debug, PartialEq)]
struct Item(usize, usize);

impl Clone for Item {
    fn clone(&self) -> Self {
        CLONES.set(CLONES.get() + 1);
        Item(self.0, self.1)
    }
}

impl Counted for Item {
    fn count(&self) -> usize {
        self.1
    }
}

/// What is to be passed of nodes in this order: see [`Directory::within`].
fn within<'a>(nodes: impl Iterator<Item = &'a Item>, elements: usize) -> (usize, usize) {
    let (mut passed, mut left) = (0, elements);
    for node in nodes {
        if node.1 > left {
            break;
        }
        (passed, left) = (passed + 1, left - node.1);
    }
    (passed, left)
}

fn compare(directory: &Directory<Item>, model: &[Item], rng: &mut Rng) {
    directory.check();
    assert_eq!(directory.len(), model.len());
    assert!(directory.iter().eq(model) && directory.iter().rev().eq(model.iter().rev()));
    assert_eq!(directory.end(End::Front), model.first());
    assert_eq!(directory.end(End::Back), model.last());
    let (one, other) = (rng.index(model.len() + 1), rng.index(model.len() + 1));
    let range = one.min(other)..one.max(other);
    let part = &model[range.clone()];
    let mut iter = directory.range(range);
    assert_eq!(iter.len(), part.len());
    assert!(iter.clone().eq(part) && iter.clone().rev().eq(part.iter().rev()));
    let skipped = rng.index(part.len() + 2);
    assert_eq!(iter.nth(skipped), part.get(skipped));
    assert!(iter.eq(part.iter().skip(skipped + 1)), "it goes on behind what it has left out");
    assert_eq!(directory.get(one), model.get(one));
    let elements = rng.index(model.iter().map(Item::count).sum::<usize>() + 2);
    assert_eq!(directory.within(End::Front, elements), within(model.iter(), elements));
    assert_eq!(directory.within(End::Back, elements), within(model.iter().rev(), elements));
}

#[test]
fn nodes_are_those_of_a_plain_array() {
    for seed in 0..40 {
        let mut rng = Rng::from_seed(seed);
        let mut directory = Directory::with_capacity(2);
        let (mut model, mut next): (Vec<Item>, usize) = (Vec::new(), 0);
        // What somebody else has, and what it had when it was copied.
        let mut copy: Option<(Directory<Item>, Vec<Item>)> = None;
        for _ in 0..400 {
            next += 1;
            let node = || Item(next, 1 + next % 7);
            let end = if rng.index(2) == 0 { End::Front } else { End::Back };
            let position = rng.index(model.len() + 1);
            let many = rng.index(1 + 6 * SEGMENT);
            match rng.index(10) {
                0 | 1 => {
                    for _ in 0..many {
                        directory.push(end, node());
                        let at = if end == End::Front { 0 } else { model.len() };
                        model.insert(at, node());
                    }
                }
                2 => {
                    for _ in 0..many {
                        let popped = match end {
                            _ if model.is_empty() => None,
                            End::Front => Some(model.remove(0)),
                            End::Back => model.pop(),
                        };
                        assert_eq!(directory.pop(end), popped);
                        directory.shrink();
                    }
                }
                3 | 4 => {
                    directory.insert(position, node());
                    model.insert(position, node());
                }
                5 if position < model.len() => {
                    for _ in 0..many.min(model.len() - position) {
                        assert_eq!(directory.remove(position), model.remove(position));
                    }
                }
                6 => {
                    let count = many.min(model.len());
                    let gone = directory.take(end, count);
                    let from = if end == End::Front { 0 } else { model.len() - count };
                    let mut gone: Vec<usize> = gone.iter().map(|item| item.0).collect();
                    let mut expected: Vec<usize> =
                        model.drain(from..from + count).map(|item| item.0).collect();
                    gone.sort_unstable();
                    expected.sort_unstable();
                    assert_eq!(gone, expected);
                }
                7 if position < model.len() => {
                    directory.change(position, |item| item.1 += 3);
                    model[position].1 += 3;
                    let _ = directory.change_each(end, |at, item| {
                        let near = if end == End::Front { at } else { model.len() - 1 - at };
                        if near >= many {
                            return ControlFlow::Break(());
                        }
                        assert_eq!(*item, model[at]);
                        (item.1, model[at].1) = (1, 1);
                        ControlFlow::Continue(())
                    });
                }
                8 => {
                    copy = Some((directory.clone(), model.clone()));
                }
                9 if rng.index(4) == 0 => {
                    directory.end_mut(end);
                    let whole = std::mem::replace(&mut directory, Directory::with_capacity(2));
                    whole.into_nodes().for_each(|item| directory.push(End::Back, item));
                }
                _ => {}
            }
            compare(&directory, &model, &mut rng);
            if let Some((copy, model)) = &copy {
                compare(copy, model, &mut rng);
            }
        }
    }
}

#[test]
fn a_copy_and_a_change_touch_few_nodes() {
    let mut directory = Directory::with_capacity(2);
    for number in 0..10_000 {
        let end = if number % 3 == 0 { End::Front } else { End::Back };
        directory.push(end, Item(number, 1));
    }
    let clones = |action: &mut dyn FnMut()| {
        let before = CLONES.get();
        action();
        CLONES.get() - before
    };
    let mut copy = directory.clone();
    assert!(clones(&mut || copy = directory.clone()) <= 2 * NEAR);
    assert!(clones(&mut || directory.change(5_000, |item| item.1 = 2)) <= NEAR);
    assert!(clones(&mut || directory.insert(4_000, Item(0, 1))) <= 2 * NEAR);
    assert!(clones(&mut || assert_eq!(directory.remove(6_000).1, 1)) <= 2 * NEAR);
    assert!(clones(&mut || drop(directory.take(End::Back, 4_000))) <= 2 * NEAR);
    assert_eq!((copy.len(), copy.get(5_000).map(|item| item.1)), (10_000, Some(1)));
    copy.check();
}
