//! TLS on the page's ports: the certificate from its files, and the encrypted stream of the HTTP server.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use rustls::{ServerConfig, ServerConnection};
use tickpath_oms_protocol::tls::{TlsStream, server_config};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::admin::lock;

/// Max reads per turn: a peer that sends endlessly lets other connections run.
const MAX_READS: u32 = 64;

/// The files of a certificate and its key, both PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageTlsFiles {
    /// The server's certificate, then the intermediate certificates up to an authority that browsers trust.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The certificate of the files, reloaded when they change.
pub(crate) struct PageCertificate {
    files: PageTlsFiles,
    state: Mutex<CertificateState>,
}

struct CertificateState {
    config: Arc<ServerConfig>,
    first: CertificateDer<'static>,
    /// The files' modification times: at the last load, and at the last check.
    read: PageFileStamps,
    seen: PageFileStamps,
}

type PageFileStamps = [Option<(SystemTime, u64)>; 2];

impl PageCertificate {
    /// Reads the files; the error is a sentence.
    pub fn read(files: &PageTlsFiles) -> Result<Self, String> {
        let read = file_stamps(files);
        let (config, first) = config(files)?;
        Ok(Self { files: files.clone(), state: Mutex::new(CertificateState { config, first, read, seen: read }) })
    }

    /// Encrypts a connection. Changed files are read again once they rest, because the two files are never written at
    /// the same moment; unusable files change nothing, and the error of the first try goes to the operator.
    pub fn secure(&self, tcp: TcpStream, notify: impl FnOnce(&str)) -> io::Result<PageStream> {
        let mut state = lock(&self.state);
        let now = file_stamps(&self.files);
        let rests = now == std::mem::replace(&mut state.seen, now);
        if rests && now != state.read {
            state.read = now;
            match config(&self.files) {
                Ok((config, first)) => (state.config, state.first) = (config, first),
                Err(why) => notify(&format!("the page keeps its previous certificate: {why}")),
            }
        }
        let tls = ServerConnection::new(state.config.clone()).map_err(io::Error::other)?;
        Ok(PageStream::Tls(Box::new(TlsStream::new(NonblockingSocket(tcp), tls))))
    }

    /// Returns true if the certificate is for this name.
    pub fn is_for(&self, name: &str) -> bool {
        let state = lock(&self.state);
        let (Ok(parsed), Ok(name)) = (ParsedCertificate::try_from(&state.first), ServerName::try_from(name)) else {
            return false;
        };
        verify_server_name(&parsed, &name).is_ok()
    }
}

/// Returns the TLS configuration and the first certificate of the files.
fn config(files: &PageTlsFiles) -> Result<(Arc<ServerConfig>, CertificateDer<'static>), String> {
    let PageTlsFiles { certificate, key } = files;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes(certificate)?).collect();
    let chain: Vec<CertificateDer<'static>> = chain.unwrap_or_default();
    let no_certificate = || format!("{}: there is no certificate in it; it must be a PEM file", certificate.display());
    let first = chain.first().cloned().ok_or_else(no_certificate)?;
    let no_key = |_| format!("{}: there is no private key in it; it must be a PEM file", key.display());
    let secret = PrivateKeyDer::from_pem_slice(&bytes(key)?).map_err(no_key)?;
    let config = server_config(chain, secret)
        .map_err(|e| format!("{}: {e}; name a certificate and a key that were made together", certificate.display()))?;
    Ok((Arc::new(config), first))
}

fn bytes(file: &Path) -> Result<Vec<u8>, String> {
    fs::read(file).map_err(|e| format!("{}: {e}; it must be a PEM file that the OMS may read", file.display()))
}

fn file_stamps(files: &PageTlsFiles) -> PageFileStamps {
    [&files.certificate, &files.key].map(|file| {
        let found = fs::metadata(file).ok()?;
        Some((found.modified().ok()?, found.len()))
    })
}

pub(crate) enum PageStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<NonblockingSocket>>),
}

/// A non-blocking socket: an operation that would have to wait returns [`ErrorKind::WouldBlock`].
pub(crate) struct NonblockingSocket(TcpStream);

impl Read for NonblockingSocket {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(room)
    }
}

impl Write for NonblockingSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsyncRead for PageStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let secure = match self.get_mut() {
            Self::Plain(tcp) => return Pin::new(tcp).poll_read(cx, room),
            Self::Tls(secure) => secure,
        };
        for _ in 0..MAX_READS {
            match secure.read(room.initialize_unfilled()) {
                Ok(bytes) => {
                    room.advance(bytes);
                    return Poll::Ready(Ok(()));
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    // A handshake writes while it reads.
                    if secure.wants_write() && secure.socket().0.poll_write_ready(cx)?.is_ready() {
                        secure.flush()?;
                    }
                    ready!(secure.socket().0.poll_read_ready(cx))?;
                }
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl AsyncWrite for PageStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let secure = match self.get_mut() {
            Self::Plain(tcp) => return Pin::new(tcp).poll_write(cx, bytes),
            Self::Tls(secure) => secure,
        };
        loop {
            match secure.write(bytes) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => ready!(secure.socket().0.poll_write_ready(cx))?,
                written => return Poll::Ready(written),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let secure = match self.get_mut() {
            Self::Plain(tcp) => return Pin::new(tcp).poll_flush(cx),
            Self::Tls(secure) => secure,
        };
        loop {
            secure.flush()?;
            if !secure.wants_write() {
                return Poll::Ready(Ok(()));
            }
            ready!(secure.socket().0.poll_write_ready(cx))?;
        }
    }

    /// Flushes TLS without shutting it down; the closing message is sent when the connection is dropped.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        if let Self::Plain(tcp) = stream {
            return Pin::new(tcp).poll_shutdown(cx);
        }
        Pin::new(stream).poll_flush(cx)
    }
}
