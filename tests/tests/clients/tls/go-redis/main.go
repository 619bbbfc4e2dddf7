// The server as go-redis meets it over TLS.
//
// usage: go-redis-tls PORT AUTHORITY CERTIFICATE KEY OTHER_AUTHORITY
//
// It says that all is well, or fails.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const patience = 30 * time.Second

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

func expect(holds bool, what ...any) {
	if !holds {
		log.Panic(what...)
	}
}

func connect(authority string, own []tls.Certificate) *redis.Client {
	text, err := os.ReadFile(authority)
	check(err)
	trust := x509.NewCertPool()
	expect(trust.AppendCertsFromPEM(text), authority)
	return redis.NewClient(&redis.Options{
		Addr:        "127.0.0.1:" + os.Args[1],
		TLSConfig:   &tls.Config{RootCAs: trust, Certificates: own, ServerName: "127.0.0.1"},
		ReadTimeout: patience,
		MaxRetries:  -1,
	})
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	authority, otherAuthority := os.Args[2], os.Args[5]
	own, err := tls.LoadX509KeyPair(os.Args[3], os.Args[4])
	check(err)
	client := connect(authority, []tls.Certificate{own})
	defer client.Close()
	check(client.FlushAll(ctx).Err())

	value := bytes.Repeat([]byte("0123456789\x00\xff\r\n"), 100_000)
	check(client.Set(ctx, "value", value, 0).Err())
	got, err := client.Get(ctx, "value").Bytes()
	check(err)
	expect(bytes.Equal(got, value), len(got))

	for name, begin := range map[string]func(context.Context, func(redis.Pipeliner) error) ([]redis.Cmder, error){
		"pipeline": client.Pipelined, "transaction": client.TxPipelined,
	} {
		replies, err := begin(ctx, func(pipe redis.Pipeliner) error {
			for index := 0; index < 2000; index++ {
				pipe.RPush(ctx, name, fmt.Sprint("item-", index))
			}
			return nil
		})
		check(err)
		last := replies[len(replies)-1].(*redis.IntCmd).Val()
		expect(last == 2000 && client.LLen(ctx, name).Val() == 2000, name, last)
	}

	popped := make(chan []string)
	go func() {
		words, err := client.BLPop(ctx, patience, "queue").Result()
		check(err)
		popped <- words
	}()
	time.Sleep(100 * time.Millisecond)
	check(client.RPush(ctx, "queue", "late").Err())
	words := <-popped
	expect(len(words) == 2 && words[1] == "late", words)

	subscriber := client.Subscribe(ctx, "news")
	defer subscriber.Close()
	_, err = subscriber.Receive(ctx)
	check(err)
	for _, text := range []string{"hello", strings.Repeat("x", 100_000)} {
		check(client.Publish(ctx, "news", text).Err())
		message, err := subscriber.ReceiveMessage(ctx)
		check(err)
		expect(message.Payload == text, len(message.Payload))
	}

	var unknown x509.UnknownAuthorityError
	err = connect(otherAuthority, []tls.Certificate{own}).Ping(ctx).Err()
	expect(errors.As(err, &unknown), err)
	expect(connect(authority, nil).Ping(ctx).Err() != nil, "served without a certificate")
	fmt.Println("all is well")
}
