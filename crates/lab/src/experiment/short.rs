//! TEMPORARY
use crate::load::{Operation, Size};
pub(crate) struct Mix(pub Vec<Operation>);
pub(crate) struct Sizes(pub Vec<Size>);
impl std::str::FromStr for Mix {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').map(|part| {
            let (name, weight) = part.split_once(':').unwrap_or((part, "1"));
            let w = match name { "get" => vec!["GET", "__key__"], "set" => vec!["SET","__key__","__data__"], "ping"=>vec!["PING"], _=>return Err(format!("no {name}")) };
            Ok(Operation{name: name.to_uppercase(), weight: weight.parse().map_err(|_|"w".to_owned())?, arguments: w.into_iter().map(str::to_owned).collect()})
        }).collect::<Result<Vec<_>,_>>().map(Mix)
    }
}
impl std::str::FromStr for Sizes {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Sizes(vec![Size{bytes: text.parse().map_err(|_|"size".to_owned())?, weight:1.0}]))
    }
}
impl std::str::FromStr for crate::load::Keys {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Ok(crate::load::Keys::Uniform{count: text.rsplit(':').next().unwrap_or("1").parse().map_err(|_|"keys".to_owned())?})
    }
}
