# Places on the globe, kept in sorted sets.

== GEOADD and GEOPOS
> GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
(integer) 2
> GEOADD g 13.361389 38.115556 Palermo
(integer) 0
> GEOADD g 13.5 38.2 Palermo 2.349014 48.864716 Paris
(integer) 1
> GEOPOS g Palermo Catania nothing Paris
1) 1) "13.500000536441803"
   2) "38.200000630919675"
2) 1) "15.087267458438873"
   2) "37.50266842333162"
3) (nil array)
4) 1) "2.3490116000175476"
   2) "48.8647157075015"
resp3:
1) 1) (double) 13.500000536441803
   2) (double) 38.200000630919675
2) 1) (double) 15.087267458438873
   2) (double) 37.50266842333162
3) (nil)
4) 1) (double) 2.3490116000175476
   2) (double) 48.8647157075015
> GEOPOS nokey a
1) (nil array)
> GEOPOS g
(empty array)
> GEOPOS nokey
(empty array)
> ZSCORE g Catania
"3479447370796909"
resp3:
(double) 3479447370796909
> ZRANGE g 0 -1
1) "Palermo"
2) "Catania"
3) "Paris"
> TYPE g
zset
> OBJECT ENCODING g
"listpack"
> ZREM g Paris
(integer) 1
> ZCARD g
(integer) 2

== GEOSEARCH in a polygon
@reference-differs: polygons are Valkey's, from 9.0 on
> GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania 12 37 corner 14 37.5 middle 0 0 zero
(integer) 5
> GEOSEARCH g BYPOLYGON 3 12 37 16 37 14 39 ASC
1) "middle"
2) "Palermo"
3) "Catania"
4) "corner"
> GEOSEARCH g BYPOLYGON 4 12 37 16 37 16 39 12 39 DESC WITHDIST
1) 1) "corner"
   2) "209594.4400"
2) 1) "Catania"
   2) "111411.0839"
3) 1) "middle"
   2) "57497.3437"
4) 1) "Palermo"
   2) "56987.4933"
> GEOSEARCH g BYPOLYGON 4 12 37 16 37 16 39 12 39 COUNT 2
1) "Palermo"
2) "middle"
> GEOSEARCH g bypolygon 4 12 39 16 37 16 39 12 37 ASC
1) "Palermo"
2) "Catania"
> GEOSEARCH g BYPOLYGON 3 1 1 2 2 3 1
(empty array)
> GEOSEARCH g BYPOLYGON 3 12 37 16 37 14 39 BYPOLYGON 3 -1 -1 1 -1 0 1
1) "zero"
> GEOSEARCHSTORE d g BYPOLYGON 4 12 37 16 37 16 39 12 39 STOREDIST
(integer) 4
> ZRANGE d 0 -1
1) "Palermo"
2) "middle"
3) "Catania"
4) "corner"
> GEOSEARCH g BYPOLYGON 2 1 1 2 2
(error) ERR GEOSEARCH BYPOLYGON must have at least 3 vertices
> GEOSEARCH g BYPOLYGON 3 1 1 2 2
(error) ERR GEOSEARCH BYPOLYGON must have at least 3 vertices
> GEOSEARCH g BYPOLYGON 3 1 1 2 2 3
(error) ERR GEOSEARCH BYPOLYGON must have at least 3 vertices
> GEOSEARCH g BYPOLYGON -3 1 1 2 2 3 3
(error) ERR GEOSEARCH BYPOLYGON must have at least 3 vertices
> GEOSEARCH g BYPOLYGON three 1 1 2 2 3 3
(error) ERR invalid number of vertices
> GEOSEARCH g BYPOLYGON 4294967299 1 1 2 2 3 3
(error) ERR invalid number of vertices
> GEOSEARCH g BYPOLYGON 3 1 1 2 2 300 1
(error) ERR invalid longitude,latitude pair 300.000000,1.000000
> GEOSEARCH g BYPOLYGON 3 1 1 2 2 x 1
(error) ERR value is not a valid float
> GEOSEARCH g BYPOLYGON 3 12 37 16 37 14 39 FROMMEMBER zero
(error) ERR syntax error
> GEOSEARCH g FROMLONLAT 1 1 BYPOLYGON 3 12 37 16 37 14 39
(error) ERR syntax error
> GEOSEARCH g BYPOLYGON 3 12 37 16 37 14 39 BYRADIUS 1 m
(error) ERR syntax error
> GEOSEARCH g BYBOX 1 1 m BYPOLYGON 3 12 37 16 37 14 39
(error) ERR syntax error
> GEOSEARCH nokey BYPOLYGON 3 1 1 2 2 3 3
(empty array)
> GEOSEARCH nokey BYPOLYGON 3 1 1 2 2 300 3
(error) ERR invalid longitude,latitude pair 300.000000,3.000000

