//! sppark's side: the functions of `cuda/sppark.cu`.

use cuzk_field::{Fp, Fr};
use cuzk_kernels::{Element, GlobalMut};
use std::ffi::{c_int, c_void};

// Links sppark's own code, which finds the devices.
use sppark as _;

unsafe extern "C" {
    fn peer_transform(
        data: *mut c_void,
        log2: u32,
        order: c_int,
        inverse: c_int,
        coset: c_int,
        count: u32,
        ms: *mut f32,
    ) -> c_int;
    fn peer_quotient(
        a: *mut c_void,
        b: *mut c_void,
        c: *mut c_void,
        z: *const c_void,
        log2: u32,
        ms: *mut f32,
    ) -> c_int;
    fn peer_sum_g1(
        out: *mut c_void,
        points: *const c_void,
        n: usize,
        scalars: *const c_void,
        width: u32,
    ) -> c_int;
    fn peer_sum_g2(
        out: *mut c_void,
        points: *const c_void,
        n: usize,
        scalars: *const c_void,
        width: u32,
    ) -> c_int;
    fn peer_field(
        operation: c_int,
        out: *mut c_void,
        x: *const c_void,
        blocks: u32,
        iterations: u32,
        ms: *mut f32,
    ) -> c_int;
}

fn pointer(address: u64) -> *mut c_void {
    address as *mut c_void
}

fn checked(what: &str, code: c_int) -> Result<(), String> {
    match code {
        0 => Ok(()),
        code => Err(format!("sppark's {what}: CUDA error {code}")),
    }
}

/// Input and output order.
#[derive(Clone, Copy)]
pub enum Order {
    Natural,
    NaturalToReversed,
    ReversedToNatural,
}

/// Milliseconds of `count` transforms in place.
pub fn transform(
    data: GlobalMut<Fr>,
    log2: u32,
    order: Order,
    (inverse, coset): (bool, bool),
    count: u32,
) -> Result<Vec<f32>, String> {
    let mut ms = vec![0.0; count as usize];
    let order = order as c_int;
    // SAFETY: the array has 2^log2 elements in device memory, `ms` has `count`.
    let code = unsafe {
        peer_transform(
            pointer(data.address()),
            log2,
            order,
            inverse.into(),
            coset.into(),
            count,
            ms.as_mut_ptr(),
        )
    };
    checked("transform", code).map(|()| ms)
}

/// Milliseconds of the quotient of three arrays of 2^log2 elements; it ends in the first. `z` is one element.
pub fn quotient(arrays: [GlobalMut<Fr>; 3], z: GlobalMut<Fr>, log2: u32) -> Result<f32, String> {
    let mut ms = 0.0;
    let [a, b, c] = arrays.map(|array| pointer(array.address()));
    // SAFETY: device memory of these lengths.
    let code = unsafe { peer_quotient(a, b, c, pointer(z.address()), log2, &mut ms) };
    checked("quotient", code).map(|()| ms)
}

/// A group whose sums sppark makes.
pub trait Group {
    /// The compressed sum of n points times n scalars with windows of `width` bits.
    fn sum(points: u64, n: usize, scalars: u64, width: u32) -> Result<Vec<u8>, String>;
}

impl Group for cuzk_field::G1 {
    fn sum(points: u64, n: usize, scalars: u64, width: u32) -> Result<Vec<u8>, String> {
        let mut out = blst::blst_p1::default();
        let mut bytes = vec![0; 48];
        // SAFETY: device memory of n points and scalars; sppark's Jacobian point is blst's.
        let code = unsafe {
            let out: *mut blst::blst_p1 = &mut out;
            peer_sum_g1(out.cast(), pointer(points), n, pointer(scalars), width)
        };
        // SAFETY: 48 bytes.
        unsafe { blst::blst_p1_compress(bytes.as_mut_ptr(), &out) };
        checked("sum in G1", code).map(|()| bytes)
    }
}

impl Group for cuzk_field::G2 {
    fn sum(points: u64, n: usize, scalars: u64, width: u32) -> Result<Vec<u8>, String> {
        let mut out = blst::blst_p2::default();
        let mut bytes = vec![0; 96];
        // SAFETY: as in G1.
        let code = unsafe {
            let out: *mut blst::blst_p2 = &mut out;
            peer_sum_g2(out.cast(), pointer(points), n, pointer(scalars), width)
        };
        // SAFETY: 96 bytes.
        unsafe { blst::blst_p2_compress(bytes.as_mut_ptr(), &out) };
        checked("sum in G2", code).map(|()| bytes)
    }
}

/// An operation in a loop.
#[derive(Clone, Copy)]
pub enum Loop {
    FrMul,
    FpMul,
    FpSqr,
}

/// Milliseconds of `iterations` operations in each of `blocks` · 128 threads, from a table of 1,024 elements.
pub fn field(
    operation: Loop,
    out: u64,
    table: u64,
    blocks: u32,
    iterations: u32,
) -> Result<f32, String> {
    let mut ms = 0.0;
    // SAFETY: device memory of these lengths.
    let code = unsafe {
        peer_field(
            operation as c_int,
            pointer(out),
            pointer(table),
            blocks,
            iterations,
            &mut ms,
        )
    };
    checked("field arithmetic", code).map(|()| ms)
}

/// Bytes of an element of the loops.
pub fn element_bytes(operation: Loop) -> usize {
    match operation {
        Loop::FrMul => Fr::BYTES as usize,
        Loop::FpMul | Loop::FpSqr => Fp::BYTES as usize,
    }
}
