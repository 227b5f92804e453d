//! Advice on server settings that cost time or lose messages.

use std::collections::BTreeSet;

use tickpath_bus_api::{Advice, ServerDescription};

type SettingCheck = fn(&ServerDescription) -> Result<Advice, String>;

pub(crate) fn advise(about: &ServerDescription) -> Vec<Advice> {
    let checks: [SettingCheck; 7] = [snapshots, append_only, replicas, subscribers, memory, clients, slow_commands];
    let mut advised = Vec::new();
    let mut unknown = Vec::new();
    for check in checks {
        match check(about) {
            Ok(advice) => advised.push(advice),
            Err(why) if unknown.contains(&why) => {}
            Err(why) => unknown.push(why),
        }
    }
    advised.extend(rights(about));
    let others = unknown.into_iter().filter(|why| refused_command(why).is_none());
    advised.extend(others.map(|why| Advice::unknown("Redis setting", why)));
    advised
}

/// Returns advice on commands that the checks need and this user may not run.
fn rights(about: &ServerDescription) -> Option<Advice> {
    let refusals = about.settings.values().filter_map(|value| refused_command(value.as_ref().err()?));
    let commands: BTreeSet<&str> = refusals.collect();
    if commands.is_empty() {
        return None;
    }
    let each = |before: &str| commands.iter().map(|command| format!("{before}{command}")).collect::<Vec<_>>();
    let (named, added) = (each("").join(", "), each("+").join(" "));
    let why = format!("this user may not run {named}: `ACL SETUSER NAME {added}` lets it, or name another user");
    Some(Advice::unknown("Redis rights", why))
}

/// Returns the command that an access list denies to this user, if the server's text is such a refusal.
fn refused_command(why: &str) -> Option<&str> {
    why.split_once("NOPERM")?.1.split('\'').nth(1)
}

fn snapshots(about: &ServerDescription) -> Result<Advice, String> {
    let save = about.setting("save")?;
    if save.is_empty() {
        return Ok(Advice::good("Redis snapshots", "off"));
    }
    Ok(Advice::latency(
        "Redis snapshots",
        save,
        "a save forks: the server stalls for about 10 ms a gigabyte, and each page written meanwhile is copied. \
         PUBLISH stores no key: a server that only publishes never saves",
        "CONFIG SET save \"\" on a server that only carries messages",
    ))
}

fn append_only(about: &ServerDescription) -> Result<Advice, String> {
    let (is_on, sync) = (about.setting("appendonly")? == "yes", about.setting("appendfsync")?);
    Ok(match (is_on, sync) {
        (false, _) => Advice::safety(
            "Redis append-only file",
            "off",
            "lists and streams are gone after a crash, back to the last snapshot",
            "appendonly yes, or treat the server as a fan-out and keep a journal of your own",
        ),
        (true, "always") => Advice::latency(
            "Redis append-only file",
            "synchronised before each reply",
            "each write waits for the disk: 0.1 to 10 ms",
            "appendfsync everysec, if a second of messages may be lost in a power cut",
        ),
        (true, other) => Advice::safety(
            "Redis append-only file",
            format!("synchronised: {other}"),
            "a power cut loses up to a second of acknowledged writes, or more if the disk is slow",
            "appendfsync always where that must not be, at the price of the disk's time a write",
        ),
    })
}

fn replicas(about: &ServerDescription) -> Result<Advice, String> {
    Ok(match (about.setting("min-replicas-to-write")?, about.setting("connected_slaves")) {
        ("0", Ok("0")) => Advice::good("Redis required replicas", "none, and it has none"),
        ("0", _) => Advice::safety(
            "Redis required replicas",
            "none",
            "a server that is cut off from its replicas accepts writes, which are lost when it is demoted; so are \
             writes that the new master had not received",
            "min-replicas-to-write 1 and min-replicas-max-lag on servers with replicas: the loss is as long as the lag",
        ),
        (count, _) => Advice::good("Redis required replicas", count),
    })
}

fn subscribers(about: &ServerDescription) -> Result<Advice, String> {
    let limits = about.setting("client-output-buffer-limit")?;
    let tokens: Vec<&str> = limits.split_whitespace().collect();
    let pubsub = tokens.iter().position(|&word| word == "pubsub").and_then(|index| tokens.get(index + 1..index + 4));
    let Some(&[hard, soft, seconds]) = pubsub else {
        return Err("the server reports no limit for subscribers".to_owned());
    };
    if hard == "0" && soft == "0" {
        return Ok(Advice::good("Redis buffer of a subscriber", "without limit"));
    }
    Ok(Advice::safety(
        "Redis buffer of a subscriber",
        format!("{hard} bytes, or {soft} for {seconds} s"),
        "a subscriber that falls behind so far is disconnected, and what it had not read is gone without a count",
        "read faster, watch for reconnects, or raise client-output-buffer-limit pubsub",
    ))
}

