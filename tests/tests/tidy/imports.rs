//! Which file names something of which other file: `use` lines and paths in the code, with names
//! that a module only passes on (`pub use`) traced to the file that defines them.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, by_module};

/// What a `use` line brings in.
struct Use {
    /// The path, without a `*` at its end.
    path: Vec<String>,
    /// The name that it has here; absent for `*`.
    name: Option<String>,
    /// Whether others get it from here.
    is_public: bool,
}

/// Imports between files: for each, by its place among the sources, those that it names something
/// of, each with one of the names.
pub(crate) struct Imports {
    /// See above.
    pub(crate) edges: Vec<BTreeMap<usize, String>>,
    /// The crates of the workspace that each file names.
    pub(crate) packages: Vec<BTreeSet<String>>,
}

/// Where a path leads.
enum Target {
    /// To something that this file defines.
    File(usize),
    /// To a module as a whole.
    Module(Vec<String>),
}

/// Looks up paths.
struct Resolver<'s> {
    sources: &'s [Source],
    files: BTreeMap<(&'s str, &'s [String]), usize>,
    uses: Vec<Vec<Use>>,
}

/// Finds all imports.
pub(crate) fn find(sources: &[Source]) -> Imports {
    let uses: Vec<Vec<Use>> = sources.iter().map(|source| uses_of(&source.tokens())).collect();
    let resolver = Resolver { sources, files: by_module(sources), uses };
    let all: BTreeSet<&str> = sources.iter().map(|source| &*source.package).collect();
    let mut imports = Imports { edges: Vec::new(), packages: Vec::new() };
    for (at, source) in sources.iter().enumerate() {
        let mut edges = BTreeMap::new();
        resolver.collect(at, &mut edges);
        edges.remove(&at);
        imports.edges.push(edges);
        let words: BTreeSet<String> = paths(&source.tokens())
            .into_iter()
            .map(|path| path[0].clone())
            .chain(resolver.uses[at].iter().map(|one| one.path[0].clone()))
            .filter(|word| all.contains(&**word) && *word != source.package)
            .filter(|word| !resolver.is_child(at, word))
            .collect();
        imports.packages.push(words);
    }
    imports
}

impl Resolver<'_> {
    fn is_child(&self, at: usize, name: &str) -> bool {
        let source = &self.sources[at];
        let path = [&source.module[..], &[name.to_string()]].concat();
        self.files.contains_key(&(&*source.package, &*path))
    }

    /// Adds what one file names of others.
    fn collect(&self, at: usize, edges: &mut BTreeMap<usize, String>) {
        let mut modules: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let tokens = self.sources[at].tokens();
        let words = own_words(&tokens);
        for one in &self.uses[at] {
            let is_used = one.name.as_ref().is_some_and(|name| words.contains(&**name));
            match self.resolve(at, &one.path, 0) {
                // Others get at it by this name, and it is nothing to this file.
                Some(_) if one.is_public && !is_used => {}
                Some(Target::File(file)) => {
                    edges.entry(file).or_insert_with(|| one.path.join("::"));
                }
                Some(Target::Module(path)) => match &one.name {
                    Some(name) => drop(modules.insert(name, path)),
                    None => {
                        let module = self.file(at, &path);
                        edges.entry(module).or_insert_with(|| one.path.join("::") + "::*");
                    }
                },
                None => {}
            }
        }
        for path in paths(&tokens) {
            let target = match modules.get(&*path[0]) {
                Some(module) => {
                    let start = ["crate".to_string()].into_iter().chain(module.iter().cloned());
                    let full: Vec<String> = start.chain(path[1..].iter().cloned()).collect();
                    self.resolve(at, &full, 0)
                }
                None if self.is_child(at, &path[0]) => {
                    let full = [&["self".to_string()], &path[..]].concat();
                    self.resolve(at, &full, 0)
                }
                None => self.resolve(at, &path, 0),
            };
            match target {
                Some(Target::File(file)) => {
                    edges.entry(file).or_insert_with(|| path.join("::"));
                }
                Some(Target::Module(module)) => {
                    let file = self.file(at, &module);
                    edges.entry(file).or_insert_with(|| path.join("::"));
                }
                None => {}
            }
        }
    }

    fn file(&self, at: usize, module: &[String]) -> usize {
        self.files[&(&*self.sources[at].package, module)]
    }

    /// Where a path leads that stands in a file, if within its crate.
    fn resolve(&self, at: usize, path: &[String], depth: usize) -> Option<Target> {
        let source = &self.sources[at];
        let mut module: Vec<String> = match &*path[0] {
            "crate" => Vec::new(),
            "self" | "super" => source.module.clone(),
            name if self.is_child(at, name) => source.module.clone(),
            _ => return None,
        };
        let mut rest = path;
        while let Some((first, others)) = rest.split_first() {
            match &**first {
                "super" => drop(module.pop()),
                "crate" | "self" => {}
                _ => break,
            }
            rest = others;
        }
        while let Some((first, others)) = rest.split_first() {
            let inner = [&module[..], std::slice::from_ref(first)].concat();
            if !self.files.contains_key(&(&*source.package, &*inner)) {
                break;
            }
            (module, rest) = (inner, others);
        }
        let Some(name) = rest.first() else { return Some(Target::Module(module)) };
        let file = *self.files.get(&(&*source.package, &*module))?;
        Some(self.passed_on(file, name, rest, depth).unwrap_or(Target::File(file)))
    }

    /// Where a name leads that a module passes on.
    fn passed_on(&self, file: usize, name: &str, rest: &[String], depth: usize) -> Option<Target> {
        assert!(depth < 16, "{name} is passed on in circles");
        let public = self.uses[file].iter().filter(|one| one.is_public);
        for one in public {
            let path = match &one.name {
                Some(own) if own == name => [&one.path[..], &rest[1..]].concat(),
                None => {
                    let Some(Target::Module(module)) = self.resolve(file, &one.path, depth + 1)
                    else {
                        continue;
                    };
                    let inner = self.file(file, &module);
                    if !defines(&self.sources[inner], name) {
                        continue;
                    }
                    [&one.path[..], rest].concat()
                }
                _ => continue,
            };
            return self.resolve(file, &path, depth + 1);
        }
        None
    }
}

