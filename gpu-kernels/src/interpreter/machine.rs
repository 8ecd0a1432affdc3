//! Executes an entry: one block after the other, the threads of a block in turns between barriers.
use std::collections::BTreeMap;

use super::parse::{
    Binary, Comparison, Entry, Exchange, Instruction, Kind, Operand, Part, Space, Unary,
};

/// Global memory: buffers by address.
#[derive(Default)]
pub struct Memory {
    pub buffers: BTreeMap<u64, Vec<u8>>,
}

impl Memory {
    /// The bytes at an address, which must lie in one buffer.
    pub fn bytes(&mut self, address: u64, len: usize) -> Result<&mut [u8], String> {
        let outside = || format!("{len} bytes at {address:#x} are in no buffer");
        let (start, buffer) = self
            .buffers
            .range_mut(..=address)
            .next_back()
            .ok_or_else(outside)?;
        let offset = (address - start) as usize;
        buffer.get_mut(offset..offset + len).ok_or_else(outside)
    }
}

/// Grid and block of a launch.
#[derive(Clone, Copy)]
pub struct Shape {
    pub blocks: (u32, u32),
    pub shared: u32,
}

struct Thread {
    registers: Vec<u64>,
    carry: bool,
    at: usize,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    AtBarrier,
    InWarp,
    Ended,
}

struct Block<'a> {
    entry: &'a Entry,
    parameters: &'a [u64],
    memory: &'a mut Memory,
    shared: Vec<u8>,
    shape: Shape,
    index: (u32, u32),
}

/// Runs all blocks of a launch.
pub fn run(
    entry: &Entry,
    parameters: &[u64],
    shape: Shape,
    memory: &mut Memory,
) -> Result<(), String> {
    for y in 0..shape.blocks.1 {
        for x in 0..shape.blocks.0 {
            let shared = vec![0xcd; shape.shared as usize];
            let mut block = Block {
                entry,
                parameters,
                memory,
                shared,
                shape,
                index: (x, y),
            };
            block
                .run()
                .map_err(|error| format!("block ({x}, {y}): {error}"))?;
        }
    }
    Ok(())
}

fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

fn sign_extend(value: u64, bits: u32) -> i64 {
    ((value << (64 - bits)) as i64) >> (64 - bits)
}

