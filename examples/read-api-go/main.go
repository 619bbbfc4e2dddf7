// A read API as it is commonly built: a process beside Redis that answers GET /v1/keys/{key} with the value.
//
// Dunlin answers the same request itself and is compared with the cost of this program. The address of Redis
// decides the set-up: one central Redis for all instances of the API, or a replica beside each (see README.md).
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to serve HTTP on")
	address := flag.String("redis", "127.0.0.1:6379", "address of Redis")
	connections := flag.Int("connections", 0, "most connections to Redis; 0 for ten for each processor")
	flag.Parse()

	store := redis.NewClient(&redis.Options{Addr: *address, PoolSize: *connections})
	defer store.Close()
	server := &http.Server{Addr: *listen, Handler: routes(store), ReadHeaderTimeout: 10 * time.Second}

	stopped, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-stopped.Done()
		patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := server.Shutdown(patience); err != nil {
			log.Print(err)
		}
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}

func routes(store *redis.Client) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/keys/", func(answer http.ResponseWriter, request *http.Request) {
		if request.Method != http.MethodGet {
			http.Error(answer, "keys are read", http.StatusMethodNotAllowed)
			return
		}
		key := strings.TrimPrefix(request.URL.Path, "/v1/keys/")
		value, err := store.Get(request.Context(), key).Bytes()
		switch {
		case errors.Is(err, redis.Nil):
			http.Error(answer, "there is no such key", http.StatusNotFound)
		case err != nil:
			http.Error(answer, err.Error(), http.StatusBadGateway)
		default:
			answer.Header().Set("Content-Type", "application/octet-stream")
			answer.Header().Set("Content-Length", strconv.Itoa(len(value)))
			if _, err := answer.Write(value); err != nil {
				log.Print(err)
			}
		}
	})
	mux.HandleFunc("/healthz", func(answer http.ResponseWriter, request *http.Request) {
		if err := store.Ping(request.Context()).Err(); err != nil {
			http.Error(answer, err.Error(), http.StatusServiceUnavailable)
		}
	})
	return mux
}
