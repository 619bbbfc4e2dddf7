# EVAL, EVALSHA and SCRIPT.

== EVAL gets keys and arguments
> FLUSHALL
OK
> SCRIPT FLUSH
OK
> EVAL 'return {KEYS[1],KEYS[2],ARGV[1],ARGV[2],#KEYS,#ARGV}' 2 a b c d
1) "a"
2) "b"
3) "c"
4) "d"
5) (integer) 2
6) (integer) 2
> EVAL 'return 1'
(error) ERR wrong number of arguments for 'eval' command
> EVAL 'return 1' x
(error) ERR value is not an integer or out of range
> EVAL 'return 1' -1
(error) ERR Number of keys can't be negative
> EVAL 'return 1' 2 a
(error) ERR Number of keys can't be greater than number of args
> EVAL 'x y' 0
(error) ERR Error compiling script (new function): user_script:1: '=' expected near 'y'
> EVAL 'x y' y
(error) ERR value is not an integer or out of range
> EVAL "return redis.call('set',KEYS[1],ARGV[1])" 1 k v
OK
> EVAL "return redis.call('get',KEYS[1])" 1 k
"v"
> EVAL_RO "return redis.call('get',KEYS[1])" 1 k
"v"
> EVAL_RO "return redis.call('set',KEYS[1],1)" 1 k
(error) ERR Write commands are not allowed from read-only scripts. script: beef354d82996a708aa0deac229a63225ff0dd9c, on @user_script:1.

== Scripts are known by their names
> SCRIPT LOAD 'return 7'
"59b6ab2fbe0ee4b25733de0f62e6cda4899ef8e9"
> EVALSHA 59b6ab2fbe0ee4b25733de0f62e6cda4899ef8e9 0
(integer) 7
> EVALSHA 59B6AB2FBE0EE4B25733DE0F62E6CDA4899EF8E9 0
(integer) 7
> EVALSHA_RO 59b6ab2fbe0ee4b25733de0f62e6cda4899ef8e9 0
(integer) 7
> EVALSHA abc 0
(error) NOSCRIPT No matching script. Please use EVAL.
> EVALSHA abc x
(error) NOSCRIPT No matching script. Please use EVAL.
> EVALSHA aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 0
(error) NOSCRIPT No matching script. Please use EVAL.
> EVALSHA aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa x
(error) ERR value is not an integer or out of range
> SCRIPT EXISTS 59b6ab2fbe0ee4b25733de0f62e6cda4899ef8e9 abc
1) (integer) 1
2) (integer) 0
> SCRIPT EXISTS
(error) ERR wrong number of arguments for 'script|exists' command
> SCRIPT LOAD 'x y'
(error) ERR Error compiling script (new function): user_script:1: '=' expected near 'y'
> SCRIPT LOAD
(error) ERR wrong number of arguments for 'script|load' command
> SCRIPT FLUSH x
(error) ERR SCRIPT FLUSH only support SYNC|ASYNC option
> SCRIPT FLUSH SYNC x
(error) ERR SCRIPT FLUSH only support SYNC|ASYNC option
> SCRIPT FLUSH ASYNC
OK
> SCRIPT EXISTS 59b6ab2fbe0ee4b25733de0f62e6cda4899ef8e9
1) (integer) 0
> SCRIPT KILL
(error) NOTBUSY No scripts in execution right now.
> SCRIPT NOSUCH
(error) ERR unknown subcommand 'NOSUCH'. Try SCRIPT HELP.

== Values become replies
> EVAL 'return 3.99' 0
(integer) 3
> EVAL 'return -3.99' 0
(integer) -3
> EVAL 'return 1e300' 0
(integer) -9223372036854775808
> EVAL 'return 0/0' 0
(integer) -9223372036854775808
> EVAL 'return true' 0
(integer) 1
> EVAL 'return false' 0
(nil)
> EVAL 'return nil' 0
(nil)
> EVAL 'return' 0
(nil)
> EVAL 'return {1,2,nil,4}' 0
1) (integer) 1
2) (integer) 2
> EVAL 'return {true,false,1}' 0
1) (integer) 1
2) (nil)
3) (integer) 1
> EVAL 'return {1,{2,{3,"x"}}}' 0
1) (integer) 1
2) 1) (integer) 2
   2) 1) (integer) 3
      2) "x"
