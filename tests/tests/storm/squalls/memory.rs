//! Scripts that want more memory than there is, while the limit moves: each ends with an error, and
//! the process and its other scripts go on.

use anyhow::{Result, ensure};
use tests::client::Reply;
use tests::server::{Server, Target};

use super::{Gust, done, together, with_server};

/// What fills a part of the memory first, so that there is something to collect. `N` is how much of
/// it.
const FILL: &[&str] = &[
    "",
    "local t={} for i=1,N do t[i]='s'..i end ",
    "local t={} for i=1,N do t['s'..i]=i end ",
    "local t={} for i=1,N/4 do t[i]={i,{i}} end ",
    "local t={} for i=1,N/50 do t[i]=string.rep('x',i) end ",
    "local t={} for i=1,N/4 do t[i]=function() return i end end ",
];
/// What asks for more until none is left.
const GROW: &[&str] = &[
    "local f while true do f={f} end",
    "local u={} while true do u[#u+1]={} end",
    "local s='x' while true do s=s..s end",
    "local n=0 local u={} while true do n=n+1 u['k'..n]=n end",
    "local u={} while true do u[#u+1]=coroutine.create(function() return u end) end",
    "local f local a,e=pcall(function() while true do f={f} end end) return tostring(e)",
    "local f return {xpcall(function() while true do f={f} end end,function(e) return {e,e..e} end)}",
    "local u={} while true do u[#u+1]=redis.call('get',KEYS[1]) end",
    "return string.rep('x',400000000)",
    "local u={} for i=1,300000 do u[i]=i end return cjson.encode(u)..cmsgpack.pack(u)",
];

pub(super) fn blow(gust: &mut Gust) -> Result<()> {
    let options = [("threads", "2"), ("lua-memory-limit", "8mb")];
    let mut server = Server::start(Target::Dunlin, &options)?;
    let branches = [(); 4].map(|()| gust.branch());
    let [first, second, third, control] = branches;
    let result = together(vec![
        Box::new(|| want(&server, first)),
        Box::new(|| want(&server, second)),
        Box::new(|| want(&server, third)),
        Box::new(|| move_limit(&server, control)),
    ]);
    let result = result.and_then(|()| recover(&server));
    with_server(result, &mut server)
}

/// Runs one greedy script after the other. Errors are what they ask for.
fn want(server: &Server, mut gust: Gust) -> Result<()> {
    let mut client = server.connect()?;
    let value = "v".repeat(10_000);
    done(&mut client, &["SET", "value", &value])?;
    while gust.goes_on() {
        let release = *gust.random.pick(&["", "t=nil "]);
        let much = gust.random.between(1000, 200_000).to_string();
        let fill = gust.random.pick(FILL).replace('N', &much);
        let release = if fill.is_empty() { "" } else { release };
        let script = format!("{fill}{release}{}", gust.random.pick(GROW));
        if gust.random.percent(15) {
            let library = format!("#!lua name=greedy\n{script}");
            client.call(&["FUNCTION", "LOAD", "REPLACE", &library])?;
        } else {
            client.call(&["EVAL", &script, "1", "value"])?;
        }
        gust.rest(3000);
    }
    Ok(())
}

/// Also to less than what is in use.
fn move_limit(server: &Server, mut gust: Gust) -> Result<()> {
    let mut client = server.connect()?;
    while gust.goes_on() {
        let most = *gust.random.pick(&[100, 2000, 32_000]);
        let limit = gust.random.between(1, most).to_string() + "kb";
        done(&mut client, &["CONFIG", "SET", "lua-memory-limit", &limit])?;
        gust.rest(60_000);
    }
    Ok(())
}

/// With memory again, scripts run on each thread as if nothing had been.
fn recover(server: &Server) -> Result<()> {
    done(&mut server.connect()?, &["CONFIG", "SET", "lua-memory-limit", "256mb"])?;
    for _ in 0..4 {
        let answer = server.connect()?.call(&["EVAL", "return 7", "0"])?;
        ensure!(answer == Reply::Integer(7), "with memory again, a script answers {answer:?}");
    }
    Ok(())
}
