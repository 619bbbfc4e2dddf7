//! Connections, and reading and writing of whatever a descriptor stands for.

use std::collections::VecDeque;

use super::{WELL, descriptor, fault, value};
use crate::hold::Call;
use crate::objects::{End, Kind, MachineNumber, Object, ObjectNumber, Socket, ThreadNumber};
use crate::outcome::{Done, Outcome};
use crate::world::{Happening, ProcessNumber, World};

/// Bytes that one call moves at most.
const MOVED_MAX: usize = 1 << 20;
/// What a call does when it can do nothing now.
const READS: usize = 0;
const WRITES: usize = 1;

impl World {
    /// Reads into parts of the memory of a process.
    pub(super) fn read(
        &mut self,
        thread: ThreadNumber,
        process: ProcessNumber,
        call: &Call,
        parts: &[(u64, usize)],
    ) -> Done {
        let Ok(number) = self.object_of(process, descriptor(call.arguments[0])) else {
            return Ok(Outcome::GoOn);
        };
        let most = parts.iter().map(|(_, length)| length).sum::<usize>().min(MOVED_MAX);
        let peeks =
            call.number == libc::SYS_recvfrom && call.arguments[3] as i32 & libc::MSG_PEEK != 0;
        let Some(bytes) = self.take(number, most, peeks)? else {
            return self.wait_for(thread, number, call, READS);
        };
        let memory = self.memory(process)?;
        let mut from = 0;
        for &(address, length) in parts {
            let length = length.min(bytes.len() - from);
            memory.write(address, &bytes[from..from + length]).map_err(fault)?;
            from += length;
        }
        value(bytes.len())
    }

    /// What is there to read; `None` when nothing is there yet.
    fn take(
        &mut self,
        number: ObjectNumber,
        most: usize,
        peeks: bool,
    ) -> Result<Option<Vec<u8>>, i32> {
        let machine = self.object(number)?.machine;
        match &mut self.objects.get_mut(&number).ok_or(libc::EBADF)?.kind {
            Kind::Event(0) => Ok(None),
            Kind::Event(count) => Ok(Some(std::mem::take(count).to_le_bytes().to_vec())),
            Kind::Text(text) => {
                let length = most.min(text.len());
                Ok(Some(text.drain(..length).collect()))
            }
            Kind::Entropy => Ok(Some(self.random.bytes(most))),
            Kind::Open(open) => {
                let data = &self.machines[machine].disk.file(open.inode)?.data;
                let from = open.position.min(data.len());
                let bytes = data[from..data.len().min(from + most)].to_vec();
                open.position = from + bytes.len();
                Ok(Some(bytes))
            }
            Kind::End(end) => {
                if !end.arrived.is_empty() {
                    let length = most.min(end.arrived.len());
                    let bytes: Vec<u8> = end.arrived.iter().take(length).copied().collect();
                    if !peeks {
                        end.arrived.drain(..length);
                        self.tell_of_room(number);
                    }
                    return Ok(Some(bytes));
                }
                if let Some(told) = &mut end.reset {
                    if !std::mem::replace(told, true) {
                        return Err(libc::ECONNRESET);
                    }
                    return Ok(Some(Vec::new()));
                }
                Ok(end.is_ended.then(Vec::new))
            }
            Kind::Socket(_) => Err(libc::ENOTCONN),
            Kind::Listener { .. } | Kind::Watch(_) => Err(libc::EINVAL),
        }
    }

    /// The end has taken what had arrived: the other one may send more.
    fn tell_of_room(&mut self, number: ObjectNumber) {
        let Some(Kind::End(end)) = self.objects.get(&number).map(|it| &it.kind) else { return };
        let (peer, has_much) = (end.peer, end.has_much_room());
        let Some(peer) = peer.filter(|_| has_much) else { return };
        if let Some(Kind::End(other)) = self.objects.get_mut(&peer).map(|it| &mut it.kind)
            && std::mem::take(&mut other.is_full)
        {
            self.touch(peer);
        }
    }

