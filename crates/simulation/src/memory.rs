//! The memory of a process that is held.
#![allow(unsafe_code)]

use std::io;

/// The longest path that is read.
const PATH_MAX: usize = 4096;

/// The memory of one process. Its threads stand still while it is used, except for the one that a
/// call of the world concerns, which sleeps in that call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory(i32);

impl Memory {
    pub(crate) fn of(process: i32) -> Memory {
        Memory(process)
    }

    /// Fills `bytes` from an address.
    pub(crate) fn fill(self, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let own = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let its = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes.len() };
        // SAFETY: our end is a slice; the kernel checks the other end.
        let read =
            unsafe { libc::process_vm_readv(self.0, &raw const own, 1, &raw const its, 1, 0) };
        whole(read, bytes.len())
    }

    pub(crate) fn read(self, address: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.fill(address, &mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn write(self, address: u64, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let own = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let its = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes.len() };
        // SAFETY: our end is only read; the kernel checks the other end, which belongs to a process
        // that waits for what is written there.
        let written =
            unsafe { libc::process_vm_writev(self.0, &raw const own, 1, &raw const its, 1, 0) };
        whole(written, bytes.len())
    }

    /// The number of 64 bits there.
    pub(crate) fn number(self, address: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.fill(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// The number of 32 bits there.
    pub(crate) fn word(self, address: u64) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.fill(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// The text there, without the zero at its end.
    pub(crate) fn text(self, address: u64) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        while text.len() < PATH_MAX {
            // A read must not reach into the next page, which may not be there.
            let at = address + text.len() as u64;
            let piece = self.read(at, (64 - at % 64) as usize)?;
            if let Some(end) = piece.iter().position(|&byte| byte == 0) {
                text.extend_from_slice(&piece[..end]);
                return Ok(text);
            }
            text.extend_from_slice(&piece);
        }
        Err(io::ErrorKind::InvalidInput.into())
    }

    /// The parts of a vectored call: addresses and lengths.
    pub(crate) fn parts(self, address: u64, count: usize) -> io::Result<Vec<(u64, usize)>> {
        let bytes = self.read(address, count.min(1024) * 16)?;
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        Ok(bytes.chunks(16).map(|it| (number(&it[..8]), number(&it[8..]) as usize)).collect())
    }
}

fn whole(moved: isize, wanted: usize) -> io::Result<()> {
    match usize::try_from(moved) {
        Ok(moved) if moved == wanted => Ok(()),
        Ok(_) => Err(io::Error::from_raw_os_error(libc::EFAULT)),
        Err(_) => Err(io::Error::last_os_error()),
    }
}
