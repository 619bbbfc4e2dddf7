//! A packed block or something boxed behind one pointer.
//!
//! Most collections are small: one packed block, and nothing else worth an allocation, so that the
//! handle is the block's own pointer and costs nothing. A large one is a table, or a directory of
//! nodes, in a box. The lowest bit of the pointer, which is free as both are aligned to 8, says which
//! it is.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::intset::Intset;
use super::listpack::Listpack;
use super::node::Node;

const BOX_TAG: usize = 1;

/// An owned block behind one thin pointer.
///
/// # Safety
/// The type is a transparent wrapper of a `NonNull` whose address is always a multiple of 8.
pub(crate) unsafe trait Thin {}

// SAFETY: a transparent wrapper of a pointer to a block allocated with an alignment of 8.
unsafe impl Thin for Listpack {}
// SAFETY: as above.
unsafe impl Thin for Intset {}
// SAFETY: as above.
unsafe impl Thin for Node {}

/// What a [`PackedOr`] holds, borrowed.
pub(crate) enum Form<'a, P, T> {
    /// A packed block.
    Packed(&'a P),
    /// The boxed value.
    Boxed(&'a T),
}

/// What a [`PackedOr`] holds, borrowed for change.
pub(crate) enum FormMut<'a, P, T> {
    /// A packed block.
    Packed(&'a mut P),
    /// The boxed value.
    Boxed(&'a mut T),
}

/// An owned `P` or `Box<T>` in eight bytes.
///
/// Invariants: without the tag `pointer` is the representation of an owned `P`; with it, that of an
/// owned `Box<T>` after the tag is taken off.
#[repr(transparent)]
pub(crate) struct PackedOr<P: Thin, T> {
    pointer: NonNull<u8>,
    owned: PhantomData<(P, Box<T>)>,
}

// SAFETY: it owns a `P` or a `Box<T>`.
unsafe impl<P: Thin + Send, T: Send> Send for PackedOr<P, T> {}
// SAFETY: `&PackedOr` gives out `&P` or `&T`.
unsafe impl<P: Thin + Sync, T: Sync> Sync for PackedOr<P, T> {}

impl<P: Thin, T> PackedOr<P, T> {
    /// Holds a packed block.
    pub(crate) fn packed(block: P) -> Self {
        const { assert!(size_of::<P>() == size_of::<NonNull<u8>>()) };
        let block = ManuallyDrop::new(block);
        // SAFETY: `P` is a transparent wrapper of a `NonNull`; ownership moves into the pointer.
        let pointer = unsafe { std::mem::transmute_copy::<_, NonNull<u8>>(&block) };
        PackedOr { pointer, owned: PhantomData }
    }

    /// Holds a boxed value.
    pub(crate) fn boxed(value: Box<T>) -> Self {
        const { assert!(align_of::<T>() > BOX_TAG) };
        let pointer = NonNull::from(Box::leak(value)).cast::<u8>();
        PackedOr { pointer: pointer.map_addr(|address| address | BOX_TAG), owned: PhantomData }
    }

    /// The boxed value's address, if that is what is held.
    #[inline]
    fn box_pointer(&self) -> Option<*mut T> {
        let tagged = self.pointer.as_ptr();
        (tagged.addr() & BOX_TAG != 0).then(|| tagged.map_addr(|address| address & !BOX_TAG).cast())
    }

    /// What is held.
    #[inline]
    pub(crate) fn get(&self) -> Form<'_, P, T> {
        match self.box_pointer() {
            // SAFETY: the pointer came from a `Box<T>` that we own.
            Some(value) => Form::Boxed(unsafe { &*value }),
            // SAFETY: untagged, the pointer is the representation of a `P`.
            None => Form::Packed(unsafe { &*std::ptr::from_ref(&self.pointer).cast::<P>() }),
        }
    }

    /// What is held, for change.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> FormMut<'_, P, T> {
        match self.box_pointer() {
            // SAFETY: the pointer came from a `Box<T>` that we own, and we are borrowed mutably.
            Some(value) => FormMut::Boxed(unsafe { &mut *value }),
            // SAFETY: untagged, the pointer is the representation of a `P`; replacing the block
            // keeps it one, as blocks are aligned to 8.
            None => {
                FormMut::Packed(unsafe { &mut *std::ptr::from_mut(&mut self.pointer).cast::<P>() })
            }
        }
    }
}

impl<P: Thin + Clone, T: Clone> Clone for PackedOr<P, T> {
    fn clone(&self) -> Self {
        match self.get() {
            Form::Packed(block) => Self::packed(block.clone()),
            Form::Boxed(value) => Self::boxed(Box::new(value.clone())),
        }
    }
}

impl<P: Thin, T> Drop for PackedOr<P, T> {
    fn drop(&mut self) {
        match self.box_pointer() {
            // SAFETY: the pointer came from a `Box<T>` that we own and nobody uses any more.
            Some(value) => drop(unsafe { Box::from_raw(value) }),
            // SAFETY: untagged, the pointer is an owned `P`, which is not used any more.
            None => unsafe { std::ptr::from_mut(&mut self.pointer).cast::<P>().drop_in_place() },
        }
    }
}
