//! Requests in a row, on a tree in memory.

use base::limits;

use crate::change::{self, Change, ExpiryStep};
use crate::event::Event;
use crate::form::Form;
use crate::listing;
use crate::memory::Memory;
use crate::request::Request;
use crate::watch;

/// A moment, in milliseconds of Unix time.
const NOW: i64 = 1_800_000_000_000;

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap().trim_end().to_owned()
}

/// Runs a request, such as `PUT /a value=1`. Returns the answer.
fn run_at(tree: &mut Memory, line: &str, now: i64) -> (String, Option<Change>) {
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let form = Form::read(words.next().unwrap_or_default().as_bytes(), b"").unwrap();
    let request = Request::read(method.as_bytes(), path.as_bytes(), &form).unwrap();
    let mut out = Vec::new();
    let mut changed = None;
    let result = if method == "GET" {
        let how = (request.recursive, request.sorted);
        listing::write_node(tree, request.path, how, (now, usize::MAX), &mut out)
            .map(|is_whole| assert!(is_whole))
    } else {
        change::apply(tree, &request, now).map(|done| {
            if request.no_value {
                done.event.write_outcome(&mut out)
            } else {
                done.event.write(&mut out)
            }
            changed = Some(done);
        })
    };
    if let Err(error) = result {
        error.write(&mut out);
    }
    (text(out), changed)
}

fn run(tree: &mut Memory, line: &str) -> String {
    run_at(tree, line, NOW).0
}

/// Runs requests, and compares their answers.
fn play(tree: &mut Memory, lines: &[(&str, &str)]) {
    for (line, expected) in lines {
        let answer = run(tree, line);
        assert_eq!(answer, expected.replace('\'', "\""), "{line}");
    }
}

#[test]
fn values_come_and_go() {
    let mut tree = Memory::default();
    play(
        &mut tree,
        &[
            ("GET /", "{'action':'get','node':{'dir':true}}"),
            ("GET /a/b", "{'errorCode':100,'message':'Key not found','cause':'/a','index':0}"),
            (
                "PUT /a/b value=1",
                "{'action':'set','node':{'key':'/a/b','value':'1','modifiedIndex':1,'createdIndex':1}}",
            ),
            (
                "PUT /a/b value=2",
                "{'action':'set','node':{'key':'/a/b','value':'2','modifiedIndex':2,'createdIndex':2},\
                 'prevNode':{'key':'/a/b','value':'1','modifiedIndex':1,'createdIndex':1}}",
            ),
            (
                "GET /a",
                "{'action':'get','node':{'key':'/a','dir':true,'nodes':[{'key':'/a/b','value':'2',\
                 'modifiedIndex':2,'createdIndex':2}],'modifiedIndex':1,'createdIndex':1}}",
            ),
            (
                "GET /",
                "{'action':'get','node':{'dir':true,'nodes':[{'key':'/a','dir':true,'modifiedIndex':1,\
                 'createdIndex':1}]}}",
            ),
            ("PUT /a/b noValueOnSuccess=1", "{'action':'set'}"),
            ("PUT /a value=1", "{'errorCode':102,'message':'Not a file','cause':'/a','index':3}"),
            (
                "PUT /a/b/c value=1",
                "{'errorCode':104,'message':'Not a directory','cause':'/a/b','index':3}",
            ),
            ("DELETE /a", "{'errorCode':102,'message':'Not a file','cause':'/a','index':3}"),
            (
                "DELETE /a dir=1",
                "{'errorCode':108,'message':'Directory not empty','cause':'/a','index':3}",
            ),
            (
                "DELETE /a/b",
                "{'action':'delete','node':{'key':'/a/b','modifiedIndex':4,'createdIndex':3},\
                 'prevNode':{'key':'/a/b','value':'','modifiedIndex':3,'createdIndex':3}}",
            ),
            (
                "DELETE /a dir=true",
                "{'action':'delete','node':{'key':'/a','dir':true,'modifiedIndex':5,'createdIndex':1},\
                 'prevNode':{'key':'/a','dir':true,'modifiedIndex':1,'createdIndex':1}}",
            ),
            (
                "PUT / value=1",
                "{'errorCode':107,'message':'Root is read only','cause':'/','index':5}",
            ),
            (
                "DELETE / recursive=1",
                "{'errorCode':107,'message':'Root is read only','cause':'/','index':5}",
            ),
        ],
    );
    assert_eq!(tree.extent(), (vec![], 0));
}

