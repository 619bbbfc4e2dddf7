// Writes on and on through Jedis's support for Sentinel.
//
// usage: java -cp JARS Writer.java PORTS     (of the Sentinels, with commas between them)
//
// It prints the number of each write that was acknowledged, and ends with its standard input.

import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.commons.pool2.impl.GenericObjectPoolConfig;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisSentinelPool;

public class Writer {
    public static void main(String[] arguments) throws Exception {
        AtomicBoolean ended = new AtomicBoolean();
        Thread reader = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {}
            } catch (java.io.IOException error) {
                System.err.println(error);
            }
            ended.set(true);
        });
        reader.setDaemon(true);
        reader.start();
        Set<String> sentinels = new HashSet<>();
        for (String port : arguments[0].split(",")) {
            sentinels.add("127.0.0.1:" + port);
        }
        try (JedisSentinelPool pool =
                new JedisSentinelPool("main", sentinels, new GenericObjectPoolConfig<Jedis>(), 1000)) {
            for (int number = 1; !ended.get(); number++) {
                try (Jedis jedis = pool.getResource()) {
                    jedis.set("jedis", Integer.toString(number));
                    System.out.println(number);
                    Thread.sleep(5);
                } catch (redis.clients.jedis.exceptions.JedisException error) {
                    System.err.println(error);
                    Thread.sleep(50);
                }
            }
        }
        System.exit(0);
    }
}
