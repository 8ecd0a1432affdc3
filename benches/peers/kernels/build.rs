//! Compiles sppark's headers with nvcc; `cargo xtask peers` says where nvcc is and for which architecture.

use std::env;

fn main() {
    let mut nvcc = cc::Build::new();
    nvcc.cuda(true).cudart("static").flag("-std=c++17");
    nvcc.define("FEATURE_BLS12_381", None);
    nvcc.define("TAKE_RESPONSIBILITY_FOR_ERROR_MESSAGE", None);
    // As blst's own build decides, so that both call the same assembly.
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("adx") {
        nvcc.define("__ADX__", None);
    }
    for variable in ["DEP_SPPARK_ROOT", "DEP_BLST_C_SRC"] {
        if let Some(folder) = env::var_os(variable) {
            nvcc.include(folder);
        }
    }
    nvcc.file("cuda/sppark.cu").compile("peer_kernels");
    println!("cargo:rerun-if-changed=cuda");
}
