// Writes on and on through Jedis's support for clusters.
//
// usage: java -cp JARS Writer.java PORTS     (of some nodes, with commas between them)
//
// It prints what was acknowledged: `count KEY`, `list KEY NUMBER`. It ends with its standard input, and fails when
// it reads something else than it has written.

import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisCluster;
import redis.clients.jedis.exceptions.JedisException;

public class Writer {
    static final String NAME = "jedis";
    static final int KEYS = 40;

    static void write(JedisCluster cluster, int number) {
        String count = NAME + ":count:" + number % KEYS;
        cluster.incr(count);
        System.out.println("count " + count);
        String list = NAME + ":list:" + number % KEYS;
        cluster.rpush(list, Integer.toString(number));
        String last = cluster.lindex(list, -1);
        if (!Integer.toString(number).equals(last)) {
            System.err.println(list + " ends with " + last + ", not with " + number);
            System.exit(1);
        }
        System.out.println("list " + list + " " + number);
    }

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
        Set<HostAndPort> nodes = new HashSet<>();
        for (String port : arguments[0].split(",")) {
            nodes.add(new HostAndPort("127.0.0.1", Integer.parseInt(port)));
        }
        try (JedisCluster cluster = new JedisCluster(nodes, 2000)) {
            for (int number = 1; !ended.get(); number++) {
                try {
                    write(cluster, number);
                } catch (JedisException error) {
                    System.err.println(error);
                    Thread.sleep(50);
                }
            }
        }
        System.exit(0);
    }
}
