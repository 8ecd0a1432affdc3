//! The challenges inside a commit's first phase, as they stand in its JSON.
//!
//! storage-proofs keeps some of these fields private, so they are read into types of our own,
//! checked, and then handed over through its public constructors.

use cuzk_witness::porep;
use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonHasher};
use filecoin_hashers::sha256::{Sha256Domain, Sha256Hasher};
use filecoin_proofs::constants::{SectorShapeBase, SectorShapeSub8, SectorShapeTop2};
use generic_array::typenum::U2;
use serde::Deserialize;
use storage_proofs_core::drgraph::BASE_DEGREE;
use storage_proofs_core::merkle::{MerkleProof, MerkleProofTrait, MerkleTreeTrait};
use storage_proofs_porep::stacked::{
    self, ColumnProof, EXP_DEGREE, EncodingProof, LabelingProof, ReplicaColumnProof, TOTAL_PARENTS,
};

use crate::error::RequestError;
use crate::kind::SectorSize;
use crate::merkle::{Arities, Place, check_element, check_proof_of, check_same};
use crate::native::path;
use crate::shape::Shape;

/// The inclusion proofs of a replica or column tree.
pub(crate) type TreeProof<T> = MerkleProof<
    PoseidonHasher,
    <T as MerkleTreeTrait>::Arity,
    <T as MerkleTreeTrait>::SubTreeArity,
    <T as MerkleTreeTrait>::TopTreeArity,
>;

/// All vanilla proofs of a sector by partition and challenge; the variant names the sector size.
#[derive(Deserialize)]
pub(crate) enum Vanilla {
    StackedDrg2KiBV1(Vec<Vec<Challenge<SectorShapeBase>>>),
    StackedDrg8MiBV1(Vec<Vec<Challenge<SectorShapeBase>>>),
    StackedDrg512MiBV1(Vec<Vec<Challenge<SectorShapeBase>>>),
    StackedDrg32GiBV1(Vec<Vec<Challenge<SectorShapeSub8>>>),
    StackedDrg64GiBV1(Vec<Vec<Challenge<SectorShapeTop2>>>),
}

impl Vanilla {
    /// The sector size that the variant names.
    pub(crate) fn size(&self) -> SectorSize {
        match self {
            Self::StackedDrg2KiBV1(_) => SectorSize::Kib2,
            Self::StackedDrg8MiBV1(_) => SectorSize::Mib8,
            Self::StackedDrg512MiBV1(_) => SectorSize::Mib512,
            Self::StackedDrg32GiBV1(_) => SectorSize::Gib32,
            Self::StackedDrg64GiBV1(_) => SectorSize::Gib64,
        }
    }
}

/// The openings for one challenged node.
#[derive(Deserialize)]
#[serde(bound = "")]
pub(crate) struct Challenge<T: Shape> {
    comm_d_proofs: MerkleProof<Sha256Hasher, U2>,
    comm_r_last_proof: TreeProof<T>,
    replica_column_proofs: Columns<T>,
    /// One per layer, first layer first.
    labeling_proofs: Vec<Labeling>,
    encoding_proof: Labeling,
}

/// The columns of the challenged node and of its parents.
#[derive(Deserialize)]
#[serde(bound = "")]
struct Columns<T: Shape> {
    c_x: OpenedColumn<T>,
    drg_parents: Vec<OpenedColumn<T>>,
    exp_parents: Vec<OpenedColumn<T>>,
}

/// A node's labels in all layers and their place in the column tree.
#[derive(Deserialize)]
#[serde(bound = "")]
struct OpenedColumn<T: Shape> {
    column: Column,
    inclusion_proof: TreeProof<T>,
}

#[derive(Deserialize)]
struct Column {
    index: u32,
    rows: Vec<PoseidonDomain>,
}

/// A label's preimage, also used for the key that encodes the data.
#[derive(Deserialize)]
struct Labeling {
    parents: Vec<PoseidonDomain>,
    layer_index: u32,
    node: u64,
}

impl Labeling {
    fn check(&self, place: Place<'_>, layer: usize, node: usize) -> Result<(), RequestError> {
        if self.layer_index as usize != layer {
            return Err(RequestError::mismatch(
                format!("{}.layer_index", place()),
                layer,
                self.layer_index,
            ));
        }
        if self.node != node as u64 {
            return Err(RequestError::mismatch(
                format!("{}.node", place()),
                node,
                self.node,
            ));
        }
        check_count(place, "parents", TOTAL_PARENTS, self.parents.len())
    }
}

impl<T: Shape> OpenedColumn<T> {
    /// Checks the column's form and returns the node that it belongs to.
    fn check(
        &self,
        place: Place<'_>,
        layers: usize,
        arities: &Arities,
        node: Option<usize>,
    ) -> Result<(), RequestError> {
        check_count(place, "column.rows", layers, self.column.rows.len())?;
        for row in &self.column.rows {
            check_element(place, "column.rows", row)?;
        }
        let index = self.column.index as usize;
        if let Some(node) = node.filter(|&node| node != index) {
            return Err(RequestError::mismatch(
                format!("{}.column.index", place()),
                node,
                index,
            ));
        }
        check_proof_of(
            &|| format!("{}.inclusion_proof", place()),
            &self.inclusion_proof,
            &arities.replica,
            index,
        )
    }

    fn to_proof(&self) -> ColumnProof<TreeProof<T>> {
        ColumnProof::new(
            self.column.index,
            self.column.rows.clone(),
            self.inclusion_proof.clone(),
        )
    }

