//! The reasons for which two results cannot be compared.

/// The reason for which two results cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// The results are of two different benches.
    #[error("OLD measured the workload '{old}', NEW '{new}'; compare results of the same bench")]
    Workloads {
        /// The workload of OLD.
        old: String,
        /// The workload of NEW.
        new: String,
    },
    /// The two results have no setting in common.
    #[error("nothing in common: OLD ran {old}, NEW ran {new}; run the same bench with both")]
    NothingInCommon {
        /// A setting of OLD.
        old: String,
        /// A setting of NEW.
        new: String,
    },
    /// No setting in common was valid on both sides.
    #[error("nothing that is valid on both sides can be compared ({why}); measure again on a calmer machine")]
    NothingValid {
        /// The number of runs left out.
        why: String,
        /// Losses of the new side, in sentences: the likely reason.
        losses: Vec<String>,
    },
}
