//! The field axioms' machine on any runtime: an emulated device or a card.
use std::marker::PhantomData;
use std::sync::Arc;

use cuzk_field::axioms::{FieldMachine, Operation, TestElement};
use cuzk_field::{Fp, Fp2, Fr};

use super::*;
use crate::runtime::{DeviceBuffer, Runtime, RuntimeError};
use crate::{Element, Launch};

/// A field that has kernels for its operations.
pub trait FieldKernels: TestElement + Element {
    /// The launch of `operation` on `n` elements.
    fn launch(
        operation: Operation,
        n: u32,
        x: Global<Self>,
        y: Global<Self>,
        z: GlobalMut<Self>,
    ) -> Launch;
}

macro_rules! field_kernels {
    ($type:ty: $add:ident $sub:ident $neg:ident $double:ident $mul:ident $karatsuba:ident $sqr:ident $invert:ident $commutator:ident) => {
        impl FieldKernels for $type {
            fn launch(
                operation: Operation,
                n: u32,
                x: Global<Self>,
                y: Global<Self>,
                z: GlobalMut<Self>,
            ) -> Launch {
                let blocks = n.div_ceil($add::THREADS).max(1);
                match operation {
                    Operation::Add => $add::launch(blocks, n, x, y, z),
                    Operation::Sub => $sub::launch(blocks, n, x, y, z),
                    Operation::Neg => $neg::launch(blocks, n, x, y, z),
                    Operation::Double => $double::launch(blocks, n, x, y, z),
                    Operation::Mul => $mul::launch(blocks, n, x, y, z),
                    Operation::MulKaratsuba => $karatsuba::launch(blocks, n, x, y, z),
                    Operation::Sqr => $sqr::launch(blocks, n, x, y, z),
                    Operation::Invert => $invert::launch(blocks, n, x, y, z),
                    Operation::Commutator => $commutator::launch(blocks, n, x, y, z),
                }
            }
        }
    };
}

field_kernels!(Fp: fp_add fp_sub fp_neg fp_double fp_mul fp_mul_karatsuba fp_sqr fp_invert fp_commutator);
field_kernels!(Fr: fr_add fr_sub fr_neg fr_double fr_mul fr_mul_karatsuba fr_sqr fr_invert fr_commutator);
field_kernels!(Fp2: fp2_add fp2_sub fp2_neg fp2_double fp2_mul fp2_mul_karatsuba fp2_sqr fp2_invert fp2_commutator);

/// Computes field operations on a device.
pub struct RuntimeMachine<F> {
    runtime: Arc<dyn Runtime>,
    field: PhantomData<F>,
}

impl<F> RuntimeMachine<F> {
    /// The machine of the field `F` on a device.
    pub fn new(runtime: Arc<dyn Runtime>) -> Self {
        Self {
            runtime,
            field: PhantomData,
        }
    }
}

impl<F: FieldKernels> FieldMachine for RuntimeMachine<F> {
    type Element = F;
    type Error = RuntimeError;

    fn run(
        &mut self,
        operation: Operation,
        a: &[F],
        b: &[F],
    ) -> Result<Option<Vec<F>>, RuntimeError> {
        let x = DeviceBuffer::from_slice(&self.runtime, a)?;
        let y = DeviceBuffer::from_slice(&self.runtime, b)?;
        let z = DeviceBuffer::<F>::new(&self.runtime, a.len())?;
        let launch = F::launch(
            operation,
            a.len() as u32,
            x.global(),
            y.global(),
            z.global_mut(),
        );
        self.runtime.launch(&launch)?;
        z.to_vec().map(Some)
    }
}
