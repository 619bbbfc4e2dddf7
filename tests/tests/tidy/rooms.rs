//! Rooms: the folders and files directly under a crate's `src`. A room imports only rooms that
//! stand before it in its crate's list, so there are no circles. This rule says nothing about the
//! files within a room.

use std::collections::{BTreeMap, BTreeSet};

use crate::imports::circles;
use crate::{House, rules};

/// The room of a file of a crate, and nothing for the root, which names all rooms.
pub(crate) fn room(package: &str, path: &str) -> Option<String> {
    let inner = path.strip_prefix(&format!("crates/{package}/src/"))?;
    let name = inner.split(['/', '.']).next()?;
    (!matches!(name, "lib" | "main")).then(|| name.to_string())
}

/// The rooms of a crate, each with those that it imports, and with the files for which.
type Rooms = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

fn rooms_of(house: &House, package: &str) -> Rooms {
    let mut rooms = Rooms::new();
    for source in &house.sources {
        if let Some(room) = room(package, &source.path) {
            rooms.entry(room).or_default();
        }
    }
    for (from, to, _) in house.edges() {
        let (Some(own), Some(other)) = (room(package, from), room(package, to)) else { continue };
        if own != other {
            let files = rooms.entry(own).or_default().entry(other).or_default();
            files.insert(format!("{from} imports {to}"));
        }
    }
    rooms
}

/// The circles of rooms, each as a sorted list.
fn circles_of(rooms: &Rooms) -> Vec<Vec<String>> {
    let names: Vec<&String> = rooms.keys().collect();
    let at = |name: &String| names.binary_search(&name).expect("it is a room");
    let edges: Vec<BTreeMap<usize, String>> = rooms
        .values()
        .map(|imported| imported.keys().map(|name| (at(name), name.clone())).collect())
        .collect();
    let found = circles(&edges);
    found.iter().map(|own| own.iter().map(|at| names[*at].clone()).collect()).collect()
}

/// Pairs of rooms that import each other.
fn mutual(rooms: &Rooms) -> usize {
    let each = rooms.iter().flat_map(|(own, others)| others.keys().map(move |other| (own, other)));
    each.filter(|(own, other)| own < other && rooms[*other].contains_key(*own)).count()
}

#[test]
fn rooms_import_each_other_in_one_direction() {
    let house = House::get();
    let mut wrong = Vec::new();
    for (package, listed) in rules::ROOMS {
        let rooms = rooms_of(house, package);
        println!("{}", shown(package, &rooms));
        for (at, (room, allowed)) in listed.iter().enumerate() {
            let none = BTreeMap::new();
            let found = rooms.get(*room).unwrap_or(&none);
            for (other, files) in found {
                if !allowed.contains(&&**other) {
                    wrong.push(format!("{package}: {room} imports {other}: {files:?}"));
                }
            }
            for other in *allowed {
                if !found.contains_key(*other) {
                    wrong.push(format!("{package}: {room} no longer imports {other}"));
                }
                if !listed[..at].iter().any(|(name, _)| name == other) {
                    wrong
                        .push(format!("{package}: {room} stands before {other}, which it imports"));
                }
            }
        }
        let known: BTreeSet<&str> = listed.iter().map(|(room, _)| *room).collect();
        let found: BTreeSet<&str> = rooms.keys().map(String::as_str).collect();
        if known != found {
            wrong.push(format!("{package}: {:?}", known.symmetric_difference(&found)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The rooms with their imports, and the circles: `cargo test --test tidy rooms -- --nocapture`.
fn shown(package: &str, rooms: &Rooms) -> String {
    let mut text = format!("{package}: {} rooms\n", rooms.len());
    for (room, imported) in rooms {
        let names: Vec<&str> = imported.keys().map(String::as_str).collect();
        text += &format!("  {room} imports {}\n", names.join(", "));
    }
    text += &format!("  pairs that import each other: {}\n", mutual(rooms));
    for circle in circles_of(rooms) {
        text += &format!("  a circle: {}\n", circle.join(", "));
    }
    text
}

#[test]
fn circles_of_rooms_are_found() {
    let edges = [("a", "b"), ("b", "c"), ("c", "b"), ("c", "a"), ("d", "a")];
    let mut rooms = Rooms::new();
    for (from, to) in edges {
        rooms.entry(from.to_string()).or_default().insert(to.to_string(), BTreeSet::new());
    }
    assert_eq!(circles_of(&rooms), [["a", "b", "c"]]);
    assert_eq!(mutual(&rooms), 1);
}