/// Whether a file defines something of this name.
fn defines(source: &Source, name: &str) -> bool {
    const KINDS: [&str; 8] = ["struct", "enum", "trait", "fn", "type", "const", "static", "mod"];
    source.tokens().windows(2).any(|pair| KINDS.contains(&pair[0]) && pair[1] == name)
}

/// The words in the code, without the `use` lines, that may be names of something brought in:
/// neither fields, methods and other parts of a path, nor what the file itself gives the name.
fn own_words<'s>(tokens: &[&'s str]) -> BTreeSet<&'s str> {
    const BEFORE: [&str; 5] = [".", "::", "mod", "fn", "'"];
    let mut found = BTreeSet::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at] == "use" {
            at += tokens[at..].iter().position(|token| *token == ";").unwrap_or(1);
            continue;
        }
        if is_name(tokens[at]) && (at == 0 || !BEFORE.contains(&tokens[at - 1])) {
            found.insert(tokens[at]);
        }
        at += 1;
    }
    found
}

/// The paths in the code, without the `use` lines: words that stand around `::`.
fn paths(tokens: &[&str]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at] == "use" {
            at += tokens[at..].iter().position(|token| *token == ";").unwrap_or(1);
            continue;
        }
        // What stands in `pub(in path)` is nothing that is used.
        let is_place = at > 1 && tokens[at - 1] == "in" && tokens[at - 2] == "(";
        let begins = is_name(tokens[at]) && !is_place && (at == 0 || tokens[at - 1] != "::");
        let mut path = vec![tokens[at].to_string()];
        while begins
            && tokens.get(at + 1) == Some(&"::")
            && tokens.get(at + 2).is_some_and(|token| is_name(token))
        {
            path.push(tokens[at + 2].to_string());
            at += 2;
        }
        if path.len() > 1 {
            found.push(path);
        }
        at += 1;
    }
    found
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// All `use` lines, one entry for each name.
fn uses_of(tokens: &[&str]) -> Vec<Use> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at] != "use" {
            at += 1;
            continue;
        }
        let end = at + tokens[at..].iter().position(|token| *token == ";").unwrap_or(0);
        // `pub`, `pub(crate)`, `pub(in path)`.
        let is_public = at > 0 && (tokens[at - 1] == "pub" || tokens[at - 1] == ")");
        tree(&tokens[at + 1..end], &[], is_public, &mut found);
        at = end.max(at + 1);
    }
    found
}

/// Adds the names of a tree such as `a::{self, b as c, d::*}`.
fn tree(tokens: &[&str], before: &[String], is_public: bool, found: &mut Vec<Use>) {
    let mut path = before.to_vec();
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at] {
            "::" => {}
            "{" => {
                let inner = &tokens[at + 1..tokens.len() - 1];
                for part in split_at_commas(inner) {
                    tree(part, &path, is_public, found);
                }
                return;
            }
            "*" => {
                found.push(Use { path, name: None, is_public });
                return;
            }
            "as" => {
                let name = tokens.get(at + 1).map(|name| name.to_string());
                found.push(Use { path, name, is_public });
                return;
            }
            "self" if !path.is_empty() => {}
            word => path.push(word.to_string()),
        }
        at += 1;
    }
    let name = path.last().cloned();
    if !path.is_empty() {
        found.push(Use { path, name, is_public });
    }
}

