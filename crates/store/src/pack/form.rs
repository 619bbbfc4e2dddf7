//! A packed block or a boxed value behind one pointer.
//!
//! Most collections are small: one packed block and no other allocation, so the handle is the
//! block's own pointer and costs nothing. A large one is a table, or a directory of nodes, in a
//! box. The lowest bit of the pointer, which is free as both are aligned to 8, tells them apart.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::intset::Intset;
use super::listpack::Listpack;
use super::node::Node;
use super::slice::ListpackSlice;

const BOX_TAG: usize = 1;

const LISTPACK_TAG: usize = 2;

/// An owned block behind one thin pointer.
///
/// # Safety
/// The type is a transparent wrapper of a `NonNull` whose address is always even.
pub(crate) unsafe trait Thin {}

// SAFETY: a transparent wrapper of a pointer to a block allocated with an alignment of 8.
unsafe impl Thin for Listpack {}
// SAFETY: as above.
unsafe impl Thin for Intset {}
// SAFETY: as above.
unsafe impl Thin for Node {}
// SAFETY: a transparent wrapper of a pointer to such a block, with no tag but `LISTPACK_TAG`.
unsafe impl<A: Aligned> Thin for EitherBlock<A> {}

/// A block that an [`EitherBlock`] may own.
///
/// # Safety
/// Its address is always a multiple of four.
pub(crate) unsafe trait Aligned: Thin {}

// SAFETY: blocks are allocated with an alignment of 8.
unsafe impl Aligned for Listpack {}
// SAFETY: as above.
unsafe impl Aligned for Intset {}

/// The value of a [`PackedOr`], borrowed.
pub(crate) enum Form<'a, P, T> {
    /// A packed block.
    Packed(&'a P),
    /// The boxed value.
    Boxed(&'a T),
}

/// The value of a [`PackedOr`], borrowed for change.
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
    /// Owns a packed block.
    pub(crate) fn packed(block: P) -> Self {
        const { assert!(size_of::<P>() == size_of::<NonNull<u8>>()) };
        let block = ManuallyDrop::new(block);
        // SAFETY: `P` is a transparent wrapper of a `NonNull`; ownership moves into the pointer.
        let pointer = unsafe { std::mem::transmute_copy::<_, NonNull<u8>>(&block) };
        PackedOr { pointer, owned: PhantomData }
    }

    /// Owns a boxed value.
    pub(crate) fn boxed(value: Box<T>) -> Self {
        const { assert!(align_of::<T>() > BOX_TAG) };
        let pointer = NonNull::from(Box::leak(value)).cast::<u8>();
        PackedOr { pointer: pointer.map_addr(|address| address | BOX_TAG), owned: PhantomData }
    }

    /// The boxed value's address, if it has one.
    #[inline]
    fn box_pointer(&self) -> Option<*mut T> {
        let tagged = self.pointer.as_ptr();
        (tagged.addr() & BOX_TAG != 0).then(|| tagged.map_addr(|address| address & !BOX_TAG).cast())
    }

    /// The value.
    #[inline]
    pub(crate) fn get(&self) -> Form<'_, P, T> {
        match self.box_pointer() {
            // SAFETY: the pointer came from a `Box<T>` that we own.
            Some(value) => Form::Boxed(unsafe { &*value }),
            // SAFETY: untagged, the pointer is the representation of a `P`.
            None => Form::Packed(unsafe { &*std::ptr::from_ref(&self.pointer).cast::<P>() }),
        }
    }

    /// The value, for change.
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
            // SAFETY: the pointer came from a `Box<T>` that we own and nothing uses any more.
            Some(value) => drop(unsafe { Box::from_raw(value) }),
            // SAFETY: untagged, the pointer is an owned `P`, which is not used any more.
            None => unsafe { std::ptr::from_mut(&mut self.pointer).cast::<P>().drop_in_place() },
        }
    }
}

/// The packed block of a small collection with two such forms, in eight bytes: an `A`, or a
/// listpack with another layout than the first, which the second lowest bit of the pointer marks.
/// For a set the first is an intset, and for a hash a listpack of fields whose values stay.
///
/// Invariants: without the tag `pointer` is the representation of an owned `A`; with it, that of an
/// owned [`Listpack`] after the tag is taken off.
#[repr(transparent)]
pub(crate) struct EitherBlock<A: Aligned> {
    pointer: NonNull<u8>,
    owned: PhantomData<(A, Listpack)>,
}

