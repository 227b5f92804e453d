//! The route of a session's requests to the OMS and of its reports back: a pair of lanes, or a socket.

use tickpath_clock::Calibration;
use tickpath_log::{LogPublishError, Next};
use tickpath_market::{ClientOrderId, ExecType, ExecutionReport, Kind, OrderDenied, Request};
use tickpath_oms_client::{Client, ClientEvent, ClientSendError};
use tickpath_oms_runtime::SessionLanes;
use zerocopy::FromBytes;

use crate::trade::lanes;
use tickpath_lab_harness::LabError;

pub(super) enum SessionRoute {
    Lanes(Box<SessionLanes>),
    Socket(Box<Client>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientReportKind {
    Pending,
    Venue,
    Denied,
}

impl SessionRoute {
    /// Joins the lanes of session 0, which the OMS has made.
    pub fn lanes(
        name: &str,
        request_bytes: usize,
        report_bytes: usize,
        calibration: &Calibration,
    ) -> Result<Self, LabError> {
        let joined = lanes(name, 1, request_bytes, report_bytes).join_session(0, calibration)?;
        Ok(Self::Lanes(Box::new(joined)))
    }

    /// Returns whether polling for reports is a system call.
    pub fn is_socket(&self) -> bool {
        matches!(self, Self::Socket(_))
    }

    /// Hands over a request first tried at `sent`; returns false if there is no room for it now. A request that may
    /// wait leaves with the next [`Self::flush`].
    pub fn send(&mut self, sent: u64, request: &Request, may_wait: bool) -> Result<bool, LabError> {
        match self {
            Self::Lanes(lanes) => match lanes.requests.publish(sent, request.kind().code(), request.as_bytes()) {
                Ok(_) => Ok(true),
                Err(LogPublishError::Full) => Ok(false),
                Err(e) => Err(LabError::Failed(format!("the OMS's lane: {e}"))),
            },
            Self::Socket(client) => {
                let given = if may_wait { client.enqueue(request, sent) } else { client.send_at(request, sent) };
                match given {
                    Ok(_) => Ok(true),
                    // The next poll of the reports returns the reason of a lost connection.
                    Err(ClientSendError::Full(_) | ClientSendError::Disconnected(_)) => Ok(false),
                    Err(e) => Err(LabError::Failed(e.to_string())),
                }
            }
        }
    }

    /// Sends the requests that wait.
    pub fn flush(&mut self) {
        if let Self::Socket(client) = self {
            client.flush();
        }
    }

    /// Takes reports: from a lane up to `limit`, from a socket those of a single read. Returns the number of reports,
    /// and the number that will never arrive.
    pub fn receive(
        &mut self,
        limit: usize,
        mut take: impl FnMut(ClientOrderId, ClientReportKind),
    ) -> Result<(usize, u64), LabError> {
        match self {
            Self::Lanes(lanes) => {
                let mut missed = 0;
                let received = lanes.reports.drain(limit, |next| match next {
                    Next::Message(message) if message.kind == Kind::OrderDenied.code() => {
                        if let Ok(report) = OrderDenied::read_from_bytes(message.payload) {
                            take(report.client_order_id, ClientReportKind::Denied);
                        }
                    }
                    Next::Message(message) => {
                        if let Ok(report) = ExecutionReport::read(message.kind, message.payload) {
                            take(report.client_order_id, kind_of(&report));
                        }
                    }
                    Next::Gap(gone) => missed += gone,
                    Next::Empty => {}
                });
                received.map(|count| (count, missed)).map_err(|e| LabError::Failed(format!("the report log: {e}")))
            }
            Self::Socket(client) => receive_socket(client, take),
        }
    }

    /// Sleeps until there may be reports, or for `ns`.
    pub fn sleep(&mut self, ns: u64) {
        match self {
            Self::Lanes(lanes) => lanes.reports.wait(tickpath_clock::Wait::Block, ns),
            Self::Socket(client) => client.wait(ns),
        }
    }

    /// Logs the session out.
    pub fn close(self) {
        if let Self::Socket(client) = self {
            client.close();
        }
    }
}

/// Takes and counts the reports of a single read, like [`SessionRoute::receive`].
pub(crate) fn receive_socket(
    client: &mut Client,
    mut take: impl FnMut(ClientOrderId, ClientReportKind),
) -> Result<(usize, u64), LabError> {
    let (mut received, mut missed, mut lost) = (0, 0, None);
    let session = client.welcome().session;
    let polled = client.poll(|event| match event {
        ClientEvent::Report { report, .. } => {
            received += 1;
            take(report.client_order_id, kind_of(&report));
        }
        ClientEvent::Denied { denial, .. } => {
            received += 1;
            take(denial.client_order_id, ClientReportKind::Denied);
        }
        ClientEvent::Gap { from, to } => missed += to - from,
        ClientEvent::Disconnected { why } => lost = Some(why),
        _ => {}
    });
    match lost.or(polled.err()) {
        Some(why) => Err(LabError::Failed(format!("session {session} was lost: {why}"))),
        None => Ok((received, missed)),
    }
}

fn kind_of(report: &ExecutionReport) -> ClientReportKind {
    if is_from_venue(report) { ClientReportKind::Venue } else { ClientReportKind::Pending }
}

/// Returns whether a report is the venue's; the OMS's own reports are pending states.
/// Returns whether a report says what the venue has done, and not only that the OMS has the order.
pub fn is_from_venue(report: &ExecutionReport) -> bool {
    match ExecType::from_code(report.exec_type) {
        Some(ExecType::PendingNew | ExecType::PendingCancel | ExecType::PendingReplace) | None => false,
        Some(_) => true,
    }
}
