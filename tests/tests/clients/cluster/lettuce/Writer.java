// Writes on and on through Lettuce's support for clusters.
//
// usage: java -cp JARS Writer.java PORTS     (of some nodes, with commas between them)
//
// It prints what was acknowledged: `count KEY`, `list KEY NUMBER`, `pipeline KEY NUMBER`, and `heard NUMBER` for a
// message that came. It ends with its standard input, and fails when it reads something else than it has written.

import io.lettuce.core.RedisException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.ClusterTopologyRefreshOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.cluster.api.sync.RedisAdvancedClusterCommands;
import io.lettuce.core.cluster.models.partitions.RedisClusterNode;
import io.lettuce.core.cluster.pubsub.RedisClusterPubSubAdapter;
import io.lettuce.core.cluster.pubsub.StatefulRedisClusterPubSubConnection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;

public class Writer {
    static final String NAME = "lettuce";
    static final int KEYS = 40;

    static void write(StatefulRedisClusterConnection<String, String> connection, int number)
            throws Exception {
        RedisAdvancedClusterCommands<String, String> cluster = connection.sync();
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
        if (number % 10 != 0) {
            return;
        }
        cluster.spublish(NAME + ":news", Integer.toString(number));
        List<RedisFuture<Long>> pushes = new ArrayList<>();
        for (int at = 0; at < 8; at++) {
            pushes.add(connection.async().rpush(NAME + ":pipeline:" + at, Integer.toString(number)));
        }
        for (int at = 0; at < 8; at++) {
            pushes.get(at).get(2, TimeUnit.SECONDS);
            System.out.println("pipeline " + NAME + ":pipeline:" + at + " " + number);
        }
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
        List<RedisURI> nodes = new ArrayList<>();
        for (String port : arguments[0].split(",")) {
            nodes.add(RedisURI.builder()
                    .withHost("127.0.0.1")
                    .withPort(Integer.parseInt(port))
                    .withTimeout(Duration.ofSeconds(2))
                    .build());
        }
        RedisClusterClient client = RedisClusterClient.create(nodes);
        client.setOptions(ClusterClientOptions.builder()
                .topologyRefreshOptions(ClusterTopologyRefreshOptions.builder()
                        .enableAllAdaptiveRefreshTriggers()
                        .adaptiveRefreshTriggersTimeout(Duration.ofMillis(200))
                        .enablePeriodicRefresh(Duration.ofSeconds(1))
                        .build())
                .build());
        StatefulRedisClusterPubSubConnection<String, String> news = client.connectPubSub();
        news.addListener(new RedisClusterPubSubAdapter<String, String>() {
            @Override
            public void smessage(RedisClusterNode node, String channel, String message) {
                System.out.println("heard " + message);
            }
        });
        news.sync().ssubscribe(NAME + ":news");
        StatefulRedisClusterConnection<String, String> connection = client.connect();
        boolean failed = false;
        for (int number = 1; !ended.get(); number++) {
            try {
                write(connection, number);
                if (failed) {
                    // It subscribes again itself, but not if the node that comes back refuses it at first.
                    news.async().ssubscribe(NAME + ":news");
                }
                failed = false;
            } catch (RedisException | ExecutionException | TimeoutException error) {
                System.err.println(error);
                failed = true;
                Thread.sleep(50);
            }
        }
        System.exit(0);
    }
}
