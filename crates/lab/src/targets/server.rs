//! A running target: started by the lab, alone or with other processes beside it, or found running.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::connection::Endpoint;
use super::copied;
use super::directory::Directory;
use super::interrupt::Interrupt;
use super::member::Member;
use super::proxy::Proxy;
use super::shards::Cluster;
use super::target::Target;

pub(crate) use super::member::StartError;

/// A running target. Dropping it ends what the lab has started.
#[derive(Debug)]
pub(crate) struct Server {
    /// In the order of their start: the target itself is the last.
    members: Vec<Member>,
    /// The process that keeps the data.
    store: usize,
    /// The ways to processes that can be cut: the place of the process, and the port.
    links: Vec<(usize, u16, Proxy)>,
    cluster: Option<Cluster>,
    /// Removed last, when nothing writes there any more.
    directory: Directory,
}

impl Server {
    /// Starts a target, after the processes beside it, and waits until each is ready.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running.
    pub(crate) fn start(
        target: &Target,
        directory: Directory,
        interrupt: &Interrupt,
    ) -> Result<Self, StartError> {
        let mut server =
            Server { members: Vec::new(), store: 0, links: Vec::new(), cluster: None, directory };
        let place = server.directory.path().to_owned();
        for (at, own) in target.beside.iter().chain([target]).enumerate() {
            // All processes of a target share what the first of them needs.
            if let Some(place) = own.certificates.as_ref().filter(|place| !place.exists()) {
                tls::dev::make(place, &[]).map_err(StartError::Failed)?;
            }
            if let Some(port) = own.link_port {
                let link = Proxy::start(port, own.port);
                let link = link.map_err(|error| StartError::Failed(error.to_string()))?;
                server.links.push((at, port, link));
            }
        }
        for own in target.beside.iter().chain([target]) {
            let is_last = std::ptr::eq(own, target);
            let place = if is_last { place.clone() } else { place.join(&own.name) };
            let mut member = Member::start(own, &place)?;
            // Members of etcd are ready when they have found each other.
            if target.cluster.is_none() {
                member.wait_until_ready(interrupt)?;
            }
            server.members.push(member);
        }
        server.store = target.store.unwrap_or(target.beside.len());
        if let Some(rule) = &target.cluster {
            for member in &mut server.members {
                member.wait_until_ready(interrupt)?;
            }
            let cluster = Cluster::form(rule, &server.members, interrupt);
            server.cluster = Some(cluster.map_err(StartError::Failed)?);
        }
        Ok(server)
    }

