//! Why two results cannot be compared.

/// Why two results cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// They are results of two benches.
    #[error("OLD measured the workload '{old}', NEW '{new}'; compare results of the same bench")]
    Workloads {
        /// The one of OLD.
        old: String,
        /// The one of NEW.
        new: String,
    },
    /// No run of the one is of a setting that the other ran.
    #[error("nothing in common: OLD ran {old}, NEW ran {new}; run the same bench with both")]
    NothingInCommon {
        /// A setting of OLD.
        old: String,
        /// A setting of NEW.
        new: String,
    },
    /// What they have in common was not valid on both sides.
    #[error("nothing that is valid on both sides can be compared ({why}); measure again on a calmer machine")]
    NothingValid {
        /// How much was left out.
        why: String,
        /// What the new side lost, in sentences; that may be the reason.
        losses: Vec<String>,
    },
}