fn split_at_commas<'t, 's>(tokens: &'t [&'s str]) -> Vec<&'t [&'s str]> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," if depth == 0 => {
                parts.push(&tokens[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tokens[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

/// The groups of files that import each other in circles: its strongly connected components with
/// more than one file.
pub(crate) fn circles(edges: &[BTreeMap<usize, String>]) -> Vec<Vec<usize>> {
    let forward: Vec<Vec<usize>> =
        edges.iter().map(|targets| targets.keys().copied().collect()).collect();
    let mut backward = vec![Vec::new(); edges.len()];
    for (from, targets) in forward.iter().enumerate() {
        targets.iter().for_each(|to| backward[*to].push(from));
    }
    // Kosaraju: the order in which files are left, then the other way round.
    let mut order = Vec::new();
    let mut seen = vec![false; edges.len()];
    for start in 0..edges.len() {
        leave(start, &forward, &mut seen, &mut order);
    }
    let mut seen = vec![false; edges.len()];
    let mut found = Vec::new();
    for start in order.into_iter().rev() {
        let mut members = Vec::new();
        leave(start, &backward, &mut seen, &mut members);
        if members.len() > 1 {
            members.sort_unstable();
            found.push(members);
        }
    }
    found
}

fn leave(start: usize, edges: &[Vec<usize>], seen: &mut [bool], order: &mut Vec<usize>) {
    if std::mem::replace(&mut seen[start], true) {
        return;
    }
    edges[start].iter().for_each(|to| leave(*to, edges, seen, order));
    order.push(start);
}

/// The shortest way from the first member of a circle back to it.
pub(crate) fn shortest_way(members: &[usize], edges: &[BTreeMap<usize, String>]) -> Vec<usize> {
    let inside: BTreeSet<usize> = members.iter().copied().collect();
    let ways = members.iter().filter_map(|start| way_back(*start, &inside, edges));
    ways.min_by_key(Vec::len).expect("each member is on a circle")
}

fn way_back(
    start: usize,
    inside: &BTreeSet<usize>,
    edges: &[BTreeMap<usize, String>],
) -> Option<Vec<usize>> {
    let mut came_from = BTreeMap::new();
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for to in edges[at].keys().filter(|to| inside.contains(to)) {
            if *to == start {
                let mut way = vec![start, at];
                while let Some(before) = came_from.get(way.last()?) {
                    way.push(*before);
                }
                way.reverse();
                return Some(way);
            }
            if !came_from.contains_key(to) {
                came_from.insert(*to, at);
                queue.push_back(*to);
            }
        }
    }
    None
}

#[test]
fn use_lines_are_taken_apart() {
    let tokens =
        crate::source::tokens("pub(crate) use a::{self, b as c, d::{e, f::*}}; x::y::z();");
    let found = uses_of(&tokens);
    let shown: Vec<_> =
        found.iter().map(|one| (one.path.join("::"), one.name.as_deref())).collect();
    let expected =
        [("a", Some("a")), ("a::b", Some("c")), ("a::d::e", Some("e")), ("a::d::f", None)];
    assert_eq!(shown, expected.map(|(path, name)| (path.to_string(), name)));
    assert!(found.iter().all(|one| one.is_public));
    assert_eq!(paths(&tokens), [["x", "y", "z"].map(String::from)]);
}

#[test]
fn names_that_are_passed_on_may_also_be_used() {
    let code = "mod a; pub use a::{B, c, d, E}; fn c(b: B) { b.d(); F::E }";
    let words = own_words(&crate::source::tokens(code));
    let used = ["B", "c", "d", "E"].map(|name| words.contains(name));
    assert_eq!(used, [true, false, false, false]);
}

#[test]
fn circles_are_found_and_shown_by_their_shortest_way() {
    let edges = [vec![1], vec![2, 3], vec![0], vec![1], vec![0]];
    let edges: Vec<BTreeMap<usize, String>> = edges
        .iter()
        .map(|targets| targets.iter().map(|to| (*to, String::new())).collect())
        .collect();
    assert_eq!(circles(&edges), [vec![0, 1, 2, 3]]);
    assert_eq!(shortest_way(&[0, 1, 2, 3], &edges), [1, 3, 1]);
}
