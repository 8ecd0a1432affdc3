//! The device interface on the host: one emulated thread.
use std::cell::Cell;

use corosensei::Yielder;

use super::access::{self, Fault};
use super::schedule::{Block, Stop, WarpOperation};
use super::shadow::{Kind, Now};
use crate::{AtomicOp, Cache, Gpu};

/// An emulated thread, as a kernel sees it.
#[derive(Clone, Copy)]
pub struct Thread<'a> {
    pub(super) block: &'a Block,
    pub(super) index: u32,
    pub(super) yielder: &'a Yielder<(), Stop>,
    pub(super) warp_barriers: &'a Cell<u32>,
}

impl Thread<'_> {
    fn now(self) -> Now {
        Now {
            block: self.block.linear(),
            thread: self.index,
            barrier: self.block.barriers.get(),
            warp_barrier: self.warp_barriers.get(),
        }
    }

    /// Ends the launch; the thread never runs again.
    fn fail(self, fault: Fault) -> ! {
        self.block.fault.replace(Some((self.index, fault)));
        loop {
            self.yielder.suspend(Stop::Fault);
        }
    }

    /// Waits for the warp's other lanes with `value`; returns all lanes' values.
    fn exchange(self, operation: WarpOperation, value: u32) -> [u32; 32] {
        self.block.offers[self.index as usize].set(value);
        self.yielder.suspend(Stop::Warp(operation));
        self.block.exchanged[self.index as usize / 32].get()
    }

    fn load<const N: usize>(self, address: u64, cache: Cache) -> [u8; N] {
        let kind = if cache == Cache::Relaxed {
            Kind::RelaxedLoad
        } else {
            Kind::Load
        };
        let mut memory = self.block.memory.borrow_mut();
        match access::global(&mut memory, address, N as u32, kind, &self.now()) {
            Ok((buffer, offset)) => std::array::from_fn(|i| buffer.bytes[offset + i]),
            Err(fault) => {
                drop(memory);
                self.fail(fault)
            }
        }
    }

    fn store<const N: usize>(self, address: u64, value: [u8; N], cache: Cache) {
        let kind = if cache == Cache::Relaxed {
            Kind::RelaxedStore
        } else {
            Kind::Store
        };
        let mut memory = self.block.memory.borrow_mut();
        match access::global(&mut memory, address, N as u32, kind, &self.now()) {
            Ok((buffer, offset)) => buffer.bytes[offset..offset + N].copy_from_slice(&value),
            Err(fault) => {
                drop(memory);
                self.fail(fault)
            }
        }
    }

    /// Replaces the bytes at an address; returns the old ones.
    fn update<const N: usize>(self, address: u64, new: impl FnOnce([u8; N]) -> [u8; N]) -> [u8; N] {
        let mut memory = self.block.memory.borrow_mut();
        match access::global(&mut memory, address, N as u32, Kind::Atomic, &self.now()) {
            Ok((buffer, offset)) => {
                let old = std::array::from_fn(|i| buffer.bytes[offset + i]);
                buffer.bytes[offset..offset + N].copy_from_slice(&new(old));
                old
            }
            Err(fault) => {
                drop(memory);
                self.fail(fault)
            }
        }
    }

    fn shared<const N: usize>(
        self,
        address: u32,
        kind: Kind,
        new: impl FnOnce([u8; N]) -> [u8; N],
    ) -> [u8; N] {
        let mut shared = self.block.shared.borrow_mut();
        if let Err(fault) = shared.check(address, N as u32, kind, &self.now()) {
            drop(shared);
            self.fail(fault)
        }
        let place = &mut shared.bytes[address as usize..address as usize + N];
        let old = std::array::from_fn(|i| place[i]);
        if kind.writes() {
            place.copy_from_slice(&new(old));
        }
        old
    }
}

fn words<const N: usize>(bytes: &[u8]) -> [u32; N] {
    std::array::from_fn(|i| {
        u32::from_le_bytes([
            bytes[4 * i],
            bytes[4 * i + 1],
            bytes[4 * i + 2],
            bytes[4 * i + 3],
        ])
    })
}

fn bytes<const N: usize>(words: &[u32]) -> [u8; N] {
    std::array::from_fn(|i| (words[i / 4] >> (8 * (i % 4))) as u8)
}

fn apply<T: Ord + std::ops::BitOr<Output = T> + std::ops::BitAnd<Output = T>>(
    op: AtomicOp,
    old: T,
    value: T,
    add: fn(T, T) -> T,
) -> T {
    match op {
        AtomicOp::Add => add(old, value),
        AtomicOp::Min => old.min(value),
        AtomicOp::Max => old.max(value),
        AtomicOp::Or => old | value,
        AtomicOp::And => old & value,
        AtomicOp::Exchange => value,
    }
}