#[test]
fn conditions_decide() {
    let mut tree = Memory::default();
    run(&mut tree, "PUT /a value=one");
    play(
        &mut tree,
        &[
            (
                "PUT /a value=x&prevValue=two",
                "{'errorCode':101,'message':'Compare failed','cause':'[two != one]','index':1}",
            ),
            (
                "PUT /a value=x&prevIndex=7",
                "{'errorCode':101,'message':'Compare failed','cause':'[7 != 1]','index':1}",
            ),
            (
                "DELETE /a prevValue=two&prevIndex=7",
                "{'errorCode':101,'message':'Compare failed','cause':'[two != one] [7 != 1]','index':1}",
            ),
            (
                "PUT /a value=x&prevExist=false",
                "{'errorCode':105,'message':'Key already exists','cause':'/a','index':1}",
            ),
            (
                "PUT /b value=x&prevExist=true",
                "{'errorCode':100,'message':'Key not found','cause':'/b','index':1}",
            ),
            (
                "PUT /a value=two&prevIndex=1&prevValue=one",
                "{'action':'compareAndSwap','node':{'key':'/a','value':'two','modifiedIndex':2,'createdIndex':1},\
                 'prevNode':{'key':'/a','value':'one','modifiedIndex':1,'createdIndex':1}}",
            ),
            (
                "PUT /a value=three&prevExist=true",
                "{'action':'update','node':{'key':'/a','value':'three','modifiedIndex':3,'createdIndex':1},\
                 'prevNode':{'key':'/a','value':'two','modifiedIndex':2,'createdIndex':1}}",
            ),
            (
                "DELETE /a prevIndex=3",
                "{'action':'compareAndDelete','node':{'key':'/a','modifiedIndex':4,'createdIndex':1},\
                 'prevNode':{'key':'/a','value':'three','modifiedIndex':3,'createdIndex':1}}",
            ),
            ("DELETE / prevIndex=1", "{'errorCode':102,'message':'Not a file','index':4}"),
        ],
    );
}