== GEOADD options
> GEOADD g NX 1 1 a
(integer) 1
> GEOADD g NX 2 2 a 2 2 b
(integer) 1
> GEOPOS g a
1) 1) "0.9999999403953552"
   2) "0.9999994591429768"
resp3:
1) 1) (double) 0.9999999403953552
   2) (double) 0.9999994591429768
> GEOADD g XX 3 3 a 3 3 c
(integer) 0
> GEOPOS g a c
1) 1) "2.9999998211860657"
   2) "3.0000009121501066"
2) (nil array)
resp3:
1) 1) (double) 2.9999998211860657
   2) (double) 3.0000009121501066
2) (nil)
> GEOADD g CH 4 4 a 4 4 d
(integer) 2
> GEOADD g CH 4 4 a
(integer) 0
> GEOADD g XX CH 5 5 a
(integer) 1
> GEOADD g NX XX 1 1 a
(error) ERR syntax error
> GEOADD g foo 1 1 a
(error) ERR syntax error
> GEOADD g xx nx ch 1 1 a
(error) ERR syntax error

== GEOADD rejects what is wrong
> GEOADD
(error) ERR wrong number of arguments for 'geoadd' command
> GEOADD g
(error) ERR wrong number of arguments for 'geoadd' command
> GEOADD g 1 1
(error) ERR wrong number of arguments for 'geoadd' command
> GEOADD g 1 1 a 2
(error) ERR syntax error
> GEOADD g 1 1 a 2 2
(error) ERR syntax error
> GEOADD g NX
(error) ERR wrong number of arguments for 'geoadd' command
> GEOADD g 181 0 a
(error) ERR invalid longitude,latitude pair 181.000000,0.000000
> GEOADD g -181 0 a
(error) ERR invalid longitude,latitude pair -181.000000,0.000000
> GEOADD g 0 86 a
(error) ERR invalid longitude,latitude pair 0.000000,86.000000
> GEOADD g 0 -85.06 a
(error) ERR invalid longitude,latitude pair 0.000000,-85.060000
> GEOADD g 180 85.05112878 edge
(integer) 1
> GEOADD g -180 -85.05112878 edge2
(integer) 1
> GEOADD g x 0 a
(error) ERR value is not a valid float
> GEOADD g 0 y a
(error) ERR value is not a valid float
> GEOADD g nan 0 a
(error) ERR value is not a valid float
> GEOADD g 1 1 a 200 0 b
(error) ERR invalid longitude,latitude pair 200.000000,0.000000
> EXISTS g
(integer) 1
> ZCARD g
(integer) 2
> SET k v
OK
> GEOADD k 1 1 a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> GEOADD k 200 1 a
(error) ERR invalid longitude,latitude pair 200.000000,1.000000
> GEOPOS k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> GEOPOS g edge edge2
1) 1) "180"
   2) "85.05112878"
2) 1) "-179.99999731779099"
   2) "-85.05112751263943"
resp3:
1) 1) (double) 180
   2) (double) 85.05112878
2) 1) (double) -179.99999731779099
   2) (double) -85.05112751263943

