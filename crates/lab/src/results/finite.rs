//! Named numbers in JSON. JSON has neither infinity nor "not a number": such values are left out,
//! so that a file can always be read again.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serializer};

pub(super) fn serialize<S: Serializer>(
    numbers: &BTreeMap<String, f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(numbers.iter().filter(|(_, number)| number.is_finite()))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, f64>, D::Error> {
    let numbers = BTreeMap::<String, Option<f64>>::deserialize(deserializer)?;
    Ok(numbers.into_iter().filter_map(|(name, number)| Some((name, number?))).collect())
}
