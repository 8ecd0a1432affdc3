//! Machine code: functions and instruction counts.

/// Counts that tell what bounds a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All instructions.
    pub all: usize,
    /// 32×32+64-bit multiply-adds, the unit of all field work.
    pub imad_wide: usize,
    /// Other integer multiply-adds, without moves in disguise.
    pub imad: usize,
    /// Three-operand additions.
    pub iadd3: usize,
}

/// The part of the disassembler's output that belongs to one function.
pub fn function(text: &str, name: &str) -> String {
    let start = format!(".text.{name}:");
    let lines = text.lines().skip_while(|line| *line != start);
    let lines = lines.take_while(|line| !line.starts_with("//----"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

impl Counts {
    /// Counts the instructions of a function.
    pub fn of(code: &str) -> Self {
        let mut counts = Counts::default();
        for operation in code.lines().filter_map(operation) {
            if matches!(operation, "NOP" | "BRA") {
                continue;
            }
            counts.all += 1;
            if operation.starts_with("IMAD.WIDE") {
                counts.imad_wide += 1;
            } else if operation.starts_with("IMAD") {
                let disguised = ["IMAD.MOV", "IMAD.SHL", "IMAD.IADD"];
                counts.imad += usize::from(!disguised.iter().any(|d| operation.starts_with(d)));
            } else if operation.starts_with("IADD3") {
                counts.iadd3 += 1;
            }
        }
        counts
    }
}

/// The operation of a line like `/*00a0*/ @P0 IADD3.X R5, …;`.
fn operation(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("/*")?.split_once("*/")?.1;
    rest.split_whitespace()
        .find(|word| !word.starts_with('@') && !word.starts_with('{'))
        .map(|word| word.trim_end_matches(';'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_counted_by_kind() {
        let text = "\
//--------------------- .text.f --------------------------
\t.section .text.f
f:
.text.f:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/               @P0 EXIT ;
        /*0020*/                   IMAD.WIDE.U32.X R24, P4, R3, -0x1a402, R24, P0 ;
        /*0030*/                   IMAD.MOV R4, RZ, RZ, -R30 ;
        /*0040*/              @!P1 IMAD R4, R5, R6, RZ ;
.L_x_1:
        /*0050*/                   IADD3.X R5, R2, UR5, RZ, P0, !PT ;
        /*0060*/                   NOP;
//--------------------- .text.g --------------------------
.text.g:
        /*0000*/                   EXIT ;
";
        let expected = Counts {
            all: 6,
            imad_wide: 1,
            imad: 1,
            iadd3: 1,
        };
        assert_eq!(Counts::of(&function(text, "f")), expected);
        assert_eq!(Counts::of(&function(text, "g")).all, 1);
        assert_eq!(Counts::of(&function(text, "h")), Counts::default());
    }
}