> EVAL "return {ok='fine'}" 0
fine
> EVAL "return {err='abc'}" 0
(error) abc
> EVAL "return {err='-ABC def'}" 0
(error) -ABC def
> EVAL 'return {double=3.5}' 0
"3.5"
resp3:
(double) 3.5
> EVAL 'return {map={a=1}}' 0
1) "a"
2) (integer) 1
resp3:
1# "a" => (integer) 1
> EVAL 'return {set={a=1}}' 0
1) "a"
resp3:
1~ "a"
> EVAL 'return {ok=1}' 0
(empty array)
> EVAL 'return {map=5}' 0
(empty array)
> EVAL "return {double='x'}" 0
(empty array)
> EVAL 'redis.setresp(3) return true' 0
(integer) 1
resp3:
(true)
> EVAL 'redis.setresp(3) return false' 0
(integer) 0
resp3:
(false)
> EVAL 'return print' 0
(error) ERR user_script:1: Script attempted to access nonexistent global variable 'print' script: df4c752a7558004676bbee87e38b92e0b9056d68, on @user_script:1.
> EVAL 'return redis.call' 0
(nil)
> EVAL "return setmetatable({},{__index={ok='x'}})" 0
(empty array)
> EVAL "return {ok='a\r\nb'}" 0
(error) ERR Error compiling script (new function): user_script:1: unfinished string near ''a'

== Replies become values
> FLUSHALL
OK
> HSET h f v
(integer) 1
> ZADD z 1.5 m
(integer) 1
> SADD s a
(integer) 1
> SET str x
OK
> EVAL "return redis.call('hgetall','h')" 1 h
1) "f"
2) "v"
> EVAL "redis.setresp(3) return redis.call('hgetall','h')" 1 h
1) "f"
2) "v"
resp3:
1# "f" => "v"
> EVAL "return redis.call('zscore','z','m')" 1 z
"1.5"
> EVAL "redis.setresp(3) return redis.call('zscore','z','m')" 1 z
"1.5"
resp3:
(double) 1.5
> EVAL "redis.setresp(3) return redis.call('zscore','z','m').double*2" 1 z
(integer) 3
> EVAL "return type(redis.call('get','nokey'))" 1 nokey
"boolean"
> EVAL "redis.setresp(3) return type(redis.call('get','nokey'))" 1 nokey
"nil"
> EVAL "return redis.call('mget','nokey','str')" 2 nokey str
1) (nil)
2) "x"
> EVAL "redis.setresp(3) return redis.call('smembers','s').set.a" 1 s
(integer) 1
resp3:
(true)
> EVAL "return redis.call('ping').ok" 0
"PONG"
> EVAL "return redis.call('blpop','nokey',0)" 1 nokey
(nil)
> EVAL "return redis.call('set','n',0.1) and redis.call('get','n')" 1 n
"0.1"
> EVAL "return redis.call('set','n',1e20) and redis.call('get','n')" 1 n
"1e+20"
> EVAL "return redis.call('set','n',-0) and redis.call('get','n')" 1 n
"0"
> EVAL "return redis.call('set','n',0/0) and redis.call('get','n')" 1 n
"-nan"
> EVAL "redis.call('select',3) return redis.call('dbsize')" 0
(integer) 0
> EVAL "return redis.call('get','str')" 1 str
"x"

