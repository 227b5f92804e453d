// Sets keys, gets them again and compares: what a program without tricks gets out of go-redis.
package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var settings struct {
	Client  string
	URL     string
	Keys    string
	Out     string
	Workers int
	Count   int
	Silence float64 `json:"silence_s"`
}

// What one worker did: when each of its pairs began and ended.
type share struct {
	stamps     []int64
	mismatched int
	err        error
}

func main() {
	begin(&settings)
	client := connect(settings.URL, time.Duration(settings.Silence*float64(time.Second)))
	pair := twoCommands
	if settings.Client == "go-redis-pipeline" {
		pair = onePipeline
	}
	shares := make([]share, settings.Workers)
	for i := range shares {
		shares[i].stamps = touched(2 * (settings.Count/settings.Workers + 1))
	}
	if !ready() {
		return
	}
	began := now()
	open(client)
	connected := now()
	var workers sync.WaitGroup
	for first := range shares {
		workers.Add(1)
		go func(first int) {
			defer workers.Done()
			work(client, pair, first, &shares[first])
		}(first)
	}
	workers.Wait()
	ended, mismatched := connected, 0
	var stamps []int64
	for _, share := range shares {
		if share.err != nil {
			fail(share.err)
		}
		mismatched += share.mismatched
		stamps = append(stamps, share.stamps...)
	}
	for i := 1; i < len(stamps); i += 2 {
		if stamps[i] > ended {
			ended = stamps[i]
		}
	}
	save(settings.Out, stamps)
	tell(map[string]int64{
		"connect_ns": connected - began,
		"elapsed_ns": ended - connected,
		"pairs":      int64(len(stamps) / 2),
		"mismatched": int64(mismatched),
	})
}

// Makes the connections that the workers will share, of which each answers a PING.
func open(client *redis.Client) {
	connections := settings.Workers
	if connections > client.Options().PoolSize {
		connections = client.Options().PoolSize
	}
	opened := make([]*redis.Conn, connections)
	answers := make(chan error, connections)
	for i := range opened {
		opened[i] = client.Conn()
		go func(connection *redis.Conn) { answers <- connection.Ping(always).Err() }(opened[i])
	}
	for range opened {
		if err := <-answers; err != nil {
			fail(err)
		}
	}
	for _, connection := range opened {
		if err := connection.Close(); err != nil {
			fail(err)
		}
	}
}

// Every so many pairs from the first one.
func work(client *redis.Client, pair pair, first int, share *share) {
	began := now()
	for number := first; number < settings.Count; number += settings.Workers {
		key, value := fmt.Sprintf("%s:%d", settings.Keys, number), fmt.Sprintf("value:%d", number)
		found, err := pair(always, client, key, value)
		if err != nil && err != redis.Nil {
			share.err = err
			return
		}
		if found != value {
			share.mismatched++
		}
		ended := now()
		share.stamps = append(share.stamps, began, ended)
		began = ended
	}
}

// Sets a key, and gives what it holds then.
type pair func(ctx context.Context, client *redis.Client, key, value string) (string, error)

// Two commands, two round trips in which other workers have their turn.
func twoCommands(ctx context.Context, client *redis.Client, key, value string) (string, error) {
	if err := client.Set(ctx, key, value, 0).Err(); err != nil {
		return "", err
	}
	return client.Get(ctx, key).Result()
}

// Two commands, one round trip.
func onePipeline(ctx context.Context, client *redis.Client, key, value string) (string, error) {
	pipeline := client.Pipeline()
	pipeline.Set(ctx, key, value, 0)
	found := pipeline.Get(ctx, key)
	if _, err := pipeline.Exec(ctx); err != nil {
		return "", err
	}
	return found.Result()
}
