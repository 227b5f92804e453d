//! Pages on a phone: nothing is wider than the screen, except elements that scroll by themselves.

use serde_json::json;
use tempfile::tempdir;

use crate::chromium::Browser;
use crate::program::tickpath;
use crate::reports::text;

/// Columns of the screen, in the page's own pixels.
const WIDTH: u32 = 390;

/// Script that lists elements beyond the right edge, outside of scrolling boxes.
const OUTSIDE: &str = "[...document.querySelectorAll('body *')].filter(one => !one.closest('.scroll') \
    && one.getBoundingClientRect().right > innerWidth + 1).map(one => one.outerHTML.slice(0, 80)).join('\\n')";

#[test]
fn no_part_of_a_page_is_cut_off_on_a_phone() {
    let folder = tempdir().expect("a temporary folder can be made");
    for (name, call) in [
        ("host", "host --duration 0.1"),
        ("pubsub", "pubsub --target shm:// --count 2000 --size 64,128 --rate 20000 --wait block --repeat 2"),
        ("path", "path --count 500 --rate 1000 --wait block"),
        ("orders", "orders --count 100 --wait block"),
    ] {
        let page = folder.path().join(format!("{name}.html"));
        let ran = tickpath(&format!("bench {call} --quiet --html {}", text(&page)));
        assert!(matches!(ran.code, Some(0 | 3)), "{call}: {}", ran.err);
        let mut browser = Browser::open(folder.path(), &format!("file://{}", text(&page)));
        let phone = json!({ "width": WIDTH, "height": 844, "deviceScaleFactor": 2, "mobile": true });
        browser.call("Emulation.setDeviceMetricsOverride", &phone);
        browser.await_truth("document.readyState === 'complete'");
        browser.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)");
        assert_eq!(browser.evaluate(OUTSIDE), json!(""), "{name}");
        assert_eq!(browser.evaluate("document.documentElement.scrollWidth"), json!(WIDTH), "{name}");
    }
}
