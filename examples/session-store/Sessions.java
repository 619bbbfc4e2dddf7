import java.security.SecureRandom;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Scanner;

import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.Response;

/**
 * Sessions of a web application: each use of a session renews it, no session outlives its longest life, and some
 * of its fields end earlier than the session.
 *
 * <p>{@code java -cp 'jars/*' Sessions.java} reads commands from its input: see the README. PORT is the server's port
 * (6379), IDLE_MS and LIFE_MS how long a session lives unused and at most (half an hour, half a day).
 */
public final class Sessions {
    /** A field that every session has, and whose end is the end of the session however it is used. */
    private static final String LIFE = "life";

    private final RedisClient server;
    private final long idle;
    private final long life;
    private final SecureRandom random = new SecureRandom();

    /** Sessions that live so many milliseconds unused, and at most. */
    public Sessions(RedisClient server, long idle, long life) {
        this.server = server;
        this.idle = idle;
        this.life = life;
    }

    /** Begins a session. Returns its id, which nobody can guess. */
    public String create(String user) {
        String id = newId();
        try (AbstractTransaction step = server.multi()) {
            step.hset(key(id), Map.of(LIFE, "1", "user", user));
            step.hpexpire(key(id), life, LIFE);
            step.pexpire(key(id), idle);
            step.exec();
        }
        return id;
    }

    /** The fields of a session, which lives on for another idle time; nothing if it is over. */
    public Optional<Map<String, String>> use(String id) {
        Response<Map<String, String>> fields;
        try (AbstractTransaction step = server.multi()) {
            // It changes nothing if there is no such session.
            step.pexpire(key(id), idle);
            fields = step.hgetAll(key(id));
            step.exec();
        }
        Map<String, String> found = fields.get();
        if (!found.containsKey(LIFE)) {
            end(id);
            return Optional.empty();
        }
        found.remove(LIFE);
        return Optional.of(found);
    }

    /** Sets a field that ends after so many milliseconds, such as the proof of a password just typed. */
    public boolean put(String id, String field, String value, long milliseconds) {
        // The session may end at any time, and a field must not bring it back.
        String script =
                "if redis.call('HEXISTS', KEYS[1], 'life') == 0 then return 0 end "
                        + "redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) "
                        + "redis.call('HPEXPIRE', KEYS[1], ARGV[3], 'FIELDS', 1, ARGV[1]) return 1";
        List<String> arguments = List.of(field, value, Long.toString(milliseconds));
        return Long.valueOf(1).equals(server.eval(script, List.of(key(id)), arguments));
    }

    /** Gives a session another id, as after a login: who knew the old one knows nothing any more. */
    public String renew(String id) {
        String other = newId();
        server.rename(key(id), key(other));
        return other;
    }

    /** Ends a session. */
    public void end(String id) {
        server.del(key(id));
    }

    private String newId() {
        byte[] bytes = new byte[16];
        random.nextBytes(bytes);
        return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
    }

    private static String key(String id) {
        return "session:" + id;
    }

    // ---- Commands from the input ------------------------------------------------------------------

    private static long number(String name, long usual) {
        String value = System.getenv(name);
        return value == null ? usual : Long.parseLong(value);
    }

    private String answer(String[] words) {
        return switch (words[0]) {
            case "create" -> create(words[1]);
            case "use" -> use(words[1]).map(fields -> new java.util.TreeMap<>(fields).toString()).orElse("over");
            case "put" -> put(words[1], words[2], words[3], Long.parseLong(words[4])) ? "ok" : "over";
            case "renew" -> renew(words[1]);
            case "end" -> {
                end(words[1]);
                yield "ok";
            }
            default -> "create USER | use ID | put ID FIELD VALUE MILLISECONDS | renew ID | end ID";
        };
    }

    public static void main(String[] arguments) {
        int port = (int) number("PORT", 6379);
        try (RedisClient server = RedisClient.create("127.0.0.1", port); Scanner input = new Scanner(System.in)) {
            Sessions sessions =
                    new Sessions(server, number("IDLE_MS", 1_800_000), number("LIFE_MS", 43_200_000));
            while (input.hasNextLine()) {
                String answer;
                try {
                    answer = sessions.answer(input.nextLine().split(" "));
                } catch (RuntimeException error) {
                    answer = "failed: " + error.getMessage();
                }
                System.out.println(answer);
            }
        }
    }
}