== Errors say where they are
> SET str x
OK
> EVAL 'return foo' 0
(error) ERR user_script:1: Script attempted to access nonexistent global variable 'foo' script: 47e30a5d10d5694f99208f9adc4fe3bf2450edbd, on @user_script:1.
> EVAL 'foo=1' 0
(error) ERR user_script:1: Attempt to modify a readonly table script: 5bddd8336e5f711bfa499383fc73c17560c6250b, on @user_script:1.
> EVAL "return redis.call('incr','str')" 1 str
(error) ERR value is not an integer or out of range script: 851ab5c4815573433b8c8eed0a889f947a2e885a, on @user_script:1.
> EVAL "return redis.pcall('incr','str')" 1 str
(error) ERR value is not an integer or out of range
> EVAL "local ok,e=pcall(redis.call,'incr','str') return e" 1 str
"ERR value is not an integer or out of range"
> EVAL "local ok,e=pcall(error,{x=1}) return e.x" 0
(integer) 1
> EVAL "error('boo')" 0
(error) ERR user_script:1: boo script: 4c4072b2b44689260a81bb26a459f4463cfbb09e, on @user_script:1.
> EVAL "\n\nerror({err='MY thing'})" 0
(error) MY thing script: 9969e4e312feb30d9ba2522ba78cba08490d7c3c, on @user_script:3.
> EVAL 'error()' 0
(error) ERR nil script: aca90d914519fdb9825352bdc0befb59f7c8510f, on @user_script:1.
> EVAL 'local t=nil; return t.x' 0
(error) ERR user_script:1: attempt to index local 't' (a nil value) script: 8a168f767e029c17e797bfba7f6372859975d27b, on @user_script:1.
> EVAL "return redis.error_reply('abc')" 0
(error) ERR abc
> EVAL "return redis.error_reply('-ABC x')" 0
(error) ABC x
> EVAL 'return redis.error_reply(1)' 0
(error) ERR wrong number or type of arguments
> EVAL "return redis.status_reply('abc')" 0
abc
> EVAL 'return redis.call()' 0
(error) ERR Please specify at least one argument for this redis lib call script: 0a907e1429221a4d85516cab7fd219a82a9439d8, on @user_script:1.
> EVAL "return redis.call('nosuch')" 0
(error) ERR Unknown Redis command called from script script: 206396248e12c6e742fd7296250433c8d7343b74, on @user_script:1.
> EVAL "return redis.call('get')" 0
(error) ERR Wrong number of args calling Redis command from script script: f187dee77f607f7cff00bbabc9df38507582c78d, on @user_script:1.
> EVAL "return redis.call('get',{})" 0
(error) ERR Lua redis lib command arguments must be strings or integers script: 4deb073a545207f215b56dcef5ca825f9f406808, on @user_script:1.
> EVAL "return redis.call('multi')" 0
(error) ERR This Redis command is not allowed from script script: c329a1a294be6bf95b44144f7502610661ae925a, on @user_script:1.
> EVAL "return redis.call('eval','x',0)" 0
(error) ERR This Redis command is not allowed from script script: f942014fe87ed7b82350fc00347d79e8b7163009, on @user_script:1.
> EVAL 'local function f() f() end f()' 0
(error) ERR user_script:1: stack overflow script: ef5b65872cb582371ecea142590f46b7afc00f55, on @user_script:1.
> EVAL 'local function f() return 1+f() end return f()' 0
(error) ERR user_script:1: stack overflow script: 8dac8411355853de2ec60a5b36a9ce2745404793, on @user_script:1.
> EVAL 'return redis.sha1hex()' 0
(error) ERR wrong number of arguments script: 3c7ce947ae74a835cc575b6ee87fb27503cb7ba4, on @user_script:1.
> EVAL "return redis.sha1hex('')" 0
"da39a3ee5e6b4b0d3255bfef95601890afd80709"
> EVAL 'redis.log(1)' 0
(error) ERR redis.log() requires two arguments or more. script: 3f3f405a68f1629d40734c03d5bbba6b55824cf9, on @user_script:1.
> EVAL "redis.log(9,'x')" 0
(error) ERR Invalid log level. script: 89269ca5b1155c17a5032237a932c3af8cc29ac9, on @user_script:1.
> EVAL "redis.log('x','x')" 0
(error) ERR First argument must be a number (log level). script: 356ba62aac11695e54eec6c68c67a438fccf31ab, on @user_script:1.
> EVAL 'redis.setresp(4)' 0
(error) ERR RESP version must be 2 or 3. script: 68e72e4d8a428b9f599dce492315f2455a425a82, on @user_script:1.
> EVAL 'redis.set_repl(9)' 0
(error) ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE. script: 4f4229ed072529678bbea9429f2d7b099eb34534, on @user_script:1.
> EVAL 'return redis.replicate_commands()' 0
(integer) 1
> EVAL "local all = {} for _, n in ipairs({2^62, 2^62 + 1024, -2^62, -2^62 - 1024, 9e18, -2^63, 1e300}) do all[#all + 1] = redis.call('echo', n) end return all" 0
1) "4611686018427387904"
2) "4611686018427389000"
3) "-4611686018427387904"
4) "-4611686018427389000"
5) "9e+18"
6) "-9223372036854776000"
7) "1e+300"
> EVAL "return {select('#', pcall(error, {})), select('#', pcall(error, {err = {}})), select('#', pcall(error, {err = 'x'})), (select(2, pcall(error, {err = 5}))), (select(2, pcall(error, setmetatable({}, {__index = function() return 'seen' end}))))}" 0
1) (integer) 3
2) (integer) 3
3) (integer) 2
4) (integer) 5
5) "seen"
> EVAL "return {select('#', xpcall(error, tostring)), xpcall(function() return 1, 2 end, tostring)}" 0
1) (integer) 2
2) (integer) 1
3) (integer) 1
4) (integer) 2
> EVAL "return redis.acl_check_cmd('get','x')" 0
(integer) 1
> EVAL "return redis.acl_check_cmd('nosuch')" 0
(error) ERR Invalid command passed to redis.acl_check_cmd() script: d2491587bab5149c93be0dce4426f7a06ba9e1a1, on @user_script:1.
> EVAL "return coroutine.wrap(function() error('in co') end)()" 0
(error) ERR user_script:1: user_script:1: in co script: 088901c0683486eee1d11ff380a68bb1d820fdce, on @user_script:1.