fn memory(about: &ServerDescription) -> Result<Advice, String> {
    let (limit, policy) = (about.setting("maxmemory")?, about.setting("maxmemory-policy")?);
    Ok(match (limit, policy) {
        ("0", _) => Advice::safety(
            "Redis memory",
            "without limit",
            "a queue that is never emptied takes all memory, and the kernel kills the server",
            "maxmemory, with maxmemory-policy noeviction",
        ),
        (limit, "noeviction") => Advice::good("Redis memory", format!("{limit} bytes, nothing evicted")),
        (limit, policy) => Advice::safety(
            "Redis memory",
            format!("{limit} bytes, {policy}"),
            "a full server deletes keys, queues and streams among them, without a report",
            "maxmemory-policy noeviction",
        ),
    })
}

fn clients(about: &ServerDescription) -> Result<Advice, String> {
    let others = about.setting("connected_clients")?.parse::<u64>().unwrap_or(1).saturating_sub(1);
    if others == 0 {
        return Ok(Advice::good("Redis clients", "none but this one"));
    }
    Ok(Advice::latency(
        "Redis clients",
        format!("{others} others"),
        "it serves others: one thread runs all commands, so that a long one of theirs delays yours, and a benchmark \
         disturbs them",
        "a server of its own for messages of the path",
    ))
}

fn slow_commands(about: &ServerDescription) -> Result<Advice, String> {
    let slow = about.setting("slowlog-len")?.parse::<u64>().unwrap_or(0);
    if slow == 0 {
        return Ok(Advice::good("Redis slow commands", "none are noted"));
    }
    let limit = about.setting("slowlog-log-slower-than")?;
    Ok(Advice::latency(
        "Redis slow commands",
        format!("{slow} noted, slower than {limit} µs"),
        "all clients wait while one runs",
        "SLOWLOG GET lists them; split them, or move them to another server",
    ))
}

#[cfg(test)]
mod tests {
    use tickpath_bus_api::SettingCost;

    use super::*;

    /// Returns the advice of this name for a server that reports these settings and no others.
    fn advice_for(settings: &[(&'static str, &str)], name: &str) -> Advice {
        let settings = settings.iter().map(|&(name, value)| (name, Ok(value.to_owned()))).collect();
        let advised = advise(&ServerDescription { settings, ..ServerDescription::default() });
        advised.into_iter().find(|advice| advice.setting == name).unwrap_or_else(|| panic!("no advice is named {name}"))
    }

    #[test]
    fn missing_rights_are_advised_once_with_the_command_that_grants_them() {
        let refused = |command: &str| {
            Err(format!("refused: NOPERM this user has no permissions to run the '{command}' command; change it"))
        };
        let settings = [("save", "config|get"), ("maxmemory", "config|get"), ("slowlog-len", "slowlog|len")];
        let settings = settings.map(|(name, command)| (name, refused(command))).into();
        let advised = advise(&ServerDescription { settings, ..ServerDescription::default() });
        let found: Vec<_> = advised.iter().filter(|advice| advice.setting == "Redis rights").collect();
        let why = "this user may not run config|get, slowlog|len: `ACL SETUSER NAME +config|get +slowlog|len` lets \
                   it, or name another user";
        assert_eq!(found, [&Advice::unknown("Redis rights", why)]);
        assert!(!advised.iter().any(|advice| advice.value.as_ref().is_err_and(|why| why.contains("NOPERM"))));
    }

    #[test]
    fn settings_that_cost_latency_or_safety_are_advised_against() {
        const SAFETY: Option<bool> = Some(true);
        const LATENCY: Option<bool> = Some(false);
        let none: [(&str, &str); 0] = [];
        for (settings, name, cost, value) in [
            (&[("save", "")][..], "Redis snapshots", None, Ok("off")),
            (&[("save", "3600 1")], "Redis snapshots", LATENCY, Ok("3600 1")),
            (&[("appendonly", "no"), ("appendfsync", "always")], "Redis append-only file", SAFETY, Ok("off")),
            (
                &[("appendonly", "yes"), ("appendfsync", "always")],
                "Redis append-only file",
                LATENCY,
                Ok("synchronised before each reply"),
            ),
            (&[("min-replicas-to-write", "0")], "Redis required replicas", SAFETY, Ok("none")),
            (
                &[("min-replicas-to-write", "0"), ("connected_slaves", "0")],
                "Redis required replicas",
                None,
                Ok("none, and it has none"),
            ),
            (&[("min-replicas-to-write", "1")], "Redis required replicas", None, Ok("1")),
            (&[("maxmemory", "0"), ("maxmemory-policy", "noeviction")], "Redis memory", SAFETY, Ok("without limit")),
            (
                &[("client-output-buffer-limit", "normal 0 0 0 pubsub 0 0 0")],
                "Redis buffer of a subscriber",
                None,
                Ok("without limit"),
            ),
            (&[("connected_clients", "3")], "Redis clients", LATENCY, Ok("2 others")),
            (&none[..], "Redis setting", None, Err("'save' is not reported")),
        ] {
            let advice = advice_for(settings, name);
            let costs = advice.cost.map(|cost| matches!(cost, SettingCost::Safety { .. }));
            let found = advice.value.as_deref().map_err(String::as_str);
            assert_eq!((costs, found), (cost, value), "{settings:?}");
        }
    }
}
