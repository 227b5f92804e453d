//! The page of URLs: the schemes, ports and modes of every transport, and the options that its parser knows.

use tickpath_bus::{TRANSPORTS, connect};

use super::check_page;

/// Option that no transport has. The error about it lists the options of the scheme, before any server is asked.
const UNKNOWN: &str = "no-such-option";

const HEAD: &str = "\
# URLs

The URLs of topics and queues, transport by transport. [The bus](../bus.md#urls) describes what each option does, and
what the transports keep and promise. `env:NAME` or `@FILE` in place of a URL names the place of the whole URL.
";

#[test]
fn the_page_of_urls_has_every_transport_with_its_options() {
    let mut page = HEAD.to_owned();
    for transport in TRANSPORTS {
        let port = transport.port.map_or("none".to_owned(), |port| format!("`{port}`"));
        let modes: Vec<String> =
            transport.modes.iter().map(|mode| format!("`{}://…{mode}`", transport.schemes[0])).collect();
        let form = form(transport.schemes[0]).unwrap_or_else(|| transport.url_syntax.to_owned());
        page += &format!(
            "\n## {}\n\n```text\n{form}\n```\n\n* Default port: {port}\n* Modes: {}\n",
            transport.name,
            modes.join(", "),
        );
        page += "\n| scheme | options |\n|---|---|\n";
        for scheme in transport.schemes {
            page += &format!("| `{scheme}://` | {} |\n", options(scheme).join(", "));
        }
    }
    check_page("urls.md", &page);
}

/// Returns the options of a scheme.
fn options(scheme: &str) -> Vec<String> {
    let refusal = refusal(scheme);
    let listed =
        refusal.split_once(" is no option here: there are ").and_then(|(_, rest)| rest.split_once(", with '&'"));
    let Some((options, _)) = listed else { return vec!["none".to_owned()] };
    options.replace(" and ", ", ").split(", ").map(|option| format!("`{option}`")).collect()
}

/// Returns the form of a transport's URLs, as its errors give it.
fn form(scheme: &str) -> Option<String> {
    let refusal = refusal(scheme);
    let (_, known) = refusal.split_once(" is no option here")?;
    known.split_once("; use ").map(|(_, form)| form.to_owned())
}

fn refusal(scheme: &str) -> String {
    match connect(&format!("{scheme}://localhost?{UNKNOWN}")) {
        Err(refusal) => refusal.to_string(),
        Ok(_) => panic!("{scheme}:// has the option {UNKNOWN}"),
    }
}
