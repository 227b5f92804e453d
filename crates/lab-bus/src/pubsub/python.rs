//! Both ends in Python: by the package `tickpath` over any transport of its bus, or by redis-py over a Redis channel.

use std::rc::Rc;

use serde::Serialize;

use super::client::{ClientEntry, ForeignClient, channel_url};
use super::role::{PublisherRole, SubscriberRole, topic_config};
use tickpath_lab_harness::{Child, Lab, LabError};
use tickpath_lab_result::Run;
use tickpath_lab_tools::python::Python;
use tickpath_lab_tools::scripts::{Library, RECONNECTS};

/// The script of both ends, and one module per library.
const PUBSUB: (&str, &str) = ("pubsub.py", include_str!("../python/pubsub.py"));
const TICKPATH_MODULE: (&str, &str) = ("pubsub_tickpath.py", include_str!("../python/pubsub_tickpath.py"));
const REDIS_PY_MODULE: (&str, &str) = ("pubsub_redis_py.py", include_str!("../python/pubsub_redis_py.py"));

pub(super) const PYTHON: ClientEntry = ClientEntry {
    name: Library::Tickpath.client(),
    check_target: |_| Ok(()),
    prepare: |lab| prepare(lab, Library::Tickpath),
};

pub(super) const REDIS_PY: ClientEntry = ClientEntry {
    name: Library::RedisPy.client(),
    check_target: |target| url(Library::RedisPy, target).map(|_| ()),
    prepare: |lab| prepare(lab, Library::RedisPy),
};

/// The scripts of both ends, and their Python.
#[derive(Debug)]
struct PubsubScripts {
    library: Library,
    python: Python,
}

#[derive(Serialize)]
struct PubsubScriptSettings<R> {
    role: &'static str,
    /// The module that carries the end's messages.
    library: &'static str,
    /// The topic's capacity in bytes.
    capacity: Option<usize>,
    #[serde(flatten)]
    settings: R,
}

fn prepare(lab: &Lab<'_>, library: Library) -> Result<Rc<dyn ForeignClient>, LabError> {
    Ok(Rc::new(PubsubScripts { library, python: library.python(lab)? }))
}

/// Returns a target in the library's form.
fn url(library: Library, target: &str) -> Result<String, LabError> {
    match library {
        Library::Tickpath => Ok(target.to_owned()),
        Library::RedisPy => channel_url(library.client(), target),
    }
}

impl PubsubScripts {
    fn spawn<R: Serialize>(
        &self,
        lab: &Lab<'_>,
        role: &'static str,
        capacity: Option<usize>,
        settings: R,
    ) -> Result<Child, LabError> {
        let by = match self.library {
            Library::Tickpath => TICKPATH_MODULE,
            Library::RedisPy => REDIS_PY_MODULE,
        };
        let script_settings = PubsubScriptSettings { role, library: by.0.trim_end_matches(".py"), capacity, settings };
        self.python.spawn(lab, role, &[PUBSUB, by, RECONNECTS], &script_settings)
    }
}

impl ForeignClient for PubsubScripts {
    fn name(&self) -> &'static str {
        self.library.client()
    }

    fn supports_wait_modes(&self) -> bool {
        self.library == Library::Tickpath
    }

    fn publisher(&self, lab: &Lab<'_>, role: &PublisherRole) -> Result<Child, LabError> {
        let capacity = topic_config(&role.policy, role.size)?.capacity_bytes;
        let role = PublisherRole { target: url(self.library, &role.target)?, ..role.clone() };
        self.spawn(lab, "publisher", Some(capacity), role)
    }

    fn subscriber(&self, lab: &Lab<'_>, role: &SubscriberRole) -> Result<Child, LabError> {
        let role = SubscriberRole { target: url(self.library, &role.target)?, ..role.clone() };
        self.spawn(lab, "subscriber", None, role)
    }

    fn describe_client(&self, run: &mut Run) {
        self.library.describe_client(&self.python, run);
    }
}
