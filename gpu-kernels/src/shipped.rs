//! The compiled kernels that ship with the crate.
//!
//! `cargo xtask kernels` writes the files of the folder `ptx/` and a manifest with the digest of the
//! sources that they came from; `cargo xtask kernels --check` compares the two.
use miniz_oxide::inflate::decompress_to_vec_zlib;

/// The manifest: compiler, digest of the sources, resources of every kernel. JSON.
pub const MANIFEST: &str = include_str!("../ptx/manifest.json");

/// PTX for compute capability 8.0 and up.
const PTX: &[u8] = include_bytes!("../ptx/kernels.ptx.z");

/// Machine code for one family of devices.
struct Cubin {
    arch: &'static str,
    /// Compute capability that it was assembled for; it runs on the same major version from that
    /// minor version on.
    capability: (u32, u32),
    bytes: &'static [u8],
}

const CUBINS: &[Cubin] = &[
    Cubin {
        arch: "sm_80",
        capability: (8, 0),
        bytes: include_bytes!("../ptx/kernels.sm_80.cubin.z"),
    },
    Cubin {
        arch: "sm_90",
        capability: (9, 0),
        bytes: include_bytes!("../ptx/kernels.sm_90.cubin.z"),
    },
    Cubin {
        arch: "sm_100",
        capability: (10, 0),
        bytes: include_bytes!("../ptx/kernels.sm_100.cubin.z"),
    },
    Cubin {
        arch: "sm_120",
        capability: (12, 0),
        bytes: include_bytes!("../ptx/kernels.sm_120.cubin.z"),
    },
];

/// A module that the driver can load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Image {
    /// Machine code: loads at once.
    Cubin {
        /// Architecture, such as `sm_90`.
        arch: &'static str,
        /// The ELF file.
        bytes: Vec<u8>,
    },
    /// PTX text, zero-terminated as the driver wants it: the driver compiles it when it is loaded,
    /// which takes seconds the first time on a machine.
    Ptx(Vec<u8>),
}

impl Image {
    /// The bytes to hand to the driver's `cuModuleLoadData`.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Image::Cubin { bytes, .. } | Image::Ptx(bytes) => bytes,
        }
    }
}

/// Why there is no image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// The device is older than the kernels' PTX.
    #[error(
        "compute capability {major}.{minor} is older than 8.0, the oldest that the kernels support"
    )]
    TooOld {
        /// Major version of the device.
        major: u32,
        /// Minor version of the device.
        minor: u32,
    },
    /// A shipped file does not decompress.
    #[error("the shipped file for {arch} is damaged: {message}")]
    Damaged {
        /// Architecture of the file.
        arch: &'static str,
        /// What the decompressor says.
        message: String,
    },
}

impl std::ops::Deref for Image {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.bytes()
    }
}

/// The image for a device of a compute capability (major, minor): machine code where some was shipped,
/// PTX otherwise.
///
/// # Errors
/// When the device is older than 8.0 or a shipped file is damaged.
pub fn image((major, minor): (u32, u32)) -> Result<Image, ImageError> {
    let fits = |cubin: &&Cubin| cubin.capability.0 == major && cubin.capability.1 <= minor;
    match CUBINS.iter().rev().find(fits) {
        Some(cubin) => Ok(Image::Cubin {
            arch: cubin.arch,
            bytes: inflate(cubin.arch, cubin.bytes)?,
        }),
        None => ptx((major, minor)),
    }
}

/// The PTX image for a device, for drivers that refuse the machine code.
///
/// # Errors
/// As for [`image`].
pub fn ptx((major, minor): (u32, u32)) -> Result<Image, ImageError> {
    if major < 8 {
        return Err(ImageError::TooOld { major, minor });
    }
    let mut text = inflate("PTX", PTX)?;
    text.push(0);
    Ok(Image::Ptx(text))
}

fn inflate(arch: &'static str, bytes: &[u8]) -> Result<Vec<u8>, ImageError> {
    decompress_to_vec_zlib(bytes).map_err(|error| ImageError::Damaged {
        arch,
        message: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_capability_from_eight_on_gets_an_image() {
        for (major, minor, arch) in [
            (8, 6, "sm_80"),
            (9, 0, "sm_90"),
            (10, 3, "sm_100"),
            (12, 0, "sm_120"),
        ] {
            match image((major, minor)).unwrap() {
                Image::Cubin {
                    arch: chosen,
                    bytes,
                } => {
                    assert_eq!(chosen, arch);
                    assert!(bytes.starts_with(b"\x7fELF"));
                }
                Image::Ptx(_) => panic!("{major}.{minor} got PTX"),
            }
        }
        let unknown = image((13, 0)).unwrap();
        let text = std::str::from_utf8(unknown.bytes()).unwrap();
        assert!(text.contains(".target sm_80") && text.ends_with('\0'));
        assert_eq!(
            image((7, 5)),
            Err(ImageError::TooOld { major: 7, minor: 5 })
        );
    }
}
