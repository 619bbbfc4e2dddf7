//! Waiting for what happens at descriptors.

use super::threads::nanoseconds;
use super::{WELL, descriptor, fault, value};
use crate::hold::Call;
use crate::objects::{
    FAILURE, HANG_UP, IN, Interest, Kind, OUT, ObjectNumber, PEER_HANG_UP, ThreadNumber, Watch,
};
use crate::outcome::{Done, Outcome};
use crate::world::{ProcessNumber, World};

/// The most events that one call tells of.
const EVENTS_MAX: usize = 1024;

impl World {
    /// What can be done with an object without waiting.
    pub(super) fn readiness(&self, object: ObjectNumber) -> u32 {
        let Some(object) = self.objects.get(&object) else { return 0 };
        let when = |condition: bool, events: u32| if condition { events } else { 0 };
        match &object.kind {
            Kind::Socket(socket) if socket.failed.is_some() => IN | OUT | FAILURE | HANG_UP,
            Kind::Socket(socket) => when(!socket.is_connecting, OUT | HANG_UP),
            Kind::Listener { queue, .. } => when(!queue.is_empty(), IN),
            Kind::End(end) if end.reset.is_some() => IN | OUT | FAILURE | HANG_UP | PEER_HANG_UP,
            Kind::End(end) => {
                let peer = end.peer.and_then(|peer| self.objects.get(&peer));
                let room = match peer.map(|peer| &peer.kind) {
                    Some(Kind::End(peer)) => {
                        peer.room() > 0 && (!end.is_full || peer.has_much_room())
                    }
                    _ => true,
                };
                when(!end.arrived.is_empty() || end.is_ended, IN)
                    | when(room, OUT)
                    | when(end.is_ended, PEER_HANG_UP)
                    | when(end.is_ended && end.is_shut, HANG_UP)
            }
            Kind::Event(count) => OUT | when(*count > 0, IN),
            Kind::Watch(watch) => when(!watch.happened.is_empty(), IN),
            Kind::Open(_) | Kind::Text(_) | Kind::Entropy => IN | OUT,
        }
    }

    /// Something has happened at a descriptor that is watched.
    pub(crate) fn note_happened(&mut self, watch: ObjectNumber, descriptor: i32) {
        let Some(object) = self.objects.get_mut(&watch) else { return };
        let Kind::Watch(it) = &mut object.kind else { return };
        if it.interests.contains_key(&descriptor) && !it.happened.contains(&descriptor) {
            it.happened.push_back(descriptor);
        }
        for thread in object.waiting.clone() {
            self.wake(thread);
        }
    }

    fn watch_mut(&mut self, watch: ObjectNumber) -> Result<&mut Watch, i32> {
        match &mut self.object_mut(watch)?.kind {
            Kind::Watch(watch) => Ok(watch),
            _ => Err(libc::EINVAL),
        }
    }

    pub(super) fn change_watch(&mut self, process: ProcessNumber, call: &Call) -> Done {
        let a = call.arguments;
        let watch = self.object_of(process, descriptor(a[0]))?;
        let watched = descriptor(a[2]);
        let object = self.object_of(process, watched)?;
        if a[1] as i32 == libc::EPOLL_CTL_DEL {
            let it = self.watch_mut(watch)?;
            it.interests.remove(&watched).ok_or(libc::ENOENT)?;
            it.happened.retain(|it| *it != watched);
            self.object_mut(object)?.watched.retain(|it| *it != (watch, watched));
            return WELL;
        }
        let memory = self.memory(process)?;
        let events = memory.word(a[3]).map_err(fault)?;
        let data = memory.number(a[3] + 4).map_err(fault)?;
        let is_new = !self.watch_mut(watch)?.interests.contains_key(&watched);
        match (a[1] as i32 == libc::EPOLL_CTL_ADD, is_new) {
            (true, false) => return Err(libc::EEXIST),
            (false, true) => return Err(libc::ENOENT),
            _ => {}
        }
        self.watch_mut(watch)?.interests.insert(watched, Interest { object, events, data });
        if is_new {
            self.object_mut(object)?.watched.push((watch, watched));
        }
        if self.readiness(object) & (events | FAILURE | HANG_UP) != 0 {
            self.note_happened(watch, watched);
        }
        WELL
    }

