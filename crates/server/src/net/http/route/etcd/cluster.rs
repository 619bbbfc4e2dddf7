//! The members that clients of etcd see: the nodes of the shard that has the tree, or this server
//! alone.

use base::crc::key_slot;
use cluster::ids::NodeId;
use cluster::topology::{Node, Shard};
use engine::nodes::kept::PREFIX;
use engine::session::client::flag;
use etcd::json::Object;
use http::request::Head;
use http::target::Target;

use super::plain_answers::json;
use crate::net::http::etcd::cluster::MEMBER;
use crate::net::http::url::url_of;
use crate::net::intake::Intake;

/// The name of a server that is alone.
const NAME: &str = "dunlin";

/// A member, as etcd shows it.
pub(super) struct Member {
    pub(super) id: u64,
    name: String,
    /// Where clients reach it; nothing if those that came as this one did cannot.
    url: Option<String>,
}

impl Member {
    fn of(node: &Node, url: Option<String>) -> Member {
        let name = if node.name.is_empty() { node.id.to_string() } else { node.name.clone() };
        Member { id: id_of(node.id), name, url }
    }

    /// As `/v2/members` has it. No member has addresses for others.
    pub(super) fn shown(&self) -> Vec<u8> {
        json(|object| {
            object.text("id", self.id_text().as_bytes());
            object.text("name", self.name.as_bytes());
            object.member("peerURLs").extend_from_slice(b"[]");
            let urls = object.member("clientURLs");
            urls.push(b'[');
            if let Some(url) = &self.url {
                etcd::json::string(urls, url.as_bytes());
            }
            urls.push(b']');
        })
    }

    fn id_text(&self) -> String {
        format!("{:x}", self.id)
    }
}

/// The number that stands for a node: the beginning of its name.
fn id_of(node: NodeId) -> u64 {
    node.0.iter().take(8).fold(0, |id, byte| id << 8 | u64::from(*byte))
}

/// See the module's text.
pub(super) struct Cluster {
    /// By their numbers.
    pub(super) members: Vec<Member>,
    leader: Option<u64>,
    /// This server, which need not be one of them.
    own: Member,
    /// Whether an operator makes and changes it.
    pub(super) is_operated: bool,
}

impl Cluster {
    /// The cluster as a client sees it that has sent this.
    pub(super) fn of(intake: Intake<'_>, head: &Head<'_>, target: &Target<'_>) -> Cluster {
        let encrypted = intake.client.has_flag(flag::ENCRYPTED);
        let Some(view) = intake.engine.cluster.view() else {
            let scheme = if encrypted { "https" } else { "http" };
            return Cluster::alone(format!("{scheme}://{}", own_host(head, target)));
        };
        let topology = &view.topology;
        let member = |node: &Node| Member::of(node, url_of(node, intake.config, encrypted));
        let shard = topology.owner_of_slot(key_slot(PREFIX));
        let nodes = shard.into_iter().flat_map(Shard::nodes);
        let mut members: Vec<Member> =
            nodes.filter_map(|id| topology.nodes.get(&id)).map(member).collect();
        members.sort_by_key(|member| member.id);
        let leader = shard.and_then(|shard| topology.primary_of(shard.id));
        let nameless = || Member { id: id_of(view.own), name: view.own.to_string(), url: None };
        Cluster {
            members,
            leader: leader.filter(|node| node.is_alive()).map(|node| id_of(node.id)),
            own: topology.nodes.get(&view.own).map_or_else(nameless, member),
            is_operated: true,
        }
    }

    fn alone(url: String) -> Cluster {
        let id = etcd::member::id(MEMBER.as_bytes()).unwrap_or_default();
        let own = || Member { id, name: NAME.into(), url: Some(url.clone()) };
        Cluster { members: vec![own()], leader: Some(id), own: own(), is_operated: false }
    }

    /// The member that leads, unless one is just being elected.
    pub(super) fn leader(&self) -> Option<&Member> {
        let leader = self.leader?;
        self.members.iter().find(|member| member.id == leader)
    }

    /// The addresses of all members, as `/v2/machines` has them.
    pub(super) fn machines(&self) -> String {
        let mut urls: Vec<&str> =
            self.members.iter().filter_map(|member| member.url.as_deref()).collect();
        urls.sort_unstable();
        urls.join(", ")
    }

    /// The followers of this member, as `/v2/stats/leader` has them; nothing if it does not lead.
    pub(super) fn followers(&self) -> Option<Vec<u8>> {
        let leader = self.leader().filter(|leader| leader.id == self.own.id)?;
        let others = self.members.iter().filter(|member| member.id != leader.id);
        let followers = json(|followers| {
            for member in others {
                followers.member(&member.id_text()).extend_from_slice(UNMEASURED);
            }
        });
        Some(json(|object| {
            object.text("leader", leader.id_text().as_bytes());
            object.member("followers").extend_from_slice(&followers);
        }))
    }

    /// This server, as `/v2/stats/self` has it, which has run for so many milliseconds.
    pub(super) fn write_self(&self, object: &mut Object<'_>, up: u64) {
        let mut started = Vec::new();
        etcd::date::write(&mut started, base::clock::now_ms().saturating_sub(up).cast_signed());
        let leads = self.leader == Some(self.own.id);
        let leader = json(|object| {
            let id = self.leader().map(Member::id_text).unwrap_or_default();
            object.text("leader", id.as_bytes());
            object.text("uptime", etcd::date::duration(up).as_bytes());
            object.text("startTime", &started);
        });
        object.text("name", self.own.name.as_bytes());
        object.text("id", self.own.id_text().as_bytes());
        object.text("state", if leads { &b"StateLeader"[..] } else { b"StateFollower" });
        object.text("startTime", &started);
        object.member("leaderInfo").extend_from_slice(&leader);
        for name in ["recvAppendRequestCnt", "sendAppendRequestCnt"] {
            object.member(name).push(b'0');
        }
    }
}

/// What etcd measures of a follower, and this server does not.
const UNMEASURED: &[u8] = b"{\"latency\":{\"current\":0,\"average\":0,\"standardDeviation\":0,\
    \"minimum\":0,\"maximum\":0},\"counts\":{\"fail\":0,\"success\":0}}";

/// Where the client has found this server.
fn own_host(head: &Head<'_>, target: &Target<'_>) -> String {
    let host = target.authority.or(head.header("host")).unwrap_or(b"localhost");
    String::from_utf8_lossy(host).into_owned()
}
