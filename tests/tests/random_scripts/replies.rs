//! Replies as Lua sees them, values as replies, and mistakes.

use tests::random::Random;

use crate::libraries::{literal, number, string};

/// What scripts are called with.
pub(crate) const KEYS_AND_ARGUMENTS: &[&str] = &["2", "{k}s", "{k}h", "one", "2", ""];

/// Data of every type, in one slot.
pub(crate) const DATA: &[&str] = &[
    "FLUSHALL",
    "SET {k}s text",
    "SET {k}n 10",
    "HSET {k}h a 1 b two",
    "RPUSH {k}l x y z",
    "SADD {k}one member",
    "ZADD {k}z 1.5 a -inf b 1e300 c 0.1 d",
    "XADD {k}x 1-1 f v",
    "XADD {k}x 2-1 f v g w",
    "XGROUP CREATE {k}x group 0",
    "GEOADD {k}g 13.361389 38.115556 Palermo",
    "SETBIT {k}b 7 1",
];

/// Commands whose replies are of all shapes. Their keys stand in the script.
const COMMANDS: &[&str] = &[
    "'GET','{k}s'",
    "'get','{k}none'",
    "'GET','{k}h'",
    "'HGETALL','{k}h'",
    "'HGETALL','{k}none'",
    "'HGET','{k}h','a'",
    "'HMGET','{k}h','a','zz','b'",
    "'HKEYS','{k}h'",
    "'HEXISTS','{k}h','a'",
    "'LRANGE','{k}l',0,-1",
    "'LPOP','{k}none',2",
    "'LPOP','{k}none'",
    "'LLEN','{k}l'",
    "'LPOS','{k}l','q'",
    "'SMEMBERS','{k}one'",
    "'SISMEMBER','{k}one','x'",
    "'SMISMEMBER','{k}one','member','x'",
    "'ZRANGE','{k}z',0,-1,'WITHSCORES'",
    "'ZSCORE','{k}z','a'",
    "'ZSCORE','{k}z','none'",
    "'ZMSCORE','{k}z','a','none','b'",
    "'ZRANK','{k}z','c','WITHSCORE'",
    "'ZINCRBY','{k}z2',0.1,'m'",
    "'ZADD','{k}z2','INCR',2,'m'",
    "'ZPOPMIN','{k}none'",
    "'ZRANDMEMBER','{k}none'",
    "'XRANGE','{k}x','-','+'",
    "'XREAD','STREAMS','{k}x','0'",
    "'XREAD','STREAMS','{k}x','$'",
    "'XLEN','{k}x'",
    "'XPENDING','{k}x','group'",
    "'XREADGROUP','GROUP','group','c','COUNT',1,'STREAMS','{k}x','>'",
    "'XINFO','GROUPS','{k}x'",
    "'XADD','{k}x','1-1','f','v'",
    "'XREAD','BLOCK',0,'STREAMS','{k}x','$'",
    "'GEOPOS','{k}g','Palermo','none'",
    "'GEODIST','{k}g','Palermo','none'",
    "'GEOHASH','{k}g','Palermo'",
    "'INCR','{k}n'",
    "'INCR','{k}s'",
    "'INCRBYFLOAT','{k}n',0.5",
    "'SET','{k}s','v','GET'",
    "'SET','{k}s','v','NX'",
    "'SET','{k}s','v','QQ'",
    "'SET','{k}s',1.5",
    "'SET','{k}s',1e20",
    "'SET','{k}s',100",
    "'MGET','{k}s','{k}none','{k}h'",
    "'EXISTS','{k}s','{k}s'",
    "'TYPE','{k}s'",
    "'TYPE','{k}none'",
    "'TTL','{k}s'",
    "'DEL','{k}gone'",
    "'OBJECT','ENCODING','{k}s'",
    "'OBJECT','FREQ','{k}s'",
    "'PING'",
    "'PING','hi'",
    "'ECHO','a\\0b'",
    "'BLPOP','{k}none',0",
    "'BLPOP','{k}l2',1",
    "'BZPOPMIN','{k}none',0",
    "'BLMOVE','{k}none','{k}l','LEFT','LEFT',0",
    "'LMPOP',1,'{k}none','LEFT'",
    "'ZMPOP',1,'{k}none','MIN'",
    "'SORT','{k}l','ALPHA'",
    "'SUBSTR','{k}s',0,1",
    "'GETRANGE','{k}s',0,-1",
    "'BITFIELD','{k}b','GET','u8',0",
    "'BITFIELD','{k}b','OVERFLOW','FAIL','INCRBY','u2',0,9",
    "'BITCOUNT','{k}b'",
    "'PFADD','{k}hll','a'",
    "'CONFIG','GET','maxmemory-policy'",
    "'CONFIG','SET','nosuch','1'",
    "'CLIENT','GETNAME'",
    "'CLIENT','ID','x'",
    "'SELECT',0",
    "'SELECT',99",
    "'COMMAND','GETKEYS','GET','a'",
    "'WATCH','a'",
    "'MULTI'",
    "'EXEC'",
    "'SUBSCRIBE','a'",
    "'EVAL','return 1',0",
    "'AUTH','x'",
    "'HELLO',3",
    "'QUIT'",
    "'RESET'",
    "'MONITOR'",
    "'DEBUG','SLEEP',0",
    "'SAVE'",
    "'SHUTDOWN'",
    "'nosuch'",
    "'NOSUCH','a','b'",
    "''",
    "'GET'",
    "'GET','a','b'",
    "'HSET','{k}h'",
    "'LPUSH','{k}s','x'",
    "'ZADD','{k}s',1,'a'",
    "'ZADD','{k}z','x','a'",
    "'EXPIRE','{k}s','x'",
    "'SPUBLISH','{k}c','m'",
    "'PUBLISH','c','m'",
    "'DUMP','{k}none'",
    "'RESTORE','{k}r',0,'x'",
    "'SETRANGE','{k}s',-1,'x'",
    "'COPY','{k}s','{k}s'",
    "'SINTERCARD',1,'{k}one'",
    "'LCS','{k}s','{k}s','IDX'",
    "'SCRIPT','LOAD','return 1'",
    "{}",
    "'GET',{}",
    "'GET',nil",
    "'GET',true",
    "1,2",
    "'GET',0/0",
    "nil",
    "",
    "'ECHO',12",
    "'ECHO',-0.5",
    "'ECHO',1e15",
    "'ECHO',12345678901234567890",
    "'ECHO',2^53",
    "'ECHO',1/0",
    "'ECHO',KEYS[1]",
    "'ECHO',#ARGV",
    "unpack(KEYS)",
    "'MSET',unpack({'{k}s','1','{k}t','2'})",
];

