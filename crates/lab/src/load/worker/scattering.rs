//! A cluster: each request goes to the node that has its key, over a connection of its client to
//! that node, and goes on to another one when it is sent there.

use super::Worker;
use crate::load::connection::{Connection, Scanner, State};
use crate::load::render::Request;
use crate::load::tally::Flight;
use crate::load::topology::{Cluster, Redirect};
use resp::client::ReplyScanner;

/// The words before a request that is sent on for this time only.
const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";

/// A request of so many bytes is not copied to go with others.
const LARGE: usize = 16 * 1024;

impl Worker<'_> {
    /// The connections that are opened before the load begins: to each node with slots.
    pub(super) fn first_connections(&self) -> Vec<usize> {
        let clients = self.clients.len();
        let is_needed = |index: &usize| {
            let place = (index / clients) as u16;
            self.spread.as_ref().is_none_or(|spread| spread.owners.contains(&place))
        };
        (0..self.connections.len()).filter(is_needed).collect()
    }

    /// Takes over what has become known of the cluster.
    #[inline]
    pub(super) fn look_at_cluster(&mut self) {
        if let (Some(spread), Some(cluster)) = (&mut self.spread, &self.shared.cluster)
            && let Some(known) = cluster.since(&mut spread.version)
        {
            spread.owners = known.owners;
            spread.nodes = known.nodes.iter().map(|node| node.endpoint.clone()).collect();
            let (clients, nodes) = (self.clients.len(), spread.nodes.len());
            let new = || Connection::new(Scanner::Resp(ReplyScanner::default()));
            self.connections.resize_with(clients * nodes, new);
            // Nobody answers what a primary was asked that has been replaced while it stood still.
            for index in 0..self.connections.len() {
                let is_late = known.nodes[index / clients].is_replica
                    && self.connections[index].waiting > 0
                    && self.connections[index].state != State::Closed;
                if is_late && self.plan.reconnect {
                    self.lose(index, "its node is a replica now");
                }
            }
        }
    }

    /// How many open requests a client that goes on has at most, and one more.
    pub(super) fn room_to_go_on(&self) -> usize {
        if self.due.is_some() { self.plan.pipeline } else { 1 }
    }

    /// Sends requests of a client with the due times that are set.
    pub(super) fn scatter(&mut self, client: usize, now: u64) {
        let due_times = std::mem::take(&mut self.due_times);
        for due in &due_times {
            let request = self.renderer.draw();
            let is_measured = *due >= self.measured_from;
            if is_measured && self.due.is_some() {
                let since = (*due).max(self.free_since);
                self.tally.lateness.record(now.saturating_sub(since));
            }
            let operation = request.operation as u32;
            let flight = Flight { due: *due, sent: now, operation, count: 1, is_measured };
            self.dispatch(client, flight, request, None);
        }
        self.due_times = due_times;
        self.send_touched();
    }

    /// Puts a request into the connection to its node, or to the one that it is sent on to.
    fn dispatch(
        &mut self,
        client: usize,
        flight: Flight,
        request: Request,
        on: Option<(usize, bool)>,
    ) {
        let Some(spread) = &mut self.spread else { return };
        let (bytes, slot) = self.renderer.lay_out(&request);
        let (place, asks) = on.unwrap_or_else(|| (spread.owner(slot), false));
        let index = place * self.clients.len() + client;
        let connection = &mut self.connections[index];
        if flight.is_measured && on.is_none() {
            self.tally.sent(request.operation, bytes.len());
        }
        if asks {
            connection.keep(ASKING);
            connection.flights.push_back(Flight { is_measured: false, ..flight });
            connection.requests.push_back(None);
        }
        if bytes.len() < LARGE {
            connection.keep(bytes);
        } else {
            // A connection that is lost is seen to be so when it is read.
            let _ = connection.send(bytes);
        }
        connection.flights.push_back(flight);
        connection.requests.push_back(Some(request));
        let count = 1 + usize::from(asks);
        connection.waiting += count;
        self.clients[client].waiting += count;
        self.in_flight += count;
        if !spread.touched.contains(&index) {
            spread.touched.push(index);
        }
    }

    fn send_touched(&mut self) {
        while let Some(index) = self.spread.as_mut().and_then(|spread| spread.touched.pop()) {
            let result = self.connections[index].flush();
            self.sent(index, result);
        }
    }

    /// Sends requests on to the nodes that the answers over this connection have named.
    pub(super) fn send_on(&mut self, index: usize, all: Vec<(Flight, Request, Redirect)>) {
        let client = self.client_of(index);
        let count = all.len();
        self.connections[index].waiting -= count;
        self.clients[client].waiting -= count;
        self.in_flight -= count;
        self.tally.redirects += count as u64;
        for (flight, request, redirect) in all {
            match self.place_of(index, &redirect) {
                Some(place) => {
                    let on = Some((place, redirect.slot.is_none()));
                    self.dispatch(client, flight, request, on);
                }
                None => self.tally.lost(&flight, "connection", flight.sent),
            }
        }
        self.send_touched();
    }

    /// The place of the node that a redirect names, which has the slot from now on.
    fn place_of(&mut self, index: usize, redirect: &Redirect) -> Option<usize> {
        let cluster: &Cluster = self.shared.cluster.as_ref()?;
        let place = match redirect.host.is_empty() {
            true => cluster.beside(index / self.clients.len(), redirect.port),
            false => cluster.place(&redirect.host, redirect.port),
        };
        let place = place.ok()?;
        if self.spread.as_ref().is_some_and(|own| own.nodes.len() <= usize::from(place)) {
            self.look_at_cluster();
        }
        if let (Some(slot), Some(spread)) = (redirect.slot, &mut self.spread) {
            spread.owners[usize::from(slot)] = place;
            cluster.doubt();
        }
        Some(usize::from(place))
    }
}
