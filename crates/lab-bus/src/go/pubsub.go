// The two processes of pubsub with go-redis: a publisher and a subscriber of a channel.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"sort"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// Before the payload, as the bus has it: the stamp, the kind, and what tells a message from others.
const (
	headerBytes = 16
	kind        = 200
	mark        = "tickpt1"
)

// How long a server may be silent, and what was sent on its way.
const patience = 10 * time.Second

// How long before an intended time the generator stops sleeping, for a timer of Go wakes up to a millisecond late; and
// stops giving its processor away.
const (
	sleepMargin = 2_000_000
	yieldMargin = 20_000
)

var settings struct {
	Target   string
	Topic    string
	Size     int
	Count    int
	Rate     *float64
	Arrivals json.RawMessage
	Batch    int
	Stamps   bool
	Out      string
}

func main() {
	begin(&settings)
	client := connect(settings.Target, patience)
	// Nobody watches for the host's gaps.
	if len(os.Args) > 1 && os.Args[1] == "publisher" {
		publisher(client)
	} else {
		subscriber(client)
	}
}

// What the publisher tells at its end.
type published struct {
	Sent    int     `json:"sent"`
	Refused int     `json:"refused"`
	First   int64   `json:"first"`
	Last    int64   `json:"last"`
	Planned int64   `json:"planned_ns"`
	Late    float64 `json:"late_share"`
	OwnP99  int64   `json:"own_p99_ns"`
}

func publisher(client *redis.Client) {
	if len(settings.Arrivals) > 0 && !bytes.Equal(settings.Arrivals, []byte(`"Steady"`)) {
		fail(errors.New("the Go client sends at equal distances only; leave --arrivals out"))
	}
	// The first message does not pay for the connection.
	if err := client.Ping(always).Err(); err != nil {
		fail(err)
	}
	var rows []int64
	if settings.Rate != nil {
		rows = touched(3 * settings.Count)
	}
	if !ready() {
		return
	}
	var result published
	if settings.Rate != nil {
		result, rows = paced(client, *settings.Rate, rows)
	} else {
		result = flood(client)
	}
	save(settings.Out, rows)
	tell(result)
}

// One message at each intended time. Of each: when it was meant to be sent, when it was, and when the reply was there.
func paced(client *redis.Client, rate float64, rows []int64) (published, []int64) {
	message := newMessage()
	allowance := int64(10_000)
	if interval := int64(1e9 / rate); interval > allowance {
		allowance = interval
	}
	// How late each send was for which the call before it was not to blame.
	own := touched(settings.Count)
	late := 0
	start := now() + 1_000_000
	result := published{Sent: settings.Count, First: start, Last: start}
	free := start
	for number := 0; number < settings.Count; number++ {
		result.Planned = int64(float64(number) * 1e9 / rate)
		intended := start + result.Planned
		actual := until(intended)
		fill(message, intended, actual, number)
		if err := client.Publish(always, settings.Topic, message).Err(); err != nil {
			fail(err)
		}
		done := now()
		rows = append(rows, intended, actual, done)
		due := intended
		if free > due {
			due = free
		}
		lateness := actual - due
		if lateness > allowance {
			late++
		}
		own = append(own, lateness)
		free, result.Last = done, actual
	}
	sort.Slice(own, func(i, j int) bool { return own[i] < own[j] })
	result.OwnP99 = own[len(own)*99/100]
	if result.OwnP99 > math.MaxUint32 {
		result.OwnP99 = math.MaxUint32
	}
	result.Late = float64(late) / float64(settings.Count)
	return result, rows
}

// As fast as it goes, in batches that share a stamp, each a pipeline.
func flood(client *redis.Client) published {
	result := published{First: now()}
	for result.Sent < settings.Count {
		stamp := now()
		pipeline := client.Pipeline()
		for i := 0; i < settings.Batch && result.Sent < settings.Count; i++ {
			message := newMessage()
			fill(message, stamp, stamp, result.Sent)
			pipeline.Publish(always, settings.Topic, message)
			result.Sent++
		}
		if _, err := pipeline.Exec(always); err != nil {
			fail(err)
		}
	}
	result.Last = now()
	return result
}

