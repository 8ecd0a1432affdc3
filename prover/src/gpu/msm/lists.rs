//! Rounds of additions over many lists: the launches of `cuzk_kernels::msm::rounds`.

use cuzk_field::curve::Affine;
use cuzk_kernels::msm::rounds::{
    LISTS_PER_BLOCK, msm_round_count, msm_round_offsets, msm_round_pairs, msm_row_scan, round_len,
};
use cuzk_kernels::msm::{MAX_ROUNDS, addition::PAIR_THREADS};
use cuzk_kernels::runtime::Arena;
use cuzk_kernels::{Global, GlobalMut};

use super::MsmError;
use super::curve::{GpuCurve, Pairs};

/// Number of pairs in each round.
pub type Totals = [u32; MAX_ROUNDS as usize];

/// Most pairs of a thread.
const MOST_PER_THREAD: u32 = 64;
/// Waves of blocks below which a thread's share of pairs is halved, down to half of the most.
const WAVES: u64 = 4;
/// Rounds below this many pairs are listed by smaller blocks.
const FEW_PAIRS: u32 = 1 << 21;
/// Blocks of additions that a multiprocessor holds at once.
const RESIDENT_BLOCKS: u32 = 4;

/// Lists of references. List b begins at `(b >> shift)·stride + starts[b]`.
#[derive(Clone, Copy, Debug)]
pub struct Lists {
    /// Number of lists.
    pub count: u32,
    /// log2 of the lists that share a region of references.
    pub shift: u32,
    /// References of a region.
    pub stride: u64,
    /// The references.
    pub references: Global<u32>,
    /// Where each list begins in its region.
    pub starts: Global<u32>,
    /// Length of each list.
    pub lens: Global<u32>,
}

/// Lists after some rounds.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// The lists at the start.
    pub lists: Lists,
    /// Rounds done.
    pub round: u32,
    /// Where the last round's pairs of each list begin.
    pub before: GlobalMut<u32>,
    /// Partial sum of the last round's first pair.
    pub partial: u32,
    /// Each list's unpaired element.
    pub tails: GlobalMut<u32>,
}

/// Pairs in each round of lists of known lengths: (length, number of lists).
pub fn totals(lists: &[(u32, u32)]) -> Totals {
    std::array::from_fn(|round| {
        lists
            .iter()
            .map(|&(len, count)| count * (round_len(len, round as u32) / 2))
            .sum()
    })
}

/// Rounds after which a list of `len` elements has at most `most`.
pub fn rounds_until(len: u32, most: u32) -> u32 {
    (0..MAX_ROUNDS)
        .find(|&round| round_len(len, round) <= most)
        .unwrap_or(MAX_ROUNDS)
}

impl Lists {
    fn blocks(&self) -> u32 {
        self.count.div_ceil(LISTS_PER_BLOCK)
    }

    /// Counts each round's pairs block by block and scans the counts. The first array is what
    /// the rounds need, the second are the totals.
    pub fn count(&self, arena: &mut Arena) -> Result<[GlobalMut<u32>; 2], MsmError> {
        let runtime = arena.runtime().clone();
        let blocks = self.blocks();
        let sums = arena.take::<u32>(MAX_ROUNDS as usize * blocks as usize)?;
        let totals = arena.take::<u32>(MAX_ROUNDS as usize)?;
        runtime.launch(&msm_round_count::launch(
            blocks, self.count, self.lens, sums,
        ))?;
        runtime.launch(&msm_row_scan::launch(MAX_ROUNDS, blocks, sums, totals))?;
        Ok([sums, totals])
    }

    /// Arena bytes that [`count`](Self::count) takes for `count` lists.
    pub fn count_bytes(count: u64) -> u64 {
        let blocks = count.div_ceil(u64::from(LISTS_PER_BLOCK)) as usize;
        Arena::bytes::<u32>(MAX_ROUNDS as usize * blocks) + Arena::bytes::<u32>(MAX_ROUNDS as usize)
    }
}

/// The memory of a sequence of rounds.
pub struct Rounds<C: GpuCurve> {
    bases: Global<Affine<C>>,
    partial: GlobalMut<Affine<C>>,
    next: u32,
    list: GlobalMut<[u32; 2]>,
    prefix: GlobalMut<C::Base>,
    products: [GlobalMut<C::Base>; 2],
}

impl<C: GpuCurve> Rounds<C> {
    /// Takes memory for `sums` partial sums and for rounds of at most `pairs` pairs.
    pub fn new(
        arena: &mut Arena,
        bases: Global<Affine<C>>,
        sums: u64,
        pairs: u64,
    ) -> Result<Self, MsmError> {
        let sms = arena.runtime().multiprocessors();
        let products = most_products(pairs, sms);
        let partial = arena.take::<Affine<C>>(sums as usize + 1)?;
        let rounds = Self {
            bases,
            partial,
            next: 1,
            list: arena.take(pairs as usize)?,
            prefix: arena.take(pairs as usize)?,
            products: [arena.take(products)?, arena.take(products)?],
        };
        // partial sum 0 is the identity
        arena.runtime().zero(
            partial.address(),
            u64::from(<Affine<C> as cuzk_kernels::Element>::BYTES),
        )?;
        Ok(rounds)
    }

