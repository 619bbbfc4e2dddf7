import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.Optional;

/**
 * A repository with optimistic locking, kept in Dunlin over HTTP.
 *
 * <p>Run it as {@code java Repository.java http://localhost:8379} to see each method at work.
 */
public final class Repository {
    /** A value, and the version that it has. */
    public record Versioned(String value, String version) {}

    /** Somebody else was first, or the key is there already, or it is not there. */
    public static final class Conflict extends Exception {
        Conflict(String key) {
            super("the key " + key + " has another version");
        }
    }

    private final HttpClient client = HttpClient.newHttpClient();
    private final String address;

    /** A repository at a server such as {@code http://localhost:8379}. */
    public Repository(String address) {
        this.address = address;
    }

    /** Stores a value under a key that does not exist yet. Returns its version. */
    public String add(String key, String value) throws IOException, InterruptedException, Conflict {
        return written(key, send("PUT", key, "", BodyPublishers.ofString(value), "If-None-Match", "*"));
    }

    /** The value of a key. */
    public Optional<Versioned> get(String key) throws IOException, InterruptedException {
        return read(send("GET", key, "", BodyPublishers.noBody()));
    }

    /** The value of a key, if it has another version than this. */
    public Optional<Versioned> getIfNotMatched(String key, String version)
            throws IOException, InterruptedException {
        return read(send("GET", key, "", BodyPublishers.noBody(), "If-None-Match", version));
    }

    /** Whether there is such a key. */
    public boolean exist(String key) throws IOException, InterruptedException {
        return send("HEAD", key, "", BodyPublishers.noBody()).statusCode() == 200;
    }

    /** Replaces the value of a key that has this version. Returns the new version. */
    public String update(String key, String value, String version)
            throws IOException, InterruptedException, Conflict {
        return written(key, send("PUT", key, "", BodyPublishers.ofString(value), "If-Match", version));
    }

    /** Deletes a key that has this version. */
    public void delete(String key, String version)
            throws IOException, InterruptedException, Conflict {
        written(key, send("DELETE", key, "", BodyPublishers.noBody(), "If-Match", version));
    }

    /** Deletes a key that has this version, and all keys below it. */
    public void deleteWithChildren(String key, String version)
            throws IOException, InterruptedException, Conflict {
        BodyPublisher none = BodyPublishers.noBody();
        written(key, send("DELETE", key, "?recursive=true", none, "If-Match", version));
    }

    private HttpResponse<String> send(
            String method, String key, String query, BodyPublisher body, String... headers)
            throws IOException, InterruptedException {
        String path = URLEncoder.encode(key, StandardCharsets.UTF_8).replace("+", "%20");
        HttpRequest.Builder request =
                HttpRequest.newBuilder(URI.create(address + "/v1/keys/" + path + query));
        request.method(method, body);
        if (headers.length > 0) {
            request.headers(headers);
        }
        return client.send(request.build(), BodyHandlers.ofString());
    }

    private static Optional<Versioned> read(HttpResponse<String> answer) throws IOException {
        return switch (answer.statusCode()) {
            case 200 -> Optional.of(new Versioned(answer.body(), version(answer)));
            case 304, 404 -> Optional.empty();
            default -> throw new IOException(answer.body());
        };
    }

    private static String written(String key, HttpResponse<String> answer)
            throws IOException, Conflict {
        return switch (answer.statusCode()) {
            case 200, 201, 204 -> version(answer);
            case 404, 412 -> throw new Conflict(key);
            default -> throw new IOException(answer.body());
        };
    }

    private static String version(HttpResponse<String> answer) {
        return answer.headers().firstValue("ETag").orElse("");
    }

    // ---- What it does ---------------------------------------------------------------------------

    private static void check(boolean condition, String what) {
        if (!condition) {
            throw new AssertionError(what);
        }
    }

    private interface Action {
        void run() throws Exception;
    }

    private static void conflicts(Action action, String what) throws Exception {
        try {
            action.run();
        } catch (Conflict expected) {
            return;
        }
        throw new AssertionError(what);
    }

    public static void main(String[] arguments) throws Exception {
        Repository repository = new Repository(arguments[0]);
        String key = "teams/blue ü";
        String first = repository.add(key, "one");
        conflicts(() -> repository.add(key, "two"), "a key is added once");
        check(repository.exist(key) && !repository.exist("none"), "exist");
        check(repository.get(key).equals(Optional.of(new Versioned("one", first))), "get");
        check(repository.getIfNotMatched(key, first).isEmpty(), "nothing has changed");
        String second = repository.update(key, "two", first);
        conflicts(() -> repository.update(key, "three", first), "an old version is refused");
        check(repository.getIfNotMatched(key, first).get().value().equals("two"), "it has changed");
        conflicts(() -> repository.delete(key, first), "an old version is not deleted");
        repository.add(key + "/member", "x");
        repository.deleteWithChildren(key, second);
        check(!repository.exist(key) && !repository.exist(key + "/member"), "all are gone");
        conflicts(() -> repository.delete(key, second), "what is gone is not deleted");
        System.out.println("ok");
    }
}
