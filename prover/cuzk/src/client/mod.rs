//! The command as a client of a daemon.

mod commands;
pub mod pipeline;

pub use commands::run;

use crate::arguments::daemon::Connection;
use crate::net::{Address, MESSAGE_LIMIT};
use crate::rpc;
use crate::rpc::proving_engine_client::ProvingEngineClient;
use cuzk_filecoin::{ProofKind, ProofRequest};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use tonic::metadata::MetadataValue;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Status};

/// Why a daemon could not be asked, or what it answered.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is not one.
    #[error("--addr: {0}")]
    Address(String),
    /// A file of the connection.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The token cannot be sent.
    #[error("{}: the token may only have visible ASCII characters", path.display())]
    Token {
        /// The file.
        path: PathBuf,
    },
    /// Nobody answers.
    #[error("{address}: {message}")]
    Connect {
        /// The daemon.
        address: String,
        /// What went wrong, with its causes.
        message: String,
    },
    /// The daemon refused.
    #[error("the daemon answers {}: {}", code_name(.0.code()), .0.message())]
    Refused(#[from] Status),
    /// A job ended without a proof.
    #[error("job {job}: {how}: {message}")]
    NoProof {
        /// The job.
        job: String,
        /// The contract's name of its status.
        how: &'static str,
        /// What the daemon said.
        message: String,
    },
    /// A line of the metrics that this command needs is not there.
    #[error("the daemon's answer lacks {0}")]
    Incomplete(&'static str),
}

/// gRPC's own name of a code.
fn code_name(code: tonic::Code) -> String {
    let mut name = String::new();
    for (i, letter) in format!("{code:?}").chars().enumerate() {
        if i > 0 && letter.is_uppercase() {
            name.push('_');
        }
        name.extend(letter.to_uppercase());
    }
    name
}

/// A connected client.
pub type Client = ProvingEngineClient<InterceptedService<Channel, Bearer>>;

/// Adds the token to every call.
#[derive(Clone)]
pub struct Bearer(Option<MetadataValue<tonic::metadata::Ascii>>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request
                .metadata_mut()
                .insert("authorization", token.clone());
        }
        Ok(request)
    }
}

/// Connects to the daemon that the flags or the environment name.
pub async fn connect(connection: &Connection) -> Result<Client, ClientError> {
    let text = connection
        .addr
        .clone()
        .or_else(|| std::env::var("CUZK_ADDR").ok())
        .unwrap_or_else(|| "127.0.0.1:9820".to_owned());
    let address: Address = text.parse().map_err(ClientError::Address)?;
    let failed = |error: &dyn std::error::Error| ClientError::Connect {
        address: text.clone(),
        message: crate::net::with_sources(error),
    };
    let encrypted = text.starts_with("https://") || connection.ca.is_some();
    let url = match &address {
        Address::Unix(_) => address.to_string(),
        Address::Tcp(address) if encrypted => format!("https://{address}"),
        Address::Tcp(address) => format!("http://{address}"),
    };
    let mut endpoint = Endpoint::from_shared(url)
        .map_err(|e| failed(&e))?
        .connect_timeout(std::time::Duration::from_secs(10))
        .initial_stream_window_size(4 << 20)
        .initial_connection_window_size(16 << 20);
    if encrypted {
        endpoint = endpoint
            .tls_config(tls(connection)?)
            .map_err(|e| failed(&e))?;
    }
    let channel = endpoint.connect().await.map_err(|e| failed(&e))?;
    let bearer = Bearer(token(connection)?);
    Ok(ProvingEngineClient::with_interceptor(channel, bearer)
        .max_decoding_message_size(MESSAGE_LIMIT)
        .max_encoding_message_size(MESSAGE_LIMIT))
}

fn read(path: &Path) -> Result<Vec<u8>, ClientError> {
    std::fs::read(path).map_err(|source| ClientError::File {
        path: path.to_owned(),
        source,
    })
}

fn tls(connection: &Connection) -> Result<ClientTlsConfig, ClientError> {
    let mut tls = ClientTlsConfig::new();
    if let Some(ca) = &connection.ca {
        tls = tls.ca_certificate(Certificate::from_pem(read(ca)?));
    }
    if let (Some(certificate), Some(key)) = (&connection.certificate, &connection.key) {
        tls = tls.identity(Identity::from_pem(read(certificate)?, read(key)?));
    }
    Ok(tls)
}

fn token(
    connection: &Connection,
) -> Result<Option<MetadataValue<tonic::metadata::Ascii>>, ClientError> {
    let variable = std::env::var_os("CUZK_TOKEN_FILE").map(PathBuf::from);
    let Some(path) = connection.token_file.clone().or(variable) else {
        return Ok(None);
    };
    let bytes = read(&path)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut value: MetadataValue<_> = format!("Bearer {}", text.trim())
        .parse()
        .map_err(|_| ClientError::Token { path })?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// The contract's message for the contents of an input file: a request document, or a C1 file.
pub fn message(bytes: Vec<u8>) -> rpc::SubmitProofRequest {
    let request = ProofRequest::from_json(&bytes).unwrap_or_else(|_| {
        // Whatever else it is, the daemon says what is wrong with it.
        let wrapper: Wrapper = serde_json::from_slice(&bytes).unwrap_or_default();
        ProofRequest {
            sector_number: wrapper.sector_number,
            sector_size: wrapper.sector_size,
            vanilla_proof: bytes,
            ..ProofRequest::new(ProofKind::Porep)
        }
    });
    of_request(request)
}

/// The parts of a wrapped C1 file that the message states as well.
#[derive(Deserialize, Default)]
struct Wrapper {
    #[serde(rename = "SectorNum", default)]
    sector_number: u64,
    #[serde(rename = "SectorSize", default)]
    sector_size: u64,
}

/// The contract's message for a request.
pub fn of_request(request: ProofRequest) -> rpc::SubmitProofRequest {
    let kind = match request.kind {
        ProofKind::Porep => rpc::ProofKind::PorepSealCommit,
        ProofKind::Update => rpc::ProofKind::SnapDealsUpdate,
        ProofKind::Window => rpc::ProofKind::WindowPostPartition,
        ProofKind::Winning => rpc::ProofKind::WinningPost,
    };
    rpc::SubmitProofRequest {
        request_id: String::new(),
        proof_kind: kind as i32,
        sector_size: request.sector_size,
        registered_proof: request.registered_proof,
        priority: 0,
        vanilla_proof: request.vanilla_proof,
        vanilla_proofs: request.vanilla_proofs,
        sector_number: request.sector_number,
        miner_id: request.miner_id,
        randomness: request.randomness,
        partition_index: request.partition_index,
        comm_r_old: request.comm_r_old,
        comm_r_new: request.comm_r_new,
        comm_d_new: request.comm_d_new,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_own_names() {
        assert_eq!(code_name(tonic::Code::AlreadyExists), "ALREADY_EXISTS");
        assert_eq!(code_name(tonic::Code::Unavailable), "UNAVAILABLE");
    }

    #[test]
    fn a_wrapped_c1_file_keeps_its_bytes_and_states_its_sector() {
        let bytes = br#"{"SectorNum": 7, "Phase1Out": "e30=", "SectorSize": 2048}"#.to_vec();
        let message = message(bytes.clone());
        assert_eq!(message.proof_kind, 1);
        assert_eq!((message.sector_number, message.sector_size), (7, 2048));
        assert_eq!(message.vanilla_proof, bytes);
    }
}
