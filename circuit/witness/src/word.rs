//! Words of 32 boolean views, as the `UInt32` gadget holds them.
//!
//! Each bit is a constant, a variable or a negated variable. What an operation allocates depends
//! on that alone, never on the values. All operations treat the 32 bits at once with masks.

use cuzk_circuit::Bitmap;

/// 32 boolean views, lowest bit first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The values of the views.
    value: u32,
    /// Ones where the view is a constant.
    constant: u32,
    /// Ones where the view is a negated variable; zeros where it is a constant.
    negated: u32,
}

impl Word {
    /// 32 constants.
    pub const fn constant(value: u32) -> Self {
        Self::with_constant_bits(value, u32::MAX)
    }

    /// 32 variables that are already allocated.
    pub const fn variable(value: u32) -> Self {
        Self::with_constant_bits(value, 0)
    }

    /// Constants where `constant` has ones, allocated variables elsewhere.
    pub const fn with_constant_bits(value: u32, constant: u32) -> Self {
        Self {
            value,
            constant,
            negated: 0,
        }
    }

    /// The value.
    pub const fn value(self) -> u32 {
        self.value
    }

    /// Rotation to the right: allocates nothing.
    #[inline]
    pub const fn rotr(self, by: u32) -> Self {
        Self {
            value: self.value.rotate_right(by),
            constant: self.constant.rotate_right(by),
            negated: self.negated.rotate_right(by),
        }
    }

    /// Shift to the right by 1 to 31: constant zeros come in, nothing is allocated.
    #[inline]
    pub const fn shr(self, by: u32) -> Self {
        Self {
            value: self.value >> by,
            constant: self.constant >> by | !(u32::MAX >> by),
            negated: self.negated >> by,
        }
    }

    /// Exclusive or; allocates where both bits are variables.
    #[inline]
    pub fn xor(self, other: Self, bits: &mut Bitmap) -> Self {
        let value = self.value ^ other.value;
        // A constant one negates the other view: its value joins the negations.
        let negated = (self.negated ^ other.negated)
            ^ (self.constant & self.value)
            ^ (other.constant & other.value);
        let constant = self.constant & other.constant;
        let negated = negated & !constant;
        push_where(
            bits,
            u64::from(value ^ negated),
            u64::from(!(self.constant | other.constant)),
            32,
        );
        Self {
            value,
            constant,
            negated,
        }
    }

    /// SHA-256's choice `(a and b) xor (not a and c)`.
    #[inline]
    pub fn ch(a: Self, b: Self, c: Self, bits: &mut Bitmap) -> Self {
        let value = (a.value & b.value) ^ (!a.value & c.value);
        if a.constant | b.constant | c.constant == 0 {
            bits.push_bits(u64::from(value), 32);
            return Self::variable(value);
        }
        Self::folded_ch(a, b, c, bits)
    }

    /// Choice with constants among the operands. Of the cases that apply to a bit the last wins.
    #[cold]
    fn folded_ch(a: Self, b: Self, c: Self, bits: &mut Bitmap) -> Self {
        let value = (a.value & b.value) ^ (!a.value & c.value);
        let (one, zero) = (Self::constant_ones, Self::constant_zeros);
        let step = Step::allocated(value)
            .or(one(b), a.not().and(c.not()).not())
            .or(one(c), a.and(b.not()).not())
            .or(zero(c), a.and(b))
            .or(zero(b), a.not().and(c))
            .or(zero(a), Step::view(c))
            .or(
                a.constant & b.constant & c.constant,
                Step::view(Self::constant(value)),
            );
        push_where(bits, u64::from(step.raw), u64::from(step.allocated), 32);
        step.word
    }

    /// SHA-256's majority `(a and b) xor (a and c) xor (b and c)`; of three variables it allocates
    /// the majority and then `b and c`, bit by bit.
    #[inline]
    pub fn maj(a: Self, b: Self, c: Self, bits: &mut Bitmap) -> Self {
        let both = b.value & c.value;
        let value = (a.value & b.value) ^ (a.value & c.value) ^ both;
        if a.constant | b.constant | c.constant == 0 {
            bits.push_bits(interleave(value, both), 64);
            return Self::variable(value);
        }
        Self::folded_maj(a, b, c, bits)
    }