== GEODIST
> GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
(integer) 2
> GEODIST g Palermo Catania
"166274.1516"
> GEODIST g Palermo Catania m
"166274.1516"
> GEODIST g Palermo Catania km
"166.2742"
> GEODIST g Palermo Catania mi
"103.3182"
> GEODIST g Palermo Catania ft
"545518.8700"
> GEODIST g Palermo Catania KM
"166.2742"
> GEODIST g Palermo Palermo
"0.0000"
> GEODIST g Palermo nothing
(nil)
> GEODIST nokey a b
(nil)
> GEODIST g Palermo Catania foo
(error) ERR unsupported unit provided. please use M, KM, FT, MI
> GEODIST g Palermo Catania km km
(error) ERR syntax error
> GEODIST g Palermo
(error) ERR wrong number of arguments for 'geodist' command
> GEODIST nokey a b foo
(error) ERR unsupported unit provided. please use M, KM, FT, MI
> SET k v
OK
> GEODIST k a b
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== GEOHASH
> GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania -5.6 42.6 San 0 0 null -179.99 -84.9 south
(integer) 5
> GEOHASH g Palermo Catania nothing San null south
1) "sqc8b49rny0"
2) "sqdtr74hyu0"
3) (nil)
4) "ezs42e44yx0"
5) "s0000000000"
6) "00bj00rm9h0"
> GEOHASH g
(empty array)
> GEOHASH nokey a b
1) (nil)
2) (nil)
> GEOHASH
(error) ERR wrong number of arguments for 'geohash' command
> SET k v
OK
> GEOHASH k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== GEOSEARCH by radius
> GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania 12.758489 38.788135 edge1 17.241510 38.788135 edge2
(integer) 4
> GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km ASC
1) "Catania"
2) "Palermo"
> GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km DESC
1) "Palermo"
2) "Catania"
> GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km ASC WITHDIST
1) 1) "Catania"
   2) "56.4413"
2) 1) "Palermo"
   2) "190.4424"
> GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km ASC WITHCOORD WITHDIST WITHHASH
1) 1) "Catania"
   2) "56.4413"
   3) (integer) 3479447370796909
   4) 1) "15.087267458438873"
      2) "37.50266842333162"
2) 1) "Palermo"
   2) "190.4424"
   3) (integer) 3479099956230698
   4) 1) "13.361389338970184"
      2) "38.1155563954963"
resp3:
1) 1) "Catania"
   2) "56.4413"
   3) (integer) 3479447370796909
   4) 1) (double) 15.087267458438873
      2) (double) 37.50266842333162
2) 1) "Palermo"
   2) "190.4424"
   3) (integer) 3479099956230698
   4) 1) (double) 13.361389338970184
      2) (double) 38.1155563954963
> GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km ASC WITHHASH
1) 1) "Catania"
   2) (integer) 3479447370796909
2) 1) "Palermo"
   2) (integer) 3479099956230698
> GEOSEARCH g FROMMEMBER Palermo BYRADIUS 200 km ASC WITHDIST
1) 1) "Palermo"
   2) "0.0000"
2) 1) "edge1"
   2) "91.4007"
3) 1) "Catania"
   2) "166.2742"
> GEOSEARCH g FROMMEMBER Palermo BYRADIUS 0 m
1) "Palermo"
> GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 1000 km ASC COUNT 2
1) "Catania"
2) "Palermo"
> [count] GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 1000 km COUNT 3 ANY
(integer) 3
> GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 1000 km COUNT 100 ASC
1) "Catania"
2) "Palermo"
3) "edge2"
4) "edge1"
> GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 1000 km COUNT 2 DESC
1) "edge1"
2) "edge2"
> GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 1 km
(empty array)
> GEOSEARCH nokey FROMLONLAT 15 37 BYRADIUS 1 km
(empty array)
> GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 100000 mi ASC
1) "Catania"
2) "Palermo"
3) "edge2"
4) "edge1"
> GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 300000 ft ASC WITHDIST
1) 1) "Catania"
   2) "185174.7305"
> GEOSEARCH g fromlonlat 15 37 byradius 200 KM asc withdist
1) 1) "Catania"
   2) "56.4413"
2) 1) "Palermo"
   2) "190.4424"

== GEOSEARCH by box
> GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania 12.758489 38.788135 edge1 17.241510 38.788135 edge2
(integer) 4
> GEOSEARCH g FROMLONLAT 15 37 BYBOX 400 400 km ASC WITHCOORD WITHDIST
1) 1) "Catania"
   2) "56.4413"
   3) 1) "15.087267458438873"
      2) "37.50266842333162"
2) 1) "Palermo"
   2) "190.4424"
   3) 1) "13.361389338970184"
      2) "38.1155563954963"
3) 1) "edge2"
   2) "279.7403"
   3) 1) "17.241510450839996"
      2) "38.78813451624225"
4) 1) "edge1"
   2) "279.7405"
   3) 1) "12.75848776102066"
      2) "38.78813451624225"
