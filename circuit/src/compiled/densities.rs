//! Densities of a compiled circuit: which variables its templates touch.

use super::layout::{INPUT, Tables, Template, Terms};
use crate::{Bitmap, Densities};

/// Number of words that one template's variables need, and which of them A and B name.
struct Touched {
    a: Bitmap,
    b: Bitmap,
}

/// The densities of the whole circuit.
pub(super) fn densities(tables: &Tables, inputs: usize, aux: usize) -> Densities {
    let touched: Vec<Touched> = tables
        .templates
        .iter()
        .map(|template| touched(tables, template))
        .collect();
    let mut a_aux = vec![0; aux.div_ceil(64)];
    let mut b_aux = vec![0; aux.div_ceil(64)];
    let mut b_inputs = Bitmap::zeros(inputs);
    for instance in tables.instances.iter() {
        let template = &tables.templates[instance.template as usize];
        let touched = &touched[instance.template as usize];
        if touched.b.get(0) {
            b_inputs.set(0);
        }
        for (k, &variable) in tables.outside(instance, template).iter().enumerate() {
            let (in_a, in_b) = (touched.a.get(1 + k), touched.b.get(1 + k));
            if variable & INPUT == 0 {
                let (word, bit) = (variable as usize / 64, variable % 64);
                a_aux[word] |= u64::from(in_a) << bit;
                b_aux[word] |= u64::from(in_b) << bit;
            } else if in_b {
                b_inputs.set((variable & !INPUT) as usize);
            }
        }
        let own = 1 + template.outside as usize;
        let base = instance.aux_base as usize;
        or_into(&mut a_aux, base, &touched.a, own);
        or_into(&mut b_aux, base, &touched.b, own);
    }
    Densities {
        a_aux: Bitmap::from_words(a_aux, aux),
        b_inputs,
        b_aux: Bitmap::from_words(b_aux, aux),
    }
}

fn touched(tables: &Tables, template: &Template) -> Touched {
    let ends = tables.row_ends(template);
    let last = ends.last().copied().unwrap_or_default();
    let side = |terms: &Terms, start: u64, len: u32| {
        let mut map = Bitmap::zeros(template.variables() as usize);
        for &variable in &terms.variables[start as usize..start as usize + len as usize] {
            map.set(variable as usize);
        }
        map
    };
    Touched {
        a: side(&tables.a, template.a_start, last[0]),
        b: side(&tables.b, template.b_start, last[1]),
    }
}

/// Sets bit `base + i` of `words` for each bit `skip + i` of `map`.
fn or_into(words: &mut [u64], base: usize, map: &Bitmap, skip: usize) {
    let source = map.words();
    let mut at = skip;
    while at < map.len() {
        let count = (64 - at % 64).min(map.len() - at);
        let mut bits = source[at / 64] >> (at % 64);
        if count < 64 {
            bits &= (1 << count) - 1;
        }
        let (word, low) = ((base + at - skip) / 64, (base + at - skip) % 64);
        if bits != 0 {
            words[word] |= bits << low;
            if low != 0 && bits >> (64 - low) != 0 {
                words[word + 1] |= bits >> (64 - low);
            }
        }
        at += count;
    }
}