    /// How long a call waits for events at most.
    fn patience(&self, process: ProcessNumber, call: &Call) -> Result<Option<u64>, i32> {
        let milliseconds =
            |argument: u64| u64::try_from(argument as u32 as i32).ok().map(|it| it * 1_000_000);
        let memory = self.memory(process)?;
        let time = |address| match address {
            0 => Ok(None),
            _ => nanoseconds(memory, address).map(Some),
        };
        match call.number {
            libc::SYS_epoll_pwait2 => time(call.arguments[3]),
            libc::SYS_ppoll => time(call.arguments[2]),
            libc::SYS_poll => Ok(milliseconds(call.arguments[2])),
            _ => Ok(milliseconds(call.arguments[3])),
        }
    }

    pub(super) fn wait_for_events(
        &mut self,
        thread: ThreadNumber,
        process: ProcessNumber,
        call: &Call,
    ) -> Done {
        let a = call.arguments;
        let watch = self.object_of(process, descriptor(a[0]))?;
        let found = self.take_events(watch, (a[2] as usize).min(EVENTS_MAX))?;
        if !found.is_empty() {
            let event = |(events, data): &(u32, u64)| {
                let mut bytes = events.to_le_bytes().to_vec();
                bytes.extend_from_slice(&data.to_le_bytes());
                bytes
            };
            let bytes: Vec<u8> = found.iter().flat_map(event).collect();
            self.memory(process)?.write(a[1], &bytes).map_err(fault)?;
            return value(found.len());
        }
        if let Some(patience) = self.patience(process, call)?
            && self.deadline(thread, patience) <= self.now
        {
            return WELL;
        }
        self.wait_at(thread, watch);
        Ok(Outcome::Wait)
    }

    fn take_events(&mut self, watch: ObjectNumber, most: usize) -> Result<Vec<(u32, u64)>, i32> {
        let mut found = Vec::new();
        let mut again = Vec::new();
        while found.len() < most {
            let it = self.watch_mut(watch)?;
            let Some(descriptor) = it.happened.pop_front() else { break };
            let Some(interest) = it.interests.get(&descriptor).copied() else { continue };
            let events = self.readiness(interest.object) & (interest.events | FAILURE | HANG_UP);
            if events == 0 {
                continue;
            }
            found.push((events, interest.data));
            let it = self.watch_mut(watch)?;
            if interest.events & libc::EPOLLONESHOT as u32 != 0 {
                if let Some(interest) = it.interests.get_mut(&descriptor) {
                    interest.events = 0;
                }
            } else if interest.events & libc::EPOLLET as u32 == 0 {
                again.push(descriptor);
            }
        }
        self.watch_mut(watch)?.happened.extend(again);
        Ok(found)
    }

    pub(super) fn poll(
        &mut self,
        thread: ThreadNumber,
        process: ProcessNumber,
        call: &Call,
    ) -> Done {
        let a = call.arguments;
        let count = (a[1] as usize).min(EVENTS_MAX);
        let memory = self.memory(process)?;
        let mut list = memory.read(a[0], count * 8).map_err(fault)?;
        let (mut ready, mut objects) = (0, Vec::new());
        for entry in list.chunks_exact_mut(8) {
            let number = i32::from_le_bytes(entry[..4].try_into().unwrap_or_default());
            let wanted = u32::from(u16::from_le_bytes([entry[4], entry[5]]));
            let Ok(object) = self.object_of(process, number) else {
                // One of the kernel's: nothing happens there.
                entry[6..].fill(0);
                continue;
            };
            objects.push(object);
            let events = self.readiness(object) & (wanted | FAILURE | HANG_UP);
            entry[6..].copy_from_slice(&(events as u16).to_le_bytes());
            ready += usize::from(events != 0);
        }
        let patience = self.patience(process, call)?;
        let is_over = match patience {
            Some(patience) => self.deadline(thread, patience) <= self.now,
            None => false,
        };
        if ready > 0 || is_over {
            memory.write(a[0], &list).map_err(fault)?;
            return value(ready);
        }
        objects.into_iter().for_each(|object| self.wait_at(thread, object));
        Ok(Outcome::Wait)
    }
}