impl Block<'_> {
    fn run(&mut self) -> Result<(), String> {
        let fresh = || Thread {
            registers: vec![0; self.entry.registers],
            carry: false,
            at: 0,
            state: State::Ready,
        };
        let mut threads: Vec<Thread> = (0..self.entry.threads).map(|_| fresh()).collect();
        while threads.iter().any(|thread| thread.state != State::Ended) {
            for (index, thread) in threads.iter_mut().enumerate() {
                while thread.state == State::Ready {
                    self.step(index as u32, thread).map_err(|error| {
                        format!("thread {index}, instruction {}: {error}", thread.at)
                    })?;
                }
            }
            self.release(&mut threads)?;
        }
        Ok(())
    }

    /// Lets complete warps exchange and a complete block go on.
    fn release(&self, threads: &mut [Thread]) -> Result<(), String> {
        if threads.iter().all(|thread| thread.state != State::InWarp) {
            let waits = threads
                .iter()
                .filter(|thread| thread.state == State::AtBarrier)
                .count();
            if waits != 0 && waits != threads.len() {
                return Err(format!(
                    "{waits} of {} threads wait at a barrier",
                    threads.len()
                ));
            }
            threads
                .iter_mut()
                .filter(|t| t.state == State::AtBarrier)
                .for_each(|t| t.state = State::Ready);
        }
        for lanes in threads
            .chunks_mut(32)
            .filter(|lanes| lanes[0].state == State::InWarp)
        {
            if lanes.len() < 32
                || lanes
                    .iter()
                    .any(|lane| lane.state != State::InWarp || lane.at != lanes[0].at)
            {
                return Err("a warp operation without all lanes".into());
            }
            self.exchange(lanes)?;
        }
        Ok(())
    }

    fn exchange(&self, lanes: &mut [Thread]) -> Result<(), String> {
        let instruction = &self.entry.code[lanes[0].at];
        let Kind::Warp(exchange) = instruction.kind else {
            return Err("no warp operation".into());
        };
        let operand = |lane: usize, position: usize| match instruction.operands.get(position) {
            Some(operand) => self.value(lane as u32, &lanes[lane], operand),
            None => Ok(0),
        };
        let values: Vec<u64> = (0..32)
            .map(|lane| operand(lane, 1))
            .collect::<Result<_, _>>()?;
        let selectors: Vec<u64> = (0..32)
            .map(|lane| operand(lane, 2))
            .collect::<Result<_, _>>()?;
        let results: Vec<u64> = (0..32usize)
            .map(|lane| {
                let selector = selectors[lane] as usize;
                let pick =
                    |source: Option<usize>| values[source.filter(|s| *s < 32).unwrap_or(lane)];
                match exchange {
                    Exchange::Index => values[selector & 31],
                    Exchange::Butterfly => values[(lane ^ selector) & 31],
                    Exchange::Up => pick(lane.checked_sub(selector)),
                    Exchange::Down => pick(lane.checked_add(selector)),
                    Exchange::Ballot => (0..32).map(|l| (values[l] & 1) << l).sum(),
                    Exchange::MatchAny => (0..32)
                        .map(|l| u64::from(values[l] == values[lane]) << l)
                        .sum(),
                    Exchange::Sum => values.iter().sum::<u64>() & mask(32),
                    Exchange::Barrier => 0,
                }
            })
            .collect();
        for (lane, result) in lanes.iter_mut().zip(results) {
            if exchange != Exchange::Barrier {
                set(lane, instruction, result)?;
            }
            lane.state = State::Ready;
            lane.at += 1;
        }
        Ok(())
    }

    fn value(&self, index: u32, thread: &Thread, operand: &Operand) -> Result<u64, String> {
        Ok(match operand {
            Operand::Register(register) => thread.registers[*register],
            Operand::Immediate(value) => *value,
            Operand::Special(name) => u64::from(match *name {
                "%tid.x" => index,
                "%ctaid.x" => self.index.0,
                "%ctaid.y" => self.index.1,
                "%ntid.x" => self.entry.threads,
                "%nctaid.x" => self.shape.blocks.0,
                _ => self.shape.blocks.1,
            }),
            other => return Err(format!("{other:?} has no value")),
        })
    }

    fn step(&mut self, index: u32, thread: &mut Thread) -> Result<(), String> {
        let entry = self.entry;
        let Some(instruction) = entry.code.get(thread.at) else {
            thread.state = State::Ended;
            return Ok(());
        };
        if let Some((register, wanted)) = instruction.predicate
            && (thread.registers[register] & 1 == 1) != wanted
        {
            thread.at += 1;
            return Ok(());
        }
        match instruction.kind {
            Kind::Return => thread.state = State::Ended,
            Kind::Trap => return Err("trap: the kernel panicked".into()),
            Kind::BlockBarrier => {
                thread.state = State::AtBarrier;
                thread.at += 1;
            }
            Kind::Warp(_) => thread.state = State::InWarp,
            Kind::Branch => match instruction.operands.first() {
                Some(Operand::Label(label)) => thread.at = entry.labels[*label],
                _ => return Err("a branch to nowhere".into()),
            },
            Kind::BranchTable => {
                let selector = self.value(index, thread, &instruction.operands[0])? as usize;
                let Some(Operand::Table(table)) = instruction.operands.get(1) else {
                    return Err("a branch without a table".into());
                };
                let label = entry.tables[*table]
                    .get(selector)
                    .ok_or("a selector outside of the table")?;
                thread.at = entry.labels[*label];
            }
            _ => {
                self.compute(index, thread, instruction)?;
                thread.at += 1;
            }
        }
        Ok(())
    }

    fn compute(
        &mut self,
        index: u32,
        thread: &mut Thread,
        instruction: &Instruction,
    ) -> Result<(), String> {
        match instruction.kind {
            Kind::Nothing => return Ok(()),
            Kind::Load(space) => return self.load(index, thread, instruction, space),
            Kind::Store(space) => return self.store(index, thread, instruction, space),
            Kind::Atomic { space, operation } => {
                return self.atomic(index, thread, instruction, space, operation);
            }
            Kind::Move => return self.mov(index, thread, instruction),
            _ => {}
        }
        let mut operands = [0u64; 4];
        for (value, operand) in operands.iter_mut().zip(instruction.operands.iter().skip(1)) {
            *value = self.value(index, thread, operand)?;
        }
        let (result, carry) = arithmetic(instruction, operands, thread.carry);
        if let Some(carry) = carry {
            thread.carry = carry;
        }
        set(thread, instruction, result)
    }

    fn mov(
        &self,
        index: u32,
        thread: &mut Thread,
        instruction: &Instruction,
    ) -> Result<(), String> {
        let bits = instruction.bits;
        match (&instruction.operands[0], &instruction.operands[1]) {
            (Operand::Vector(parts), source) => {
                let value = self.value(index, thread, source)?;
                let part = bits / parts.len() as u32;
                for (i, register) in parts.iter().enumerate() {
                    assign(thread, register, value >> (part * i as u32) & mask(part))?;
                }
                Ok(())
            }
            (target, Operand::Vector(parts)) => {
                let part = bits / parts.len() as u32;
                let mut value = 0;
                for (i, operand) in parts.iter().enumerate() {
                    value |=
                        (self.value(index, thread, operand)? & mask(part)) << (part * i as u32);
                }
                assign(thread, target, value)
            }
            (target, source) => {
                let value = self.value(index, thread, source)? & mask(bits);
                assign(thread, target, value)
            }
        }
    }

    fn address(&self, index: u32, thread: &Thread, operand: &Operand) -> Result<u64, String> {
        let Operand::Memory { base, offset } = operand else {
            return Err("no address".into());
        };
        Ok(self
            .value(index, thread, base)?
            .wrapping_add_signed(*offset))
    }

    /// The bytes at an address, aligned to `len`.
    fn place(&mut self, space: Space, address: u64, len: usize) -> Result<&mut [u8], String> {
        if !address.is_multiple_of(len as u64) {
            return Err(format!("{len} bytes at {address:#x} are not aligned"));
        }
        match space {
            Space::Global => self.memory.bytes(address, len),
            Space::Shared => {
                let at = address as usize;
                self.shared
                    .get_mut(at..at + len)
                    .ok_or_else(|| format!("shared address {address:#x}"))
            }
            Space::Parameter => Err("parameters have no bytes".into()),
        }
    }

    fn load(
        &mut self,
        index: u32,
        thread: &mut Thread,
        instruction: &Instruction,
        space: Space,
    ) -> Result<(), String> {
        let address = self.address(index, thread, &instruction.operands[1])?;
        let bytes = instruction.bits as usize / 8;
        if space == Space::Parameter {
            let value = *self
                .parameters
                .get(address as usize)
                .ok_or("no such parameter")?;
            return assign(
                thread,
                &instruction.operands[0],
                value & mask(instruction.bits),
            );
        }
        let targets = match &instruction.operands[0] {
            Operand::Vector(parts) => parts.as_slice(),
            single => std::slice::from_ref(single),
        };
        let place = self.place(space, address, bytes * targets.len())?;
        for (target, chunk) in targets.iter().zip(place.chunks(bytes)) {
            assign(thread, target, number(chunk))?;
        }
        Ok(())
    }

    fn store(
        &mut self,
        index: u32,
        thread: &Thread,
        instruction: &Instruction,
        space: Space,
    ) -> Result<(), String> {
        let address = self.address(index, thread, &instruction.operands[0])?;
        let bytes = instruction.bits as usize / 8;
        let sources = match &instruction.operands[1] {
            Operand::Vector(parts) => parts.as_slice(),
            single => std::slice::from_ref(single),
        };
        let values: Vec<u64> = sources
            .iter()
            .map(|source| self.value(index, thread, source))
            .collect::<Result<_, _>>()?;
        let place = self.place(space, address, bytes * values.len())?;
        for (value, chunk) in values.iter().zip(place.chunks_mut(bytes)) {
            chunk.copy_from_slice(&value.to_le_bytes()[..bytes]);
        }
        Ok(())
    }

    fn atomic(
        &mut self,
        index: u32,
        thread: &mut Thread,
        instruction: &Instruction,
        space: Space,
        operation: &str,
    ) -> Result<(), String> {
        let address = self.address(index, thread, &instruction.operands[1])?;
        let value = self.value(index, thread, &instruction.operands[2])?;
        let other = instruction
            .operands
            .get(3)
            .map_or(Ok(0), |o| self.value(index, thread, o))?;
        let bytes = instruction.bits as usize / 8;
        let place = self.place(space, address, bytes)?;
        let old = number(place);
        let new = match operation {
            "add" => old.wrapping_add(value),
            "min" => old.min(value),
            "max" => old.max(value),
            "or" => old | value,
            "and" => old & value,
            "cas" => {
                if old == value {
                    other
                } else {
                    old
                }
            }
            _ => value,
        };
        place.copy_from_slice(&new.to_le_bytes()[..bytes]);
        assign(thread, &instruction.operands[0], old)
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn assign(thread: &mut Thread, target: &Operand, value: u64) -> Result<(), String> {
    match target {
        Operand::Register(register) => {
            thread.registers[*register] = value;
            Ok(())
        }
        other => Err(format!("{other:?} cannot be written")),
    }
}

fn set(thread: &mut Thread, instruction: &Instruction, value: u64) -> Result<(), String> {
    assign(thread, &instruction.operands[0], value)
}

/// Result and, where the instruction writes it, carry.
fn arithmetic(instruction: &Instruction, operands: [u64; 4], carry: bool) -> (u64, Option<bool>) {
    let (bits, signed) = (instruction.bits, instruction.signed);
    let [a, b, c, _] = operands;
    let trim = mask(bits);
    let carried = |on: bool| u128::from(on && carry);
    match instruction.kind {
        Kind::Convert { from, signed: true } => (sign_extend(a, from) as u64 & trim, None),
        Kind::Convert {
            from,
            signed: false,
        } => (a & mask(from) & trim, None),
        Kind::Add {
            subtract: false,
            carry_in,
            carry_out,
        } => {
            let sum = u128::from(a & trim) + u128::from(b & trim) + carried(carry_in);
            (sum as u64 & trim, carry_out.then_some(sum >> bits != 0))
        }
        Kind::Add {
            subtract: true,
            carry_in,
            carry_out,
        } => {
            // The carry flag of a subtraction is its borrow.
            let taken = u128::from(b & trim) + carried(carry_in);
            let borrow = u128::from(a & trim) < taken;
            (
                (u128::from(a & trim).wrapping_sub(taken)) as u64 & trim,
                carry_out.then_some(borrow),
            )
        }
        Kind::Multiply {
            part,
            add,
            carry_in,
            carry_out,
        } => {
            let product = if signed {
                (i128::from(sign_extend(a, bits)) * i128::from(sign_extend(b, bits))) as u128
            } else {
                u128::from(a & trim) * u128::from(b & trim)
            };
            let (kept, width) = match part {
                Part::Low => (product as u64 & trim, bits),
                Part::High => ((product >> bits) as u64 & trim, bits),
                Part::Wide => (product as u64 & mask(2 * bits), 2 * bits),
            };
            let addend = if add { u128::from(c & mask(width)) } else { 0 };
            let sum = u128::from(kept) + addend + carried(carry_in);
            (
                sum as u64 & mask(width),
                carry_out.then_some(sum >> width != 0),
            )
        }
        Kind::Binary(operation) => (binary(operation, a, b, bits, signed) & trim, None),
        Kind::Unary(operation) => (unary(operation, a & trim, bits) & trim, None),
        Kind::FunnelShift { left } => {
            let (both, shift) = ((b & mask(32)) << 32 | a & mask(32), c as u32 & 31);
            (
                if left {
                    (both << shift) >> 32
                } else {
                    (both >> shift) & mask(32)
                },
                None,
            )
        }
        Kind::ExtractBits => (
            if c == 0 {
                0
            } else {
                (a & trim) >> (b & 63).min(63) & mask(c.min(64) as u32)
            },
            None,
        ),
        Kind::Permute => {
            let both = (b & mask(32)) << 32 | a & mask(32);
            let byte = |i: u64| (both >> (8 * (c >> (4 * i) & 7)) & 0xff) << (8 * i);
            ((0..4).map(byte).sum(), None)
        }
        Kind::Compare(comparison) => {
            let order = if signed {
                sign_extend(a, bits).cmp(&sign_extend(b, bits))
            } else {
                (a & trim).cmp(&(b & trim))
            };
            (u64::from(holds(comparison, order)), None)
        }
        Kind::Select => (if c & 1 == 1 { a & trim } else { b & trim }, None),
        _ => (0, None),
    }
}

fn holds(comparison: Comparison, order: std::cmp::Ordering) -> bool {
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}

fn binary(operation: Binary, a: u64, b: u64, bits: u32, signed: bool) -> u64 {
    let (x, y) = (a & mask(bits), b & mask(bits));
    let (i, j) = (sign_extend(a, bits), sign_extend(b, bits));
    // Shift amounts are 32-bit numbers; larger ones shift everything out.
    let shift = b as u32;
    match operation {
        Binary::And => x & y,
        Binary::Or => x | y,
        Binary::Xor => x ^ y,
        Binary::ShiftLeft => {
            if shift < bits {
                x << shift
            } else {
                0
            }
        }
        Binary::ShiftRight if signed => (i >> shift.min(bits - 1)) as u64,
        Binary::ShiftRight => {
            if shift < bits {
                x >> shift
            } else {
                0
            }
        }
        Binary::Min if signed => i.min(j) as u64,
        Binary::Min => x.min(y),
        Binary::Max if signed => i.max(j) as u64,
        Binary::Max => x.max(y),
        Binary::Divide if signed => i.checked_div(j).unwrap_or(-1) as u64,
        Binary::Divide => x.checked_div(y).unwrap_or(u64::MAX),
        Binary::Remainder if signed => i.checked_rem(j).unwrap_or(0) as u64,
        Binary::Remainder => x.checked_rem(y).unwrap_or(x),
    }
}

fn unary(operation: Unary, a: u64, bits: u32) -> u64 {
    match operation {
        Unary::Not => !a,
        Unary::Negate => a.wrapping_neg(),
        Unary::Population => u64::from(a.count_ones()),
        Unary::LeadingZeros => u64::from(a.leading_zeros() - (64 - bits)),
        Unary::ReverseBits => a.reverse_bits() >> (64 - bits),
    }
}
