//! The description of all addresses for programs: `/v1/openapi.json`.
//!
//! Most of it is a file. The parts that depend on the server are added: the number of databases,
//! whether there is a password, and the views with their parameters.

use std::sync::LazyLock;

use config::Config;
use serde_json::{Map, Value, json};
use views::{View, Views};

/// The file, read once. Its member `x-view` is the template for each view.
static FILE: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("openapi.json")).unwrap_or_default());

/// The addresses that need no password even if one is set.
const OPEN: [&str; 3] = ["/healthz", "/readyz", "/health"];

/// The description, as this server is set up.
pub(super) fn description(config: &Config, is_open: bool, views: &Views) -> Vec<u8> {
    let mut all = FILE.clone();
    let template = all.as_object_mut().and_then(|own| own.remove("x-view")).unwrap_or_default();
    all["components"]["parameters"]["db"]["schema"]["maximum"] = json!(config.databases - 1);
    all["security"] = match is_open {
        true => json!([]),
        false => json!([{"bearer": []}, {"basic": []}]),
    };
    for path in OPEN {
        all["paths"][path]["get"]["security"] = json!([]);
    }
    if let Some(paths) = all["paths"].as_object_mut() {
        for (name, view) in &views.views {
            paths.insert(format!("/v1/views/{name}"), described(name, view, &template));
        }
    }
    // Text of a value is always JSON.
    serde_json::to_vec(&all).unwrap_or_default()
}

/// The requests for a view.
fn described(name: &str, view: &View, template: &Value) -> Value {
    let mut own = template.clone();
    for (method, verb) in [("get", "get"), ("post", "write"), ("delete", "forget")] {
        own[method]["operationId"] = json!(format!("{verb}-{name}"));
    }
    if let Some(parameters) = own["get"]["parameters"].as_array_mut() {
        for (name, schema) in view.parameters() {
            let required = schema.get("default").is_none();
            parameters.push(json!({
                "name": name, "in": "query", "required": required, "schema": schema,
            }));
        }
    }
    let Some(written) = view.write_parameters() else {
        own.as_object_mut().and_then(|own| own.remove("post"));
        return own;
    };
    let properties: Map<String, Value> =
        written.map(|(name, schema)| (name.to_owned(), schema)).collect();
    let is_required = |schema: &Value| schema.get("default").is_none();
    let required: Vec<&String> = properties
        .iter()
        .filter_map(|(name, schema)| is_required(schema).then_some(name))
        .collect();
    let schema = json!({
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": false,
    });
    own["post"]["requestBody"]["content"]["application/json"]["schema"] = schema;
    own
}
