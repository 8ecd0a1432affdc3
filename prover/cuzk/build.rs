//! Compiles the service's `.proto` (without protoc) into Rust types and a descriptor for reflection.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=proto");
    #[cfg(feature = "serve")]
    compile()?;
    Ok(())
}

#[cfg(feature = "serve")]
fn compile() -> Result<(), Box<dyn Error>> {
    let descriptors = protox::compile(["cuzk/v1/proving.proto"], ["proto"])?;
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    std::fs::write(
        out.join("cuzk.v1.bin"),
        prost::Message::encode_to_vec(&descriptors),
    )?;
    tonic_prost_build::compile_fds(descriptors)?;
    Ok(())
}
