//! `tickpath drop-copy`: what an OMS tells others, a line each, by the session of a user with `drop_copy = true`.

use std::io::Write;

use anyhow::bail;
use clap::Args;
use tickpath_client::{CopiedReport, Event, Since};
use tickpath_server::settings::Users;

use crate::args::Usage;
use crate::order::Whom;
use crate::orders::{denial_line, report_line};
use crate::outcome::Outcome;

/// The longest sleep between two looks, in nanoseconds.
const WAIT_NS: u64 = 50_000_000;

#[derive(Debug, Clone, Args)]
pub struct DropCopy {
    #[command(flatten)]
    pub whom: Whom,
    /// Begin with the first of the day
    #[arg(long)]
    pub all: bool,
    /// End after so many reports
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
}

pub fn run(args: &DropCopy) -> anyhow::Result<Outcome> {
    let settings = args.whom.known();
    let users_file = settings.users_file.display();
    // Such a session would hear nothing of others, and wait for it. Here it need not come to one.
    if let Ok(users) = Users::read(&settings.users_file)
        && users.find(&args.whom.user).is_some_and(|user| user.drop_copy.is_none())
    {
        bail!(deaf(&args.whom.user, &users_file.to_string()));
    }
    let mut client = args.whom.connect_to_copy(&settings, if args.all { Since::Start } else { Since::Now })?;
    // An older OMS gives a session to who wanted none.
    if client.welcome().has_drop_copy() == Some(false) {
        client.close();
        bail!(deaf(&args.whom.user, &format!("{users_file} where the OMS is")));
    }
    crate::print::note("what others are told, by its place, until Ctrl-C:");
    let (mut out, mut ended, mut left) = (std::io::stdout().lock(), None, args.count.unwrap_or(u64::MAX));
    loop {
        let mut text = String::new();
        client.wait(WAIT_NS);
        client.poll(|event| match event {
            Event::Copied { number, session, report, .. } if left > 0 => {
                left -= 1;
                let line = match &report {
                    CopiedReport::Report(report) => report_line(session, report),
                    CopiedReport::Denied(denied) => denial_line(session, denied),
                };
                text.push_str(&format!("{number} {line}"));
            }
            Event::Gap { from, to } => text.push_str(&format!("{from} to {to} are gone\n")),
            Event::Disconnected { why } => ended = Some(why),
            _ => {}
        })?;
        // Whoever closed our output has read enough of it.
        let is_closed = !text.is_empty() && out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err();
        if is_closed || left == 0 {
            client.close();
            return Ok(Outcome::Good);
        }
        if let Some(why) = ended {
            return Err(why.into());
        }
    }
}

fn deaf(user: &str, file: &str) -> Usage {
    Usage(format!("'{user}' hears nothing of others; name a user by --user that has drop_copy = true in {file}"))
}
