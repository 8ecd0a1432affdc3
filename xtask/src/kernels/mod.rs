//! `cargo xtask kernels`: builds the GPU kernels to PTX, inspects them, checks their limits, ships them.

mod build;
mod cuda;
mod occupancy;
mod ptx;
mod report;
mod sass;
mod ship;
mod toolchain;

use crate::shell::Outcome;

/// Result of a step of this job.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const USAGE: &str = "\
usage: cargo xtask kernels [options]

Builds gpu-kernels to PTX, assembles it, prints a table of every kernel and fails if one exceeds a
limit that it declares.

  --arch ARCH    architecture to assemble for and to report (default sm_90)
  --only TEXT    only kernels whose name contains TEXT
  --sass KERNEL  print the machine code of one kernel, then its row
  --ptx KERNEL   print the PTX of one kernel
  --json         print the table as JSON
  --ship         write what the crate ships: gpu-kernels/ptx
  --check        only compare the shipped files with the sources (no toolchain needed)";

/// Options of the job.
#[derive(Default)]
struct Options {
    arch: String,
    only: Option<String>,
    sass: Option<String>,
    ptx: Option<String>,
    json: bool,
    ship: bool,
    check: bool,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Option<Self>> {
        let mut options = Options {
            arch: "sm_90".into(),
            ..Options::default()
        };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .cloned()
                    .ok_or_else(|| format!("{word} needs a value\n\n{USAGE}"))
            };
            match word.as_str() {
                "--arch" => options.arch = value()?,
                "--only" => options.only = Some(value()?),
                "--sass" => options.sass = Some(value()?),
                "--ptx" => options.ptx = Some(value()?),
                "--json" => options.json = true,
                "--ship" => options.ship = true,
                "--check" => options.check = true,
                "--help" | "-h" => return Ok(None),
                other => return Err(format!("unknown option {other}\n\n{USAGE}").into()),
            }
        }
        Ok(Some(options))
    }

    /// Part of the name that selects kernels, if any.
    fn selection(&self) -> Option<&str> {
        self.ptx
            .as_deref()
            .or(self.sass.as_deref())
            .or(self.only.as_deref())
    }

    fn selects(&self, name: &str) -> bool {
        match (&self.ptx, &self.sass, &self.only) {
            (Some(exact), _, _) | (None, Some(exact), _) => name == exact,
            (None, None, Some(part)) => name.contains(part.as_str()),
            (None, None, None) => true,
        }
    }
}

/// Runs the job.
pub fn run(arguments: &[String]) -> Outcome {
    let Some(options) = Options::parse(arguments)? else {
        println!("{USAGE}");
        return Ok(());
    };
    if options.check {
        return ship::check();
    }
    let compiler = toolchain::find_or_fetch()?;
    let built = build::ptx(&compiler)?;
    let module = ptx::Module::parse(&built.text)?;
    let selected = module.select(|name| options.selects(name));
    if selected.kernels.is_empty() {
        let wanted = options.selection().unwrap_or("anything");
        return Err(format!("no kernel matches '{wanted}'").into());
    }
    if options.ptx.is_some() {
        println!("{}", selected.text());
        return Ok(());
    }
    let Some(tools) = cuda::find_or_fetch() else {
        println!(
            "{} kernels compiled to PTX; ptxas is unreachable: not assembled, limits not checked, nothing shipped",
            selected.kernels.len()
        );
        return Ok(());
    };
    let inspected = cuda::inspect(&tools, &selected, &options.arch)?;
    if let Some(one) = options.sass.as_ref().and_then(|name| inspected.get(name)) {
        println!("{}", one.code);
    }
    let rows = report::rows(&selected, &inspected, &options.arch);
    if options.json {
        println!(
            "{:#}",
            report::json(&rows, &options.arch, &built.compiler, &tools.version)
        );
    } else {
        print!("{}", report::table(&rows));
        println!(
            "{} kernels, {}, {}, ptxas {}",
            rows.len(),
            options.arch,
            built.compiler,
            tools.version
        );
    }
    report::check_limits(&rows)?;
    if options.ship && options.selection().is_none() {
        ship::write(&module, &built, &tools, &rows, &options.arch)?;
    } else if ship::check_sources().is_err() {
        eprintln!("kernels: the shipped files are older than the sources; --ship writes them");
    }
    Ok(())
}
