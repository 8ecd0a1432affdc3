//! The choice of the device that proves.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// The device that proves.
///
/// ```
/// use cuzk_prover::Device;
///
/// assert_eq!("cuda:0,2".parse(), Ok(Device::Cuda(vec![0, 2])));
/// assert_eq!(Device::Cpu.to_string(), "cpu");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// CUDA devices if there are any, else the CPU. [`crate::Prover::backend`] says which it is.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The CUDA devices with these ordinals; all of them if the list is empty.
    Cuda(Vec<usize>),
}

/// Why a device cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceError {
    /// The text names no device.
    #[error("expected auto, cpu, cuda or cuda:N[,N...], found {found:?}")]
    Unknown {
        /// The text.
        found: String,
    },
    /// CUDA was asked for and cannot be used.
    #[error("{device}: {reason}")]
    NoCuda {
        /// The device that was asked for.
        device: Device,
        /// Why it cannot be used.
        reason: String,
    },
}

impl FromStr for Device {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || DeviceError::Unknown {
            found: text.to_owned(),
        };
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(Vec::new())),
            _ => {
                let list = text.strip_prefix("cuda:").ok_or_else(unknown)?;
                let ordinals = list
                    .split(',')
                    .map(str::parse)
                    .collect::<Result<Vec<usize>, _>>();
                let ordinals = ordinals.map_err(|_| unknown())?;
                let repeats = (1..ordinals.len()).any(|i| ordinals[..i].contains(&ordinals[i]));
                if repeats {
                    Err(unknown())
                } else {
                    Ok(Self::Cuda(ordinals))
                }
            }
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(ordinals) => {
                f.write_str("cuda")?;
                ordinals.iter().enumerate().try_for_each(|(i, ordinal)| {
                    write!(f, "{}{ordinal}", if i == 0 { ':' } else { ',' })
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_device_parses_from_its_own_text() {
        for device in [
            Device::Auto,
            Device::Cpu,
            Device::Cuda(vec![]),
            Device::Cuda(vec![3]),
            Device::Cuda(vec![1, 0]),
        ] {
            assert_eq!(device.to_string().parse(), Ok(device));
        }
    }

    #[test]
    fn texts_that_name_no_device_are_refused() {
        for text in [
            "", "gpu", "CPU", "cuda:", "cuda:x", "cuda:1,", "cuda:-1", "cuda:1,1", " cpu",
        ] {
            assert!(text.parse::<Device>().is_err(), "{text:?}");
        }
    }
}
