// What every Go client of a bench does: it finds its settings in its environment, speaks a line of JSON at a time, and
// stamps by the monotonic clock. docs/clients.md says it in full.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
	_ "unsafe"

	"github.com/redis/go-redis/v9"
)

var (
	always = context.Background()
	input  = bufio.NewReader(os.Stdin)
	output = json.NewEncoder(os.Stdout)
)

// now reads the monotonic clock, in nanoseconds: the same for all processes of a host.
//
//go:linkname now runtime.nanotime
func now() int64

// begin reads the settings. They are no argument: those everybody can read, and a URL may hold a password.
func begin(settings interface{}) {
	redis.SetLogger(silence{})
	text := os.Getenv("TICKPATH_SETTINGS")
	os.Unsetenv("TICKPATH_SETTINGS")
	if err := json.Unmarshal([]byte(text), settings); err != nil {
		fail(fmt.Errorf("no settings: %w", err))
	}
}

// connect makes a client whose every command is one try: a second one would hide in the time of the first.
func connect(url string, patience time.Duration) *redis.Client {
	options, err := redis.ParseURL(url)
	if err != nil {
		fail(err)
	}
	options.MaxRetries = -1
	options.ReadTimeout = patience
	options.WriteTimeout = patience
	return redis.NewClient(options)
}

// ready says so, and waits for the bench's word; false if the bench is gone.
func ready() bool {
	say("ready")
	return heard()
}

// heard waits for the bench's next line; false if the bench is gone.
func heard() bool {
	_, err := input.ReadString('\n')
	return err == nil
}

func tell(result interface{}) {
	say(map[string]interface{}{"result": result})
}

func fail(err error) {
	what := strings.TrimRight(err.Error(), ".")
	say(map[string]string{"error": what + "; look whether the server is still there, and try again"})
	os.Exit(1)
}

func say(what interface{}) {
	if output.Encode(what) != nil {
		os.Exit(1)
	}
}

// save writes stamps to a file, little-endian, eight bytes each.
func save(path string, stamps []int64) {
	file, err := os.Create(path)
	if err == nil {
		buffered := bufio.NewWriter(file)
		err = binary.Write(buffered, binary.LittleEndian, stamps)
		if err == nil {
			err = buffered.Flush()
		}
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		fail(err)
	}
}

// touched gives room for so many stamps whose pages are there already: a page fault between two of them would be ours.
func touched(stamps int) []int64 {
	room := make([]int64, stamps)
	for i := range room {
		room[i] = 1
	}
	return room[:0]
}

// silence keeps the library's own log out of the terminal: what matters of it comes as an error.
type silence struct{}

func (silence) Printf(context.Context, string, ...interface{}) {}
