# FCALL and FUNCTION. Libraries outlive FLUSHALL, so this is one sequence.

== Libraries and functions
> FUNCTION FLUSH
OK
> FUNCTION LOAD ""
(error) ERR Missing library metadata
> FUNCTION LOAD 'return 1'
(error) ERR Missing library metadata
> FUNCTION LOAD "#!lua\nx"
(error) ERR Library name was not given
> FUNCTION LOAD "#!lua name=\nx"
(error) ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long
> FUNCTION LOAD "#!lua name=a b\nx"
(error) ERR Invalid metadata value given: b
> FUNCTION LOAD "#!lua name=a-b\nx"
(error) ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long
> FUNCTION LOAD "#!lua name=a name=b\nx"
(error) ERR Invalid metadata value, name argument was given multiple times
> FUNCTION LOAD "#!js name=a\nx"
(error) ERR Engine 'js' not found
> FUNCTION LOAD "#!lua name=a"
(error) ERR Invalid library metadata
> FUNCTION LOAD "#!lua name=a\n"
(error) ERR No functions registered
> FUNCTION LOAD "#!lua name=a\nx y"
(error) ERR Error compiling function: user_function:2: '=' expected near 'y'
> FUNCTION LOAD
(error) ERR wrong number of arguments for 'function|load' command
> FUNCTION LOAD REPLACE
(error) ERR Missing library metadata
> FUNCTION LOAD foo bar
(error) ERR Unknown option given: foo
> FUNCTION LOAD "#!lua name=mylib\nredis.call('get','x')"
(error) ERR Error registering functions: ERR user_function:2: Script attempted to access nonexistent global variable 'call'
> FUNCTION LOAD "#!lua name=mylib\nfoo=1"
(error) ERR Error registering functions: ERR user_function:2: Attempt to modify a readonly table
> FUNCTION LOAD "#!lua name=mylib\nredis.register_function('f',1)"
(error) ERR Error registering functions: ERR second argument to redis.register_function must be a function
> FUNCTION LOAD "#!lua name=mylib\nredis.register_function('f')"
(error) ERR Error registering functions: ERR calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).
> FUNCTION LOAD "#!lua name=mylib\nredis.register_function()"
(error) ERR Error registering functions: ERR wrong number of arguments to redis.register_function
> FUNCTION LOAD "#!lua name=mylib\nredis.register_function('f-x',function() end)"
(error) ERR Error registering functions: ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long
> FUNCTION LOAD "#!lua name=mylib\nredis.register_function{function_name='f'}"
(error) ERR Error registering functions: ERR redis.register_function must get a callback argument
> FUNCTION LOAD "#!lua name=mylib\nredis.register_function{callback=function() end}"
(error) ERR Error registering functions: ERR redis.register_function must get a function name argument
> FUNCTION LOAD "#!lua name=mylib\nredis.register_function{function_name='f',callback=1}"
(error) ERR Error registering functions: ERR callback argument given to redis.register_function must be a function
> FUNCTION LOAD "#!lua name=mylib\nredis.register_function{function_name={},callback=function() end}"
(error) ERR Error registering functions: ERR function_name argument given to redis.register_function must be a string
> FUNCTION LOAD "#!lua name=mylib\nredis.register_function{function_name='f',callback=function() end,flags=1}"
(error) ERR Error registering functions: ERR flags argument to redis.register_function must be a table representing function flags
> FUNCTION LOAD "#!lua name=mylib\nredis.register_function{function_name='f',callback=function() end,flags={'x'}}"
(error) ERR Error registering functions: ERR unknown flag given
> FUNCTION LOAD "#!lua name=mylib\nredis.register_function{function_name='f',callback=function() end,x=1}"
(error) ERR Error registering functions: ERR unknown argument given to redis.register_function
> FUNCTION LOAD "#!lua name=mylib\nredis.register_function{function_name='f',callback=function() end,description={}}"
(error) ERR Error registering functions: ERR description argument given to redis.register_function must be a string
> FUNCTION LOAD "#!lua name=mylib\nredis.register_function{1}"
(error) ERR Error registering functions: ERR unknown argument given to redis.register_function
> FUNCTION LOAD "#!lua name=mylib\nredis.register_function('f',function() end) redis.register_function('f',function() end)"
(error) ERR Error registering functions: ERR Function already exists in the library
> FUNCTION LOAD "#!lua name=mylib\nredis.register_function({},function() end)"
(error) ERR Error registering functions: ERR first argument to redis.register_function must be a string
> FUNCTION LOAD "#!lua name=mylib\n\n\nlocal x=nil; x.y=1"
(error) ERR Error registering functions: ERR user_function:4: attempt to index local 'x' (a nil value)
> FUNCTION LOAD "#!lua name=mylib\nredis.register_function('f',function(k,a) return {k[1],a[1],#k,#a} end)"
"mylib"

