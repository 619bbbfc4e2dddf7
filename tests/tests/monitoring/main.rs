//! What operators build on the metrics: Prometheus collects them, each alert fires when it should,
//! the dashboard of Grafana finds what it asks for, and pages say what is there.

mod names;
mod prometheus;
mod states;
mod times;
