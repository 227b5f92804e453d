//! The contract of a protocol on top of the server.

use tickpath_web_client::FrameArrival;

use crate::{ConnectionId, WebAnswer, WebRequest, WebSender};

/// The protocol of an exchange on top of the server.
pub trait WebService {
    /// Answers an HTTP request that asks for no WebSocket.
    fn http(&mut self, request: &WebRequest<'_>) -> WebAnswer;

    /// Accepts a WebSocket at the path of the request, or refuses it with an answer. An accepted connection is up when
    /// the call returns.
    fn upgrade(&mut self, id: ConnectionId, request: &WebRequest<'_>) -> Result<(), WebAnswer>;

    /// Learns when the request or the text message that follows has arrived.
    fn arrived(&mut self, _id: ConnectionId, _at: FrameArrival) {}

    /// Takes a text message.
    fn text(&mut self, id: ConnectionId, text: &str, out: &mut WebSender<'_>);

    /// Takes a binary message, which is ignored unless the service does otherwise.
    fn binary(&mut self, _id: ConnectionId, _bytes: &[u8], _out: &mut WebSender<'_>) {}

    /// Learns of a pong. Pings are answered by the server.
    fn pong(&mut self, _id: ConnectionId) {}

    /// Learns of the end of an accepted WebSocket, whichever side has ended it: once, and after its last message.
    fn closed(&mut self, id: ConnectionId);

    /// Does the work that no message causes, once in each poll of the server: timers and pushes. Returns its amount.
    fn turn(&mut self, out: &mut WebSender<'_>) -> usize;
}