    /// Arena bytes that [`new`](Self::new) takes.
    pub fn bytes(sums: u64, pairs: u64, multiprocessors: u32) -> u64 {
        Arena::bytes::<Affine<C>>(sums as usize + 1)
            + Arena::bytes::<[u32; 2]>(pairs as usize)
            + Arena::bytes::<C::Base>(pairs as usize)
            + 2 * Arena::bytes::<C::Base>(most_products(pairs, multiprocessors))
    }

    /// The partial sums.
    pub fn partial(&self) -> Global<Affine<C>> {
        self.partial.read()
    }

    /// What plain references name.
    pub fn bases(&self) -> Global<Affine<C>> {
        self.bases
    }

    /// Runs `rounds` rounds, whose pairs are counted in `totals` and (scanned) in `sums`.
    pub fn run(
        &mut self,
        arena: &mut Arena,
        lists: Lists,
        sums: GlobalMut<u32>,
        totals: &Totals,
        rounds: u32,
    ) -> Result<State, MsmError> {
        let count = lists.count as usize;
        let mut offsets = arena.take::<u32>(count)?;
        let mut state = State {
            lists,
            round: 0,
            before: arena.take::<u32>(count)?,
            partial: 0,
            tails: arena.take::<u32>(count)?,
        };
        while state.round < rounds {
            let pairs = totals[state.round as usize];
            self.prepare(arena, &state, sums, offsets, pairs)?;
            let partial = self.add(arena, pairs)?;
            (offsets, state.before) = (state.before, offsets);
            state.partial = partial;
            state.round += 1;
        }
        Ok(state)
    }

    /// Arena bytes that [`run`](Self::run) takes.
    pub fn run_bytes(lists: u64) -> u64 {
        3 * Arena::bytes::<u32>(lists as usize)
    }

    /// Lists the operands of a round.
    fn prepare(
        &self,
        arena: &Arena,
        state: &State,
        sums: GlobalMut<u32>,
        offsets: GlobalMut<u32>,
        pairs: u32,
    ) -> Result<(), MsmError> {
        let (l, runtime) = (&state.lists, arena.runtime());
        runtime.launch(&msm_round_offsets::launch(
            l.blocks(),
            l.count,
            state.round,
            l.shift,
            l.stride,
            l.references,
            l.starts,
            l.lens,
            sums.read(),
            state.before.read(),
            state.partial,
            state.tails,
            offsets,
        ))?;
        if pairs > 0 {
            // many pairs a block make its search for their lists cheap, few make blocks enough
            let share = if pairs < FEW_PAIRS { 512 } else { 4096 };
            runtime.launch(&msm_round_pairs::launch(
                pairs.div_ceil(share),
                pairs,
                share,
                l.count,
                state.round,
                l.shift,
                l.stride,
                l.references,
                l.starts,
                l.lens,
                state.before.read(),
                state.partial,
                state.tails.read(),
                offsets.read(),
                self.list,
            ))?;
        }
        Ok(())
    }

    /// Adds the listed pairs; returns the first sum's number.
    fn add(&mut self, arena: &Arena, count: u32) -> Result<u32, MsmError> {
        let first = self.next;
        self.next += count;
        if count > 0 {
            let sms = arena.runtime().multiprocessors();
            let [products, scratch] = self.products;
            let pairs = Pairs {
                count,
                per: pairs_per_thread(count.into(), sms),
                list: self.list.read(),
                bases: self.bases,
                partial: self.partial,
                first,
                prefix: self.prefix,
                products,
                scratch,
            };
            for launch in C::add(&pairs, sms) {
                arena.runtime().launch(&launch)?;
            }
        }
        Ok(first)
    }
}

/// Pairs that share a thread: as many as fill the device once; the most only where they fill it often.
fn pairs_per_thread(pairs: u64, multiprocessors: u32) -> u32 {
    let resident = u64::from(multiprocessors * RESIDENT_BLOCKS * PAIR_THREADS);
    // a tenth less than a full device is better than twice the products
    let share = (pairs + pairs / 8) / resident;
    if share >= WAVES * u64::from(MOST_PER_THREAD) {
        return MOST_PER_THREAD;
    }
    if share == 0 {
        1
    } else {
        (1 << share.ilog2()).min(MOST_PER_THREAD / 2)
    }
}

/// Most products of rounds with up to `pairs` pairs.
fn most_products(pairs: u64, multiprocessors: u32) -> usize {
    let resident = u64::from(multiprocessors * RESIDENT_BLOCKS * PAIR_THREADS);
    let threads = (2 * resident).max(
        (pairs / u64::from(MOST_PER_THREAD))
            .max(2 * WAVES * resident)
            .min(pairs / u64::from(MOST_PER_THREAD / 2)),
    );
    threads.min(pairs).next_multiple_of(PAIR_THREADS.into()) as usize + PAIR_THREADS as usize
}
