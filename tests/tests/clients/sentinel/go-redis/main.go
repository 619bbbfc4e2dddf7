// Writes on and on through go-redis's support for Sentinel.
//
// usage: go-redis-sentinel PORTS     (of the Sentinels, with commas between them)
//
// It prints the number of each write that was acknowledged, and ends with its standard input.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	var ended atomic.Bool
	go func() {
		io.Copy(io.Discard, os.Stdin)
		ended.Store(true)
	}()
	var sentinels []string
	for _, port := range strings.Split(os.Args[1], ",") {
		sentinels = append(sentinels, "127.0.0.1:"+port)
	}
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:    "main",
		SentinelAddrs: sentinels,
		DialTimeout:   time.Second,
		ReadTimeout:   time.Second,
		WriteTimeout:  time.Second,
	})
	for number := 1; !ended.Load(); number++ {
		if err := client.Set(context.Background(), "go-redis", number, 0).Err(); err != nil {
			log.Print(err)
			time.Sleep(50 * time.Millisecond)
			continue
		}
		fmt.Println(number)
		time.Sleep(5 * time.Millisecond)
	}
}
