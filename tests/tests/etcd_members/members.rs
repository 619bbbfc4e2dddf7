//! Who the members are: the answers of three nodes beside those of three members of etcd 3.4.

use std::process::Command;
use std::sync::LazyLock;
use std::thread;

use anyhow::{Context, Result, ensure};
use regex_lite::Regex;
use serde_json::Value;
use tests::cluster::SHARD;
use tests::etcd_members::EtcdMembers;
use tests::observe::wait_until;
use tests::server::dunlin_binary;
use tests::web::{Answer, Web};

use crate::nodes::{FIRST, Nodes, ask};

/// How many members there are.
const COUNT: usize = 3;

/// Asks a member. Nothing if it is gone, or has not answered.
fn told(port: u16, line: &str) -> Option<Answer> {
    let headers: &[&str] = if line.starts_with("POST") || line.starts_with("PUT") {
        &["Content-Type: application/json", "Content-Length: 0"]
    } else {
        &[]
    };
    Web::connect(port).and_then(|mut web| web.ask(line, headers, b"")).ok()
}

/// An answer without what differs from one cluster to the next: names, numbers and times.
fn shape(answer: &Answer) -> String {
    static PARTS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        [
            (r#""peerURLs":\[[^\]]*\]"#, "peers"),
            (r"http://127\.0\.0\.1:\d+", "url"),
            (r#""name":"[^"]+""#, "name"),
            (r#""(startTime|uptime)":"[^"]+""#, "$1"),
            (r#""[0-9a-f]{11,16}""#, "id"),
            (r#"(RequestCnt|current|average|Deviation|minimum|maximum|fail|success)":[0-9.e+-]+"#, "$1"),
            // What a leader sends a second is told when it has sent something.
            (r#","(sendPkgRate|sendBandwidthRate|recvPkgRate|recvBandwidthRate)":[0-9.e+-]+"#, ""),
        ]
        .map(|(text, other)| (Regex::new(text).expect("it is a pattern"), other))
        .into()
    });
    let body = PARTS
        .iter()
        .fold(answer.text(), |body, (part, other)| part.replace_all(&body, *other).into_owned());
    let has_cluster = answer.header("x-etcd-cluster-id").is_some();
    format!("{} {:?} {has_cluster}\n{body}", answer.status, answer.header("content-type"))
}

const ROUTES: [&str; 10] = [
    "GET /v2/members",
    "GET /v2/members/",
    "GET /v2/members/leader",
    "GET /v2/members/nobody",
    "GET /v2/machines",
    "GET /v2/stats/self",
    "GET /v2/stats/leader",
    "DELETE /v2/members/1234",
    "PUT /v2/members/nobody",
    "GET /health",
];

/// The shapes of all answers of a member.
fn shapes(port: u16) -> Result<Vec<String>> {
    let answers = ROUTES.iter().map(|line| {
        let answer = told(port, line).with_context(|| format!("an answer to {line}"))?;
        Ok(format!("{line}: {}", shape(&answer)))
    });
    answers.collect()
}

/// The member that says that it leads.
fn leader(ports: &[u16]) -> Option<usize> {
    let leads = |port: &u16| {
        let answer = told(*port, "GET /v2/stats/leader");
        answer.is_some_and(|answer| answer.status == 200)
    };
    ports.iter().position(leads)
}

/// A member's number, name and address.
type Member = (String, String, String);

/// All members, and the number of their leader.
fn members(port: u16) -> Result<(Vec<Member>, String)> {
    let read = |line: &str| -> Result<Value> {
        Ok(serde_json::from_slice(&told(port, line).context("an answer")?.body)?)
    };
    let all = read("GET /v2/members")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let members = all["members"].as_array().context("members")?.iter();
    let members = members
        .map(|own| (text(&own["id"]), text(&own["name"]), text(&own["clientURLs"][0])))
        .collect();
    Ok((members, text(&read("GET /v2/members/leader")?["id"])))
}

/// Waits until the member that says that it leads is the one that all others name.
fn wait_for_leader(ports: &[u16]) -> Result<usize> {
    let mut found = None;
    wait_until("all members name one leader", || {
        found = leader(ports);
        let name = |port: &u16| {
            told(*port, "GET /v2/members/leader").filter(|it| it.status == 200).map(|it| it.text())
        };
        let own = found.and_then(|at| name(&ports[at]));
        let url = found.map(|at| format!(":{}\"", ports[at]));
        let is_own = own.as_ref().zip(url).is_some_and(|(own, url)| own.contains(&url));
        Ok(is_own && ports.iter().filter_map(name).all(|other| Some(other) == own))
    })?;
    found.context("it was found")
}

/// Compares what members tell on both sides: whoever leads, and whoever follows. Returns the ports
/// of those that lead.
fn compare(own: &[u16], judged: &[u16]) -> Result<(u16, u16)> {
    let (leads, judges) = (wait_for_leader(own)?, wait_for_leader(judged)?);
    let others = ((leads + 1) % own.len(), (judges + 1) % judged.len());
    for (here, there) in [(leads, judges), others] {
        let mut differs = Vec::new();
        // A leader of etcd knows nothing of a follower before it has heard of it.
        let waited = wait_until("they tell the same", || {
            let pairs = shapes(own[here])?.into_iter().zip(shapes(judged[there])?);
            differs = pairs.filter(|(here, there)| here != there).collect();
            Ok(differs.is_empty())
        });
        waited.with_context(|| format!("here and of etcd: {differs:#?}"))?;
    }
    Ok((own[leads], judged[judges]))
}

/// The others.
fn without(ports: &[u16], gone: u16) -> Vec<u16> {
    ports.iter().copied().filter(|port| *port != gone).collect()
}

#[test]
fn members_are_told_as_by_three_members_of_etcd() -> Result<()> {
    let mut nodes = Nodes::start(1, &[("durability-timeout", "300")])?;
    let mut judge = EtcdMembers::start_with_v2(COUNT)?;
    let own = nodes.ports[FIRST].to_vec();
    let judged: Vec<u16> = (0..COUNT).map(|number| judge.port(number)).collect();
    let first = compare(&own, &judged)?;
    let (all, leader) = members(own[0])?;
    let url = |port: u16| format!("http://127.0.0.1:{port}");
    // In the order of their numbers, which are written without zeros before them.
    let number = |member: &Member| u64::from_str_radix(&member.0, 16).unwrap_or_default();
    ensure!(all.len() == COUNT && all.is_sorted_by_key(number), "{all:?}");
    ensure!(own.iter().all(|port| all.iter().any(|own| own.2 == url(*port))), "{own:?} {all:?}");
    let leads = all.iter().any(|own| own.0 == leader && own.2 == url(first.0));
    ensure!(leads, "{leader} of {all:?}, not {first:?}");
    // A node of another shard tells the same, and is none of them.
    let other = nodes.ports[COUNT];
    ensure!(members(other)? == (all.clone(), leader), "another shard");
    let mut kill = |own: u16, judged: u16| {
        let is_own = |index: &usize| nodes.ports[*index] == own;
        FIRST.filter(is_own).for_each(|index| nodes.deployment.nodes[index].kill());
        let is_judged = |number: &usize| judge.port(*number) == judged;
        let number = (0..COUNT).find(is_judged);
        number.into_iter().for_each(|number| judge.kill(number));
    };
    kill(first.0, first.1);
    let left = (without(&own, first.0), without(&judged, first.1));
    let next = compare(&left.0, &left.1)?;
    // Who is gone is still one of them, as in etcd.
    ensure!(members(next.0)?.0 == all, "{all:?}");
    // One of three is left.
    kill(without(&left.0, next.0)[0], without(&left.1, next.1)[0]);
    let writes = "PUT /few value=1";
    let judged = thread::spawn(move || ask(next.1, writes));
    let refused = ask(next.0, writes)?;
    // None is left, and a node of another shard says so.
    kill(next.0, 0);
    let leads_nobody = |port: u16| {
        wait_until("nobody leads", || {
            let answer = told(port, "GET /v2/members/leader");
            Ok(answer.is_some_and(|answer| answer.status == 503))
        })
    };
    leads_nobody(other)?;
    let alone = thread::spawn(move || ask(other, writes));
    let judged = judged.join().expect("no panic")?;
    leads_nobody(next.1)?;
    for line in ["GET /v2/members/leader", "GET /health"] {
        let shapes = [other, next.1].map(|port| told(port, line).map(|answer| shape(&answer)));
        ensure!(shapes[0].is_some() && shapes[0] == shapes[1], "{line}: {shapes:?}");
    }
    let alone = alone.join().expect("no panic")?;
    for own in [&refused, &alone] {
        ensure!(refusal(own)? == refusal(&judged)?, "{}\n{}", own.text(), judged.text());
    }
    ensure!(alone.text().contains("\"etcdserver: request timed out"), "{}", alone.text());
    Ok(())
}

/// A refusal, but for its cause: Dunlin says what was reached.
fn refusal(answer: &Answer) -> Result<(u16, Value)> {
    let mut body: Value = serde_json::from_slice(&answer.body)?;
    ensure!(body["cause"].take().is_string(), "{}", answer.text());
    Ok((answer.status, body))
}

#[test]
fn the_list_follows_nodes_that_come_and_go_and_the_tree() -> Result<()> {
    let mut nodes = Nodes::start(2, &[])?;
    let (all, url) = (nodes.ports.clone(), nodes.deployment.etcd.url(0));
    let listed = |node: usize| -> Result<Vec<u16>> {
        let text = told(all[node], "GET /v2/machines").context("an answer")?.text();
        let port = |url: &str| url.rsplit(':').next().and_then(|port| port.parse().ok());
        let mut ports: Vec<u16> = text.split(", ").filter_map(port).collect();
        ports.sort_unstable();
        Ok(ports)
    };
    let wait_for_list = |members: &[usize]| -> Result<()> {
        let mut ports: Vec<u16> = members.iter().map(|node| all[*node]).collect();
        ports.sort_unstable();
        for node in 0..all.len() {
            wait_until("the list is so", || Ok(listed(node)? == ports))
                .with_context(|| format!("{:?}, not {ports:?}", listed(node)))?;
        }
        Ok(())
    };
    let operate = |words: &[&str]| -> Result<()> {
        let mut tool = Command::new(dunlin_binary()?);
        let done = tool.arg("cluster").args(words).args(["--yes", "--etcd", &url]).output()?;
        ensure!(done.status.success(), "{words:?}: {done:?}");
        Ok(())
    };
    wait_for_list(&[0, 1, 2])?;
    let leader = nodes.leader(FIRST)?;
    let leaves = FIRST.rev().find(|node| *node != leader).context("a replica")?;
    let address = format!("127.0.0.1:{}", nodes.deployment.nodes[leaves].port());
    operate(&["remove", &address])?;
    let stay: Vec<usize> = FIRST.filter(|node| *node != leaves).collect();
    wait_for_list(&stay)?;
    // Who was removed is to come anew.
    nodes.deployment.nodes[leaves].start_again()?;
    operate(&["add", &address, "--shard", SHARD, "--discard-keys"])?;
    wait_for_list(&[0, 1, 2])?;
    nodes.move_tree("there", false)?;
    wait_for_list(&[3, 4])
}
