//! A stack of descriptors with a fixed number of places, and a list beside it for what was reserved beyond them.

use crate::packet::descriptor::Descriptor;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr::NonNull;

/// Descriptors that a cache keeps, last in, first out: what was used last is in the processor's cache.
pub(super) struct Stack<const N: usize> {
    /// Places from `top` on hold what was there before, or nothing.
    slots: Box<[NonNull<Descriptor>; N]>,
    top: usize,
    /// What was reserved when there was no place. Taken when the stack is empty.
    reserved: Vec<NonNull<Descriptor>>,
}

impl<const N: usize> Stack<N> {
    pub(super) fn new() -> Self {
        Self { slots: Box::new([NonNull::dangling(); N]), top: 0, reserved: Vec::new() }
    }

    /// Descriptors there are, reserved ones too.
    pub(super) const fn len(&self) -> usize {
        self.top + self.reserved.len()
    }

    /// Descriptors on the stack, reserved ones not.
    pub(super) const fn stacked(&self) -> usize {
        self.top
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<NonNull<Descriptor>> {
        // One comparison for both: below zero is far beyond the end.
        let top = self.top.wrapping_sub(1);
        let descriptor = *self.slots.get(top)?;
        self.top = top;
        Some(descriptor)
    }

    /// Puts a descriptor on top; gives it back if there is no place.
    #[inline(always)]
    pub(super) fn push(&mut self, descriptor: NonNull<Descriptor>) -> Result<(), NonNull<Descriptor>> {
        let Some(slot) = self.slots.get_mut(self.top) else { return Err(descriptor) };
        *slot = descriptor;
        self.top += 1;
        Ok(())
    }

    /// Puts descriptors on top as long as `accept` takes the next one and there is a place; says how many.
    #[inline(always)]
    pub(super) fn push_while(
        &mut self,
        descriptors: &[NonNull<Descriptor>],
        mut accept: impl FnMut(NonNull<Descriptor>) -> bool,
    ) -> usize {
        let free = self.slots.get_mut(self.top..).unwrap_or(&mut []);
        let mut placed = 0;
        for (slot, descriptor) in free.iter_mut().zip(descriptors) {
            if !accept(*descriptor) {
                break;
            }
            *slot = *descriptor;
            placed += 1;
        }
        self.top += placed;
        placed
    }

    /// Puts a descriptor on top or, if there is no place, with the reserved ones.
    pub(super) fn push_any(&mut self, descriptor: NonNull<Descriptor>) {
        if let Err(descriptor) = self.push(descriptor) {
            self.reserved.push(descriptor);
        }
    }

    /// Takes a reserved descriptor.
    pub(super) fn pop_reserved(&mut self) -> Option<NonNull<Descriptor>> {
        self.reserved.pop()
    }

    /// Takes up to `n` descriptors off the top, reserved ones not.
    #[inline(always)]
    pub(super) fn take(&mut self, n: usize) -> &[NonNull<Descriptor>] {
        let start = self.top.saturating_sub(n);
        let taken = self.slots.get(start..self.top).unwrap_or(&[]);
        self.top = start;
        taken
    }
}