    /// The cluster that its processes make up, if they do.
    pub(crate) fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_ref()
    }

    /// The place of the process that is broken when no other is named: its store, or the primary of
    /// slot 0.
    ///
    /// # Errors
    /// Nobody knows who that is.
    pub(crate) fn place_to_break(&self) -> Result<usize, String> {
        self.cluster.as_ref().map_or(Ok(self.store), Cluster::primary)
    }

    /// Waits until each replica has what the store has now.
    ///
    /// # Errors
    /// One of them does not get it, or the lab is to end.
    pub(crate) fn wait_for_replicas(&self, interrupt: &Interrupt) -> Result<(), String> {
        if let Some(cluster) = &self.cluster {
            return cluster.wait_for_replicas(&self.members, interrupt);
        }
        let replicas = self.members.iter().filter(|member| member.is_replica());
        copied::wait(self.store(), replicas, interrupt)
    }

    /// Where it takes commands.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        self.store().endpoint()
    }

    /// Where a process beside it takes commands; without one, where the target does.
    pub(crate) fn endpoint_of(&self, beside: Option<usize>) -> &Endpoint {
        beside.map_or_else(|| self.endpoint(), |place| self.members[place].endpoint())
    }

    /// Where a process takes commands: one beside it, or itself, which comes after these.
    pub(crate) fn endpoint_at(&self, place: usize) -> &Endpoint {
        self.members[place].endpoint()
    }

    /// Where the process itself takes commands that was started after those beside it.
    pub(crate) fn own_endpoint(&self) -> &Endpoint {
        self.endpoint_at(self.members.len() - 1)
    }

    /// The ports over which others reach processes, with where these take commands.
    pub(crate) fn links(&self) -> Vec<(u16, Endpoint)> {
        let link =
            |(place, port, _): &(usize, u16, Proxy)| (*port, self.endpoint_at(*place).clone());
        self.links.iter().map(link).collect()
    }

    /// Cuts the way over which others reach the store, or mends it. Returns whether there is one.
    pub(crate) fn cut_link(&self, is_cut: bool) -> bool {
        let own = self.links.iter().filter(|(place, ..)| *place == self.store);
        own.map(|(_, _, link)| link.cut(is_cut)).count() > 0
    }

    /// Where a process beside it answers HTTP; without one, where the target does.
    pub(crate) fn web_of(&self, beside: Option<usize>) -> &Endpoint {
        self.members[beside.unwrap_or(self.members.len() - 1)].web()
    }

    /// The numbers of its processes, 0 for one that is not there; they change with restarts.
    pub(crate) fn pids(&self) -> Vec<Arc<AtomicU32>> {
        self.members.iter().map(|member| Arc::clone(member.pid())).collect()
    }

    /// The number of the store's process.
    pub(crate) fn store_pid(&self) -> Arc<AtomicU32> {
        Arc::clone(self.store().pid())
    }

    /// The exact commands, `&` between them; empty for one that was running.
    pub(crate) fn command_line(&self) -> Vec<String> {
        let lines: Vec<Vec<String>> = self.members.iter().map(Member::command_line).collect();
        lines.join(&"&".to_owned())
    }

    /// The store's own name and version, as `redis-server 7.0.15`; empty when it does not tell.
    pub(crate) fn version(&self) -> String {
        self.store().version()
    }

    /// The limits under which its processes run, for a reader.
    pub(crate) fn limits(&self) -> String {
        let limits: Vec<String> = self.members.iter().filter_map(Member::limits).collect();
        limits.join(", ")
    }

    /// Processor seconds of all its processes and all that they have started, over all restarts;
    /// none when they are not known, as of a target on another machine, or of one that has ended by
    /// itself.
    pub(crate) fn cpu_seconds(&self) -> Option<f64> {
        self.members.iter().map(Member::cpu_seconds).sum()
    }

    /// The same of its store alone, if it is one of several processes.
    pub(crate) fn store_cpu_seconds(&self) -> Option<f64> {
        (self.members.len() > 1).then(|| self.store().cpu_seconds()).flatten()
    }

    /// Whether the lab has started it, so that it may also break it.
    pub(crate) fn is_ours(&self) -> bool {
        self.store().is_ours()
    }

    /// How one of its processes has ended, when one has and the lab did not end it.
    pub(crate) fn unexpected_end(&mut self) -> Option<String> {
        self.members.iter_mut().find_map(Member::unexpected_end)
    }

    /// Whether the lab has started the store, and it does not run any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.store().is_gone()
    }

    /// Kills a process ([`Member::kill`]). Returns the number of the process that was.
    pub(crate) fn kill(&mut self, place: usize) -> Option<u32> {
        self.members[place].kill()
    }

    /// Starts a process again. It is not ready when this returns.
    ///
    /// # Errors
    /// The program does not start.
    pub(crate) fn launch(&mut self, place: usize) -> Result<(), StartError> {
        self.members[place].launch()
    }

    /// Stops a process where it is.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn stop(&mut self, place: usize) -> std::io::Result<()> {
        self.members[place].stop()
    }

    /// Lets a process go on.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn go_on(&mut self, place: usize) -> std::io::Result<()> {
        self.members[place].go_on()
    }

    /// Whether a process answers now.
    pub(crate) fn is_ready(&self, place: usize) -> bool {
        self.members[place].is_ready()
    }

    /// Its name in the experiment's file.
    pub(crate) fn name_of(&self, place: usize) -> &str {
        self.members[place].name()
    }

    /// Ends it: the process that was started last goes first. Nodes of a cluster would hand over to
    /// each other what goes with their directories.
    pub(crate) fn shut_down(mut self) {
        if self.cluster.is_some() {
            for member in &mut self.members {
                member.kill();
            }
        }
        self.members.iter_mut().rev().for_each(Member::shut_down);
    }

    /// The place of the store.
    pub(crate) fn store_place(&self) -> usize {
        self.store
    }

    fn store(&self) -> &Member {
        &self.members[self.store]
    }
}
