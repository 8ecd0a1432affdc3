//! `cuzk serve`: the daemon. It listens, hands requests to the engine, tells what goes on, and stops in order.

mod convert;
mod deadline;
mod guard;
mod history;
mod http;
mod interest;
mod listen;
mod metrics;
mod notify;
mod report;
mod service;

use crate::config::{Budget, Config};
use crate::net::{Address, MESSAGE_LIMIT, with_sources};
use crate::rpc;
use crate::rpc::proving_engine_server::ProvingEngineServer;
use axum::{Router, middleware};
use cuzk_engine::{Engine, EngineConfig, EngineError};
use cuzk_filecoin::CircuitId;
use guard::{Guard, Token};
use history::History;
use interest::Interests;
use listen::{Incoming, Listener};
use notify::Notify;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinSet;
use tonic::service::Routes;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};
use tonic_health::server::HealthReporter;

/// Clients that say nothing for this long are asked whether they are there.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// How long after the last job answers may take to reach their clients.
const GOODBYE: Duration = Duration::from_secs(5);
/// Requests of one connection that are served at a time.
const STREAMS: u32 = 256;

/// Why the daemon did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A file of the configuration.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// An address cannot be listened on.
    #[error("listening on {address}: {source}")]
    Listen {
        /// Which one.
        address: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Certificates that cannot be used.
    #[error("daemon.tls: {0}")]
    Tls(String),
    /// The engine did not open.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The runtime or the signal handlers could not be set up.
    #[error("starting the daemon: {0}")]
    Start(std::io::Error),
    /// The reflection service could not be made.
    #[error("reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// A second signal came before running jobs had ended.
    #[error("ended by a second signal; unfinished jobs are in the journal")]
    Interrupted,
}

/// What the parts of the daemon share.
pub struct Shared {
    engine: Engine,
    runtime: Handle,
    history: History,
    interests: Interests,
    ready: AtomicBool,
    draining: AtomicBool,
    /// Becomes true when waiting calls are to end.
    stop: watch::Sender<bool>,
}

impl Shared {
    fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed) && !self.is_draining()
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }
}

/// Runs the daemon until it is told to stop. `params_dir` is the folder of the parameter files, `tell` gets
/// one line for each address once it listens.
///
/// # Errors
/// It could not start, or was stopped before its jobs had ended.
pub fn run(config: &Config, params_dir: &Path, tell: impl Fn(&str)) -> Result<(), ServeError> {
    // Connections need little; what may block has threads of its own.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("cuzk-serve")
        .enable_all()
        .build()
        .map_err(ServeError::Start)?;
    let outcome = runtime.block_on(serve(config, params_dir, tell));
    // Threads that are still at work are not waited for.
    runtime.shutdown_background();
    outcome
}

async fn serve(config: &Config, params_dir: &Path, tell: impl Fn(&str)) -> Result<(), ServeError> {
    let mut signals = Signals::new().map_err(ServeError::Start)?;
    let notify = Notify::from_environment();
    let doors = Doors::open(config).await?;
    let engine_config = engine_config(config, params_dir);
    let engine = tokio::task::spawn_blocking(move || Engine::open(engine_config))
        .await
        .map_err(|error| ServeError::Start(std::io::Error::other(error)))??;
    let shared = Arc::new(Shared {
        engine,
        runtime: Handle::current(),
        history: History::default(),
        interests: Interests::default(),
        ready: AtomicBool::new(false),
        draining: AtomicBool::new(false),
        stop: watch::Sender::new(false),
    });
    tokio::spawn(remember(shared.clone()));
    let names = doors.names.clone();
    let (mut servers, health) = doors.serve(&shared, config)?;
    for name in &names {
        tell(name);
    }
    let preload = tokio::spawn(preload(
        shared.clone(),
        circuits(config),
        health.clone(),
        notify,
    ));

    let stopped = tokio::select! {
        name = signals.next() => name,
        // Accept loops do not end by themselves.
        _ = servers.join_next() => "a listener's end",
    };
    preload.abort();
    tracing::warn!("{stopped}: draining, no more jobs are accepted");
    let notify = Notify::from_environment();
    notify.send("STOPPING=1\nSTATUS=draining");
    let drain = drain(&shared, config.daemon.drain_timeout.0, &health, &notify);
    tokio::select! {
        () = drain => {}
        _ = signals.next() => return Err(ServeError::Interrupted),
    }
    shared.stop.send_replace(true);
    tokio::select! {
        () = async { while servers.join_next().await.is_some() {} } => {}
        () = tokio::time::sleep(GOODBYE) => {}
        _ = signals.next() => return Err(ServeError::Interrupted),
    }
    Ok(())
}

/// SIGTERM and SIGINT.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// The listeners, bound, and what every request on them must show.
struct Doors {
    grpc: Vec<Listener>,
    http: Vec<Listener>,
    tls: Option<ServerTlsConfig>,
    token: Option<Arc<Token>>,
    names: Vec<String>,
}

