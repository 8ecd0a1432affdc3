//! Reads PTX into instructions that can be executed.
use std::collections::HashMap;

/// Address space of a load, store or atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Parameter,
    Global,
    Shared,
}

/// Comparison of `setp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// How lanes of a warp exchange values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    Index,
    Butterfly,
    Up,
    Down,
    Ballot,
    MatchAny,
    Sum,
    Barrier,
}

/// Two-operand arithmetic without carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    Min,
    Max,
    Divide,
    Remainder,
}

/// One-operand operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Not,
    Negate,
    Population,
    LeadingZeros,
    ReverseBits,
}

/// Part of a product that an instruction keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Low,
    High,
    Wide,
}

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Move,
    Convert {
        from: u32,
        signed: bool,
    },
    /// Addition; subtraction is the same with the second operand inverted in the end.
    Add {
        subtract: bool,
        carry_in: bool,
        carry_out: bool,
    },
    Multiply {
        part: Part,
        add: bool,
        carry_in: bool,
        carry_out: bool,
    },
    Binary(Binary),
    Unary(Unary),
    FunnelShift {
        left: bool,
    },
    ExtractBits,
    Permute,
    Compare(Comparison),
    Select,
    Branch,
    BranchTable,
    Return,
    Trap,
    Load(Space),
    Store(Space),
    Atomic {
        space: Space,
        operation: &'static str,
    },
    BlockBarrier,
    Warp(Exchange),
    Nothing,
}

/// An operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    Register(usize),
    Immediate(u64),
    Special(&'static str),
    Label(usize),
    Table(usize),
    Vector(Vec<Operand>),
    Memory { base: Box<Operand>, offset: i64 },
}

/// An instruction.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// Register and the value under which the instruction runs.
    pub predicate: Option<(usize, bool)>,
    pub kind: Kind,
    /// Width of the type in bits; 1 for predicates.
    pub bits: u32,
    pub signed: bool,
    pub operands: Vec<Operand>,
}

/// An entry.
#[derive(Debug)]
pub struct Entry {
    pub code: Vec<Instruction>,
    pub registers: usize,
    /// Positions of labels, then the targets of branch tables.
    pub labels: Vec<usize>,
    pub tables: Vec<Vec<usize>>,
    pub threads: u32,
}

const SPECIAL: [&str; 6] = [
    "%tid.x",
    "%ctaid.x",
    "%ctaid.y",
    "%ntid.x",
    "%nctaid.x",
    "%nctaid.y",
];

/// Finds and reads one entry of a module.
pub fn entry(module: &str, name: &str) -> Result<Entry, String> {
    let start = module
        .find(&format!(".entry {name}("))
        .ok_or_else(|| format!("no entry {name}"))?;
    let text = &module[start..];
    let open = text.find("\n{").ok_or("an entry without a body")?;
    let end = text.find("\n}").ok_or("an entry without an end")?;
    let mut reader = Reader::default();
    let header = &text[..open];
    for parameter in header.split(".param").skip(1) {
        let position = reader.parameters.len();
        let name = parameter.split([',', ')']).next().unwrap_or_default();
        let name = name.split_whitespace().last().unwrap_or_default();
        reader.parameters.insert(name.to_owned(), position);
    }
    let threads = header
        .split(".reqntid ")
        .nth(1)
        .and_then(|rest| rest.split(',').next())
        .and_then(|n| n.trim().parse().ok())
        .ok_or("an entry without a block size")?;
    for statement in text[open + 2..end].split(';') {
        reader
            .statement(statement)
            .map_err(|error| format!("{name}: {statement}: {error}"))?;
    }
    reader.finish(threads)
}

#[derive(Default)]
struct Reader {
    code: Vec<Instruction>,
    registers: HashMap<String, usize>,
    parameters: HashMap<String, usize>,
    label_numbers: HashMap<String, usize>,
    label_positions: HashMap<usize, usize>,
    table_numbers: HashMap<String, usize>,
    tables: HashMap<usize, Vec<usize>>,
}

impl Reader {
    fn label(&mut self, name: &str) -> usize {
        let next = self.label_numbers.len();
        *self.label_numbers.entry(name.to_owned()).or_insert(next)
    }

    fn table(&mut self, name: &str) -> usize {
        let next = self.table_numbers.len();
        *self.table_numbers.entry(name.to_owned()).or_insert(next)
    }

    fn register(&mut self, name: &str) -> usize {
        let next = self.registers.len();
        *self.registers.entry(name.to_owned()).or_insert(next)
    }

