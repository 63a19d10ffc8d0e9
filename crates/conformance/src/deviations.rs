//! What Gatehook does otherwise on purpose: rules, each with its reason.

use std::path::Path;

use gatehook_events::Profile;
use serde::Deserialize;

use crate::actual::Actual;
use crate::expect::Difference;
use crate::vector::Vector;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deviations {
    deviation: Vec<Deviation>,
}

/// One rule. It excuses differences in `fields`, and in these alone, where everything else it names holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deviation {
    /// The rule of the engine's design that says so.
    pub(crate) rule: u8,
    /// Why.
    pub(crate) reason: String,
    /// What may differ.
    fields: Vec<String>,
    /// The profile it is about; every one if absent.
    profile: Option<String>,
    /// A hook ended like this, as in `nonzero_exit`.
    outcome: Option<String>,
    /// The vector records an accident of the reference.
    #[serde(default)]
    quirk: bool,
}

impl Deviations {
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The rule by which these differences are wanted, if they are.
    pub(crate) fn excuse(
        &self,
        vector: &Vector,
        profile: Profile,
        actual: &Actual,
        differences: &[Difference],
    ) -> Option<&Deviation> {
        let excused = |deviation: &&Deviation| {
            deviation.profile.as_deref().is_none_or(|name| name == profile.name())
                && deviation.outcome.as_ref().is_none_or(|outcome| actual.outcomes.contains(outcome))
                && (!deviation.quirk || vector.quirk)
                && differences.iter().all(|difference| deviation.fields.contains(&difference.key))
        };
        if differences.is_empty() {
            return None;
        }
        self.deviation.iter().find(excused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_deviation_says_why() {
        let deviations = Deviations::read(&Path::new(crate::FOLDER).join("deviations.toml")).unwrap();
        for deviation in deviations.deviation {
            assert!(!deviation.reason.is_empty() && (1..=10).contains(&deviation.rule), "{deviation:?}");
            assert!(deviation.quirk || deviation.outcome.is_some(), "too broad: {deviation:?}");
        }
    }
}