impl Doors {
    async fn open(config: &Config) -> Result<Self, ServeError> {
        let daemon = &config.daemon;
        let token = match daemon.token_file.as_path() {
            path if path.as_os_str().is_empty() => None,
            path => Some(Arc::new(Token::read(path).map_err(file(path))?)),
        };
        let tls = tls(config)?;
        let grpc = bind(config, &daemon.listen).await?;
        let http = bind(config, &daemon.status_listen).await?;
        let name = |what: &str, listener: &Listener| format!("{what} on {}", listener.name());
        let names = grpc
            .iter()
            .map(|l| name("gRPC", l))
            .chain(http.iter().map(|l| name("HTTP", l)))
            .collect();
        Ok(Doors {
            grpc,
            http,
            tls,
            token,
            names,
        })
    }

    /// Starts a server on every listener; each ends after `shared.stop`.
    fn serve(
        self,
        shared: &Arc<Shared>,
        config: &Config,
    ) -> Result<(JoinSet<()>, HealthReporter), ServeError> {
        let (grpc_routes, health) = grpc_routes(shared)?;
        let transit = guard::transit(config.daemon.max_receiving.0);
        let limit = usize::try_from(config.daemon.max_connections).unwrap_or(usize::MAX);
        let mut servers = JoinSet::new();
        let all = self
            .grpc
            .into_iter()
            .map(|l| (l, true))
            .chain(self.http.into_iter().map(|l| (l, false)));
        for (listener, is_grpc) in all {
            // A unix socket's permissions say who may connect.
            let outside = !listener.is_unix();
            let guard = Guard::new(self.token.clone().filter(|_| outside), transit.clone());
            let routes = if is_grpc {
                let layer = middleware::from_fn_with_state(guard, guard::grpc);
                grpc_routes.clone().layer(layer)
            } else {
                http::routes(shared.clone(), guard)
            };
            let tls = self.tls.clone().filter(|_| outside);
            let incoming = listener.incoming(limit);
            let server = server(tls, !is_grpc)?;
            servers.spawn(serve_on(server, incoming, routes, shared.stop.subscribe()));
        }
        Ok((servers, health))
    }
}

async fn bind(config: &Config, addresses: &[Address]) -> Result<Vec<Listener>, ServeError> {
    let mut listeners = Vec::new();
    for address in addresses {
        let listener = Listener::bind(address, config.daemon.socket_mode)
            .await
            .map_err(|source| ServeError::Listen {
                address: address.to_string(),
                source,
            })?;
        listeners.push(listener);
    }
    Ok(listeners)
}

fn tls(config: &Config) -> Result<Option<ServerTlsConfig>, ServeError> {
    let files = &config.daemon.tls;
    if !files.is_on() {
        return Ok(None);
    }
    let read = |path: &Path| std::fs::read(path).map_err(file(path));
    let identity = Identity::from_pem(read(&files.certificate)?, read(&files.key)?);
    let mut tls = ServerTlsConfig::new().identity(identity);
    if !files.client_ca.as_os_str().is_empty() {
        tls = tls.client_ca_root(Certificate::from_pem(read(&files.client_ca)?));
    }
    Ok(Some(tls))
}

fn file(path: &Path) -> impl FnOnce(std::io::Error) -> ServeError + '_ {
    |source| ServeError::File {
        path: path.to_owned(),
        source,
    }
}

fn server(tls: Option<ServerTlsConfig>, http1: bool) -> Result<Server, ServeError> {
    let server = Server::builder()
        .accept_http1(http1)
        .max_concurrent_streams(STREAMS)
        .http2_keepalive_interval(Some(KEEPALIVE))
        // The default windows of 64 KiB would cost a large message one round trip each.
        .initial_stream_window_size(4 << 20)
        .initial_connection_window_size(16 << 20);
    match tls {
        Some(tls) => server
            .tls_config(tls)
            .map_err(|error| ServeError::Tls(with_sources(&error))),
        None => Ok(server),
    }
}

async fn serve_on(
    mut server: Server,
    incoming: Incoming,
    routes: Router,
    mut stop: watch::Receiver<bool>,
) {
    let stopped = async move {
        let _ = stop.wait_for(|stopping| *stopping).await;
    };
    let served = server
        .add_routes(Routes::from(routes))
        .serve_with_incoming_shutdown(incoming, stopped)
        .await;
    if let Err(error) = served {
        tracing::error!("a listener ended: {}", with_sources(&error));
    }
}

/// The proving service, reflection in both versions that clients ask for, and health.
fn grpc_routes(shared: &Arc<Shared>) -> Result<(Router, HealthReporter), ServeError> {
    let proving = ProvingEngineServer::new(service::Service::new(shared.clone()))
        .max_decoding_message_size(MESSAGE_LIMIT)
        .max_encoding_message_size(MESSAGE_LIMIT);
    let (health, health_service) = tonic_health::server::health_reporter();
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(rpc::DESCRIPTOR)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let mut routes = Routes::builder();
    routes
        .add_service(proving)
        .add_service(health_service)
        .add_service(reflection().build_v1()?)
        .add_service(reflection().build_v1alpha()?);
    Ok((routes.routes().into_axum_router(), health))
}