impl Gpu for Thread<'_> {
    fn thread(self) -> u32 {
        self.index
    }
    fn threads(self) -> u32 {
        self.block.threads
    }
    fn block(self) -> u32 {
        self.block.x.get()
    }
    fn block_y(self) -> u32 {
        self.block.y.get()
    }
    fn blocks(self) -> u32 {
        self.block.grid.x
    }
    fn blocks_y(self) -> u32 {
        self.block.grid.y
    }
    fn barrier(self) {
        self.yielder.suspend(Stop::Barrier);
    }
    fn warp_barrier(self) {
        self.exchange(WarpOperation::Barrier, 0);
        self.warp_barriers.set(self.warp_barriers.get() + 1);
    }
    fn fence_block(self) {}
    fn fence_device(self) {}
    fn shuffle(self, value: u32, source: u32) -> u32 {
        self.exchange(WarpOperation::Shuffle, value)[source as usize & 31]
    }
    fn shuffle_xor(self, value: u32, mask: u32) -> u32 {
        self.exchange(WarpOperation::ShuffleXor, value)[((self.index ^ mask) & 31) as usize]
    }
    fn shuffle_up(self, value: u32, delta: u32) -> u32 {
        let lane = self.index & 31;
        self.exchange(WarpOperation::ShuffleUp, value)
            [lane.checked_sub(delta).unwrap_or(lane) as usize]
    }
    fn shuffle_down(self, value: u32, delta: u32) -> u32 {
        let lane = self.index & 31;
        let source = lane.saturating_add(delta);
        self.exchange(WarpOperation::ShuffleDown, value)
            [if source < 32 { source } else { lane } as usize]
    }
    fn ballot(self, predicate: bool) -> u32 {
        let votes = self.exchange(WarpOperation::Ballot, predicate as u32);
        votes
            .iter()
            .enumerate()
            .fold(0, |mask, (lane, vote)| mask | vote << lane)
    }
    fn match_any(self, value: u32) -> u32 {
        let values = self.exchange(WarpOperation::MatchAny, value);
        values.iter().enumerate().fold(0, |mask, (lane, other)| {
            mask | u32::from(*other == value) << lane
        })
    }
    fn warp_sum(self, value: u32) -> u32 {
        self.exchange(WarpOperation::Sum, value)
            .iter()
            .fold(0, |sum, v| sum.wrapping_add(*v))
    }
    fn shared_base(self) -> u32 {
        0
    }

    fn global_load_16(self, address: u64, cache: Cache) -> [u32; 4] {
        words(&self.load::<16>(address, cache))
    }
    fn global_load_8(self, address: u64, cache: Cache) -> [u32; 2] {
        words(&self.load::<8>(address, cache))
    }
    fn global_load_4(self, address: u64, cache: Cache) -> u32 {
        u32::from_le_bytes(self.load(address, cache))
    }
    fn global_load_2(self, address: u64, cache: Cache) -> u16 {
        u16::from_le_bytes(self.load(address, cache))
    }
    fn global_load_1(self, address: u64, cache: Cache) -> u8 {
        self.load::<1>(address, cache)[0]
    }
    fn global_store_16(self, address: u64, value: [u32; 4], cache: Cache) {
        self.store::<16>(address, bytes(&value), cache)
    }
    fn global_store_8(self, address: u64, value: [u32; 2], cache: Cache) {
        self.store::<8>(address, bytes(&value), cache)
    }
    fn global_store_4(self, address: u64, value: u32, cache: Cache) {
        self.store(address, value.to_le_bytes(), cache)
    }
    fn global_store_2(self, address: u64, value: u16, cache: Cache) {
        self.store(address, value.to_le_bytes(), cache)
    }
    fn global_store_1(self, address: u64, value: u8, cache: Cache) {
        self.store(address, [value], cache)
    }
    fn global_prefetch(self, _: u64) {}
    fn global_atomic_4(self, op: AtomicOp, address: u64, value: u32) -> u32 {
        u32::from_le_bytes(self.update(address, |old| {
            apply(op, u32::from_le_bytes(old), value, u32::wrapping_add).to_le_bytes()
        }))
    }
    fn global_atomic_8(self, op: AtomicOp, address: u64, value: u64) -> u64 {
        u64::from_le_bytes(self.update(address, |old| {
            apply(op, u64::from_le_bytes(old), value, u64::wrapping_add).to_le_bytes()
        }))
    }
    fn global_compare_swap_4(self, address: u64, expected: u32, value: u32) -> u32 {
        u32::from_le_bytes(self.update(address, |old| {
            if old == expected.to_le_bytes() {
                value.to_le_bytes()
            } else {
                old
            }
        }))
    }

    fn shared_load_16(self, address: u32) -> [u32; 4] {
        words(&self.shared::<16>(address, Kind::Load, |old| old))
    }
    fn shared_load_8(self, address: u32) -> [u32; 2] {
        words(&self.shared::<8>(address, Kind::Load, |old| old))
    }
    fn shared_load_4(self, address: u32) -> u32 {
        u32::from_le_bytes(self.shared(address, Kind::Load, |old| old))
    }
    fn shared_load_2(self, address: u32) -> u16 {
        u16::from_le_bytes(self.shared(address, Kind::Load, |old| old))
    }
    fn shared_load_1(self, address: u32) -> u8 {
        self.shared::<1>(address, Kind::Load, |old| old)[0]
    }
    fn shared_store_16(self, address: u32, value: [u32; 4]) {
        self.shared::<16>(address, Kind::Store, |_| bytes(&value));
    }
    fn shared_store_8(self, address: u32, value: [u32; 2]) {
        self.shared::<8>(address, Kind::Store, |_| bytes(&value));
    }
    fn shared_store_4(self, address: u32, value: u32) {
        self.shared(address, Kind::Store, |_| value.to_le_bytes());
    }
    fn shared_store_2(self, address: u32, value: u16) {
        self.shared(address, Kind::Store, |_| value.to_le_bytes());
    }
    fn shared_store_1(self, address: u32, value: u8) {
        self.shared(address, Kind::Store, |_| [value]);
    }
    fn shared_atomic_4(self, op: AtomicOp, address: u32, value: u32) -> u32 {
        u32::from_le_bytes(self.shared(address, Kind::Atomic, |old| {
            apply(op, u32::from_le_bytes(old), value, u32::wrapping_add).to_le_bytes()
        }))
    }
    fn shared_compare_swap_4(self, address: u32, expected: u32, value: u32) -> u32 {
        u32::from_le_bytes(self.shared(address, Kind::Atomic, |old| {
            if old == expected.to_le_bytes() {
                value.to_le_bytes()
            } else {
                old
            }
        }))
    }
}