    /// The call can do nothing now.
    fn wait_for(
        &mut self,
        thread: ThreadNumber,
        number: ObjectNumber,
        call: &Call,
        direction: usize,
    ) -> Done {
        let object = self.object(number)?;
        let is_message = matches!(call.number, libc::SYS_recvfrom | libc::SYS_sendto);
        let is_once = is_message && call.arguments[3] as i32 & libc::MSG_DONTWAIT != 0;
        if object.is_nonblocking || is_once {
            return Err(libc::EAGAIN);
        }
        let patience = object.patience[direction];
        if patience != 0 && self.deadline(thread, patience) <= self.now {
            return Err(libc::EAGAIN);
        }
        self.wait_at(thread, number);
        Ok(Outcome::Wait)
    }

    /// Writes parts of the memory of a process.
    pub(super) fn write(
        &mut self,
        thread: ThreadNumber,
        process: ProcessNumber,
        call: &Call,
        parts: &[(u64, usize)],
    ) -> Done {
        let number = self.object_of(process, descriptor(call.arguments[0]));
        let memory = self.memory(process)?;
        let room = match number {
            Ok(number) => match self.room(number)? {
                Some(room) => room.min(MOVED_MAX),
                None => return self.wait_for(thread, number, call, WRITES),
            },
            Err(_) => MOVED_MAX,
        };
        let mut bytes = Vec::new();
        for &(address, length) in parts {
            let length = length.min(room - bytes.len());
            bytes.extend_from_slice(&memory.read(address, length).map_err(fault)?);
        }
        let length = bytes.len();
        match number {
            Ok(number) => self.put(number, bytes),
            Err(_) if matches!(descriptor(call.arguments[0]), 1 | 2) => {
                self.processes
                    .get_mut(&process)
                    .ok_or(libc::ESRCH)?
                    .output
                    .extend_from_slice(&bytes);
                value(length)
            }
            Err(_) => Err(libc::EBADF),
        }
    }

    /// How many bytes an object takes now; `None` when the writer has to wait.
    fn room(&mut self, number: ObjectNumber) -> Result<Option<usize>, i32> {
        let Kind::End(end) = &self.object(number)?.kind else { return Ok(Some(MOVED_MAX)) };
        if end.is_shut {
            return Err(libc::EPIPE);
        }
        if end.reset.is_some() {
            return Err(libc::ECONNRESET);
        }
        let Some(peer) = end.peer else { return Ok(Some(MOVED_MAX)) };
        let room = match &self.object(peer)?.kind {
            Kind::End(peer) => peer.room(),
            _ => MOVED_MAX,
        };
        if room > 0 {
            return Ok(Some(room));
        }
        if let Kind::End(end) = &mut self.object_mut(number)?.kind {
            end.is_full = true;
        }
        Ok(None)
    }

    /// Gives bytes to an object that has room for them.
    fn put(&mut self, number: ObjectNumber, bytes: Vec<u8>) -> Done {
        let length = bytes.len();
        let machine = self.object(number)?.machine;
        let target = match &self.object(number)?.kind {
            Kind::Open(open) => Some(String::from_utf8_lossy(&open.path).into_owned()),
            Kind::End(end) => Some(format!("from {} to {}", end.port, end.peer_port)),
            _ => None,
        };
        if let Some(target) = target {
            self.trace.show(&target, &bytes);
        }
        match &mut self.objects.get_mut(&number).ok_or(libc::EBADF)?.kind {
            Kind::Event(count) => {
                let added = u64::from_le_bytes(bytes.try_into().map_err(|_| libc::EINVAL)?);
                *count = count.saturating_add(added);
                self.touch(number);
            }
            Kind::Open(open) => {
                let (inode, appends, position) = (open.inode, open.appends, open.position);
                let bytes = self.shorten(bytes);
                let length = bytes.len();
                let disk = &mut self.machines[machine].disk;
                let at = if appends { disk.file(inode)?.data.len() } else { position };
                disk.write(inode, at, bytes)?;
                disk.changed.insert(inode, self.now);
                if let Kind::Open(open) = &mut self.object_mut(number)?.kind {
                    open.position = at + length;
                }
                return value(length);
            }
            Kind::End(_) => self.send(number, bytes)?,
            Kind::Text(_) | Kind::Entropy => {}
            _ => return Err(libc::EINVAL),
        }
        value(length)
    }

    /// Now and then a file takes only a part of what is written.
    fn shorten(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        let chance = self.weather.short_writes;
        if chance != 0 && bytes.len() > 1 && self.random.once_in(chance) {
            bytes.truncate(1 + self.random.below(bytes.len() - 1));
        }
        bytes
    }

