//! What `cuzk bench kernels` accepts.

use super::positive;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct BenchKernels {
    /// Only these [default: all]
    #[arg(long, value_delimiter = ',')]
    pub work: Vec<KernelWork>,
    /// log2 of the sizes [default: those of the project's targets]
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=28))]
    pub log2: Vec<u32>,
    /// Leave larger sizes out: log2
    #[arg(long, default_value_t = 28)]
    pub largest: u32,
    /// The transforms in every layout that there are kernels for, too
    #[arg(long)]
    pub layouts: bool,
    /// Repetitions of a row, of which the median counts; a third of them from 2^24 on
    #[arg(long, default_value_t = 9, value_parser = positive)]
    pub repetitions: usize,
    /// The device's ordinal
    #[arg(long, default_value_t = 0)]
    pub device: usize,
    /// Write the rows as JSON to this file, too
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Part of the kernels.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum KernelWork {
    /// Products and squares in Fr and Fp
    Field,
    /// Transforms
    Ntt,
    /// The quotient
    Quotient,
    /// Sums over random scalars in G1
    G1,
    /// Sums over random scalars in G2
    G2,
    /// Sums in G1 over a witness of which 98.7 % are 0 or 1
    Compact,
}