#[test]
fn children_are_hidden_sorted_and_counted() {
    let mut tree = Memory::default();
    let first = run(&mut tree, "POST /q value=a");
    assert!(first.contains("\"key\":\"/q/00000000000000000001\""), "{first}");
    run(&mut tree, "POST /q dir=true");
    run(&mut tree, "PUT /q/_hidden/x value=1");
    run(&mut tree, "PUT /q/00000000000000000002/deep value=1");
    let names = |answer: &str| {
        let parts = answer.split("\"key\":\"").skip(1);
        parts.map(|part| part.split('"').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let answer = run(&mut tree, "GET /q sorted=true&recursive=true");
    assert_eq!(
        names(&answer),
        [
            "/q",
            "/q/00000000000000000001",
            "/q/00000000000000000002",
            "/q/00000000000000000002/deep"
        ]
    );
    let answer = run(&mut tree, "GET /q");
    assert_eq!(names(&answer).len(), 3, "the children of children are not shown: {answer}");
    let answer = run(&mut tree, "GET /q/_hidden");
    assert_eq!(names(&answer), ["/q/_hidden", "/q/_hidden/x"], "who knows of it sees it");
}

#[test]
fn a_deep_tree_is_shown_and_goes() {
    let mut tree = Memory::default();
    let path = "/a".repeat(limits::ETCD_DEPTH + 1);
    run(&mut tree, &format!("PUT {path} value=1"));
    let answer = run(&mut tree, "GET / recursive=true");
    assert_eq!(answer.matches("\"nodes\":[").count(), limits::ETCD_DEPTH + 1);
    assert_eq!(answer.matches(']').count(), limits::ETCD_DEPTH + 1);
    let form = Form::read(b"value=1", b"").unwrap();
    for method in ["PUT", "POST"] {
        let deeper = format!("{path}/b");
        let refused = Request::read(method.as_bytes(), deeper.as_bytes(), &form).unwrap_err();
        assert_eq!(refused.code as u64, 209);
    }
    run(&mut tree, "DELETE /a recursive=true");
    assert_eq!(tree.extent(), (vec![], 0));
}

#[test]
fn large_removals_are_recognised_before_they_begin() {
    let mut tree = Memory::default();
    for line in ["PUT /a/b/1 value=1", "PUT /a/b/2 value=1", "PUT /a/3 value=1", "PUT /e dir=true"]
    {
        run(&mut tree, line);
    }
    let removes_more = |line: &str, most| {
        let (method, rest) = line.split_once(' ').unwrap();
        let (path, fields) = rest.split_once(' ').unwrap_or((rest, ""));
        let form = Form::read(fields.as_bytes(), b"").unwrap();
        let request = Request::read(method.as_bytes(), path.as_bytes(), &form).unwrap();
        change::removes_many(&tree, &request, most)
    };
    // The directory b, and three values.
    assert!(removes_more("DELETE /a recursive=true", 3));
    assert!(!removes_more("DELETE /a recursive=true", 4));
    assert!(removes_more("DELETE /a/b recursive=true", 1));
    for other in [
        "DELETE /a dir=true",
        "DELETE /a/3 recursive=true",
        "DELETE /e recursive=true",
        "DELETE /none recursive=true",
        "PUT /a/3 value=2",
    ] {
        assert!(!removes_more(other, 0), "{other}");
    }
    run(&mut tree, "PUT /a dir=true&ttl=1&prevExist=true");
    assert!(!change::expires_many(&tree, NOW, 3).unwrap(), "its time has not come");
    assert!(change::expires_many(&tree, NOW + 2000, 3).unwrap());
    assert!(!change::expires_many(&tree, NOW + 2000, 4).unwrap());
}

#[test]
fn expiries_are_reported_in_the_order_of_time() {
    let mut tree = Memory::default();
    run(&mut tree, "PUT /d dir=true&ttl=2");
    run(&mut tree, "PUT /d/late value=1&ttl=9");
    run(&mut tree, "PUT /soon value=1&ttl=1");
    run(&mut tree, "PUT /kept value=1&ttl=1");
    let refreshed = run(&mut tree, "PUT /kept refresh=true&ttl=5&prevExist=true");
    assert!(refreshed.contains("\"value\":\"1\""), "{refreshed}");
    assert!(tree.event(5).refresh);
    tree.watched = vec![b"/d/late"[..].into(), b"/d/never"[..].into(), b"/dx"[..].into()];
    let mut told = Vec::new();
    while let Some(ExpiryStep::Expired(change)) = change::expire(&mut tree, NOW + 2000).unwrap() {
        told.push((change.event.path.to_vec(), change.event.index(), change.gone));
    }
    let late: Box<[u8]> = b"/d/late"[..].into();
    assert_eq!(told, [(b"/soon".to_vec(), 6, vec![]), (b"/d".to_vec(), 7, vec![late])]);
    assert_eq!(tree.extent(), (vec!["/".to_owned()], 1));
    let (answer, _) = run_at(&mut tree, "GET /kept", NOW + 4500);
    assert!(answer.contains("\"expiration\":\"2027-01-15T08:00:05Z\",\"ttl\":1,"), "{answer}");
    run(&mut tree, "PUT /kept value=2&prevExist=true");
    assert_eq!(tree.extent().1, 0, "an update without a time to live makes it stay");
}

#[test]
fn a_directory_takes_a_time_to_live() {
    let mut tree = Memory::default();
    run(&mut tree, "PUT /d dir=true");
    run(&mut tree, "PUT /d/x value=1");
    let answer = run(&mut tree, "PUT /d ttl=5&prevExist=true");
    assert!(answer.starts_with("{\"action\":\"update\",\"node\":{\"key\":\"/d\",\"dir\":true,"));
    assert!(answer.contains("\"modifiedIndex\":3,\"createdIndex\":1},\"prevNode\""), "{answer}");
    let answer = run(&mut tree, "GET /d");
    assert!(answer.contains("],\"modifiedIndex\":1,\"createdIndex\":1}"), "{answer}");
    assert!(answer.contains("\"/d/x\""), "its children stay");
    let answer = run(&mut tree, "PUT /d value=x&prevExist=true");
    assert!(answer.contains("\"errorCode\":102"), "{answer}");
}

#[test]
fn wrong_entries_of_the_expiry_index_are_corrected() {
    use crate::tree::Tree;
    let mut tree = Memory::default();
    run(&mut tree, "PUT /later value=1&ttl=9");
    tree.schedule(b"/never/there", Some(1)).unwrap();
    tree.schedule(b"/later", Some(2)).unwrap();
    // Members that name a node, but differ from its name.
    let paths = [&b"later"[..], b"/later/", b"//later", b"/x/../later", b"", b"/"];
    paths.iter().for_each(|path| tree.schedule(path, Some(3)).unwrap());
    let at = NOW + 9000;
    run(&mut tree, "PUT /due value=1&ttl=1");
    tree.schedule(b"due", Some(4)).unwrap();
    for _ in 0..3 + paths.len() {
        assert!(matches!(change::expire(&mut tree, NOW).unwrap(), Some(ExpiryStep::Corrected)));
    }
    assert!(change::expire(&mut tree, NOW).unwrap().is_none());
    assert_eq!(tree.next_expiry().unwrap(), Some((NOW + 1000, b"/due".to_vec())));
    let Some(ExpiryStep::Expired(change)) = change::expire(&mut tree, NOW + 2000).unwrap() else {
        panic!("its time is up");
    };
    assert_eq!(*change.event.path, *b"/due");
    assert_eq!(tree.next_expiry().unwrap(), Some((at, b"/later".to_vec())));
}

#[test]
fn events_are_kept_as_they_were() {
    let mut tree = Memory::default();
    let mut events: Vec<Event<'static>> = Vec::new();
    for line in [
        "PUT /a value=1&ttl=3",
        "PUT /a ttl=9&refresh=true",
        "PUT /d dir=true",
        "DELETE /a",
        "DELETE /d recursive=true",
        "POST / value=",
    ] {
        events.extend(run_at(&mut tree, line, NOW).1.map(|change| change.event));
    }
    assert_eq!(events.len(), 6);
    for event in &events {
        assert_eq!(tree.event(event.index()), *event);
    }
}

#[test]
fn watchers_get_the_events_that_concern_them() {
    let mut tree = Memory::default();
    let mut event = |line: &str| run_at(&mut tree, line, NOW).1.unwrap().event;
    let value = event("PUT /a/b value=1");
    let hidden = event("PUT /a/_h/x value=1");
    let refreshed = event("PUT /a/b refresh=1&ttl=5");
    let gone = event("DELETE /a recursive=true");
    // Event, watched path, recursively, found in the past, concerns.
    for (event, watched, recursive, found, concerns) in [
        (&value, "/a/b", false, true, true),
        (&value, "/a", false, false, false),
        (&value, "/a", true, true, true),
        (&value, "/", true, true, true),
        (&value, "/a/bc", true, false, false),
        (&value, "/a/b/c", true, false, false),
        (&hidden, "/a", true, true, false),
        (&hidden, "/a/_h", true, true, true),
        (&refreshed, "/a/b", true, false, false),
        (&gone, "/a", false, true, true),
        (&gone, "/a/b", false, true, true),
        (&gone, "/ab", false, true, false),
        (&gone, "/", false, false, false),
    ] {
        let watched = watched.as_bytes();
        assert_eq!(watch::is_found(event, watched, recursive), found, "{watched:?} {event:?}");
        assert_eq!(watch::concerns(event, watched, recursive), concerns, "{watched:?} {event:?}");
    }
}