    /// Sends bytes to the other end of a connection, where they arrive later.
    fn send(&mut self, number: ObjectNumber, mut bytes: Vec<u8>) -> Result<(), i32> {
        let Kind::End(end) = &self.object(number)?.kind else { return Err(libc::ENOTCONN) };
        let Some(peer) = end.peer else {
            // It is closed over there, as will be said.
            let (machine, peer) = (self.object(number)?.machine, end.peer_machine);
            let later = self.passage(peer, machine);
            self.at(later, Happening::Reset(number));
            return Ok(());
        };
        let torn = match (self.object(number)?.machine, self.object(peer)?.machine) {
            (from, to) if from != to => self.torn(from, to, bytes.len()),
            _ => None,
        };
        if let Some(length) = torn {
            bytes.truncate(length);
        }
        let mut pieces = VecDeque::from([bytes]);
        let is_split = pieces[0].len() > 1 && self.random.percent(self.weather.splits);
        if is_split {
            let at = 1 + self.random.below(pieces[0].len() - 1);
            let rest = pieces[0].split_off(at);
            pieces.push_back(rest);
        }
        for piece in pieces {
            let length = piece.len();
            let arrival = self.arrival(peer);
            if let Kind::End(other) = &mut self.object_mut(peer)?.kind {
                other.coming += length;
            }
            self.at(arrival, Happening::Arrival(peer, piece));
        }
        if torn.is_some() {
            for end in [number, peer] {
                let later = self.arrival(end);
                self.at(later, Happening::Reset(end));
            }
        }
        Ok(())
    }

    /// When what is sent to an end now arrives there: after what was sent before.
    fn arrival(&mut self, number: ObjectNumber) -> u64 {
        let Some(object) = self.objects.get(&number) else { return self.now };
        let Kind::End(end) = &object.kind else { return self.now };
        let (from, to) = (end.peer_machine, object.machine);
        // On one machine nothing takes time on the way.
        let arrival = if from == to { self.now } else { self.passage(from, to) };
        let Some(Kind::End(end)) = self.objects.get_mut(&number).map(|it| &mut it.kind) else {
            return arrival;
        };
        end.last_arrival = end.last_arrival.max(arrival);
        end.last_arrival
    }

