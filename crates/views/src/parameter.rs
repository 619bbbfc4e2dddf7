//! Parameters of views: the values that requests may give.

use serde::Deserialize;

/// A value that is bound to a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing was given.
    Null,
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// A truth value.
    Boolean(bool),
}

/// The kinds of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Integer,
    Number,
    Text,
    Boolean,
}

/// Default characters of a text.
const LONGEST_TEXT: usize = 255;

/// A parameter in the file.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameter {
    #[serde(rename = "type")]
    kind: Kind,
    default: Option<toml::Value>,
    min: Option<f64>,
    max: Option<f64>,
    max_length: Option<usize>,
}

impl Parameter {
    /// Checks that the file's definition makes sense.
    pub(crate) fn check(&self) -> Result<(), String> {
        match &self.default {
            None => Ok(()),
            Some(_) => self.default().map(|_| ()),
        }
    }

    /// Its value when none is given.
    pub(crate) fn default(&self) -> Result<Value, String> {
        match (&self.default, self.kind) {
            (None, _) => Err("it is missing".to_owned()),
            (Some(toml::Value::Integer(number)), Kind::Integer) => {
                self.within(Value::Integer(*number))
            }
            (Some(toml::Value::Integer(number)), Kind::Number) => {
                self.within(Value::Number(*number as f64))
            }
            (Some(toml::Value::Float(number)), Kind::Number) => self.within(Value::Number(*number)),
            (Some(toml::Value::String(text)), Kind::Text) => self.within(Value::Text(text.clone())),
            (Some(toml::Value::Boolean(value)), Kind::Boolean) => Ok(Value::Boolean(*value)),
            _ => Err("its default is of another type".to_owned()),
        }
    }

    /// Its JSON Schema.
    pub(crate) fn schema(&self) -> serde_json::Value {
        use serde_json::json;
        let mut schema = match self.kind {
            Kind::Integer => json!({"type": "integer", "minimum": i64::MIN, "maximum": i64::MAX}),
            Kind::Number => json!({"type": "number"}),
            Kind::Text => {
                let longest = self.max_length.unwrap_or(LONGEST_TEXT);
                json!({"type": "string", "maxLength": longest, "pattern": "^[^\\u0000]*$"})
            }
            Kind::Boolean => json!({"type": "boolean"}),
        };
        for (name, bound) in [("minimum", self.min), ("maximum", self.max)] {
            match (bound, self.kind) {
                (Some(bound), Kind::Integer) => schema[name] = json!(bound as i64),
                (Some(bound), Kind::Number) => schema[name] = json!(bound),
                _ => {}
            }
        }
        match self.default() {
            Ok(Value::Integer(number)) => schema["default"] = json!(number),
            Ok(Value::Number(number)) => schema["default"] = json!(number),
            Ok(Value::Text(text)) => schema["default"] = json!(text),
            Ok(Value::Boolean(value)) => schema["default"] = json!(value),
            Ok(Value::Null) | Err(_) => {}
        }
        schema
    }

    /// Reads it from the text of an address.
    pub(crate) fn read(&self, text: &str) -> Result<Value, String> {
        let value = match self.kind {
            Kind::Integer => Value::Integer(text.parse().map_err(|_| "it is a whole number")?),
            Kind::Number => {
                let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
                Value::Number(number.ok_or("it is a number")?)
            }
            Kind::Text => Value::Text(text.to_owned()),
            Kind::Boolean => match text {
                "true" => Value::Boolean(true),
                "false" => Value::Boolean(false),
                _ => return Err("it is true or false".to_owned()),
            },
        };
        self.within(value)
    }

    /// Reads it from JSON.
    pub(crate) fn read_json(&self, value: &serde_json::Value) -> Result<Value, String> {
        use serde_json::Value as Json;
        let value = match (self.kind, value) {
            (Kind::Integer, Json::Number(number)) => {
                Value::Integer(number.as_i64().ok_or("it is a whole number")?)
            }
            (Kind::Number, Json::Number(number)) => {
                Value::Number(number.as_f64().ok_or("it is a number")?)
            }
            (Kind::Text, Json::String(text)) => Value::Text(text.clone()),
            (Kind::Boolean, Json::Bool(value)) => Value::Boolean(*value),
            _ => return Err("it is of another type".to_owned()),
        };
        self.within(value)
    }

    fn within(&self, value: Value) -> Result<Value, String> {
        let number = match &value {
            Value::Integer(number) => Some(*number as f64),
            Value::Number(number) => Some(*number),
            _ => None,
        };
        let is_outside = |number| {
            self.min.is_some_and(|min| number < min) || self.max.is_some_and(|max| number > max)
        };
        if number.is_some_and(is_outside) {
            return Err("it is out of range".to_owned());
        }
        if let Value::Text(text) = &value {
            let longest = self.max_length.unwrap_or(LONGEST_TEXT);
            if text.chars().nth(longest).is_some() {
                return Err("it is too long".to_owned());
            }
            if text.contains('\0') {
                return Err("it has a zero byte".to_owned());
            }
        }
        Ok(value)
    }
}