/// The form of an [`EitherBlock`], borrowed.
pub(crate) enum Either<'a, A> {
    /// The first form.
    First(&'a A),
    /// The listpack.
    Listpack(&'a ListpackSlice),
}

/// The form of an [`EitherBlock`], borrowed for change.
pub(crate) enum EitherMut<'a, A> {
    /// The first form.
    First(&'a mut A),
    /// The listpack.
    Listpack(ListpackMut<'a>),
}

// SAFETY: it owns an `A` or a `Listpack`, and the latter may be sent.
unsafe impl<A: Aligned + Send> Send for EitherBlock<A> {}
// SAFETY: `&EitherBlock` gives out `&A` or `&ListpackSlice`.
unsafe impl<A: Aligned + Sync> Sync for EitherBlock<A> {}

impl<A: Aligned> EitherBlock<A> {
    /// Owns the first form.
    pub(crate) fn first(block: A) -> Self {
        const { assert!(size_of::<A>() == size_of::<NonNull<u8>>()) };
        let block = ManuallyDrop::new(block);
        // SAFETY: an `A` is a transparent wrapper of a `NonNull`; ownership moves into the pointer.
        let pointer = unsafe { std::mem::transmute_copy::<_, NonNull<u8>>(&block) };
        EitherBlock { pointer, owned: PhantomData }
    }

    /// Owns a listpack.
    pub(crate) fn listpack(block: Listpack) -> Self {
        // SAFETY: a `Listpack` is a transparent wrapper of a `NonNull`; ownership moves into the
        // pointer.
        let pointer = unsafe { std::mem::transmute::<Listpack, NonNull<u8>>(block) };
        EitherBlock { pointer: tagged(pointer), owned: PhantomData }
    }

    #[inline]
    fn is_listpack(&self) -> bool {
        self.pointer.addr().get() & LISTPACK_TAG != 0
    }

    /// A second handle of the listpack, which must not be dropped while this one is there.
    fn listpack_handle(&self) -> ManuallyDrop<Listpack> {
        debug_assert!(self.is_listpack());
        let pointer = self.pointer.as_ptr().map_addr(|address| address & !LISTPACK_TAG);
        // SAFETY: with its tag off the pointer is the representation of a `Listpack`. Blocks are
        // never at address 0, so it is not null.
        ManuallyDrop::new(unsafe { std::mem::transmute::<*mut u8, Listpack>(pointer) })
    }

    /// Its form.
    #[inline]
    pub(crate) fn get(&self) -> Either<'_, A> {
        if self.is_listpack() {
            let handle = self.listpack_handle();
            let bytes: *const ListpackSlice = &**handle;
            // SAFETY: the bytes lie in the block, which this handle owns; they stay where they are
            // for as long as it is borrowed.
            Either::Listpack(unsafe { &*bytes })
        } else {
            // SAFETY: untagged, the pointer is the representation of an `A`.
            Either::First(unsafe { &*std::ptr::from_ref(&self.pointer).cast::<A>() })
        }
    }

    /// Its form, for change.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> EitherMut<'_, A> {
        if self.is_listpack() {
            let listpack = self.listpack_handle();
            EitherMut::Listpack(ListpackMut { listpack, home: &mut self.pointer })
        } else {
            let pointer = std::ptr::from_mut(&mut self.pointer).cast::<A>();
            // SAFETY: untagged, the pointer is the representation of an `A`, and it stays one:
            // blocks are aligned to 8.
            EitherMut::First(unsafe { &mut *pointer })
        }
    }
}

fn tagged(pointer: NonNull<u8>) -> NonNull<u8> {
    pointer.map_addr(|address| address | LISTPACK_TAG)
}

/// The listpack of an [`EitherBlock`], for change. Afterwards the owner gets the block's address,
/// which may have changed.
pub(crate) struct ListpackMut<'a> {
    listpack: ManuallyDrop<Listpack>,
    home: &'a mut NonNull<u8>,
}

impl std::ops::Deref for ListpackMut<'_> {
    type Target = Listpack;

    fn deref(&self) -> &Listpack {
        &self.listpack
    }
}

impl std::ops::DerefMut for ListpackMut<'_> {
    fn deref_mut(&mut self) -> &mut Listpack {
        &mut self.listpack
    }
}

impl Drop for ListpackMut<'_> {
    fn drop(&mut self) {
        // SAFETY: taken once, as this is the end of the handle; the pointer goes back to its owner.
        let listpack = unsafe { ManuallyDrop::take(&mut self.listpack) };
        // SAFETY: a `Listpack` is a transparent wrapper of a `NonNull`.
        *self.home = tagged(unsafe { std::mem::transmute::<Listpack, NonNull<u8>>(listpack) });
    }
}

impl<A: Aligned + Clone> Clone for EitherBlock<A> {
    fn clone(&self) -> Self {
        match self.get() {
            Either::First(block) => Self::first(block.clone()),
            Either::Listpack(listpack) => Self::listpack(listpack.to_listpack()),
        }
    }
}

impl<A: Aligned> Drop for EitherBlock<A> {
    fn drop(&mut self) {
        if self.is_listpack() {
            drop(ManuallyDrop::into_inner(self.listpack_handle()));
        } else {
            // SAFETY: untagged, the pointer is an owned `A`, which is not used any more.
            unsafe { std::ptr::from_mut(&mut self.pointer).cast::<A>().drop_in_place() }
        }
    }
}
