//! Scripts that take long: other clients are served meanwhile, and what scripts read and write
//! stays atomic. Scripts that need slots of others begin again, and their error handlers are not
//! called for that.

use std::sync::atomic::Ordering;

use crate::actor::Actor;
use crate::data;

/// Runs scripts for longer than others are to wait, which read further keys afterwards or before.
pub(super) fn take_long(actor: &mut Actor<'_>, number: usize) {
    let spin = "local\tt=os.clock()+tonumber(ARGV[1])\nwhile(os.clock()<t)do\nend\n";
    let look = "redis.call('get',ARGV[2])\n";
    let write = "redis.call('set',KEYS[1],ARGV[1])\n";
    let parts: [&[&str]; 4] =
        [&[spin], &[look, spin], &[write, spin, look], &[write, look, spin, look]];
    let script = format!("{}return(1)", actor.random.pick(&parts).concat());
    let seconds = actor.random.below(120) as f64 / 1000.0;
    let other = format!("register:{}", actor.random.below(data::REGISTERS) / 8 * 8);
    let begin = actor.now();
    actor.world.long_scripts.fetch_add(1, Ordering::SeqCst);
    if !actor.world.calm.load(Ordering::SeqCst) {
        actor.call(&format!("EVAL {script} 1 long:{number} {seconds} {other}"));
        actor.world.note("a long script", begin);
    }
    actor.world.long_scripts.fetch_sub(1, Ordering::SeqCst);
    actor.rest(150_000);
}

/// Reads strings that others write, by calls whose errors would never end. There are none.
pub(super) fn contend(actor: &mut Actor<'_>, _: usize) {
    const READ: &str = "for\ti=1,20\tdo\nlocal\tk='register:'..(i*ARGV[1]%4*8)\n";
    const BY_HANDLER: &str =
        "xpcall(function()redis.call('get',k)end,function(e)while(true)do\nend\nend)\n";
    const BY_RETRY: &str = "while\tnot\tpcall(redis.call,'get',k)do\nend\n";
    let call = *actor.random.pick(&[BY_HANDLER, BY_RETRY]);
    let factor = 1 + actor.random.below(100);
    actor.call(&format!("EVAL {READ}{call}end\nreturn(1) 0 {factor}"));
    actor.rest(6000);
}