/// A command, and how its reply looks in Lua.
pub(crate) fn call(random: &mut Random) -> String {
    let command = random.pick(COMMANDS);
    let call =
        random.pick(&["redis.call", "redis.pcall", "redis.pcall", "server.call", "redis.call"]);
    let call = if *call == "server.call" { "redis.pcall" } else { call };
    match random.below(10) {
        0..4 => format!("{call}({command})"),
        4..8 => format!("(redis.setresp(3) or {call}({command}))"),
        8 => format!(
            "(function() redis.setresp({}) return {call}({command}) end)()",
            random.between(1, 4)
        ),
        _ => format!(
            "(redis.setresp(3) or 1), {call}({command}), (redis.setresp(2) or 2), {call}({command})"
        ),
    }
}

/// A script that returns a value which becomes a reply.
pub(crate) fn returned(random: &mut Random) -> String {
    match random.below(8) {
        0 => format!("return redis.call({})", random.pick(COMMANDS)),
        1 => format!("return redis.pcall({})", random.pick(COMMANDS)),
        2 => format!("redis.setresp(3) return redis.call({})", random.pick(COMMANDS)),
        3 => format!("redis.setresp(3) return {{1, redis.pcall({})}}", random.pick(COMMANDS)),
        4 => format!("redis.setresp(3) return {}", result(random, 0)),
        _ => format!("return {}", result(random, 0)),
    }
}