== Globals cannot be changed
> EVAL 'string.rep=1' 0
(error) ERR user_script:1: Attempt to modify a readonly table script: 6bc0f7744eb753dff0a037f558f95347cfa57fe8, on @user_script:1.
> EVAL 'redis.call=1' 0
(error) ERR user_script:1: Attempt to modify a readonly table script: 70f4e18b61fcf46601aff14fe2eaa0a7d2ff5e00, on @user_script:1.
> EVAL '_G.x=1' 0
(error) ERR user_script:1: Attempt to modify a readonly table script: 9f1cf4e38bfbdecb441f9ea07fb01f5b69497362, on @user_script:1.
> EVAL 'setmetatable(_G,{})' 0
(error) ERR Attempt to modify a readonly table script: e8f1b52cec0990f58c59b37010d130cfdce9e1a5, on @user_script:1.
> EVAL 'getmetatable(_G).__index=nil' 0
(error) ERR user_script:1: Attempt to modify a readonly table script: 083d1807f1c42cf4f52a132b3c0e099e3c4b2d17, on @user_script:1.
> EVAL "rawset(_G,'x',1)" 0
(error) ERR Attempt to modify a readonly table script: 90860ee597073785c7a12c667667abc4495e2c78, on @user_script:1.
> EVAL "rawset(string,'x',1)" 0
(error) ERR Attempt to modify a readonly table script: d40e631b35efb3f7af3a86299524d322d9e868c7, on @user_script:1.
> EVAL "getmetatable('').__index=nil" 0
(error) ERR user_script:1: Attempt to modify a readonly table script: 50b90bcffe84981181a1c3a9ab8a455a795a314b, on @user_script:1.
> EVAL 'setmetatable(string,{})' 0
(error) ERR Attempt to modify a readonly table script: 4084efb1a05db6a2c46cc85b3c7b36a1784f4e49, on @user_script:1.
> EVAL 'table.insert(string,1)' 0
(error) ERR Attempt to modify a readonly table script: 88e24227b7ae37de8c151ae1137f61049fe748ad, on @user_script:1.
> EVAL 'KEYS=1' 0
(error) ERR user_script:1: Attempt to modify a readonly table script: ca0990f0b41102cb81caee914a8ee6a01cf984e6, on @user_script:1.
> EVAL 'KEYS[1]=5 return KEYS' 1 a
1) (integer) 5
> EVAL 'return rawequal(_G,_G._G)' 0
(integer) 1
> EVAL "return rawget(_G,'nosuch')" 0
(nil)
> EVAL 'return tostring(getmetatable(string))' 0
"nil"
> EVAL "local n=0 for k in pairs(string) do n=n+1 end return n" 0
(integer) 15
> EVAL "return loadstring('return 1')()" 0
(integer) 1
> EVAL "return loadstring('foo=1')()" 0
(error) ERR [string "foo=1"]:1: Attempt to modify a readonly table script: 4fdffd032882555a44868f11df57657df0daf1af, on foo=1:1.
> EVAL 'return loadstring(string.dump(function() end))' 0
(nil)
> EVAL "local f,e=loadstring('x x') return e" 0
"[string \"x x\"]:1: '=' expected near 'x'"
> EVAL 'return dofile' 0
(error) ERR user_script:1: Script attempted to access nonexistent global variable 'dofile' script: 0c5f629ecf4a281cada464398cd571c2f6828b27, on @user_script:1.
> EVAL 'return getfenv' 0
(error) ERR user_script:1: Script attempted to access nonexistent global variable 'getfenv' script: 16cfebc0feae9751eb6419326840e1512625eb36, on @user_script:1.
> EVAL 'return os.time()' 0
(error) ERR user_script:1: attempt to call field 'time' (a nil value) script: 13dea82ee9da896aebcd10f5e36f4a1eeb839b48, on @user_script:1.
> EVAL 'math.randomseed(7) return {math.random(100),math.random(100),math.random(5,9)}' 0
1) (integer) 27
2) (integer) 69
3) (integer) 6