    fn statement(&mut self, text: &str) -> Result<(), String> {
        let mut text = text.trim();
        loop {
            // Braces at the start open and close scopes of names; registers of inline assembly may
            // share a name, not a life.
            text = text.trim_start_matches(|c: char| c == '{' || c == '}' || c.is_whitespace());
            match text.split_once(':') {
                Some((label, rest))
                    if label.starts_with('$') && !label.contains(char::is_whitespace) =>
                {
                    if let Some(targets) = rest.trim_start().strip_prefix(".branchtargets") {
                        let targets = targets.split(',').map(|t| self.label(t.trim())).collect();
                        let table = self.table(label);
                        self.tables.insert(table, targets);
                        return Ok(());
                    }
                    let number = self.label(label);
                    self.label_positions.insert(number, self.code.len());
                    text = rest.trim_start();
                }
                _ => break,
            }
        }
        if text.is_empty() || text.starts_with('.') {
            return Ok(());
        }
        let mut predicate = None;
        if let Some(rest) = text.strip_prefix('@') {
            let (name, rest) = rest
                .split_once(char::is_whitespace)
                .ok_or("a lone predicate")?;
            let wanted = !name.starts_with('!');
            predicate = Some((self.register(name.trim_start_matches('!')), wanted));
            text = rest.trim_start();
        }
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let (kind, bits, signed) = kind(name)?;
        let operands = if matches!(kind, Kind::Trap | Kind::Nothing) {
            Vec::new()
        } else {
            self.operands(rest)?
        };
        self.code.push(Instruction {
            predicate,
            kind,
            bits,
            signed,
            operands,
        });
        Ok(())
    }

    fn operands(&mut self, text: &str) -> Result<Vec<Operand>, String> {
        let mut operands = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let end = match rest.as_bytes()[0] {
                b'{' => rest.find('}').ok_or("an open vector")? + 1,
                b'[' => rest.find(']').ok_or("an open address")? + 1,
                _ => rest.find(',').unwrap_or(rest.len()),
            };
            operands.push(self.operand(rest[..end].trim())?);
            rest = rest[end..]
                .trim_start()
                .trim_start_matches(',')
                .trim_start();
        }
        Ok(operands)
    }

    fn operand(&mut self, text: &str) -> Result<Operand, String> {
        if let Some(inner) = text.strip_prefix('{') {
            let inner = inner.trim_end_matches('}');
            let parts: Result<Vec<_>, _> = inner
                .split(',')
                .map(|part| self.operand(part.trim()))
                .collect();
            return Ok(Operand::Vector(parts?));
        }
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.trim_end_matches(']');
            let (base, offset) = inner.split_once('+').unwrap_or((inner, "0"));
            let offset = offset
                .trim()
                .parse()
                .map_err(|_| format!("offset {offset}"))?;
            return Ok(Operand::Memory {
                base: Box::new(self.operand(base.trim())?),
                offset,
            });
        }
        if let Some(number) = number(text) {
            return Ok(Operand::Immediate(number));
        }
        if let Some(special) = SPECIAL.iter().find(|special| **special == text) {
            return Ok(Operand::Special(special));
        }
        if let Some(position) = self.parameters.get(text) {
            return Ok(Operand::Immediate(*position as u64));
        }
        if text == "cuzk_shared" {
            return Ok(Operand::Immediate(0));
        }
        if text.starts_with("$L_brx") {
            return Ok(Operand::Table(self.table(text)));
        }
        if text.starts_with('$') {
            return Ok(Operand::Label(self.label(text)));
        }
        Ok(Operand::Register(self.register(text)))
    }

    fn finish(self, threads: u32) -> Result<Entry, String> {
        let position = |number: usize| {
            let found = self.label_positions.get(&number);
            found
                .copied()
                .ok_or_else(|| format!("label {number} stands nowhere"))
        };
        let labels = (0..self.label_numbers.len())
            .map(position)
            .collect::<Result<_, _>>()?;
        let tables = (0..self.table_numbers.len())
            .map(|number| {
                self.tables
                    .get(&number)
                    .cloned()
                    .ok_or("a branch table without targets")
            })
            .collect::<Result<_, _>>()?;
        Ok(Entry {
            code: self.code,
            registers: self.registers.len(),
            labels,
            tables,
            threads,
        })
    }
}

