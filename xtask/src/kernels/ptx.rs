//! Takes PTX apart into kernels and functions, and turns limit comments into directives.

use super::Result;

/// What a kernel declares about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Exact block size.
    pub threads: u32,
    /// Blocks that must fit a multiprocessor at once.
    pub min_blocks: u32,
    /// Most registers a thread.
    pub registers: u32,
    /// Shared memory a block, in bytes, passed at launch.
    pub shared: u32,
    /// Most spilled bytes a thread.
    pub spills: u32,
    /// Largest stack frame in bytes.
    pub stack: u32,
}

impl Limits {
    /// Reads `threads=… min_blocks=… …`.
    fn parse(text: &str) -> Result<Self> {
        let mut limits = Limits::default();
        for word in text.split_whitespace() {
            let (name, value) = word
                .split_once('=')
                .ok_or_else(|| format!("a limit without a value: {word}"))?;
            let value = value
                .parse()
                .map_err(|_| format!("a limit that is no number: {word}"))?;
            match name {
                "threads" => limits.threads = value,
                "min_blocks" => limits.min_blocks = value,
                "registers" => limits.registers = value,
                "shared" => limits.shared = value,
                "spills" => limits.spills = value,
                "stack" => limits.stack = value,
                _ => return Err(format!("unknown limit {name}").into()),
            }
        }
        Ok(limits)
    }
}

/// One entry of the module.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// What it declares.
    pub limits: Limits,
    text: String,
}

/// A PTX module: what stands before the first function, device functions, kernels.
#[derive(Clone, Debug)]
pub struct Module {
    header: String,
    functions: Vec<String>,
    /// The entries in order of their names.
    pub kernels: Vec<Kernel>,
}

const MARK: &str = "// @limits ";

impl Module {
    /// Takes the compiler's output apart.
    pub fn parse(text: &str) -> Result<Self> {
        let mut module = Module {
            header: String::new(),
            functions: Vec::new(),
            kernels: Vec::new(),
        };
        // The function that is being read; a declaration ends before a body begins.
        let mut item: Option<String> = None;
        let mut body = false;
        for line in text.lines().filter(|line| keep(line)) {
            if item.is_none() && starts_function(line) {
                item = Some(String::new());
                body = false;
            }
            let Some(open) = &mut item else {
                push(&mut module.header, line);
                continue;
            };
            push(open, line);
            body |= line.starts_with('{');
            let declared = !body && line.trim_end().ends_with(';');
            if declared || body && line.starts_with('}') {
                let complete = item.take().unwrap_or_default();
                if declared {
                    module.declare(complete);
                } else {
                    module.add(complete)?;
                }
            }
        }
        module.kernels.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(module)
    }

    /// Declarations come before every use, once each.
    fn declare(&mut self, declaration: String) {
        if !self.header.contains(&declaration) {
            self.header.push_str(&declaration);
        }
    }

    fn add(&mut self, chunk: String) -> Result<()> {
        let Some(at) = chunk.find(".entry ") else {
            self.functions.push(chunk);
            return Ok(());
        };
        let name: String = chunk[at + 7..]
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_' || *c == '$')
            .collect();
        let mark = chunk
            .find(MARK)
            .ok_or_else(|| format!("kernel {name} declares no limits"))?;
        let line = chunk[mark + MARK.len()..]
            .lines()
            .next()
            .unwrap_or_default();
        let limits = Limits::parse(line).map_err(|error| format!("kernel {name}: {error}"))?;
        let directives = format!(
            ".reqntid {}, 1, 1\n.minnctapersm {}\n{{",
            limits.threads, limits.min_blocks
        );
        let text = chunk
            .replacen("\n{", &format!("\n{directives}"), 1)
            .lines()
            .filter(|line| !line.contains(MARK))
            .map(|line| format!("{line}\n"))
            .collect();
        self.kernels.push(Kernel { name, limits, text });
        Ok(())
    }

    /// The module with only some kernels, and all functions.
    pub fn select(&self, keep: impl Fn(&str) -> bool) -> Self {
        let mut module = self.clone();
        module.kernels.retain(|kernel| keep(&kernel.name));
        module
    }

    /// PTX for the assembler.
    pub fn text(&self) -> String {
        let mut text = self.header.clone();
        self.functions
            .iter()
            .for_each(|function| text.push_str(function));
        self.kernels
            .iter()
            .for_each(|kernel| text.push_str(&kernel.text));
        text
    }
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// `.func …`, `.visible .func …`, `.visible .entry …`.
fn starts_function(line: &str) -> bool {
    let mut words = line.split_whitespace();
    line.starts_with('.') && words.any(|word| word == ".func" || word == ".entry")
}

/// Comments of the compiler say nothing to the assembler.
fn keep(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && (!line.starts_with("//") || line.starts_with(MARK))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "\
.version 7.0
.target sm_80
.extern .shared .align 16 .b8 cuzk_shared[];

.func helper
()
.noreturn;

.func helper(
	.param .b32 a
)
{
	ret;
}
	// .globl	double
.visible .entry double(
	.param .u32 double_param_0
)
{
	.reg .b32 	%r<4>;
	// begin inline asm
	// @limits threads=64 min_blocks=3 registers=40 shared=128 spills=0 stack=16
	// end inline asm
	ret;
}
";

    #[test]
    fn limits_become_directives_of_their_kernel() {
        let module = Module::parse(SAMPLE).unwrap();
        assert_eq!(module.kernels.len(), 1);
        let limits = Limits {
            threads: 64,
            min_blocks: 3,
            registers: 40,
            shared: 128,
            spills: 0,
            stack: 16,
        };
        assert_eq!(module.kernels[0].limits, limits);
        let text = module.text();
        assert!(
            text.contains(")\n.reqntid 64, 1, 1\n.minnctapersm 3\n{\n"),
            "{text}"
        );
        assert!(!text.contains("@limits") && !text.contains("begin inline"));
        assert!(text.starts_with(".version 7.0\n") && text.contains(".func helper("));
        assert!(text.find(".noreturn;") < text.find(".func helper("));
    }

    #[test]
    fn a_kernel_without_limits_is_refused() {
        let text = SAMPLE.replace("// @limits", "// limits");
        assert!(
            Module::parse(&text)
                .unwrap_err()
                .to_string()
                .contains("kernel double")
        );
    }

    #[test]
    fn a_selection_keeps_functions() {
        let module = Module::parse(SAMPLE).unwrap().select(|_| false);
        assert!(module.kernels.is_empty() && module.text().contains("helper"));
    }
}