> FLUSHALL
OK
> FCALL f 1 kk aa
1) "kk"
2) "aa"
3) (integer) 1
4) (integer) 1
> FCALL F 0
(empty array)
> FCALL f x
(error) ERR Bad number of keys provided
> FCALL f -1
(error) ERR Number of keys can't be negative
> FCALL f 5
(error) ERR Number of keys can't be greater than number of args
> FCALL nosuch 0
(error) ERR Function not found
> FCALL_RO f 0
(error) ERR Can not execute a script with write flag using *_ro command.
> FCALL f
(error) ERR wrong number of arguments for 'fcall' command
> FUNCTION LOAD "#!lua name=lib2\nredis.register_function{function_name='ro',callback=function(k) return redis.call('get',k[1]) end,flags={'no-writes'},description='desc'} redis.register_function('w',function(k) return redis.call('set',k[1],1) end) redis.register_function('e',function() error('bad') end) redis.register_function('e2',function(k) return redis.call('incr',k[1]) end) redis.register_function{function_name='row',callback=function(k) return redis.call('set',k[1],1) end,flags={'no-writes'}} redis.register_function('g',function() x=1 end) redis.register_function('keys',function() return type(KEYS) end) redis.register_function('rf',function() redis.register_function('q',function() end) end)"
"lib2"
> SET str x
OK
> FCALL w 1 k
OK
> FCALL ro 1 k
"1"
> FCALL_RO ro 1 k
"1"
> FCALL e 0
(error) ERR user_function:2: bad script: e, on @user_function:2.
> FCALL e2 1 str
(error) ERR value is not an integer or out of range script: e2, on @user_function:2.
> FCALL row 1 k
(error) ERR Write commands are not allowed from read-only scripts. script: row, on @user_function:2.
> FCALL g 0
(error) ERR user_function:2: Attempt to modify a readonly table script: g, on @user_function:2.
> FCALL keys 0
(error) ERR user_function:2: Script attempted to access nonexistent global variable 'KEYS' script: keys, on @user_function:2.
> FCALL rf 0
(error) ERR user_function:2: attempt to call field 'register_function' (a nil value) script: rf, on @user_function:2.
> EVAL "return redis.call('fcall','f',0)" 0
(error) ERR This Redis command is not allowed from script script: 244161089f10e5a44f3904f36bdc18d24a069392, on @user_script:1.

> FLUSHALL
OK
> FUNCTION LOAD "#!lua name=mylib\nredis.register_function('zz',function() end)"
(error) ERR Library 'mylib' already exists
> FUNCTION LOAD "#!lua name=lib3\nredis.register_function('f',function() end)"
(error) ERR Function f already exists
> FUNCTION LOAD REPLACE "#!lua name=mylib\nredis.register_function('zz',function() return 5 end)"
"mylib"
> FCALL zz 0
(integer) 5
> FCALL f 0
(error) ERR Function not found
> FUNCTION LIST LIBRARYNAME myl*
1) 1) "library_name"
   2) "mylib"
   3) "engine"
   4) "LUA"
   5) "functions"
   6) 1) 1) "name"
         2) "zz"
         3) "description"
         4) (nil)
         5) "flags"
         6) (empty array)
resp3:
1) 1# "library_name" => "mylib"
   2# "engine" => "LUA"
   3# "functions" =>
        1) 1# "name" => "zz"
           2# "description" => (nil)
           3# "flags" => (empty set)
> FUNCTION LIST LIBRARYNAME mylib WITHCODE
1) 1) "library_name"
   2) "mylib"
   3) "engine"
   4) "LUA"
   5) "functions"
   6) 1) 1) "name"
         2) "zz"
         3) "description"
         4) (nil)
         5) "flags"
         6) (empty array)
   7) "library_code"
   8) "#!lua name=mylib\nredis.register_function('zz',function() return 5 end)"
resp3:
1) 1# "library_name" => "mylib"
   2# "engine" => "LUA"
   3# "functions" =>
        1) 1# "name" => "zz"
           2# "description" => (nil)
           3# "flags" => (empty set)
   4# "library_code" => "#!lua name=mylib\nredis.register_function('zz',function() return 5 end)"
> FUNCTION LIST WITHCODE WITHCODE
(error) ERR Unknown argument WITHCODE
> FUNCTION LIST LIBRARYNAME
(error) ERR library name argument was not given
> FUNCTION LIST foo
(error) ERR Unknown argument foo
> FUNCTION STATS
1) "running_script"
2) (nil)
3) "engines"
4) 1) "LUA"
   2) 1) "libraries_count"
      2) (integer) 2
      3) "functions_count"
      4) (integer) 9
resp3:
1# "running_script" => (nil)
2# "engines" =>
     1# "LUA" =>
          1# "libraries_count" => (integer) 2
          2# "functions_count" => (integer) 9
> FUNCTION DELETE nosuch
(error) ERR Library not found
> FUNCTION DELETE lib2
OK
> FCALL w 0
(error) ERR Function not found
> FUNCTION LIST WITHCODE
1) 1) "library_name"
   2) "mylib"
   3) "engine"
   4) "LUA"
   5) "functions"
   6) 1) 1) "name"
         2) "zz"
         3) "description"
         4) (nil)
         5) "flags"
         6) (empty array)
   7) "library_code"
   8) "#!lua name=mylib\nredis.register_function('zz',function() return 5 end)"
resp3:
1) 1# "library_name" => "mylib"
   2# "engine" => "LUA"
   3# "functions" =>
        1) 1# "name" => "zz"
           2# "description" => (nil)
           3# "flags" => (empty set)
   4# "library_code" => "#!lua name=mylib\nredis.register_function('zz',function() return 5 end)"
> FUNCTION DUMP
"\xf5@F#!lua name=mylib\nredis.register_function('zz',function() return 5 end)\x0c\x00\xd2cPA\xa1\xf0\xfc\b"
> FUNCTION RESTORE xx
(error) ERR DUMP payload version or checksum are wrong
> FUNCTION FLUSH x
(error) ERR FUNCTION FLUSH only supports SYNC|ASYNC option
> FUNCTION FLUSH SYNC ASYNC
(error) ERR unknown subcommand or wrong number of arguments for 'FLUSH'. Try FUNCTION HELP.
> FUNCTION FLUSH ASYNC
OK
> FUNCTION LIST
(empty array)
> FUNCTION DUMP
"\x0c\x00\x96\xedh\x80\xf5U<\x93"
> FUNCTION KILL
(error) NOTBUSY No scripts in execution right now.
> FUNCTION NOSUCH
(error) ERR unknown subcommand 'NOSUCH'. Try FUNCTION HELP.