    /// What was on its way is there.
    pub(crate) fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Connect { socket, machine, port } => self.complete(socket, machine, port),
            Happening::Arrival(number, bytes) => {
                let Some(object) = self.objects.get_mut(&number) else { return };
                let Kind::End(end) = &mut object.kind else { return };
                end.coming -= bytes.len();
                if end.reset.is_none() {
                    end.arrived.extend(bytes);
                }
                self.touch(number);
            }
            Happening::End(number) | Happening::Reset(number) => {
                let Some(object) = self.objects.get_mut(&number) else { return };
                let Kind::End(end) = &mut object.kind else { return };
                if matches!(happening, Happening::Reset(_)) {
                    end.reset.get_or_insert(false);
                } else {
                    end.is_ended = true;
                }
                self.touch(number);
            }
            Happening::Deadline(_) => {}
        }
    }

    /// An end is closed.
    pub(super) fn end_connection(&mut self, end: &End) {
        let Some(peer) = end.peer else { return };
        let at = self.arrival(peer);
        let is_unread = !end.arrived.is_empty() || end.coming > 0;
        let Some(object) = self.objects.get_mut(&peer) else { return };
        let Kind::End(other) = &mut object.kind else { return };
        other.peer = None;
        if end.is_shut && !is_unread {
            return;
        }
        self.at(at, if is_unread { Happening::Reset(peer) } else { Happening::End(peer) });
        // What waits for room there need not wait any more.
        self.touch(peer);
    }

    pub(super) fn socket(&mut self, process: ProcessNumber, call: &Call) -> Done {
        let a = call.arguments;
        if a[0] as i32 != libc::AF_INET {
            return Err(libc::EAFNOSUPPORT);
        }
        let machine = self.machine_of(process).map_err(|_| libc::ESRCH)?;
        let number = self.add(Object::new(Kind::Socket(Socket::default()), machine));
        self.set_nonblocking(number, a[1] as i32 & libc::SOCK_NONBLOCK != 0);
        self.give(process, number)
    }

    /// The port of an address of a process.
    fn port(&self, process: ProcessNumber, address: u64) -> Result<u16, i32> {
        let bytes = self.memory(process)?.read(address, 4).map_err(fault)?;
        Ok(u16::from_be_bytes([bytes[2], bytes[3]]))
    }

    fn write_address(
        &self,
        process: ProcessNumber,
        to: u64,
        length: u64,
        port: u16,
    ) -> Result<(), i32> {
        if to == 0 {
            return Ok(());
        }
        let mut bytes = (libc::AF_INET as u16).to_le_bytes().to_vec();
        bytes.extend_from_slice(&port.to_be_bytes());
        bytes.extend_from_slice(&[127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        let memory = self.memory(process)?;
        memory.write(to, &bytes).map_err(fault)?;
        memory.write(length, &16_u32.to_le_bytes()).map_err(fault)
    }

    pub(super) fn bind(&mut self, process: ProcessNumber, call: &Call) -> Done {
        let number = self.object_of(process, descriptor(call.arguments[0]))?;
        let wanted = self.port(process, call.arguments[1])?;
        let machine = self.object(number)?.machine;
        if wanted != 0 && self.machines[machine].listeners.contains_key(&wanted) {
            return Err(libc::EADDRINUSE);
        }
        if let Kind::Socket(socket) = &mut self.object_mut(number)?.kind {
            socket.port = wanted;
        }
        WELL
    }

    pub(super) fn listen(&mut self, process: ProcessNumber, call: &Call) -> Done {
        let number = self.object_of(process, descriptor(call.arguments[0]))?;
        let object = self.objects.get_mut(&number).ok_or(libc::EBADF)?;
        let Kind::Socket(socket) = &object.kind else { return WELL };
        let port = socket.port;
        object.kind = Kind::Listener { port, queue: VecDeque::new() };
        self.machines[object.machine].listeners.insert(port, number);
        WELL
    }

    pub(super) fn connect(
        &mut self,
        thread: ThreadNumber,
        process: ProcessNumber,
        call: &Call,
    ) -> Done {
        let number = self.object_of(process, descriptor(call.arguments[0]))?;
        let port = self.port(process, call.arguments[1])?;
        let object = self.objects.get_mut(&number).ok_or(libc::EBADF)?;
        let (machine, is_nonblocking) = (object.machine, object.is_nonblocking);
        match &mut object.kind {
            // It has waited for this.
            Kind::End(_) => WELL,
            Kind::Socket(socket) => {
                if let Some(error) = socket.failed.take() {
                    return Err(error);
                }
                if !socket.is_connecting {
                    socket.is_connecting = true;
                    let target = self.machines[machine].forwards.get(&port).copied();
                    let target = target.unwrap_or(machine);
                    // The answer has to come back, too.
                    let at = self.passage(machine, target).max(self.passage(target, machine));
                    self.at(at, Happening::Connect { socket: number, machine: target, port });
                }
                if is_nonblocking {
                    return Err(libc::EINPROGRESS);
                }
                self.wait_at(thread, number);
                Ok(Outcome::Wait)
            }
            _ => Err(libc::EISCONN),
        }
    }

    /// An attempt to connect arrives at a machine.
    fn complete(&mut self, number: ObjectNumber, machine: MachineNumber, port: u16) {
        let listener = self.machines[machine].listeners.get(&port).copied();
        let Some(object) = self.objects.get(&number) else { return };
        let origin = object.machine;
        match listener {
            None => {
                if let Some(Kind::Socket(socket)) =
                    self.objects.get_mut(&number).map(|it| &mut it.kind)
                {
                    socket.is_connecting = false;
                    socket.failed = Some(libc::ECONNREFUSED);
                }
            }
            Some(listener) => {
                self.machines[origin].next_port += 1;
                let own_port = self.machines[origin].next_port;
                let mut other = End::new(port, own_port, origin);
                other.peer = Some(number);
                let mut other = Object::new(Kind::End(other), machine);
                // The queue of the listener holds it.
                other.references = 1;
                let other = self.add(other);
                let mut end = End::new(own_port, port, machine);
                end.peer = Some(other);
                if let Some(object) = self.objects.get_mut(&number) {
                    object.kind = Kind::End(end);
                }
                if let Some(Kind::Listener { queue, .. }) =
                    self.objects.get_mut(&listener).map(|it| &mut it.kind)
                {
                    queue.push_back(other);
                }
                self.touch(listener);
            }
        }
        self.touch(number);
    }

    pub(super) fn accept(
        &mut self,
        thread: ThreadNumber,
        process: ProcessNumber,
        call: &Call,
    ) -> Done {
        let a = call.arguments;
        let number = self.object_of(process, descriptor(a[0]))?;
        let Kind::Listener { queue, .. } = &mut self.object_mut(number)?.kind else {
            return Err(libc::EINVAL);
        };
        let Some(end) = queue.pop_front() else {
            return self.wait_for(thread, number, call, READS);
        };
        let port = match &self.object(end)?.kind {
            Kind::End(it) => it.peer_port,
            _ => 0,
        };
        self.write_address(process, a[1], a[2], port)?;
        let flags = if call.number == libc::SYS_accept4 { a[3] as i32 } else { 0 };
        self.set_nonblocking(end, flags & libc::SOCK_NONBLOCK != 0);
        // The descriptor takes the place of the queue.
        self.object_mut(end)?.references = 0;
        self.give(process, end)
    }

    pub(super) fn shut_down(&mut self, process: ProcessNumber, call: &Call) -> Done {
        let a = call.arguments;
        let number = self.object_of(process, descriptor(a[0]))?;
        let Kind::End(end) = &mut self.object_mut(number)?.kind else { return Err(libc::ENOTCONN) };
        let how = a[1] as i32;
        let mut peer = None;
        if how != libc::SHUT_RD && !std::mem::replace(&mut end.is_shut, true) {
            peer = end.peer;
        }
        if how != libc::SHUT_WR {
            end.is_ended = true;
        }
        if let Some(peer) = peer {
            let at = self.arrival(peer);
            self.at(at, Happening::End(peer));
        }
        self.touch(number);
        WELL
    }

    pub(super) fn name_of_socket(&mut self, process: ProcessNumber, call: &Call) -> Done {
        let a = call.arguments;
        let number = self.object_of(process, descriptor(a[0]))?;
        let is_own = call.number == libc::SYS_getsockname;
        let port = match &self.object(number)?.kind {
            Kind::End(end) if is_own => end.port,
            Kind::End(end) => end.peer_port,
            Kind::Listener { port, .. } if is_own => *port,
            Kind::Socket(socket) if is_own => socket.port,
            _ => return Err(libc::ENOTCONN),
        };
        self.write_address(process, a[1], a[2], port)?;
        WELL
    }

    pub(super) fn set_option(&mut self, process: ProcessNumber, call: &Call) -> Done {
        let a = call.arguments;
        let number = self.object_of(process, descriptor(a[0]))?;
        let name = a[2] as i32;
        if a[1] as i32 == libc::SOL_SOCKET && matches!(name, libc::SO_RCVTIMEO | libc::SO_SNDTIMEO)
        {
            let memory = self.memory(process)?;
            let seconds = memory.number(a[3]).map_err(fault)?;
            let rest = memory.number(a[3] + 8).map_err(fault)?;
            let direction = if name == libc::SO_RCVTIMEO { READS } else { WRITES };
            self.object_mut(number)?.patience[direction] = seconds * 1_000_000_000 + rest * 1_000;
        }
        WELL
    }

    pub(super) fn get_option(&mut self, process: ProcessNumber, call: &Call) -> Done {
        let a = call.arguments;
        let number = self.object_of(process, descriptor(a[0]))?;
        let mut result = 0_u32;
        if a[1] as i32 == libc::SOL_SOCKET && a[2] as i32 == libc::SO_ERROR {
            result = match &mut self.object_mut(number)?.kind {
                Kind::Socket(socket) => socket.failed.take().unwrap_or(0).cast_unsigned(),
                Kind::End(end) if end.reset == Some(false) => {
                    end.reset = Some(true);
                    libc::ECONNRESET as u32
                }
                _ => 0,
            };
        }
        let memory = self.memory(process)?;
        memory.write(a[3], &result.to_le_bytes()).map_err(fault)?;
        memory.write(a[4], &4_u32.to_le_bytes()).map_err(fault)?;
        WELL
    }
}