resp3:
1) 1) "Catania"
   2) "56.4413"
   3) 1) (double) 15.087267458438873
      2) (double) 37.50266842333162
2) 1) "Palermo"
   2) "190.4424"
   3) 1) (double) 13.361389338970184
      2) (double) 38.1155563954963
3) 1) "edge2"
   2) "279.7403"
   3) 1) (double) 17.241510450839996
      2) (double) 38.78813451624225
4) 1) "edge1"
   2) "279.7405"
   3) 1) (double) 12.75848776102066
      2) (double) 38.78813451624225
> GEOSEARCH g FROMLONLAT 15 37 BYBOX 200 400 km ASC
1) "Catania"
> GEOSEARCH g FROMLONLAT 15 37 BYBOX 400 200 km ASC
1) "Catania"
> GEOSEARCH g FROMMEMBER Catania BYBOX 400 400 km ASC COUNT 2 WITHDIST
1) 1) "Catania"
   2) "0.0000"
2) 1) "Palermo"
   2) "166.2742"
> GEOSEARCH g FROMMEMBER Catania BYBOX 0 0 m
1) "Catania"
> GEOSEARCH g FROMLONLAT 15 37 BYBOX 100000 100000 km DESC
1) "edge1"
2) "edge2"
3) "Palermo"
4) "Catania"

== GEOSEARCH rejects what is wrong
> GEOADD g 13.361389 38.115556 Palermo
(integer) 1
> GEOSEARCH
(error) ERR wrong number of arguments for 'geosearch' command
> GEOSEARCH g
(error) ERR wrong number of arguments for 'geosearch' command
> GEOSEARCH g FROMLONLAT 15 37
(error) ERR wrong number of arguments for 'geosearch' command
> GEOSEARCH g FROMLONLAT 15 37 ASC WITHDIST WITHHASH
(error) ERR exactly one of BYRADIUS and BYBOX can be specified for GEOSEARCH
> GEOSEARCH g BYRADIUS 1 km ASC WITHDIST
(error) ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for GEOSEARCH
> GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 foo
(error) ERR unsupported unit provided. please use M, KM, FT, MI
> GEOSEARCH g FROMLONLAT 15 37 BYRADIUS x km
(error) ERR need numeric radius
> GEOSEARCH g FROMLONLAT 15 37 BYRADIUS -1 km
(error) ERR radius cannot be negative
> GEOSEARCH g FROMLONLAT 15 37 BYBOX -1 1 km
(error) ERR height or width cannot be negative
> GEOSEARCH g FROMLONLAT 15 37 BYBOX 1 x km
(error) ERR need numeric height
> GEOSEARCH g FROMLONLAT 15 37 BYBOX x 1 km
(error) ERR need numeric width
> GEOSEARCH g FROMLONLAT 15 37 BYBOX 1 1 foo
(error) ERR unsupported unit provided. please use M, KM, FT, MI
> GEOSEARCH g FROMLONLAT 200 37 BYRADIUS 1 km
(error) ERR invalid longitude,latitude pair 200.000000,37.000000
> GEOSEARCH g FROMLONLAT x 37 BYRADIUS 1 km
(error) ERR value is not a valid float
> GEOSEARCH g FROMMEMBER nothing BYRADIUS 1 km
(error) ERR could not decode requested zset member
> GEOSEARCH nokey FROMMEMBER nothing BYRADIUS 1 km
(empty array)
> GEOSEARCH g FROMMEMBER Palermo FROMLONLAT 1 1 BYRADIUS 1 km
(error) ERR syntax error
> GEOSEARCH g FROMMEMBER Palermo BYRADIUS 1 km BYBOX 1 1 km
(error) ERR syntax error
> GEOSEARCH g FROMMEMBER Palermo BYRADIUS 1 km COUNT 0
(error) ERR COUNT must be > 0
> GEOSEARCH g FROMMEMBER Palermo BYRADIUS 1 km COUNT -1
(error) ERR COUNT must be > 0
> GEOSEARCH g FROMMEMBER Palermo BYRADIUS 1 km COUNT x
(error) ERR value is not an integer or out of range
> GEOSEARCH g FROMMEMBER Palermo BYRADIUS 1 km COUNT
(error) ERR syntax error
> GEOSEARCH g FROMMEMBER Palermo BYRADIUS 1 km ANY
(error) ERR the ANY argument requires COUNT argument
> GEOSEARCH g FROMMEMBER Palermo BYRADIUS 1 km foo
(error) ERR syntax error
> GEOSEARCH g FROMMEMBER Palermo BYRADIUS 1 km STORE d
(error) ERR syntax error
> GEOSEARCH g FROMMEMBER Palermo BYRADIUS 1 km STOREDIST
(error) ERR syntax error
> SET k v
OK
> GEOSEARCH k FROMLONLAT 15 37 BYRADIUS 1 km
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> GEOSEARCH k FROMMEMBER a BYRADIUS 1 km
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== GEOSEARCHSTORE
> GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
(integer) 2
> GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 200 km
(integer) 2
> ZRANGE d 0 -1 WITHSCORES
1) "Palermo"
2) "3479099956230698"
3) "Catania"
4) "3479447370796909"
resp3:
1) 1) "Palermo"
   2) (double) 3479099956230698
