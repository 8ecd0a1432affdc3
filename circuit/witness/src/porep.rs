//! The proof-of-replication circuit.

use crate::error::WitnessError;
use crate::poseidon::Poseidons;
use crate::sha256::sha256;
use crate::tree::{Hasher, Path, message_words, pack_digest, path, push_decomposition};
use crate::word::Word;
use crate::{Scalar, Witness};
use cuzk_circuit::Bitmap;
use rayon::prelude::*;

/// How many parents, with repetition, a label hashes.
const PARENTS: usize = 37;

/// The private inputs of one partition.
#[derive(Clone, Debug)]
pub struct Partition {
    /// The replica's id.
    pub replica_id: Scalar,
    /// The data tree's root.
    pub comm_d: Scalar,
    /// The replica's commitment.
    pub comm_r: Scalar,
    /// The replica tree's root.
    pub comm_r_last: Scalar,
    /// The column tree's root.
    pub comm_c: Scalar,
    /// All openings.
    pub challenges: Vec<Challenge>,
}

/// The openings for one challenged node.
#[derive(Clone, Debug)]
pub struct Challenge {
    /// The node.
    pub node: u64,
    /// Its data.
    pub data: Scalar,
    /// The data's place in the data tree.
    pub data_path: Path,
    /// The encoded data's place in the replica tree.
    pub replica_path: Path,
    /// The column's place in the column tree.
    pub column_path: Path,
    /// The columns of the base graph's parents.
    pub base_parents: Vec<Column>,
    /// The columns of the expander's parents.
    pub expander_parents: Vec<Column>,
}

/// A node's labels and their place in the column tree.
#[derive(Clone, Debug)]
pub struct Column {
    /// The label in each layer, first layer first.
    pub labels: Vec<Scalar>,
    /// The column's place in the column tree.
    pub path: Path,
}

/// Appends a partition's variables to `out`, whose first input is the constant one.
///
/// # Errors
/// The inputs are not of the circuit's shape; `out` is then incomplete.
pub fn append(
    partition: &Partition,
    poseidons: &Poseidons,
    out: &mut Witness,
) -> Result<(), WitnessError> {
    let mut bits = Bitmap::new();
    let replica_id = message_words(&push_decomposition(&partition.replica_id, &mut bits));
    out.aux.push(partition.replica_id);
    out.aux.append_bits(&bits);
    for public in [partition.comm_d, partition.comm_r] {
        out.aux.push(public);
    }
    out.inputs
        .extend([partition.replica_id, partition.comm_d, partition.comm_r]);
    let roots = [partition.comm_c, partition.comm_r_last];
    out.aux.push(partition.comm_r_last);
    out.aux.push(partition.comm_c);
    poseidons.two.hash(&roots, &mut out.aux)?;
    let parts = partition
        .challenges
        .par_iter()
        .map(|challenge| challenge.parts(&replica_id, poseidons))
        .collect::<Result<Vec<_>, _>>()?;
    for part in parts.iter().flatten() {
        out.inputs.extend_from_slice(&part.inputs);
        out.aux.append(&part.aux);
    }
    Ok(())
}

impl Challenge {
    /// The challenge's variables in pieces, which are computed in parallel.
    fn parts(
        &self,
        replica_id: &[Word; 8],
        poseidons: &Poseidons,
    ) -> Result<Vec<Witness>, WitnessError> {
        let layers = self.base_parents.first().map_or(0, |c| c.labels.len());
        let (opened, labels) = rayon::join(
            || self.openings(layers, poseidons),
            || self.labels(layers, replica_id),
        );
        let mut parts = opened?;
        let mut node = Witness::default();
        node.aux.push_bits(self.node, 64);
        node.inputs.push(Scalar::from(self.node));
        parts.push(node);
        let (values, traces): (Vec<_>, Vec<_>) = labels?.into_iter().unzip();
        parts.extend(traces);
        parts.push(self.encoding(&values, poseidons)?);
        Ok(parts)
    }

    /// The data's inclusion, then each parent's column and inclusion.
    fn openings(&self, layers: usize, poseidons: &Poseidons) -> Result<Vec<Witness>, WitnessError> {
        let (data, columns) = rayon::join(
            || self.data_inclusion(),
            || {
                let columns = self.base_parents.par_iter();
                columns
                    .chain(&self.expander_parents)
                    .map(|column| column.inclusion(layers, poseidons))
                    .collect::<Result<Vec<_>, _>>()
            },
        );
        let mut parts = vec![data?];
        parts.append(&mut columns?);
        Ok(parts)
    }

    fn data_inclusion(&self) -> Result<Witness, WitnessError> {
        let mut out = Witness::default();
        out.aux.push(self.data);
        let tree = Hasher::Sha256;
        path(tree, self.data, &self.data_path, &mut out)?;
        Ok(out)
    }

    /// Every layer's label with its trace.
    fn labels(
        &self,
        layers: usize,
        replica_id: &[Word; 8],
    ) -> Result<Vec<(Scalar, Witness)>, WitnessError> {
        for column in self.base_parents.iter().chain(&self.expander_parents) {
            WitnessError::check_count("column labels", layers, column.labels.len())?;
        }
        let labels = (0..layers).into_par_iter();
        Ok(labels.map(|layer| self.label(layer, replica_id)).collect())
    }

    /// The label in a layer, counted from zero: the hash of the replica id, layer, node and parents.
    fn label(&self, layer: usize, replica_id: &[Word; 8]) -> (Scalar, Witness) {
        let mut bits = Bitmap::new();
        let base = self.base_parents.iter().map(|column| column.labels[layer]);
        // The first layer has no expander parents; the others take them from the layer before.
        let previous = layer.checked_sub(1);
        let expander = self
            .expander_parents
            .iter()
            .filter_map(|column| Some(column.labels[previous?]));
        let parents: Vec<[Word; 8]> = base
            .chain(expander)
            .map(|label| message_words(&push_decomposition(&label, &mut bits)))
            .collect();
        let mut message = Vec::with_capacity(20 * 16);
        message.extend(replica_id);
        message.push(Word::constant(layer as u32 + 1));
        message.push(Word::variable((self.node >> 32) as u32));
        message.push(Word::variable(self.node as u32));
        message.resize(16, Word::constant(0));
        message.extend(parents.iter().cycle().take(PARENTS).flatten());
        let label = pack_digest(&sha256(&mut message, &mut bits));
        let mut out = Witness::default();
        out.aux.append_bits(&bits);
        out.aux.push(label);
        (label, out)
    }

    /// The encoded node's inclusion in the replica tree and the column's in the column tree.
    fn encoding(&self, labels: &[Scalar], poseidons: &Poseidons) -> Result<Witness, WitnessError> {
        let mut out = Witness::default();
        let tree = Hasher::Poseidon(poseidons);
        let encoded = self.data + labels.last().copied().unwrap_or_default();
        out.aux.push(encoded);
        path(tree, encoded, &self.replica_path, &mut out)?;
        let column = tree.hash(labels, &mut out.aux)?;
        path(tree, column, &self.column_path, &mut out)?;
        Ok(out)
    }
}

impl Column {
    /// The labels, their hash and its inclusion in the column tree.
    fn inclusion(&self, layers: usize, poseidons: &Poseidons) -> Result<Witness, WitnessError> {
        WitnessError::check_count("column labels", layers, self.labels.len())?;
        let mut out = Witness::default();
        out.aux.extend_from_slice(&self.labels);
        let tree = Hasher::Poseidon(poseidons);
        let hash = tree.hash(&self.labels, &mut out.aux)?;
        path(tree, hash, &self.path, &mut out)?;
        Ok(out)
    }
}
