//! States of a session.

/// State of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// There is no connection.
    Disconnected,
    /// An acceptor's connection exists; the initiator's Logon is expected.
    AwaitingLogon,
    /// An initiator has sent its Logon; the acceptor's is expected.
    LogonSent,
    /// Messages flow in both directions.
    LoggedOn,
    /// This side has sent a Logout; the peer's is expected.
    LogoutSent,
    /// The peer has sent a Logout above a gap, which is recovered before the Logout is answered.
    LogoutReceived,
    /// The caller is to close the connection. Whatever arrives is ignored.
    Closing,
}

impl SessionState {
    /// Returns whether the logon is complete and the connection is not to be closed yet.
    #[inline]
    pub fn is_established(self) -> bool {
        match self {
            Self::LoggedOn | Self::LogoutSent | Self::LogoutReceived => true,
            Self::Disconnected | Self::AwaitingLogon | Self::LogonSent | Self::Closing => false,
        }
    }
}