2) 1) "Catania"
   2) (double) 3479447370796909
> GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 200 km STOREDIST
(integer) 2
> ZRANGE d 0 -1 WITHSCORES
1) "Catania"
2) "56.4412578701582"
3) "Palermo"
4) "190.44242984775784"
resp3:
1) 1) "Catania"
   2) (double) 56.4412578701582
2) 1) "Palermo"
   2) (double) 190.44242984775784
> GEOSEARCHSTORE d g FROMLONLAT 15 37 BYBOX 400 400 km ASC COUNT 1
(integer) 1
> ZRANGE d 0 -1
1) "Catania"
> GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 1 km
(integer) 0
> EXISTS d
(integer) 0
> SET d v
OK
> GEOSEARCHSTORE d nokey FROMLONLAT 15 37 BYRADIUS 1 km
(integer) 0
> EXISTS d
(integer) 0
> GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 200 km WITHDIST
(error) ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options
> GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 200 km STORE x
(error) ERR syntax error
> GEOSEARCHSTORE d g FROMMEMBER nothing BYRADIUS 200 km
(error) ERR could not decode requested zset member
> GEOSEARCHSTORE d nokey FROMMEMBER nothing BYRADIUS 200 km
(integer) 0
> GEOSEARCHSTORE d
(error) ERR wrong number of arguments for 'geosearchstore' command
> SET k v
OK
> GEOSEARCHSTORE d k FROMLONLAT 15 37 BYRADIUS 1 km
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== GEORADIUS and GEORADIUSBYMEMBER
> GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
(integer) 2
> GEORADIUS g 15 37 200 km ASC
1) "Catania"
2) "Palermo"
> GEORADIUS g 15 37 200 km WITHDIST DESC
1) 1) "Palermo"
   2) "190.4424"
2) 1) "Catania"
   2) "56.4413"
> GEORADIUS g 15 37 200 km WITHCOORD WITHHASH ASC
1) 1) "Catania"
   2) (integer) 3479447370796909
   3) 1) "15.087267458438873"
      2) "37.50266842333162"
2) 1) "Palermo"
   2) (integer) 3479099956230698
   3) 1) "13.361389338970184"
      2) "38.1155563954963"
resp3:
1) 1) "Catania"
   2) (integer) 3479447370796909
   3) 1) (double) 15.087267458438873
      2) (double) 37.50266842333162
2) 1) "Palermo"
   2) (integer) 3479099956230698
   3) 1) (double) 13.361389338970184
      2) (double) 38.1155563954963
> GEORADIUS g 15 37 200 km COUNT 1
1) "Catania"
> [count] GEORADIUS g 15 37 200 km COUNT 1 ANY
(integer) 1
> GEORADIUS g 15 37 200 km STORE d
(integer) 2
> ZRANGE d 0 -1
1) "Palermo"
2) "Catania"
> GEORADIUS g 15 37 200 km STOREDIST d
(integer) 2
> ZRANGE d 0 -1 WITHSCORES
1) "Catania"
2) "56.4412578701582"
3) "Palermo"
4) "190.44242984775784"
resp3:
1) 1) "Catania"
   2) (double) 56.4412578701582
2) 1) "Palermo"
   2) (double) 190.44242984775784