fn text(random: &mut Random) -> String {
    match random.below(4) {
        0 => (*random.pick(&[
            "'OK'",
            "'a b'",
            "''",
            "'Line\\r\\nbreak'",
            "'-ERR x'",
            "'WRONGTYPE x'",
        ]))
        .into(),
        _ => string(random, false),
    }
}

/// A value that a script may return.
fn result(random: &mut Random, depth: usize) -> String {
    match random.below(16) {
        0..2 => number(random),
        2..4 => string(random, false),
        4 => (*random.pick(&["true", "false", "nil", "cjson.null", "print", "type", "''"])).into(),
        5 => format!("{{ok={}}}", text(random)),
        6 => format!("{{err={}}}", text(random)),
        7 => format!("{{double={}}}", number(random)),
        8 => format!("{{big_number={}}}", random.pick(&["'123'", "'1\\r\\n2'", "''", "5", "'-9'"])),
        9 => format!(
            "{{verbatim_string={{string={},format={}}}}}",
            string(random, false),
            random.pick(&["'txt'", "'mkd'", "'x'", "''", "1", "'long'"])
        ),
        10 => format!("redis.{}({})", random.pick(&["error_reply", "status_reply"]), text(random)),
        11 => (*random.pick(&[
            "{map=1}",
            "{set={}}",
            "{map={}}",
            "{set={x=1}}",
            "{double='x'}",
            "{ok=1}",
            "{err={}}",
            "{ok={}}",
            "{err='a',ok='b'}",
            "{double=1,map={}}",
            "{null=true}",
            "{[0]=1}",
            "{a=1}",
            "{1,nil,3}",
            "{nil,2}",
            "{verbatim_string=1}",
            "{big_number=true}",
            "{err='E',ignore_error_stats_update=true}",
            "{1,2,a=3}",
            "setmetatable({},{__index={ok='x'}})",
            "{set={[1]=true,[2]=false}}",
            "{false,true,cjson.null}",
        ]))
        .into(),
        _ if depth > 4 => "1".into(),
        12 => {
            let (key, value) = (result(random, 9), result(random, depth + 1));
            if matches!(&*key, "nil" | "0/0" | "-(0/0)")
                || key.contains('{')
                || key.contains("redis")
            {
                return format!("{{map={{a={value}}}}}");
            }
            format!("{{map={{[{key}]={value}}}}}")
        }
        13 => format!("{{set={{[{}]=true}}}}", string(random, true)),
        _ => {
            let values: Vec<_> = (0..random.below(4)).map(|_| result(random, depth + 1)).collect();
            format!("{{{}}}", values.join(","))
        }
    }
}