// Waits for an intended time: it sleeps, then gives its processor to others, then spins.
func until(intended int64) int64 {
	for {
		at := now()
		left := intended - at
		switch {
		case left <= 0:
			return at
		case left > sleepMargin:
			time.Sleep(time.Duration(left - sleepMargin))
		case left > yieldMargin:
			syscall.Syscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
		}
	}
}

func newMessage() []byte {
	message := make([]byte, headerBytes+settings.Size)
	message[8] = kind
	copy(message[9:], mark)
	return message
}

func fill(message []byte, intended, actual int64, number int) {
	for i, word := range []uint64{uint64(intended), uint64(actual), uint64(number)} {
		// The stamp, and behind the header when it was sent and its number.
		at := []int{0, headerBytes, headerBytes + 8}[i]
		binary.LittleEndian.PutUint64(message[at:], word)
	}
}

// What the subscriber has seen.
type received struct {
	Received   int   `json:"received"`
	Reordered  int   `json:"reordered"`
	Duplicated int   `json:"duplicated"`
	Reconnects int   `json:"reconnects"`
	Last       int64 `json:"last"`
	// When each message was meant to be sent, when it was, and when its payload was copied.
	rows   []int64
	copied []byte
	next   int
	// Numbers that were passed over and may still come late.
	passedOver map[int]bool
	lock       sync.Mutex
}

func subscriber(client *redis.Client) {
	seen := &received{passedOver: map[int]bool{}}
	if settings.Stamps {
		seen.rows = touched(3 * settings.Count)
	}
	channel := client.Subscribe(always, settings.Topic)
	if _, err := channel.ReceiveTimeout(always, patience); err != nil {
		fail(err)
	}
	go waitForTheEnd(seen)
	say("ready")
	refused := time.Time{}
	for {
		event, err := channel.Receive(always)
		if err != nil {
			// The library connects again by itself, at the next call.
			if refused.IsZero() {
				refused = time.Now()
			} else if time.Since(refused) > patience {
				fail(err)
			}
			time.Sleep(time.Millisecond)
			continue
		}
		refused = time.Time{}
		seen.lock.Lock()
		switch event := event.(type) {
		case *redis.Message:
			seen.message(event.Payload)
		case *redis.Subscription:
			seen.Reconnects++
		}
		if seen.Received-seen.Duplicated == settings.Count {
			seen.end()
		}
		seen.lock.Unlock()
	}
}

func (seen *received) message(text string) {
	// What others publish here is no message of this run.
	if len(text) < headerBytes+16 || text[9:headerBytes] != mark {
		return
	}
	if len(text) > len(seen.copied) {
		seen.copied = make([]byte, len(text))
	}
	copy(seen.copied, text[headerBytes:])
	seen.Last = now()
	number := int(binary.LittleEndian.Uint64(seen.copied[8:]))
	if settings.Stamps {
		intended := int64(binary.LittleEndian.Uint64([]byte(text[:8])))
		seen.rows = append(seen.rows, intended, int64(binary.LittleEndian.Uint64(seen.copied)), seen.Last)
	}
	seen.Received++
	switch {
	case number == seen.next:
		seen.next++
	case number > seen.next:
		for ; seen.next < number; seen.next++ {
			seen.passedOver[seen.next] = true
		}
		seen.next++
	case seen.passedOver[number]:
		delete(seen.passedOver, number)
		seen.Reordered++
	default:
		seen.Duplicated++
	}
}

// Tells what was seen, and ends the process.
func (seen *received) end() {
	save(settings.Out, seen.rows)
	tell(seen)
	os.Exit(0)
}

// When the publisher has ended, what is on its way may come until nothing has come for so long.
func waitForTheEnd(seen *received) {
	if !heard() {
		os.Exit(0)
	}
	for since := now(); ; time.Sleep(patience / 100) {
		seen.lock.Lock()
		if seen.Last > since {
			since = seen.Last
		}
		if now()-since > int64(patience) {
			seen.end()
		}
		seen.lock.Unlock()
	}
}
