//! Filters of drop copies.
//!
//! ```toml
//! [[user]]
//! name = "backoffice"
//! role = "read"
//! accounts = ["7*"]
//! drop_copy = true
//! copy_users = ["anna"]     # of all users if not given
//! fills_only = true
//! ```

use std::collections::BTreeSet;

use tickpath_market::{AccountId, ExecType, ExecutionReport, Kind, OrderDenied, ReportDetail};
use tickpath_oms_runtime::history::SessionReport;
use tickpath_settings::Section;
use zerocopy::FromBytes;

use super::pattern::AccountPattern;

/// Filter of a drop copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopyFilter {
    /// Accounts whose orders are copied.
    pub accounts: Vec<AccountPattern>,
    /// Users whose sessions are copied; all users if there are none.
    pub users: Vec<String>,
    /// Whether only fills are copied, with their corrections and cancels.
    pub fills_only: bool,
}

/// Drop copy on a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyTopic {
    /// URL of the transport.
    pub url: String,
    /// Name of the topic.
    pub topic: String,
    /// Filter of the reports.
    pub filter: CopyFilter,
}

impl CopyTopic {
    /// Takes all drop copies of a file. Two on one topic would each take the other's messages for their own.
    pub(super) fn all_from(top: &mut Section<'_>) -> Vec<Self> {
        let mut places = BTreeSet::new();
        top.sections("drop_copy", |section| {
            let copy = Self::from_section(section);
            if !places.insert((copy.url.clone(), copy.topic.clone())) {
                let (url, topic) = (&copy.url, &copy.topic);
                section.add_mistake("topic", format!("'{topic}' at {url} is published already; name each topic once"));
            }
            copy
        })
    }

    fn from_section(section: &mut Section<'_>) -> Self {
        let (url, topic) = (section.require_text("url"), section.require_text("topic"));
        let is_good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !topic.chars().all(is_good) {
            section.add_mistake("topic", format!("'{topic}' is no topic's name; use letters, digits, '.', '_' or '-'"));
        }
        if !url.is_empty() && !url.contains("://") {
            section.add_mistake("url", format!("'{url}' names no transport; write it like nats://127.0.0.1:4222"));
        }
        section.require("accounts");
        let accounts = section.list("accounts").unwrap_or_default();
        Self { url, topic, filter: CopyFilter::from_section(section, accounts, "users") }
    }
}

/// Filter with its users resolved to their sessions.
#[derive(Debug, Clone)]
pub struct ResolvedCopyFilter {
    accounts: Vec<AccountPattern>,
    sessions: Option<BTreeSet<u16>>,
    fills_only: bool,
}

impl CopyFilter {
    /// Takes the filter of a drop copy for these accounts from a section.
    pub(super) fn from_section(section: &mut Section<'_>, accounts: Vec<AccountPattern>, users: &str) -> Self {
        let users = section.list(users).unwrap_or_default();
        Self { accounts, users, fills_only: section.flag("fills_only").unwrap_or(false) }
    }

    /// Resolves the filter to these sessions of its users; `None` stands for all sessions.
    pub(super) fn resolve(&self, sessions: Option<BTreeSet<u16>>) -> ResolvedCopyFilter {
        ResolvedCopyFilter { accounts: self.accounts.clone(), sessions, fills_only: self.fills_only }
    }
}

impl ResolvedCopyFilter {
    /// Returns whether the filter takes a report.
    pub fn matches(&self, report: &SessionReport<'_>) -> bool {
        if self.sessions.as_ref().is_some_and(|sessions| !sessions.contains(&report.session)) {
            return false;
        }
        match account(report, self.fills_only) {
            Some(account) => self.accounts.iter().any(|pattern| pattern.matches(account)),
            None => false,
        }
    }
}

/// Returns the account that a report or a detail is for; none if it is neither, or of no fill where only fills count.
fn account(report: &SessionReport<'_>, fills_only: bool) -> Option<AccountId> {
    if report.kind == Kind::ExecutionReport.code() {
        let (execution, _) = ExecutionReport::read_from_prefix(report.message).ok()?;
        let fills = [ExecType::Trade, ExecType::TradeCorrect, ExecType::TradeCancel].map(ExecType::code);
        return (!fills_only || fills.contains(&execution.exec_type)).then_some(execution.account);
    }
    if report.kind == Kind::ReportDetail.code() {
        let (detail, _) = ReportDetail::read_from_prefix(report.message).ok()?;
        return (!fills_only || detail.exec_id.0 != 0).then_some(report.account);
    }
    let (denied, _) = OrderDenied::read_from_prefix(report.message).ok()?;
    (!fills_only && report.kind == Kind::OrderDenied.code()).then_some(denied.account)
}
