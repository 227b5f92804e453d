//! Validation of a venue's report, and the part of it that is passed on to the client.

use tickpath_market::{ExecType, ExecutionReport, OrdStatus, Price, Quantity};
use tickpath_oms_core::{At, Output, ReportRecord};

use super::order_log::{LogEvent, OrderLog, Phase};
use super::{MAX_VALUE, Naive, note_result};

impl Naive {
    pub fn report(&mut self, at: At, record: ReportRecord) -> Vec<Output> {
        let report = record.report;
        let Some(what) = ExecType::from_code(report.exec_type).filter(|_| is_possible(&report)) else {
            self.alarms.malformed += 1;
            return Vec::new();
        };
        let life = self.lives.get(&report.order_id.0).filter(|life| life.sum.phase != Phase::Denied);
        let Some(life) = life else {
            self.alarms.unknown_order_reports += u64::from(!report.ends_status_answer());
            return Vec::new();
        };
        if !agrees(life, what, &record) {
            self.alarms.mismatched += 1;
            return Vec::new();
        }
        let is_lost = report.status == OrdStatus::Unknown.code();
        let id = life.id;
        let outputs = match what {
            ExecType::PendingNew | ExecType::PendingCancel | ExecType::PendingReplace if !is_lost => Vec::new(),
            ExecType::Triggered if !is_lost => Vec::new(),
            ExecType::OrderStatus if !is_lost => self.venue_answers(at, id, report),
            _ => self.event(at, id, what, report),
        };
        let has_report = outputs.iter().any(|output| matches!(output, Output::Report { .. }));
        self.alarms.duplicates += u64::from(!has_report);
        outputs
    }

    fn venue_answers(&mut self, at: At, id: u64, report: ExecutionReport) -> Vec<Output> {
        let may_not_have_fired = self.may_not_have_fired(id, &report);
        let life = self.lives.get_mut(&id).unwrap();
        let (before, was_doubted) = (life.sum.seen(), life.sum.doubted);
        let is_since = report.client_order_id.0 >= self.doubts.get(&life.venue).copied().unwrap_or(0);
        if may_not_have_fired && !is_since {
            return Vec::new();
        }
        let has_effect =
            life.record(if may_not_have_fired { LogEvent::ArmedAgain } else { LogEvent::Answer(report, is_since) });
        if has_effect && !may_not_have_fired {
            self.waits.remove(&id);
        }
        if !has_effect && life.sum.is_unknown() && was_doubted && !life.sum.doubted {
            return self.question(at, id);
        }
        if life.sum.seen() == before {
            return Vec::new();
        }
        vec![Output::Report {
            session: life.session,
            report: passed_on(life, life.new.client_order_id.0, report, false),
        }]
    }

    fn event(&mut self, at: At, id: u64, what: ExecType, report: ExecutionReport) -> Vec<Output> {
        let numbered = self.rules(self.lives[&id].venue).numbered != 0;
        let life = self.lives.get_mut(&id).unwrap();
        let before = life.sum.clone();
        if !life.record(LogEvent::Report(report, numbered)) {
            return Vec::new();
        }
        if report.status != OrdStatus::Unknown.code() {
            self.waits.remove(&id);
        }
        let after = &life.sum;
        let is_gapped = after.highest > 0 && !after.is_complete() && after.is_live();
        if is_gapped && self.gaps.iter().all(|&(order, _)| order != id) {
            self.gaps.push((id, at.stamp));
        }
        let fills = before.fills != after.fills;
        if !fills && before.seen() == after.seen() {
            return Vec::new();
        }
        let contract = self.contracts.get(&life.new.symbol.0).copied().unwrap_or_default();
        let value = i128::from(report.last_price.0).abs() * (after.net - before.net);
        let traded = self.traded.entry(life.new.account.0).or_default();
        *traded += contract.value(value).clamp(-MAX_VALUE, MAX_VALUE);
        *self.fills.entry(life.new.account.0).or_default() += u64::from(after.net > before.net);
        note_result(&mut self.results, &life.new, after.net - before.net, report.last_price.0);
        let is_lost = report.status == OrdStatus::Unknown.code();
        let is_new_doubt = after.phase == Phase::Unknown && before.phase != Phase::Unknown;
        self.alarms.contradictions += u64::from(is_new_doubt && !is_lost);
        let is_complete = fills && after.adds_up() && !before.adds_up();
        let asks = after.is_unknown() && (after.phase != before.phase || is_complete);
        let client = [before.cancel, before.replace].into_iter().flatten().find(|a| a.id == report.client_order_id.0);
        let client = client.filter(|asked| asked.by == life.session);
        let client = client.map_or(life.new.client_order_id.0, |asked| asked.client);
        let shows_fill = !is_lost && matches!(what, ExecType::Trade | ExecType::TradeCorrect | ExecType::TradeCancel);
        let output = Output::Report { session: life.session, report: passed_on(life, client, report, shows_fill) };
        let mut outputs = if asks { self.question(at, id) } else { Vec::new() };
        outputs.push(output);
        outputs
    }
}

pub fn is_possible(report: &ExecutionReport) -> bool {
    let is_fill = matches!(
        ExecType::from_code(report.exec_type),
        Some(ExecType::Trade | ExecType::TradeCorrect | ExecType::TradeCancel)
    );
    match OrdStatus::from_code(report.status) {
        None => false,
        Some(OrdStatus::Unknown) => true,
        Some(_) if report.cumulative_quantity.0 < 0 || report.leaves_quantity.0 < 0 => false,
        Some(_) => !is_fill || (report.exec_id.0 != 0 && report.last_quantity.0 > 0),
    }
}

pub fn agrees(life: &OrderLog, what: ExecType, record: &ReportRecord) -> bool {
    let report = &record.report;
    let is_unknown = report.status == OrdStatus::Unknown.code();
    let may_leave_side = what == ExecType::OrderStatus || (what == ExecType::CancelRejected && !is_unknown);
    (report.side == life.new.side || (may_leave_side && report.side == 0))
        && (report.symbol, report.account) == (life.new.symbol, life.new.account)
        && report.venue.0 == life.venue
        && record.source.0 == life.venue
}

pub fn passed_on(life: &OrderLog, client: u64, report: ExecutionReport, shows_fill: bool) -> ExecutionReport {
    ExecutionReport {
        exec_id: report.exec_id,
        venue_sequence: report.venue_sequence,
        last_price: if shows_fill { report.last_price } else { Price(0) },
        last_quantity: if shows_fill { report.last_quantity } else { Quantity(0) },
        venue_stamp: report.venue_stamp,
        reason: report.reason,
        venue: report.venue,
        exec_type: report.exec_type,
        ..life.report_to(client)
    }
}