> GEORADIUS g 15 37 200 km STORE d WITHDIST
(error) ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options
> GEORADIUS g 15 37 200 km STORE
(error) ERR syntax error
> GEORADIUS nokey 15 37 200 km
(empty array)
> GEORADIUS nokey 15 37 200 km STORE d
(integer) 0
> EXISTS d
(integer) 0
> GEORADIUS g 15 37 x km
(error) ERR need numeric radius
> GEORADIUS g 15 37 -1 km
(error) ERR radius cannot be negative
> GEORADIUS g 15 37 1 foo
(error) ERR unsupported unit provided. please use M, KM, FT, MI
> GEORADIUS g 200 37 1 km
(error) ERR invalid longitude,latitude pair 200.000000,37.000000
> GEORADIUS g 15 37 200
(error) ERR wrong number of arguments for 'georadius' command
> GEORADIUS g 15 37 200 km foo
(error) ERR syntax error
> GEORADIUS g 15 37 200 km FROMMEMBER Palermo
(error) ERR syntax error
> GEORADIUSBYMEMBER g Palermo 200 km ASC
1) "Palermo"
2) "Catania"
> GEORADIUSBYMEMBER g Palermo 200 km WITHDIST ASC
1) 1) "Palermo"
   2) "0.0000"
2) 1) "Catania"
   2) "166.2742"
> GEORADIUSBYMEMBER g nothing 200 km
(error) ERR could not decode requested zset member
> GEORADIUSBYMEMBER nokey nothing 200 km
(empty array)
> GEORADIUSBYMEMBER g Palermo 200 km STORE d
(integer) 2
> ZCARD d
(integer) 2
> GEORADIUSBYMEMBER g Palermo 200
(error) ERR wrong number of arguments for 'georadiusbymember' command
> GEORADIUSBYMEMBER g Palermo 200 foo
(error) ERR unsupported unit provided. please use M, KM, FT, MI

== GEORADIUS_RO and GEORADIUSBYMEMBER_RO
> GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
(integer) 2
> GEORADIUS_RO g 15 37 200 km ASC WITHDIST
1) 1) "Catania"
   2) "56.4413"
2) 1) "Palermo"
   2) "190.4424"
> GEORADIUS_RO g 15 37 200 km STORE d
(error) ERR syntax error
> GEORADIUS_RO g 15 37 200 km STOREDIST d
(error) ERR syntax error
> GEORADIUSBYMEMBER_RO g Palermo 200 km ASC
1) "Palermo"
2) "Catania"
> GEORADIUSBYMEMBER_RO g Palermo 200 km STORE d
(error) ERR syntax error
> GEORADIUS_RO g 15
(error) ERR wrong number of arguments for 'georadius_ro' command
> EXISTS d
(integer) 0

== searches across the date line and near the poles
> GEOADD g 179.9 10 east -179.9 10 west 0 85 north 90 85 north90 0 -85 south 0 0 zero
(integer) 6
> GEOSEARCH g FROMLONLAT 179.95 10 BYRADIUS 100 km ASC WITHDIST
1) 1) "east"
   2) "5.4769"
2) 1) "west"
   2) "16.4306"
> GEOSEARCH g FROMLONLAT 45 85 BYRADIUS 600 km ASC WITHDIST
1) 1) "north"
   2) "425.1834"
> GEOSEARCH g FROMMEMBER south BYRADIUS 10 km
1) "south"
> GEOSEARCH g FROMLONLAT -179.95 10 BYBOX 100 100 km ASC
1) "west"
2) "east"
> GEOSEARCH g FROMLONLAT 0 0 BYRADIUS 20000 km ASC
1) "zero"
2) "north"
3) "south"
4) "north90"
5) "east"
6) "west"
> GEODIST g east west km
"21.9075"
> GEODIST g north south km
"18908.4709"

== members of one place keep their order where some of them are asked for
> GEOADD g 10 10 a 10 10 b 10 10 c
(integer) 3
> GEOSEARCH g FROMLONLAT 11 11 BYRADIUS 500 km DESC COUNT 2
1) "a"
2) "b"
> GEOSEARCH g FROMLONLAT 11 11 BYRADIUS 500 km ASC COUNT 2
1) "a"
2) "b"
> GEOSEARCH g FROMLONLAT 11 11 BYRADIUS 500 km DESC COUNT 1
1) "a"
