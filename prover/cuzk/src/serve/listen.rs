//! Listeners: TCP and unix sockets, with a bound on connections.

use crate::config::SocketMode;
use crate::net::Address;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::Stream;
use tonic::transport::server::{Connected, TcpConnectInfo};

/// A bound address that accepts connections.
pub struct Listener {
    socket: Socket,
    name: String,
}

enum Socket {
    Tcp(TcpListener),
    Unix {
        listener: UnixListener,
        _file: RemovedOnDrop,
    },
}

/// A socket file that goes when the daemon does.
struct RemovedOnDrop(PathBuf);

impl Drop for RemovedOnDrop {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Listener {
    /// Binds an address. A unix socket that a killed daemon left behind is replaced, a live one is not.
    ///
    /// # Errors
    /// The address is taken or cannot be used.
    pub async fn bind(address: &Address, mode: SocketMode) -> io::Result<Self> {
        let socket = match address {
            Address::Tcp(address) => Socket::Tcp(TcpListener::bind(address).await?),
            Address::Unix(path) => {
                remove_stale(path).await?;
                let listener = UnixListener::bind(path)?;
                let file = RemovedOnDrop(path.clone());
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode.0))?;
                Socket::Unix {
                    listener,
                    _file: file,
                }
            }
        };
        // The port that the system chose, where 0 was asked for.
        let name = match &socket {
            Socket::Tcp(listener) => listener.local_addr()?.to_string(),
            Socket::Unix { .. } => address.to_string(),
        };
        Ok(Listener { socket, name })
    }

    /// The address as clients write it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is a unix socket, whose file permissions say who may connect.
    pub fn is_unix(&self) -> bool {
        matches!(self.socket, Socket::Unix { .. })
    }

    /// Accepts connections, at most `limit` at a time; the stream's end closes the listener.
    pub fn incoming(self, limit: usize) -> Incoming {
        let (connections, accepted) = mpsc::channel(1);
        let permits = Arc::new(Semaphore::new(limit));
        let task = tokio::spawn(async move {
            while let Ok(permit) = permits.clone().acquire_owned().await {
                let connection = match self.accept().await {
                    Ok(io) => Connection {
                        io,
                        _permit: permit,
                    },
                    Err(error) => {
                        // Out of file descriptors, or the peer has gone already.
                        tracing::warn!("{}: {error}", self.name);
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                };
                if connections.send(Ok(connection)).await.is_err() {
                    return;
                }
            }
        });
        Incoming { accepted, task }
    }

    async fn accept(&self) -> io::Result<Io> {
        match &self.socket {
            Socket::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Io::Tcp(stream))
            }
            Socket::Unix { listener, .. } => Ok(Io::Unix(listener.accept().await?.0)),
        }
    }
}

async fn remove_stale(path: &Path) -> io::Result<()> {
    match UnixStream::connect(path).await {
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another process listens on this socket",
        )),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        // Not there, or not ours to judge: binding says what is wrong.
        Err(_) => Ok(()),
    }
}

/// The connections of a listener.
pub struct Incoming {
    accepted: mpsc::Receiver<io::Result<Connection>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Stream for Incoming {
    type Item = io::Result<Connection>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.accepted.poll_recv(cx)
    }
}

/// A connection; the next one is accepted when it ends, if there were as many as may be.
pub struct Connection {
    io: Io,
    _permit: OwnedSemaphorePermit,
}

enum Io {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        match &self.io {
            Io::Tcp(stream) => stream.connect_info(),
            Io::Unix(_) => TcpConnectInfo {
                local_addr: None,
                remote_addr: None,
            },
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Io::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.io {
            Io::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Io::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Io::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Io::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.io {
            Io::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            Io::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}
