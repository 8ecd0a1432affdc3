//! The sums of the rows.
use cuzk_field::Fr;

use super::rank::GROUP;
use super::{CHUNK_ROWS, IN_TABLE, INPUT, InstanceHead, LONG, MINUS, TemplateHead};
use crate::{Cache, Global, GlobalMut, Gpu, kernel};

/// The compact witness.
#[derive(Clone, Copy)]
struct Values {
    bits: Global<[u32; 4]>,
    others: Global<[u32; 4]>,
    ranks: Global<u32>,
    dense: Global<Fr>,
    inputs: Global<Fr>,
}

/// What the variables of an instance's terms stand for.
#[derive(Clone, Copy)]
struct Variables {
    /// The instance's outside references.
    references: Global<u32>,
    /// Their number.
    outside: u32,
    /// The instance's first private variable.
    aux_base: u32,
}

/// The terms of one side of a template, and the coefficients that they refer to.
#[derive(Clone, Copy)]
struct Terms {
    terms: Global<[u32; 2]>,
    coefficients: Global<Fr>,
}

/// A sum in two parts, one of them not yet in the field.
#[derive(Clone, Copy)]
struct Sum {
    integer: i64,
    field: Fr,
}

impl Sum {
    const ZERO: Self = Self {
        integer: 0,
        field: Fr::ZERO,
    };

    #[inline(always)]
    fn add_one_of<G: Gpu>(self, gpu: G, code: u32, coefficients: Global<Fr>) -> Self {
        if code & IN_TABLE != 0 {
            let coefficient = coefficients.load_read_only(gpu, (code & !IN_TABLE) as usize);
            return Self {
                field: self.field.add(&coefficient),
                ..self
            };
        }
        let power = 1i64 << (code & 63);
        let integer = if code & MINUS != 0 {
            self.integer.wrapping_sub(power)
        } else {
            self.integer.wrapping_add(power)
        };
        Self { integer, ..self }
    }

    #[inline(always)]
    fn add_other<G: Gpu>(self, gpu: G, value: Fr, code: u32, coefficients: Global<Fr>) -> Self {
        let minus = code & (IN_TABLE | MINUS) == MINUS;
        let index = if code & IN_TABLE != 0 {
            code & !IN_TABLE
        } else {
            code & 63
        };
        // Entry 0 of the table is one.
        let term = if index == 0 {
            value
        } else {
            coefficients.load_read_only(gpu, index as usize).mul(&value)
        };
        let field = if minus {
            self.field.sub(&term)
        } else {
            self.field.add(&term)
        };
        Self { field, ..self }
    }

    /// The sum in the field.
    #[inline(always)]
    fn total(self) -> Fr {
        let magnitude = self.integer.unsigned_abs();
        let part = if magnitude > 1 {
            let limbs = [magnitude as u32, (magnitude >> 32) as u32, 0, 0, 0, 0, 0, 0];
            Fr::from_integer(&limbs)
        } else if magnitude == 1 {
            Fr::ONE
        } else {
            Fr::ZERO
        };
        if self.integer < 0 {
            self.field.sub(&part)
        } else {
            self.field.add(&part)
        }
    }
}

/// `sum` and the term.
#[inline(always)]
fn add_term<G: Gpu>(
    gpu: G,
    values: Values,
    variables: Variables,
    [variable, code]: [u32; 2],
    coefficients: Global<Fr>,
    sum: Sum,
) -> Sum {
    // The constant one is input 0.
    let absolute = if variable == 0 {
        INPUT
    } else if variable <= variables.outside {
        variables
            .references
            .load_read_only(gpu, variable as usize - 1)
    } else {
        variables.aux_base + (variable - 1 - variables.outside)
    };
    if absolute == INPUT {
        return sum.add_one_of(gpu, code, coefficients);
    }
    if absolute & INPUT != 0 {
        let value = values
            .inputs
            .load_read_only(gpu, (absolute & !INPUT) as usize);
        return sum.add_other(gpu, value, code, coefficients);
    }
    let (word, mask) = ((absolute / 32) as usize, 1u32 << (absolute % 32));
    let others = values.others.cast::<u32>().load_read_only(gpu, word);
    let bits = values.bits.cast::<u32>().load_read_only(gpu, word);
    if others & mask == 0 {
        if bits & mask == 0 {
            return sum;
        }
        return sum.add_one_of(gpu, code, coefficients);
    }
    let group = absolute / GROUP;
    let flags = values.others.load_read_only(gpu, group as usize);
    let place = absolute % GROUP / 32;
    let mut rank =
        values.ranks.load_read_only(gpu, group as usize) + (others & (mask - 1)).count_ones();
    rank += if place > 0 { flags[0].count_ones() } else { 0 };
    rank += if place > 1 { flags[1].count_ones() } else { 0 };
    rank += if place > 2 { flags[2].count_ones() } else { 0 };
    let value = values.dense.load_read_only(gpu, rank as usize);
    sum.add_other(gpu, value, code, coefficients)
}

