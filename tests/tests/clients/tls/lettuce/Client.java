// The server as Lettuce meets it over TLS.
//
// usage: java -cp JARS Client.java PORT AUTHORITY CERTIFICATE KEY OTHER_AUTHORITY
//
// It says that all is well, or fails.

import io.lettuce.core.ClientOptions;
import io.lettuce.core.KeyValue;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SslOptions;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.io.File;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

public class Client {
    static final Duration PATIENCE = Duration.ofSeconds(30);
    static String[] arguments;

    static void expect(boolean holds, Object what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static RedisClient client(String authority, boolean showsItself, ProtocolVersion version) {
        RedisURI place = RedisURI.builder()
                .withHost("127.0.0.1")
                .withPort(Integer.parseInt(arguments[0]))
                .withSsl(true)
                .withTimeout(PATIENCE)
                .build();
        SslOptions.Builder ssl =
                SslOptions.builder().jdkSslProvider().trustManager(new File(authority));
        if (showsItself) {
            ssl.keyManager(new File(arguments[2]), new File(arguments[3]), new char[0]);
        }
        RedisClient client = RedisClient.create(place);
        client.setOptions(ClientOptions.builder()
                .sslOptions(ssl.build())
                .protocolVersion(version)
                .autoReconnect(false)
                .build());
        return client;
    }

    static String refusal(String authority, boolean showsItself) {
        RedisClient client = client(authority, showsItself, ProtocolVersion.RESP3);
        try {
            String answer = client.connect().sync().ping();
            throw new AssertionError("it is served: " + answer);
        } catch (RedisException error) {
            StringBuilder reasons = new StringBuilder();
            for (Throwable own = error; own != null; own = own.getCause()) {
                reasons.append(own).append('\n');
            }
            return reasons.toString();
        } finally {
            client.shutdown(Duration.ZERO, PATIENCE);
        }
    }

    static void use(RedisClient client) throws Exception {
        StatefulRedisConnection<String, String> connection = client.connect();
        RedisCommands<String, String> sync = connection.sync();
        sync.flushall();
        byte[] value = new byte[1_024_000];
        for (int index = 0; index < value.length; index++) {
            value[index] = (byte) index;
        }
        RedisCommands<byte[], byte[]> bytes = client.connect(ByteArrayCodec.INSTANCE).sync();
        expect(bytes.set("value".getBytes(), value).equals("OK"), "SET");
        expect(Arrays.equals(bytes.get("value".getBytes()), value), "GET");

        RedisAsyncCommands<String, String> async = connection.async();
        connection.setAutoFlushCommands(false);
        List<RedisFuture<Long>> pushes = new ArrayList<>();
        for (int index = 0; index < 2000; index++) {
            pushes.add(async.rpush("pipeline", "item-" + index));
        }
        connection.flushCommands();
        connection.setAutoFlushCommands(true);
        Long last = pushes.get(1999).get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        expect(last == 2000, last);
        async.multi();
        for (int index = 0; index < 2000; index++) {
            async.rpush("transaction", "item-" + index);
        }
        TransactionResult result = async.exec().get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        expect(result.size() == 2000 && result.get(1999).equals(2000L), result.size());
        expect(sync.lrange("transaction", 0, -1).size() == 2000, "LRANGE");

        RedisAsyncCommands<String, String> waiting = client.connect().async();
        RedisFuture<KeyValue<String, String>> popped = waiting.blpop(PATIENCE.toSeconds(), "queue");
        Thread.sleep(100);
        sync.rpush("queue", "late");
        KeyValue<String, String> pair = popped.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        expect(pair.getValue().equals("late"), pair);

        LinkedBlockingQueue<String> heard = new LinkedBlockingQueue<>();
        StatefulRedisPubSubConnection<String, String> subscriber = client.connectPubSub();
        subscriber.addListener(new RedisPubSubAdapter<String, String>() {
            @Override
            public void message(String channel, String message) {
                heard.add(message);
            }
        });
        subscriber.sync().subscribe("news");
        for (String text : List.of("hello", "x".repeat(100_000))) {
            expect(sync.publish("news", text) == 1, "PUBLISH");
            expect(text.equals(heard.poll(PATIENCE.toSeconds(), TimeUnit.SECONDS)), text.length());
        }
    }

    public static void main(String[] given) throws Exception {
        arguments = given;
        for (ProtocolVersion version : List.of(ProtocolVersion.RESP2, ProtocolVersion.RESP3)) {
            RedisClient client = client(arguments[1], true, version);
            CompletableFuture<Void> used = CompletableFuture.runAsync(() -> {
                try {
                    use(client);
                } catch (Exception error) {
                    throw new AssertionError(error);
                }
            });
            used.get(2 * PATIENCE.toSeconds(), TimeUnit.SECONDS);
            client.shutdown(Duration.ZERO, PATIENCE);
        }
        String reasons = refusal(arguments[4], true);
        expect(reasons.contains("PKIX path"), reasons);
        refusal(arguments[1], false);
        System.out.println("all is well");
    }
}