    /// Majority with constants among the operands. Of the cases that apply to a bit the last wins.
    #[cold]
    fn folded_maj(a: Self, b: Self, c: Self, bits: &mut Bitmap) -> Self {
        let both = b.value & c.value;
        let value = (a.value & b.value) ^ (a.value & c.value) ^ both;
        let (one, zero) = (Self::constant_ones, Self::constant_zeros);
        let step = Step::allocated(value)
            .or(one(a), b.not().and(c.not()).not())
            .or(one(b), a.not().and(c.not()).not())
            .or(one(c), a.not().and(b.not()).not())
            .or(zero(c), a.and(b))
            .or(zero(b), a.and(c))
            .or(zero(a), b.and(c))
            .or(
                a.constant & b.constant & c.constant,
                Step::view(Self::constant(value)),
            );
        let second = !(a.constant | b.constant | c.constant);
        push_where(
            bits,
            interleave(step.raw, both),
            interleave(step.allocated, second),
            64,
        );
        step.word
    }

    /// Sum modulo 2³² of 2 to 10 words. Unless all are constants it allocates all bits of the
    /// largest possible sum, carries included.
    #[inline]
    pub fn sum(words: &[Self], bits: &mut Bitmap) -> Self {
        let constant = words.iter().fold(u32::MAX, |all, word| all & word.constant);
        let sum: u64 = words.iter().map(|word| u64::from(word.value)).sum();
        if constant == u32::MAX {
            return Self::constant(sum as u32);
        }
        let largest = words.len() as u64 * u64::from(u32::MAX);
        bits.push_bits(sum, 64 - largest.leading_zeros() as usize);
        Self::variable(sum as u32)
    }

    /// Negation: allocates nothing.
    #[inline]
    fn not(self) -> Self {
        Self {
            value: !self.value,
            constant: self.constant,
            negated: self.negated ^ !self.constant,
        }
    }

    /// And; allocates where both bits are variables.
    fn and(self, other: Self) -> Step {
        let value = self.value & other.value;
        let allocated = !(self.constant | other.constant);
        let passed =
            (other.constant_ones() & self.negated) | (self.constant_ones() & other.negated);
        Step {
            word: Self {
                value,
                constant: self.constant_zeros()
                    | other.constant_zeros()
                    | (self.constant & other.constant),
                negated: passed,
            },
            allocated,
            raw: value,
        }
    }

    fn constant_ones(self) -> u32 {
        self.constant & self.value
    }

    fn constant_zeros(self) -> u32 {
        self.constant & !self.value
    }
}

/// The result of an operation that allocates at most one variable a bit.
#[derive(Clone, Copy)]
struct Step {
    word: Word,
    /// Ones where a variable is allocated.
    allocated: u32,
    /// The values of the allocated variables.
    raw: u32,
}

impl Step {
    /// A variable for each bit.
    fn allocated(value: u32) -> Self {
        Self {
            word: Word::variable(value),
            allocated: u32::MAX,
            raw: value,
        }
    }

    /// Views of what there is.
    fn view(word: Word) -> Self {
        Self {
            word,
            allocated: 0,
            raw: 0,
        }
    }

    fn not(self) -> Self {
        Self {
            word: self.word.not(),
            ..self
        }
    }

    /// `other` where `mask` has ones, `self` elsewhere.
    fn or(self, mask: u32, other: Self) -> Self {
        let pick = |x: u32, y: u32| (x & !mask) | (y & mask);
        Self {
            word: Word {
                value: pick(self.word.value, other.word.value),
                constant: pick(self.word.constant, other.word.constant),
                negated: pick(self.word.negated, other.word.negated),
            },
            allocated: pick(self.allocated, other.allocated),
            raw: pick(self.raw, other.raw),
        }
    }
}

/// Appends those of the low `count` bits of `values` where `mask` has ones, lowest first.
#[inline]
fn push_where(bits: &mut Bitmap, values: u64, mask: u64, count: u32) {
    if mask.trailing_ones() == count {
        bits.push_bits(values, count as usize);
    } else {
        push_runs(bits, values, mask);
    }
}

fn push_runs(bits: &mut Bitmap, mut values: u64, mut mask: u64) {
    while mask != 0 {
        let skip = mask.trailing_zeros();
        mask >>= skip;
        values >>= skip;
        let run = mask.trailing_ones();
        bits.push_bits(values, run as usize);
        mask = mask.checked_shr(run).unwrap_or(0);
        values = values.checked_shr(run).unwrap_or(0);
    }
}

/// Bits of `even` at the even places, of `odd` at the odd ones.
#[inline]
fn interleave(even: u32, odd: u32) -> u64 {
    spread(even) | spread(odd) << 1
}

/// Bit `i` of `word` at place `2i`.
#[inline]
fn spread(word: u32) -> u64 {
    let mut x = u64::from(word);
    x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x << 2) & 0x3333_3333_3333_3333;
    (x | x << 1) & 0x5555_5555_5555_5555
}