fn number(text: &str) -> Option<u64> {
    let (negative, digits) = text
        .strip_prefix('-')
        .map_or((false, text), |rest| (true, rest));
    let digits = digits.trim_end_matches('U');
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

/// Kind, width and signedness of an operation such as `madc.hi.cc.u32`.
fn kind(name: &str) -> Result<(Kind, u32, bool), String> {
    let words: Vec<&str> = name.split('.').collect();
    let has = |word: &str| words.contains(&word);
    let last = words.last().copied().unwrap_or_default();
    let (bits, signed) = width(last);
    let carry_out = has("cc");
    let part = match (has("hi"), has("wide")) {
        (true, _) => Part::High,
        (_, true) => Part::Wide,
        _ => Part::Low,
    };
    let space = || match (has("global"), has("shared")) {
        (true, _) => Space::Global,
        (_, true) => Space::Shared,
        _ => Space::Parameter,
    };
    let kind = match words[0] {
        "mov" | "cvta" => Kind::Move,
        "cvt" => {
            let (from, signed) = width(last);
            let (to, _) = width(words[words.len() - 2]);
            return Ok((Kind::Convert { from, signed }, to, signed));
        }
        "add" | "addc" => Kind::Add {
            subtract: false,
            carry_in: words[0] == "addc",
            carry_out,
        },
        "sub" | "subc" => Kind::Add {
            subtract: true,
            carry_in: words[0] == "subc",
            carry_out,
        },
        "mul" => Kind::Multiply {
            part,
            add: false,
            carry_in: false,
            carry_out,
        },
        "mad" => Kind::Multiply {
            part,
            add: true,
            carry_in: false,
            carry_out,
        },
        "madc" => Kind::Multiply {
            part,
            add: true,
            carry_in: true,
            carry_out,
        },
        "and" => Kind::Binary(Binary::And),
        "or" => Kind::Binary(Binary::Or),
        "xor" => Kind::Binary(Binary::Xor),
        "shl" => Kind::Binary(Binary::ShiftLeft),
        "shr" => Kind::Binary(Binary::ShiftRight),
        "min" => Kind::Binary(Binary::Min),
        "max" => Kind::Binary(Binary::Max),
        "div" => Kind::Binary(Binary::Divide),
        "rem" => Kind::Binary(Binary::Remainder),
        "not" => Kind::Unary(Unary::Not),
        "neg" => Kind::Unary(Unary::Negate),
        "popc" => Kind::Unary(Unary::Population),
        "clz" => Kind::Unary(Unary::LeadingZeros),
        "brev" => Kind::Unary(Unary::ReverseBits),
        "shf" => Kind::FunnelShift { left: has("l") },
        "bfe" => Kind::ExtractBits,
        "prmt" => Kind::Permute,
        "setp" => Kind::Compare(comparison(words[1])?),
        "selp" => Kind::Select,
        "bra" => Kind::Branch,
        "brx" => Kind::BranchTable,
        "ret" | "exit" => Kind::Return,
        // The only functions that kernels call are those that panic.
        "trap" | "call" => Kind::Trap,
        "ld" => Kind::Load(space()),
        "st" => Kind::Store(space()),
        "atom" => Kind::Atomic {
            space: space(),
            operation: atomic(words[2])?,
        },
        "bar" if has("warp") => Kind::Warp(Exchange::Barrier),
        "bar" | "barrier" => Kind::BlockBarrier,
        "shfl" => Kind::Warp(match words[2] {
            "idx" => Exchange::Index,
            "bfly" => Exchange::Butterfly,
            "up" => Exchange::Up,
            _ => Exchange::Down,
        }),
        "vote" => Kind::Warp(Exchange::Ballot),
        "match" => Kind::Warp(Exchange::MatchAny),
        "redux" => Kind::Warp(Exchange::Sum),
        "fence" | "membar" | "prefetch" => Kind::Nothing,
        _ => return Err(format!("unknown operation {name}")),
    };
    Ok((kind, bits, signed))
}

fn width(kind: &str) -> (u32, bool) {
    let bits = kind
        .get(1..)
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(if kind == "pred" { 1 } else { 32 });
    (bits, kind.starts_with('s'))
}

fn comparison(name: &str) -> Result<Comparison, String> {
    Ok(match name {
        "eq" => Comparison::Equal,
        "ne" => Comparison::NotEqual,
        "lt" => Comparison::Less,
        "le" => Comparison::LessOrEqual,
        "gt" => Comparison::Greater,
        "ge" => Comparison::GreaterOrEqual,
        _ => return Err(format!("unknown comparison {name}")),
    })
}

fn atomic(name: &str) -> Result<&'static str, String> {
    let known = ["add", "min", "max", "or", "and", "exch", "cas"];
    known
        .into_iter()
        .find(|known| *known == name)
        .ok_or_else(|| format!("unknown atomic {name}"))
}
