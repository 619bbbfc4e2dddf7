// Writes on and on through go-redis's support for clusters.
//
// usage: go-redis-cluster PORTS     (of some nodes, with commas between them)
//
// It prints what was acknowledged: `count KEY`, `list KEY NUMBER`, `pipeline KEY NUMBER`, and `heard NUMBER` for a
// message that came. It ends with its standard input, and fails when it reads something else than it has written.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	name = "go-redis"
	keys = 40
)

func write(client *redis.ClusterClient, number int) error {
	ctx := context.Background()
	key := fmt.Sprintf("%s:count:%d", name, number%keys)
	if err := client.Incr(ctx, key).Err(); err != nil {
		return err
	}
	fmt.Println("count", key)
	key = fmt.Sprintf("%s:list:%d", name, number%keys)
	if err := client.RPush(ctx, key, number).Err(); err != nil {
		return err
	}
	last, err := client.LIndex(ctx, key, -1).Result()
	if err != nil {
		return err
	}
	if last != strconv.Itoa(number) {
		log.Fatalf("%s ends with %s, not with %d", key, last, number)
	}
	fmt.Println("list", key, number)
	if number%10 != 0 {
		return nil
	}
	if err := client.SPublish(ctx, name+":news", number).Err(); err != nil {
		return err
	}
	answers, err := client.Pipelined(ctx, func(pipeline redis.Pipeliner) error {
		for at := 0; at < 8; at++ {
			pipeline.RPush(ctx, fmt.Sprintf("%s:pipeline:%d", name, at), number)
		}
		return nil
	})
	for at, answer := range answers {
		if answer.Err() == nil {
			fmt.Printf("pipeline %s:pipeline:%d %d\n", name, at, number)
		}
	}
	return err
}

func listen(client *redis.ClusterClient) *redis.PubSub {
	news := client.SSubscribe(context.Background(), name+":news")
	go func() {
		for message := range news.Channel() {
			fmt.Println("heard", message.Payload)
		}
	}()
	return news
}

func main() {
	var ended atomic.Bool
	go func() {
		io.Copy(io.Discard, os.Stdin)
		ended.Store(true)
	}()
	var nodes []string
	for _, port := range strings.Split(os.Args[1], ",") {
		nodes = append(nodes, "127.0.0.1:"+port)
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:        nodes,
		DialTimeout:  2 * time.Second,
		ReadTimeout:  2 * time.Second,
		WriteTimeout: 2 * time.Second,
	})
	news := listen(client)
	failed := false
	for number := 1; !ended.Load(); number++ {
		if err := write(client, number); err != nil {
			log.Print(err)
			// It would ask for the nodes again some seconds later.
			client.ReloadState(context.Background())
			failed = true
			time.Sleep(50 * time.Millisecond)
		} else if failed {
			// A subscription that was refused once is not made again.
			news.Close()
			news = listen(client)
			failed = false
		}
	}
}
