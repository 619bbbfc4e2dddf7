//! A cluster that is operated: slots that move and are interrupted, nodes that are restarted or
//! taken out, machines that never come back, two operators, commands that wait, an etcd that is
//! away or has lost what it had, and one in which nothing is said in the open.

mod full;
mod functions;
mod gone;
mod interrupted;
mod lost_etcd;
mod meanwhile;
mod operating;
mod rebuilt;
mod refused;
mod secured;
