// The server as Jedis meets it over TLS.
//
// usage: java -cp JARS Client.java PORT AUTHORITY CERTIFICATE KEY OTHER_AUTHORITY
//
// It says that all is well, or fails.

import java.io.ByteArrayInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.exceptions.JedisConnectionException;

public class Client {
    static final int PATIENCE_SECONDS = 30;
    static String[] arguments;

    static void expect(boolean holds, Object what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static Certificate certificate(String path) throws Exception {
        byte[] text = Files.readAllBytes(Path.of(path));
        return CertificateFactory.getInstance("X.509").generateCertificate(new ByteArrayInputStream(text));
    }

    static PrivateKey key(String path) throws Exception {
        String text = Files.readString(Path.of(path)).replaceAll("-----[A-Z ]*-----", "");
        byte[] bytes = Base64.getMimeDecoder().decode(text);
        return KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(bytes));
    }

    static Jedis connect(String authority, boolean showsItself) throws Exception {
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        trusted.setCertificateEntry("authority", certificate(authority));
        TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
        trust.init(trusted);
        KeyStore own = KeyStore.getInstance("PKCS12");
        own.load(null, null);
        if (showsItself) {
            Certificate[] chain = {certificate(arguments[2])};
            own.setKeyEntry("own", key(arguments[3]), new char[0], chain);
        }
        KeyManagerFactory keys = KeyManagerFactory.getInstance("PKIX");
        keys.init(own, new char[0]);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
        return new Jedis(
                new HostAndPort("127.0.0.1", Integer.parseInt(arguments[0])),
                DefaultJedisClientConfig.builder()
                        .ssl(true)
                        .sslSocketFactory(context.getSocketFactory())
                        .timeoutMillis(PATIENCE_SECONDS * 1000)
                        .build());
    }

    static String refusal(String authority, boolean showsItself) throws Exception {
        try (Jedis jedis = connect(authority, showsItself)) {
            throw new AssertionError("it is served: " + jedis.ping());
        } catch (JedisConnectionException error) {
            StringBuilder reasons = new StringBuilder();
            for (Throwable own = error; own != null; own = own.getCause()) {
                reasons.append(own).append('\n');
            }
            return reasons.toString();
        }
    }

    public static void main(String[] given) throws Exception {
        arguments = given;
        String authority = arguments[1];
        try (Jedis jedis = connect(authority, true)) {
            jedis.flushAll();
            byte[] value = new byte[1_024_000];
            for (int index = 0; index < value.length; index++) {
                value[index] = (byte) index;
            }
            expect(jedis.set("value".getBytes(), value).equals("OK"), "SET");
            expect(Arrays.equals(jedis.get("value".getBytes()), value), "GET");

            Pipeline pipeline = jedis.pipelined();
            for (int index = 0; index < 2000; index++) {
                pipeline.rpush("pipeline", "item-" + index);
            }
            List<Object> replies = pipeline.syncAndReturnAll();
            expect(replies.get(1999).equals(2000L), replies.get(1999));
            Transaction transaction = jedis.multi();
            for (int index = 0; index < 2000; index++) {
                transaction.rpush("transaction", "item-" + index);
            }
            replies = transaction.exec();
            expect(replies.get(1999).equals(2000L), replies.get(1999));
            expect(jedis.lrange("transaction", 0, -1).size() == 2000, "LRANGE");

            CompletableFuture<List<String>> popped = CompletableFuture.supplyAsync(() -> {
                try (Jedis waiting = connect(authority, true)) {
                    return waiting.blpop(PATIENCE_SECONDS, "queue");
                } catch (Exception error) {
                    throw new AssertionError(error);
                }
            });
            Thread.sleep(100);
            jedis.rpush("queue", "late");
            List<String> words = popped.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
            expect(words.equals(List.of("queue", "late")), words);

            LinkedBlockingQueue<String> heard = new LinkedBlockingQueue<>();
            JedisPubSub listener = new JedisPubSub() {
                @Override
                public void onSubscribe(String channel, int count) {
                    heard.add("subscribed");
                }

                @Override
                public void onMessage(String channel, String message) {
                    heard.add(message);
                }
            };
            CompletableFuture<Void> subscribed = CompletableFuture.runAsync(() -> {
                try (Jedis subscriber = connect(authority, true)) {
                    subscriber.subscribe(listener, "news");
                } catch (Exception error) {
                    throw new AssertionError(error);
                }
            });
            expect("subscribed".equals(heard.poll(PATIENCE_SECONDS, TimeUnit.SECONDS)), "SUBSCRIBE");
            for (String text : List.of("hello", "x".repeat(100_000))) {
                jedis.publish("news", text);
                expect(text.equals(heard.poll(PATIENCE_SECONDS, TimeUnit.SECONDS)), text.length());
            }
            listener.unsubscribe();
            subscribed.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
        }
        String reasons = refusal(arguments[4], true);
        expect(reasons.contains("PKIX path"), reasons);
        refusal(authority, false);
        System.out.println("all is well");
    }
}