/// The lanes' sums together, in every lane.
#[inline(always)]
fn across_lanes<G: Gpu>(gpu: G, sum: Sum) -> Sum {
    let mut integer = sum.integer;
    let mut mask = 16;
    while mask > 0 {
        let low = gpu.shuffle_xor(integer as u32, mask);
        let high = gpu.shuffle_xor((integer >> 32) as u32, mask);
        integer = integer.wrapping_add(((high as u64) << 32 | low as u64) as i64);
        mask >>= 1;
    }
    let mut field = sum.field;
    if gpu.ballot(!field.is_raw_zero()) != 0 {
        let mut mask = 16;
        while mask > 0 {
            let x = field.limbs();
            let other = [
                gpu.shuffle_xor(x[0], mask),
                gpu.shuffle_xor(x[1], mask),
                gpu.shuffle_xor(x[2], mask),
                gpu.shuffle_xor(x[3], mask),
                gpu.shuffle_xor(x[4], mask),
                gpu.shuffle_xor(x[5], mask),
                gpu.shuffle_xor(x[6], mask),
                gpu.shuffle_xor(x[7], mask),
            ];
            field = field.add(&Fr::from_limbs(other));
            mask >>= 1;
        }
    }
    Sum { integer, field }
}

/// A side of a row: its terms, and where their sum goes.
#[derive(Clone, Copy)]
struct Side {
    start: u32,
    end: u32,
    out: GlobalMut<Fr>,
    row: usize,
    /// The row exists.
    inside: bool,
}

/// Sums the terms of each lane's side. All lanes of a warp call it together.
#[inline(always)]
fn sum_sides<G: Gpu>(gpu: G, values: Values, variables: Variables, terms: Terms, side: Side) {
    let Side {
        start,
        end,
        out,
        row,
        inside,
    } = side;
    let long = end - start > LONG;
    // First each lane sums its own short side, then all lanes together sum one long side after the other.
    let (mut at, mut stop, mut step) = (if long { end } else { start }, end, 1);
    let mut left = gpu.ballot(long);
    let mut mine = inside && !long;
    loop {
        let mut sum = Sum::ZERO;
        while at < stop {
            let term = terms.terms.load_read_only(gpu, at as usize);
            sum = add_term(gpu, values, variables, term, terms.coefficients, sum);
            at += step;
        }
        gpu.warp_barrier();
        if step > 1 {
            sum = across_lanes(gpu, sum);
        }
        if mine {
            out.store_with(gpu, row, sum.total(), Cache::Streaming);
        }
        if left == 0 {
            break;
        }
        let owner = left.trailing_zeros();
        left &= left - 1;
        mine = gpu.lane() == owner;
        at = gpu.shuffle(start, owner) + gpu.lane();
        stop = gpu.shuffle(end, owner);
        step = 32;
    }
}

kernel! {
    /// `a[i] = Σ c·w` over the terms of row i of A for the rows of all chunks, `b` likewise; both are
    /// canonical in Montgomery form.
    ///
    /// Chunk k is (instance, first of its rows in the template): at most 128 rows of one instance.
    /// `a_terms` and `b_terms` are (variable, code of the coefficient), see [`crate::evaluate`]; `coefficients` begins with
    /// 2^0 to 2^40. `bits` and `others` are the witness's bitmaps, `ranks` the numbers of others before
    /// each 128 of them, `dense` the others in order, `inputs` the inputs. `outside` are private variables or
    /// `INPUT | i`.
    ///
    /// Grid: ⌈chunks / 4⌉, a warp a chunk, a lane a row; a side of more than 8 terms is summed by all
    /// lanes. No shared memory. Bound by the latency of the three loads that depend on each other
    /// (term, outside reference, bitmaps), and below that by the writes, 64 bytes a row.
    pub fn evaluate_rows(gpu, chunk_count: u32, chunks: Global<[u32; 2]>, instances: Global<InstanceHead>,
        templates: Global<TemplateHead>, row_ends: Global<[u32; 2]>, a_terms: Global<[u32; 2]>,
        b_terms: Global<[u32; 2]>, outside: Global<u32>, coefficients: Global<Fr>,
        bits: Global<[u32; 4]>, others: Global<[u32; 4]>, ranks: Global<u32>, dense: Global<Fr>,
        inputs: Global<Fr>, a: GlobalMut<Fr>, b: GlobalMut<Fr>)
    limits { threads: 128, min_blocks: 6, registers: 80, shared: 0 }
    {
        let chunk = gpu.index() / 32;
        if chunk >= chunk_count as usize {
            return;
        }
        let [instance, first] = chunks.load_read_only(gpu, chunk);
        let instance = instances.load_read_only(gpu, instance as usize);
        let template = templates.load_read_only(gpu, instance.template as usize);
        let values = Values { bits, others, ranks, dense, inputs };
        let variables = Variables {
            references: outside.offset(instance.outside_start as usize),
            outside: template.outside,
            aux_base: instance.aux_base,
        };
        let ends = row_ends.offset(template.rows_start as usize);
        let a_terms = a_terms.offset(template.a_start as usize);
        let b_terms = b_terms.offset(template.b_start as usize);
        let mut done = 0;
        while done < CHUNK_ROWS && first + done < template.rows {
            let row = first + done + gpu.lane();
            let inside = row < template.rows;
            let end = if inside { ends.load_read_only(gpu, row as usize) } else { [0; 2] };
            let start = if inside && row > 0 {
                ends.load_read_only(gpu, row as usize - 1)
            } else {
                [0; 2]
            };
            let at = instance.first_row as usize + row as usize;
            let mut in_b = false;
            loop {
                let (terms, out) = if in_b { (b_terms, b) } else { (a_terms, a) };
                let (start, end) = if in_b { (start[1], end[1]) } else { (start[0], end[0]) };
                let terms = Terms { terms, coefficients };
                let side = Side { start, end, out, row: at, inside };
                sum_sides(gpu, values, variables, terms, side);
                if in_b {
                    break;
                }
                in_b = true;
            }
            done += 32;
        }
    }
}
