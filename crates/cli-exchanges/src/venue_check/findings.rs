//! The findings of a check, as a table for people.

/// Columns of the names of checks and of the results.
const NAME_WIDTH: usize = 14;
const RESULT_WIDTH: usize = 9;

/// Result of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckResult {
    Good,
    Failed,
    /// The check needs another one that has failed, or a file that is not given.
    Skipped,
}

/// The findings so far, in their order.
#[derive(Debug, Default)]
pub struct CheckFindings {
    rows: Vec<(&'static str, CheckResult, String)>,
}

impl CheckFindings {
    /// Adds the result of a check, and returns its value if the check is good.
    pub fn add<T>(&mut self, name: &'static str, found: Result<(T, String), String>) -> Option<T> {
        let (value, result, detail) = match found {
            Ok((value, detail)) => (Some(value), CheckResult::Good, detail),
            Err(why) => (None, CheckResult::Failed, why),
        };
        self.rows.push((name, result, detail));
        value
    }

    /// Adds a check that was not made.
    pub fn skip(&mut self, name: &'static str, why: &str) {
        self.rows.push((name, CheckResult::Skipped, why.to_owned()));
    }

    /// Returns whether any check has failed.
    pub fn has_failure(&self) -> bool {
        self.rows.iter().any(|(_, result, _)| *result == CheckResult::Failed)
    }

    /// Returns the findings, one a line.
    pub fn table(&self) -> String {
        let mut text = format!("{:NAME_WIDTH$}{:RESULT_WIDTH$}detail\n", "check", "result");
        for (name, result, detail) in &self.rows {
            let result = match result {
                CheckResult::Good => "good",
                CheckResult::Failed => "failed",
                CheckResult::Skipped => "skipped",
            };
            text += &format!("{name:NAME_WIDTH$}{result:RESULT_WIDTH$}{detail}\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_is_a_line_and_one_failure_counts() {
        let mut findings = CheckFindings::default();
        assert_eq!(findings.add("clock", Ok((7, "it is right".to_owned()))), Some(7));
        findings.skip("table", "no --table");
        assert!(!findings.has_failure(), "a skipped check is no failure");
        assert_eq!(findings.add("order", Err::<((), String), _>("it was refused".to_owned())), None);
        let expected = "check         result   detail\n\
                        clock         good     it is right\n\
                        table         skipped  no --table\n\
                        order         failed   it was refused\n";
        assert_eq!((findings.table().as_str(), findings.has_failure()), (expected, true));
    }
}
