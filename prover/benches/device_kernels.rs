//! Checks and times kernels on a CUDA device: what `cuzk bench kernels` prints, without building the command.
//!
//! `cargo bench -p cuzk-prover --bench device_kernels -- [selftest] [layouts] [WORK]... [LOG2]... [OUT.json]`: WORK is
//! field, ntt, quotient, g1, g2 or compact (all of them), LOG2 the sizes (those of the targets).

use std::error::Error;
use std::sync::Arc;

use cuzk_prover::cuda::CudaRuntime;
use cuzk_prover::gpu::Runtime;
use cuzk_prover::gpu::measure::{self, Selection};
use cuzk_prover::gpu::selftest::{Size, selftest};

const WORK: [&str; 6] = ["field", "ntt", "quotient", "g1", "g2", "compact"];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = |name: &str| arguments.iter().any(|argument| argument == name);
    let device = match CudaRuntime::new(0) {
        Ok(device) => device,
        Err(error) => {
            println!("not measured: {error}");
            return Ok(());
        }
    };
    let info = device.info().clone();
    let runtime: Arc<dyn Runtime> = Arc::new(device);
    if given("selftest") {
        for check in selftest(&runtime, Size::Full)? {
            println!("{:<32} {:>8.3} s", check.name, check.time.as_secs_f64());
        }
    }
    let sizes: Vec<u32> = arguments.iter().filter_map(|a| a.parse().ok()).collect();
    let wanted = |work: &str| given(work) || !WORK.iter().any(|work| given(work));
    let of = |work: &str, usual: &[u32]| match (wanted(work), sizes.is_empty()) {
        (false, _) => Vec::new(),
        (true, true) => usual.to_vec(),
        (true, false) => sizes.clone(),
    };
    let selection = Selection {
        field: wanted("field"),
        transforms: of("ntt", &[16, 20, 24, 27]),
        layouts: given("layouts"),
        quotients: of("quotient", &[20, 24, 27]),
        g1: of("g1", &[16, 18, 20, 22, 24, 26]),
        g2: of("g2", &[16, 18, 20, 22]),
        compact: of("compact", &[24]),
        repetitions: 9,
    };
    let limits = measure::limits(&runtime, 1e6 * f64::from(info.clock_mhz))?;
    println!("{info:?}, {limits:?}\n{}", measure::heading());
    let rows = measure::measure(&runtime, &selection, |row| {
        println!("{}", measure::line(row, &limits));
    })?;
    if let Some(path) = arguments
        .iter()
        .find(|argument| argument.ends_with(".json"))
    {
        std::fs::write(path, measure::json(&rows, &limits).to_string())?;
    }
    Ok(())
}
