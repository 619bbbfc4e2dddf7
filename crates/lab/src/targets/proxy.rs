//! A way to a process over which others reach it, which can be cut as a network is: nothing passes,
//! and nobody is told. Once it is mended, what was on its way arrives.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often connections look at whether they are cut, or over.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// The longest piece that is passed on, in bytes.
const PIECE: usize = 64 * 1024;

#[derive(Debug, Default)]
struct State {
    cut: AtomicBool,
    ended: AtomicBool,
}

/// See the module's text. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy(Arc<State>);

impl Proxy {
    /// Passes on what comes to one port of the loopback interface to another.
    ///
    /// # Errors
    /// The port is in use.
    pub(crate) fn start(port: u16, to: u16) -> io::Result<Proxy> {
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        listener.set_nonblocking(true)?;
        let state = Arc::<State>::default();
        let own = Arc::clone(&state);
        std::thread::spawn(move || {
            while !own.is_over() {
                match listener.accept() {
                    Ok((near, _)) => pass_both_ways(near, to, &own),
                    Err(_) => std::thread::sleep(LOOK_EVERY),
                }
            }
        });
        Ok(Proxy(state))
    }

    /// Lets nothing pass, or all.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.0.cut.store(is_cut, Ordering::Release);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
    }
}

impl State {
    fn is_over(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Acquire)
    }
}

/// Who connects while the way is cut waits for its end, as its own packets would.
fn pass_both_ways(near: TcpStream, to: u16, state: &Arc<State>) {
    let state = Arc::clone(state);
    std::thread::spawn(move || {
        while state.is_cut() && !state.is_over() {
            std::thread::sleep(LOOK_EVERY);
        }
        let Ok(far) = TcpStream::connect(("127.0.0.1", to)) else { return };
        let clones = near.try_clone().and_then(|near| Ok((near, far.try_clone()?)));
        let Ok((near_too, far_too)) = clones else { return };
        let own = Arc::clone(&state);
        let back = std::thread::spawn(move || {
            pass_on(&far_too, &near_too, &own);
            end(&far_too, &near_too);
        });
        pass_on(&near, &far, &state);
        end(&near, &far);
        // A panic there is told by the run.
        let _ = back.join();
    });
}

/// The other side may have ended them already.
fn end(from: &TcpStream, to: &TcpStream) {
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

fn pass_on(mut from: &TcpStream, mut to: &TcpStream, state: &State) {
    let is_set = from.set_nonblocking(false).and(from.set_read_timeout(Some(LOOK_EVERY)));
    let is_set = is_set.and(to.set_write_timeout(Some(LOOK_EVERY))).and(to.set_nodelay(true));
    if is_set.is_err() {
        return;
    }
    let is_patient = |kind: ErrorKind| matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut);
    let mut buffer = vec![0; PIECE];
    while !state.is_over() {
        let read = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => read,
            Err(error) if is_patient(error.kind()) => continue,
            Err(_) => return,
        };
        let mut left = &buffer[..read];
        while !left.is_empty() && !state.is_over() {
            if state.is_cut() {
                std::thread::sleep(LOOK_EVERY);
                continue;
            }
            match to.write(left) {
                Ok(0) => return,
                Ok(count) => left = &left[count..],
                Err(error) if is_patient(error.kind()) => {}
                Err(_) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_its_way_while_it_is_cut_arrives_later() {
        let server = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let to = server.local_addr().expect("it is bound").port();
        let free = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let proxy = Proxy::start(port, to).expect("the port is free");
        let mut near = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        let (mut far, _) = server.accept().expect("it passes on");
        let mut read = [0; 1];
        near.write_all(b"a").expect("it is open");
        far.read_exact(&mut read).expect("it arrives");
        proxy.cut(true);
        near.write_all(b"b").expect("it is open");
        far.set_read_timeout(Some(Duration::from_millis(100))).expect("it is open");
        assert!(far.read(&mut read).is_err(), "nothing passes");
        proxy.cut(false);
        far.set_read_timeout(Some(Duration::from_secs(60))).expect("it is open");
        far.read_exact(&mut read).expect("it arrives");
        assert_eq!(read, *b"b");
        drop(proxy);
        assert_eq!(far.read(&mut read).expect("it has ended"), 0);
    }
}