/// A script that is wrong somewhere, or is called wrongly: the command, the script and the rest.
pub(crate) fn mistaken(random: &mut Random) -> (&'static str, Vec<u8>, &'static [&'static str]) {
    // Not `error({})`, by which the reference crashes.
    const ERRORS: &[&str] = &[
        "error('x')",
        "error('x', 0)",
        "error('x', 2)",
        "error({err='MY error'})",
        "error(nil)",
        "error(12)",
        "error(true)",
        "error({err='x', extra=1})",
        "error(redis.error_reply('A b'))",
        "local x = nil; return x.y",
        "return nil .. 'x'",
        "return {} + 1",
        "return #5",
        "return 1 < 'x'",
        "return {} < {}",
        "undefined()",
        "return undefined",
        "x = 1",
        "KEYS = {}",
        "ARGV[1] = 'y' return ARGV[1]",
        "redis.call = 1",
        "redis = 1",
        "string.rep = 1",
        "cjson.x = 1",
        "_G.x = 1",
        "rawset(_G, 'x', 1)",
        "setmetatable(_G, {})",
        "return getmetatable('').x",
        "getmetatable('').__index = 1",
        "return redis.error_reply()",
        "return redis.error_reply(1, 2)",
        "return redis.error_reply({})",
        "return redis.status_reply(1)",
        "return redis.sha1hex()",
        "return redis.sha1hex('')",
        "return redis.sha1hex(12)",
        "return redis.log()",
        "return redis.log(9, 'x')",
        "return redis.log('x', 'y')",
        "return redis.setresp()",
        "return redis.setresp('x')",
        "return redis.set_repl()",
        "return redis.set_repl(9)",
        "return redis.set_repl(redis.REPL_ALL)",
        "return redis.replicate_commands()",
        "return redis.breakpoint()",
        "return redis.debug('x')",
        "return redis.acl_check_cmd()",
        "return redis.acl_check_cmd('get')",
        "return redis.acl_check_cmd('nosuch')",
        "return redis.acl_check_cmd('set', 'a', 'b')",
        "return pcall(redis.call, 'nosuch')",
        "return pcall(redis.call, 'get', 'a', 'b')",
        "return select(2, pcall(redis.call, 'lpush', '{k}s', 'x')).err",
        "local ok, e = pcall(redis.call, 'lpush', '{k}s', 'x') return tostring(e)",
        "local e = redis.pcall('lpush', '{k}s', 'x') return {type(e), e.err, e.source, e.line}",
        "return redis.pcall('lpush', '{k}s', 'x').ignore_error_stats_update",
        "local ok, e = pcall(error, {err='My err'}) return e",
        "return {xpcall(function() error('a') end, tostring)}",
        "return redis.call('set', '{k}n', 1).ok",
        "if",
        "return return",
        "x y",
        "return 'unfinished",
        "return [[x",
        "for i = 1 do end",
        "return 1 +",
        "goto x",
        "return 0x",
        "return 1..2",
        "local function",
        "return '\\400'",
        "\n\nerror('third')",
        "\n\n\nreturn undefined",
        "local a = 1\nlocal b = a.b.c",
        "\nreturn redis.call('nosuch')",
        "return loadstring('return 1 + 1')()",
        "return loadstring('return x')()",
        "return loadstring('x y')",
        "return load(function() return nil end)",
        "return dofile('x')",
        "return loadfile",
        "return require('x')",
        "return string.dump(function() end) ~= nil",
        "return loadstring('\\27Lua')",
        "return print",
        "return os.time",
        "return type(os.clock())",
        "return os.getenv",
        "return io",
        "return debug",
        "return package",
        "return newproxy",
        "return getfenv",
        "return setfenv",
        "return module",
        "return collectgarbage('step') ~= nil",
        "return type(gcinfo())",
        "return _VERSION",
        "return redis.REDIS_VERSION ~= nil",
        "return {redis.LOG_DEBUG, redis.LOG_WARNING, redis.REPL_NONE, redis.REPL_AOF, redis.REPL_SLAVE, redis.REPL_ALL}",
        "math.randomseed(7) return {math.random(10), math.random(5, 9)}",
        "math.randomseed(3) return tostring(math.random())",
        "return math.random(0)",
        "return math.random(2, 1)",
        "return string.format('%5.2f|%d|%s|%q|%x|%5s|%-5s|', 3.14159, 42, 'x', 'a\"b', 255, 'r', 'l')",
        "return string.format('%d', 'x')",
        "return string.format('%y', 1)",
        "return string.format('%s')",
        "return string.format('%d', 1e20)",
        "return string.format('%c%c', 72, 0)",
        "return string.format('%i', 3.7)",
        "return {string.find('hello world', 'o (w)')}",
        "return {string.gsub('abc', '%w', '%0%0')}",
        "return string.gsub('abc', '(', 'x')",
        "return {string.match('key=val', '(%w+)=(%w+)')}",
        "return string.rep('ab', 3)",
        "return string.rep('x', -1)",
        "return {string.byte('abc', 1, -1)}",
        "return tostring(1e15)",
        "return tostring(1e14)",
        "return tostring(0.1)",
        "return tostring(-0)",
        "return tonumber('0x1f')",
        "return tonumber('z', 36)",
        "return tonumber('1e2')",
        "return tonumber(' 5 ')",
        "return tonumber('')",
        "return 2^53",
        "return 7 % -3",
        "return -7 % 3",
        "return 1/0",
        "return 5 % 0",
        "local t = {3, 1, 2} table.sort(t) return t",
        "return table.concat({1, 2, 'x'}, ',')",
        "return table.concat({1, {}, 3})",
        "return table.getn({1, 2})",
        "return unpack({1, 2, 3}, 2)",
        "return #KEYS + #ARGV",
        "return {KEYS[1], KEYS[3], ARGV[1], ARGV[9]}",
        "return unpack({}, 1, 1e7)",
        "return coroutine.wrap(function() coroutine.yield(5) end)()",
        "coroutine.yield(1)",
        "return coroutine.wrap(function() return redis.call('get', '{k}s') end)()",
        "local function f() return f() + 1 end return f()",
        "return (function(...) return select('#', ...) end)(nil, nil)",
        "return string.len(string.rep('x', 100000))",
        "local t = {} t[nil] = 1",
        "local t = {} t[0/0] = 1",
        "return next({})",
        "return next({}, 'x')",
        "return rawequal('a', 'a')",
        "return ipairs()",
        "return pairs(nil)",
        "return setmetatable({}, {__tostring = function() return 'T' end})",
        "return type(redis.call)",
        "return tostring(setmetatable({}, {__tostring = function() return 'T' end}))",
        "assert(false)",
        "assert(false, 'why')",
        "assert(nil, {err = 'E why'})",
        "return assert(1, 2)",
        "return select(-1, 1, 2)",
        "return select(0)",
        "return string.char(256)",
        "return ('x'):upper()",
        "return ('%d'):format(3)",
    ];
    const HEADS: &[&str] = &[
        "#!lua\n",
        "#!lua flags=no-writes\n",
        "#!lua flags=allow-stale,no-cluster\n",
        "#!lua flags=nosuch\n",
        "#!lua name=x\n",
        "#!lua nosuch=1\n",
        "#!python\n",
        "#!",
        "#!\n",
        "#!lua",
        "#! lua\n",
        "#!lua flags=\n",
        "#!lua flags=no-writes,no-writes\n",
        "#!lua flags=allow-oom flags=no-writes\n",
        "#!LUA\n",
        "#lua\n",
        "#!lua flags=allow-cross-slot-keys\n",
    ];
    const CALLS: &[(&str, &[&str])] = &[
        ("EVAL", &["-1"]),
        ("EVAL", &["3", "a", "b"]),
        ("EVAL", &["x"]),
        ("EVAL", &[]),
        ("EVAL", &["1.5"]),
        ("EVAL", &["0"]),
        ("EVALSHA", &["0"]),
        ("EVALSHA", &["-1"]),
        ("EVAL_RO", &["0"]),
        ("EVALSHA_RO", &["x"]),
        ("eval", &["99999999999999999999"]),
        ("EVAL", &["1", "k"]),
    ];
    let error = *random.pick(ERRORS);
    match random.below(8) {
        0 => {
            let head = random.pick(HEADS);
            let body =
                if random.percent(50) { "return redis.call('set', '{k}s', 1)" } else { error };
            ("EVAL", format!("{head}{body}").into_bytes(), KEYS_AND_ARGUMENTS)
        }
        1 => {
            let (command, rest) = random.pick(CALLS);
            let body = random.pick(&[
                "return 1",
                "return {KEYS[1], ARGV[1]}",
                "",
                "return redis.call('del', 'k')",
            ]);
            (command, body.as_bytes().to_vec(), rest)
        }
        2 => {
            let body = format!("return redis.call({})", random.pick(COMMANDS));
            ("EVAL_RO", body.into_bytes(), KEYS_AND_ARGUMENTS)
        }
        3 => {
            let inner = format!("local ok, e = pcall(loadstring({}))", literal(error.as_bytes()));
            let body = format!(
                "{inner} if type(e) == 'table' then return {{'table', e.err}} end \
                    return type(e) == 'string' and e or type(e)"
            );
            ("EVAL", body.into_bytes(), KEYS_AND_ARGUMENTS)
        }
        _ => ("EVAL", error.as_bytes().to_vec(), KEYS_AND_ARGUMENTS),
    }
}