== The first line says what a script needs
> EVAL "#!lua\nreturn 1" 0
(integer) 1
> EVAL "#!lua flags=no-writes\nreturn redis.call('set','a','b')" 1 a
(error) ERR Write commands are not allowed from read-only scripts. script: 6acb400a50fe96e33eca4e0af6e9dcfb21193726, on @user_script:2.
> EVAL "#!lua flags=\nreturn 1" 0
(integer) 1
> EVAL "#!lua flags=foo\nreturn 1" 0
(error) ERR Unexpected flag in script shebang: foo
> EVAL "#!lua bar=1\nreturn 1" 0
(error) ERR Unknown lua shebang option: bar=1
> EVAL "#!js\nreturn 1" 0
(error) ERR Unexpected engine in script shebang: #!js
> EVAL "#!lua" 0
(error) ERR Invalid script shebang
> EVAL "#!lua name=x\nreturn 1" 0
(error) ERR Unknown lua shebang option: name=x
> EVAL "#!lua flags=allow-stale,no-cluster,allow-cross-slot-keys\n\nerror('l3')" 0
(error) ERR user_script:3: l3 script: 5cb6e7454b4665772b07b4b296a7542bd9e8e6f4, on @user_script:3.
> EVAL_RO "#!lua\nreturn 1" 0
(error) ERR Can not execute a script with write flag using *_ro command.
> EVAL_RO "#!lua flags=no-writes\nreturn 1" 0
(integer) 1

== A comparison may change the table that it sorts
> EVAL "local t={1,2,3} local n=0 table.sort(t,function(a,b) n=n+1 if n==2 then t[2]=9 end return a<b end) return {n,unpack(t)}" 0
1) (integer) 3
2) (integer) 1
3) (integer) 9
4) (integer) 3
> EVAL "local t={1,2,3,4,5} local n=0 table.sort(t,function(a,b) n=n+1 if n==2 then t[3]=0 end return a<b end) return {n,unpack(t)}" 0
(error) ERR user_script:1: attempt to compare number with nil script: 97db1c514347568b15ad3369ac9545faa6e767ee, on @user_script:1.
> EVAL "local t={1,2,3} local n=0 table.sort(t,function(a,b) n=n+1 if n==2 then t[2]=nil end return a<b end) return {n,t[1],t[2],t[3]}" 0
1) (integer) 3
2) (integer) 1
> EVAL "local t={} for i=1,20 do t[i]=i*7%11 end local n=0 table.sort(t,function(a,b) n=n+1 if n%5==2 then t[11]=n t[5]=3 end return a<b end) return table.concat(t,' ')" 0
"1 1 2 3 3 47 5 5 67 6 7 62 7 8 8 9 9 10 10 12"
> EVAL "local ok,e=pcall(table.foreach,redis,function(k) error('x'..type(k)) end) return {tostring(ok),tostring(e)}" 0
1) "false"
2) "user_script:1: xstring"
> EVAL "local f,e=load(function() error('mine') end) return {tostring(f),type(e)}" 0
1) "nil"
2) "table"

== Protected tables have no elements to sort or remove
> EVAL "table.sort(redis) return {select('#',table.remove(redis)),select('#',table.remove(redis,1)),select('#',table.remove(_G))}" 0
1) (integer) 0
2) (integer) 0
3) (integer) 0