/// What the configuration means to the engine.
fn engine_config(config: &Config, params_dir: &Path) -> EngineConfig {
    let budget = |budget| match budget {
        Budget::Auto => cuzk_engine::Budget::Auto,
        Budget::Bytes(bytes) => cuzk_engine::Budget::Bytes(bytes),
    };
    let count = |count| usize::try_from(count).unwrap_or(usize::MAX);
    EngineConfig {
        // Checked when the configuration was read.
        device: config.devices.r#use.0.parse().unwrap_or_default(),
        state_dir: Some(config.store.directory.clone()),
        host_memory: budget(config.memory.host),
        device_memory: budget(config.memory.device),
        partitions_in_flight: count(config.pipeline.partitions_in_flight),
        synthesis_workers: count(config.pipeline.synthesis_workers),
        synthesised_ahead: count(config.pipeline.synthesised_ahead),
        queue: cuzk_engine::QueueLimits {
            jobs: count(config.queue.max_jobs),
            bytes: config.queue.max_bytes.0,
        },
        results: cuzk_engine::KeptResults {
            count: count(config.store.keep_results),
            age: config.store.keep_for.0,
            bytes: config.store.keep_bytes.0,
        },
        ageing: config.queue.ageing.0,
        // Loaded by the daemon, which says it is ready when that is done.
        preload: Vec::new(),
        compile_circuits: config.pipeline.compile_circuits,
        allow_test_parameters: config.params.allow_test,
        ..EngineConfig::new(params_dir)
    }
}

fn circuits(config: &Config) -> Vec<CircuitId> {
    let names = config.params.preload.iter();
    // Checked when the configuration was read.
    names.filter_map(|name| name.0.parse().ok()).collect()
}

/// Loads parameters, then says that the daemon is ready. Parameters that cannot be loaded do not keep it
/// from proving what needs others.
async fn preload(
    shared: Arc<Shared>,
    circuits: Vec<CircuitId>,
    health: HealthReporter,
    notify: Notify,
) {
    let started = tokio::time::Instant::now();
    tokio::spawn(watchdog(shared.clone()));
    health
        .set_not_serving::<ProvingEngineServer<service::Service>>()
        .await;
    for circuit in circuits {
        // systemd's patience with the start is renewed for each file.
        notify.send(&format!(
            "STATUS=loading the parameters of {circuit}\nEXTEND_TIMEOUT_USEC=600000000"
        ));
        match shared.engine.preload(circuit).await {
            Ok(loaded) => tracing::info!(
                "loaded the parameters of {circuit} in {:.1} s",
                loaded.load_time.as_secs_f64()
            ),
            Err(error) => tracing::error!("preload: {error}"),
        }
    }
    shared.ready.store(true, Ordering::Relaxed);
    health
        .set_serving::<ProvingEngineServer<service::Service>>()
        .await;
    notify.send("READY=1\nSTATUS=ready");
    tracing::info!("ready after {:.1} s", started.elapsed().as_secs_f64());
}

/// Tells systemd that the daemon lives: that its runtime runs and that the engine answers.
async fn watchdog(shared: Arc<Shared>) {
    let notify = Notify::from_environment();
    let Some(interval) = notify.watchdog_interval() else {
        return;
    };
    let mut ticks = tokio::time::interval(interval);
    loop {
        ticks.tick().await;
        let shared = shared.clone();
        let answered = tokio::task::spawn_blocking(move || drop(shared.engine.status()));
        if answered.await.is_ok() {
            notify.send("WATCHDOG=1");
        }
    }
}

/// Keeps the history of what the engine does.
async fn remember(shared: Arc<Shared>) {
    let mut events = shared.engine.subscribe();
    loop {
        match events.recv().await {
            Ok(event) => shared.history.record(&event),
            Err(broadcast::error::RecvError::Lagged(_)) => shared.history.missed_events(),
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

/// No new jobs; running ones end, or their time does.
async fn drain(shared: &Shared, limit: Duration, health: &HealthReporter, notify: &Notify) {
    shared.draining.store(true, Ordering::Relaxed);
    health
        .set_not_serving::<ProvingEngineServer<service::Service>>()
        .await;
    let patience = limit.saturating_add(GOODBYE).as_micros();
    notify.send(&format!("EXTEND_TIMEOUT_USEC={patience}"));
    let left = shared.engine.drain(limit).await;
    if left.checkpointed > 0 {
        tracing::warn!(
            "{} jobs have not ended; they are in the journal and run at the next start",
            left.checkpointed
        );
    }
    if left.lost > 0 {
        tracing::error!("{} jobs have not ended and are lost", left.lost);
    }
}