    fn to_native(&self) -> porep::Column {
        porep::Column {
            labels: self.column.rows.iter().map(|&row| row.into()).collect(),
            path: path(&self.inclusion_proof),
        }
    }
}

/// Checks the length of a list at a place.
fn check_count(
    place: Place<'_>,
    list: &str,
    expected: usize,
    found: usize,
) -> Result<(), RequestError> {
    if expected == found {
        return Ok(());
    }
    Err(RequestError::Count {
        field: format!("{}.{list}", place()),
        expected: expected.to_string(),
        found,
    })
}

impl<T: Shape> Challenge<T> {
    /// Checks every length, index and value that storage-proofs and the circuit rely on.
    pub(crate) fn check(
        &self,
        place: Place<'_>,
        node: usize,
        layers: usize,
        arities: &Arities,
    ) -> Result<(), RequestError> {
        let at = |field: &str| format!("{}.{field}", place());
        check_proof_of(
            &|| at("comm_d_proofs"),
            &self.comm_d_proofs,
            &arities.data,
            node,
        )?;
        check_proof_of(
            &|| at("comm_r_last_proof"),
            &self.comm_r_last_proof,
            &arities.replica,
            node,
        )?;
        check_count(place, "labeling_proofs", layers, self.labeling_proofs.len())?;
        for (i, labeling) in self.labeling_proofs.iter().enumerate() {
            labeling.check(&|| at(&format!("labeling_proofs[{i}]")), i + 1, node)?;
        }
        self.encoding_proof
            .check(&|| at("encoding_proof"), layers, node)?;
        self.check_columns(&|| at("replica_column_proofs"), node, layers, arities)
    }

    fn check_columns(
        &self,
        place: Place<'_>,
        node: usize,
        layers: usize,
        arities: &Arities,
    ) -> Result<(), RequestError> {
        let columns = &self.replica_column_proofs;
        let c_x = || format!("{}.c_x", place());
        columns.c_x.check(&c_x, layers, arities, Some(node))?;
        for (list, parents, degree) in [
            ("drg_parents", &columns.drg_parents, BASE_DEGREE),
            ("exp_parents", &columns.exp_parents, EXP_DEGREE),
        ] {
            check_count(place, list, degree, parents.len())?;
            for (i, parent) in parents.iter().enumerate() {
                let parent_place = || format!("{}.{list}[{i}]", place());
                parent.check(&parent_place, layers, arities, None)?;
            }
        }
        Ok(())
    }

    /// The root of the column tree.
    pub(crate) fn comm_c(&self) -> PoseidonDomain {
        self.replica_column_proofs.c_x.inclusion_proof.root()
    }

    /// The root of the replica tree.
    pub(crate) fn comm_r_last(&self) -> PoseidonDomain {
        self.comm_r_last_proof.root()
    }

    /// Checks that every opening is of the sector's trees.
    pub(crate) fn check_roots(
        &self,
        place: Place<'_>,
        comm_c: &PoseidonDomain,
        comm_r_last: &PoseidonDomain,
        comm_d: &Sha256Domain,
    ) -> Result<(), RequestError> {
        let columns = &self.replica_column_proofs;
        check_same(place, "data tree root", comm_d, &self.comm_d_proofs.root())?;
        check_same(place, "replica tree root", comm_r_last, &self.comm_r_last())?;
        std::iter::once(&columns.c_x)
            .chain(&columns.drg_parents)
            .chain(&columns.exp_parents)
            .try_for_each(|column| {
                check_same(
                    place,
                    "column tree root",
                    comm_c,
                    &column.inclusion_proof.root(),
                )
            })
    }

    /// storage-proofs' type for the same openings.
    pub(crate) fn to_proof(&self) -> stacked::Proof<T, Sha256Hasher> {
        let to_columns =
            |columns: &[OpenedColumn<T>]| columns.iter().map(OpenedColumn::to_proof).collect();
        let columns = &self.replica_column_proofs;
        let encoding = &self.encoding_proof;
        stacked::Proof {
            comm_d_proofs: self.comm_d_proofs.clone(),
            comm_r_last_proof: self.comm_r_last_proof.clone(),
            replica_column_proofs: ReplicaColumnProof {
                c_x: columns.c_x.to_proof(),
                drg_parents: to_columns(&columns.drg_parents),
                exp_parents: to_columns(&columns.exp_parents),
            },
            labeling_proofs: self
                .labeling_proofs
                .iter()
                .map(|l| LabelingProof::new(l.layer_index, l.node, l.parents.clone()))
                .collect(),
            encoding_proof: EncodingProof::new(
                encoding.layer_index,
                encoding.node,
                encoding.parents.clone(),
            ),
        }
    }

    /// The values that the circuit's variables follow from.
    pub(crate) fn to_native(&self) -> porep::Challenge {
        let to_columns =
            |columns: &[OpenedColumn<T>]| columns.iter().map(OpenedColumn::to_native).collect();
        let columns = &self.replica_column_proofs;
        porep::Challenge {
            node: self.encoding_proof.node,
            data: self.comm_d_proofs.leaf().into(),
            data_path: path(&self.comm_d_proofs),
            replica_path: path(&self.comm_r_last_proof),
            column_path: path(&columns.c_x.inclusion_proof),
            base_parents: to_columns(&columns.drg_parents),
            expander_parents: to_columns(&columns.exp_parents),
        }
    }
}
