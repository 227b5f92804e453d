/*
 * Tickpath in C: topics and queues over shared-memory logs, Redis, NATS, RabbitMQ and Kafka.
 *
 *   tp_connect(url) -> tp_bus --- tp_publisher_open  -> tp_publisher:  publish, publish_batch, resend, idle
 *                        |------- tp_subscriber_open -> tp_subscriber: poll -> tp_event, wait, token
 *                        |------- tp_pusher_open     -> tp_pusher:     push, push_batch, resend
 *                        `------- tp_puller_open     -> tp_puller:     pull -> tp_pulled, acknowledge, give_back, wait
 *
 * Ownership: what an open function gives is the caller's until its close function; it outlives the tp_bus it came from.
 * What a callback is shown, and what a function is handed, is looked at during the call only.
 *
 * Threads: a handle is used by one thread at a time, and may move from one to another. Two threads that use one handle at
 * once are a mistake of the program, which TP_IN_USE tells of when it happens to be seen, and of a tp_bus always: give each
 * thread its own handle.
 *
 * Forks: a handle that was opened before a fork gives TP_FORKED in the child, where it is the parent's: leave it, and open
 * another one.
 *
 * Closing: TP_IN_USE and TP_FORKED have freed nothing. After anything else, TP_PANIC too, the handle is freed.
 *
 * Callbacks return: they throw nothing, and neither longjmp nor pthread_exit nor pthread_cancel ends them. They do not fork,
 * and do not use the handle that called them.
 *
 * Text is UTF-8 and ends with a zero. Of a config, zero is the usual in every field but its size, and a null pointer is a
 * config of zeros. No other pointer may be null unless its sentence says so.
 *
 * Made by cbindgen from crates/capi; change it there.
 */

#ifndef TICKPATH_H
#define TICKPATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The version of this interface. It grows when something is appended; what was there stays as it is.
#define TP_ABI_VERSION 1

/// In place of a stamp: this moment.
#define TP_NOW UINT64_MAX

/// In place of a sequence number: the transport counts none.
#define TP_NO_SEQUENCE UINT64_MAX

/// Bytes that hold any token, with the zero behind it.
#define TP_TOKEN_BYTES 512

/// What became of a call. The numbers stay; later versions may add others. The same call can succeed later after
/// TP_UNAVAILABLE, TP_OUTCOME_UNKNOWN, TP_TOPIC_FULL and TP_NO_SUBSCRIBER; TP_GONE and TP_NOT_ACKNOWLEDGED are told once, and
/// pulling goes on.
typedef enum {
    /// It is done.
    TP_OK = 0,
    /// The call was wrong: a null pointer, a number that is none, a URL or a name that cannot be.
    TP_INVALID = 1,
    /// The transport cannot do this at all.
    TP_UNSUPPORTED = 2,
    /// The server does not answer, or refuses.
    TP_CONNECT = 3,
    /// Somebody else publishes the topic, or pushes to the queue, which has one who does.
    TP_HAS_PUBLISHER = 4,
    /// The transport takes nothing now; nothing of the message is published.
    TP_UNAVAILABLE = 5,
    /// No answer came: the message may be published, or be so later. Resend finds out.
    TP_OUTCOME_UNKNOWN = 6,
    /// A subscriber is a whole topic behind; nothing of the message is published.
    TP_TOPIC_FULL = 7,
    /// Nobody is subscribed to a topic whose policy is TP_POLICY_FAIL.
    TP_NO_SUBSCRIBER = 8,
    /// A message, or a token's buffer, is of a size that does not fit.
    TP_TOO_LARGE = 9,
    /// The topic's own bytes are damaged.
    TP_DAMAGED = 10,
    /// What a queue held is gone, or part of it.
    TP_GONE = 11,
    /// What was handed over is not surely acknowledged; it may come again.
    TP_NOT_ACKNOWLEDGED = 12,
    /// The handle is in use: a callback used the handle that called it, or another thread does; give each thread its own. A
    /// close function has not freed it.
    TP_IN_USE = 13,
    /// The handle was opened before the process was forked. A close function has not freed it: it is the parent's.
    TP_FORKED = 14,
    /// A mistake of the library itself; the handle can be closed, and nothing else. From a close function: it is freed.
    TP_PANIC = 15,
    /// Anything else, as the sentence says. It does not pass by itself.
    TP_OTHER = 16,
} tp_status;

/// What a subscriber finds.
typedef enum {
    /// A message.
    TP_MESSAGE = 1,
    /// What another program published: it has bytes, perhaps a sequence number, and nothing else.
    TP_FOREIGN = 2,
    /// Messages that this subscriber will never see: it has missed, and nothing else.
    TP_GAP = 3,
} tp_event_type;

/// What became of one message of a batch.
typedef enum {
    /// It is not published, and will not be.
    TP_FATE_NOT_PUBLISHED = 0,
    /// It is published.
    TP_FATE_PUBLISHED = 1,
    /// Nobody knows: it may be published, or be so later. Resend finds out.
    TP_FATE_UNKNOWN = 2,
} tp_fate;

/// What a full topic does.
typedef enum {
    /// The transport's usual.
    TP_POLICY_USUAL = 0,
    /// The publisher never waits; a slow subscriber learns how many it missed.
    TP_POLICY_OVERWRITE = 1,
    /// The publisher is told, keeps its message and decides.
    TP_POLICY_FAIL = 2,
    /// Everything stays.
    TP_POLICY_KEEP = 3,
} tp_policy;

/// Where a subscription begins.
typedef enum {
    /// With the next message that is published.
    TP_START_NOW = 0,
    /// With the oldest that the transport still has.
    TP_START_OLDEST = 1,
    /// With the config's sequence; what is gone already is told as a gap.
    TP_START_SEQUENCE = 2,
    /// Behind what the subscriber was handed that gave the config's token; what is gone since is told as a gap.
    TP_START_AFTER = 3,
} tp_start;

/// How to wait.
typedef enum {
    /// It sleeps until it is woken: no processor, some microseconds.
    TP_WAIT_BLOCK = 0,
    /// It looks without a pause: the shortest latency, a whole processor.
    TP_WAIT_BUSY = 1,
    /// It looks, and gives the processor to others in between.
    TP_WAIT_YIELD = 2,
    /// It looks as long as a wake-up costs, then sleeps; where messages come at a rhythm, it is awake for the next one.
    TP_WAIT_ADAPTIVE = 3,
} tp_wait;

/// What becomes of a message whose puller dies.
typedef enum {
    /// The transport's usual.
    TP_DELIVERY_USUAL = 0,
    /// It is gone.
    TP_DELIVERY_AT_MOST_ONCE = 1,
    /// Another puller gets it, marked as redelivered.
    TP_DELIVERY_AT_LEAST_ONCE = 2,
} tp_delivery;

/// Where topics and queues live.
typedef struct tp_bus tp_bus;

/// Publishes one topic.
typedef struct tp_publisher tp_publisher;

/// Pulls from one queue.
typedef struct tp_puller tp_puller;

/// Pushes to one queue.
typedef struct tp_pusher tp_pusher;

/// Receives one topic.
typedef struct tp_subscriber tp_subscriber;

/// How a publisher opens its topic. Zero is the usual.
typedef struct {
    /// sizeof(tp_publisher_config), as this header has it.
    size_t size;
    /// What a full topic does: a tp_policy.
    uint32_t policy;
    /// Permissions of what the topic is made of, where it is made of files, as for chmod; 0 is 0600.
    uint32_t mode;
    /// Bytes that the topic holds before it is full, about; 0 is a mebibyte.
    size_t capacity_bytes;
    /// With TP_POLICY_OVERWRITE, messages go also when they are older than so many nanoseconds; 0 is at no age.
    uint64_t max_age_ns;
} tp_publisher_config;

/// Some bytes: one message of a batch.
typedef struct {
    /// Where they are; may be null if there are none.
    const void *data;
    /// How many.
    size_t len;
} tp_slice;

/// How a subscriber opens its topic. Zero is the usual: it begins with the next message, and sleeps while it waits.
typedef struct {
    /// sizeof(tp_subscriber_config), as this header has it.
    size_t size;
    /// Where it begins: a tp_start.
    uint32_t start;
    /// How it waits: a tp_wait.
    uint32_t wait;
    /// Of TP_START_SEQUENCE, the first sequence number.
    uint64_t sequence;
    /// Of TP_START_AFTER, what tp_subscriber_token gave; else it may be null.
    const char *token;
} tp_subscriber_config;

/// What a subscriber finds, for as long as its callback runs.
typedef struct {
    /// What it is: a tp_event_type. A later version may know others, which are to be passed over.
    uint32_t type;
    /// Of a message, what kind it is: 16 to 255.
    uint8_t kind;
    /// Of a message, whether its stamp is of this host's clock: of another host's it tells no time here. Of a `file://` topic
    /// that is not known, and true: a stamp of before this boot tells no time either.
    bool is_of_clock;
    /// The topic's count of messages, from 0; TP_NO_SEQUENCE where there is none.
    uint64_t sequence;
    /// Of a message, the publisher's stamp, in ticks of its host's clock.
    uint64_t stamp;
    /// Its bytes.
    const void *data;
    /// How many.
    size_t len;
    /// Of a gap, how many messages; 0 where nobody knows.
    uint64_t missed;
} tp_event;

/// What a subscriber hands events to, with what tp_subscriber_poll was given as `user`. It returns: it throws nothing, and neither
/// longjmp nor pthread_exit nor pthread_cancel ends it. It does not fork, and does not use the subscriber that called it.
typedef void (*tp_on_event)(const tp_event *event, void *user);

/// How a queue is opened; its pushers and pullers must agree. Zero is the usual.
typedef struct {
    /// sizeof(tp_queue_config), as this header has it.
    size_t size;
    /// What becomes of a message whose puller dies: a tp_delivery.
    uint32_t delivery;
    /// Permissions of what the queue is made of, where it is made of files, as for chmod; 0 is 0600.
    uint32_t mode;
    /// Bytes that the queue holds before it is full, about, where it has a bound; 0 is 16 MiB.
    size_t capacity_bytes;
    /// Where a transport cannot see that a puller has died: what it has not acknowledged comes again after so many
    /// nanoseconds without a sign of life; 0 is 30 seconds.
    uint64_t silence_ns;
    /// At least once: a message that was delivered so often, and never acknowledged, goes to the queue NAME.dead; 0 is that it
    /// comes again for ever.
    uint32_t most_deliveries;
    /// What other programs pushed is handed over as a message of this kind, 16 to 255, and without a stamp; 0 is that a
    /// puller skips or refuses such.
    uint32_t foreign_kind;
} tp_queue_config;

/// A message of a queue, for as long as its callback runs.
typedef struct {
    /// The queue's count of messages, from 0; TP_NO_SEQUENCE where there is none.
    uint64_t sequence;
    /// The pusher's stamp, in ticks of its host's clock; 0 of what another program pushed.
    uint64_t stamp;
    /// Its bytes.
    const void *data;
    /// How many.
    size_t len;
    /// Names it to this puller, for tp_puller_give_back; 0 where nothing can be given back.
    uint64_t tag;
    /// How often it was delivered, this time included; 0 where that is not counted.
    uint32_t deliveries;
    /// What kind it is: 16 to 255.
    uint8_t kind;
    /// A puller may have had it already.
    bool redelivered;
    /// Whether its stamp is of this host's clock: of another host's it tells no time here, and a stamp of 0 is none. Of a
    /// `file://` queue that is not known, and true: a stamp of before this boot tells no time either.
    bool is_of_clock;
} tp_pulled;

/// What a puller hands messages to, with what tp_puller_pull was given as `user`. It returns: it throws nothing, and neither
/// longjmp nor pthread_exit nor pthread_cancel ends it. It does not fork, and does not use the puller that called it.
typedef void (*tp_on_pulled)(const tp_pulled *pulled, void *user);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/// The version of the library's interface: a program that was built with this header needs `TP_ABI_VERSION` or more.
uint32_t tp_abi_version(void);

/// What the last call of this thread that failed has to say: a sentence with the remedy, empty if none has failed. It stays
/// valid until the next call of this thread that fails.
const char *tp_last_error(void);

/// Connects to where topics and queues live: shm://, file:///FOLDER, redis://HOST, nats://HOST, amqp://HOST, kafka://HOST;
/// docs/bus.md has them all. The handle goes to `out`, which is null if there is none. A server that goes away would end the
/// process by SIGPIPE: where the URL is neither shm:// nor file:// and the process does as usual with that signal (SIG_DFL),
/// this sets it to SIG_IGN, for the whole process and for good. A handler of the program's own stays.
tp_status tp_connect(const char *url,
                     tp_bus **out);

/// Closes a connection and frees it; a null pointer is none. What it opened stays open.
tp_status tp_bus_close(tp_bus *bus);

/// Removes what a topic has left. A topic that does not exist is no error.
tp_status tp_bus_remove(tp_bus *bus, const char *topic);

/// Removes a queue with all that is in it. A queue that does not exist is no error.
tp_status tp_bus_remove_queue(tp_bus *bus, const char *queue);

/// How many messages wait in a queue that nobody has taken; TP_UNSUPPORTED where the transport cannot tell. A queue that does
/// not exist holds none.
tp_status tp_bus_waiting(tp_bus *bus,
                         const char *queue,
                         uint64_t *waiting);

/// Opens a topic for publishing. The handle goes to `out`, which is null if there is none; `config` may be null.
tp_status tp_publisher_open(tp_bus *bus, const char *topic, const tp_publisher_config *config, tp_publisher **out);

/// Publishes one message of `len` bytes and a kind of 16 to 255, stamped so, or TP_NOW. On an error nothing of it is published,
/// but for TP_OUTCOME_UNKNOWN, behind which it may be, or be so later.
tp_status tp_publisher_publish(tp_publisher *publisher,
                               uint64_t stamp,
                               uint8_t kind,
                               const void *data,
                               size_t len);

/// Publishes `count` messages of one kind and one stamp, as cheaply as the transport can. `done` is how many of the first ones
/// are surely published: on success all. Behind an error messages after those may be published too: `fates`, which may be null, or
/// has `count` bytes, says of each message what became of it, a tp_fate, whatever the call returns. Go on from those that are
/// TP_FATE_NOT_PUBLISHED. TP_OUTCOME_UNKNOWN says that there are some that may be published, TP_FATE_UNKNOWN.
tp_status tp_publisher_publish_batch(tp_publisher *publisher,
                                     uint64_t stamp,
                                     uint8_t kind,
                                     const tp_slice *messages,
                                     size_t count,
                                     size_t *done,
                                     uint8_t *fates);

/// Finds out what has become of what the last call left unknown, and sends it again if need be, as the same messages: each
/// subscriber gets them once. It is for that moment: the next call that publishes gives them up. TP_OK says that all of them
/// are published now. On an error what it says is of those that were unknown, and not of the whole batch; while it is
/// TP_OUTCOME_UNKNOWN, call it again.
tp_status tp_publisher_resend(tp_publisher *publisher);

/// Says that there is nothing to publish now, again and again while the caller spins until there is: a transport may use the
/// time to keep the next message's way warm. Nobody sees anything of it.
tp_status tp_publisher_idle(tp_publisher *publisher);

/// Closes a publisher and frees it; a null pointer is none.
tp_status tp_publisher_close(tp_publisher *publisher);

/// Subscribes to a topic, whether or not somebody publishes it yet. The handle goes to `out`, which is null if there is none;
/// `config` may be null.
tp_status tp_subscriber_open(tp_bus *bus,
                             const char *topic,
                             const tp_subscriber_config *config,
                             tp_subscriber **out);

/// Hands up to `max` events that are there to `on_event`; `count` is how many, on every error too. It never waits.
tp_status tp_subscriber_poll(tp_subscriber *subscriber, size_t max, tp_on_event on_event, void *user, size_t *count);

/// Passes the time as the subscriber was opened to: until something may be there, or, where it sleeps, until `timeout_ns`
/// nanoseconds are over. It may return early, also by a signal: poll again, and wait again.
tp_status tp_subscriber_wait(tp_subscriber *subscriber,
                             uint64_t timeout_ns);

/// Where it stands, as text with a zero behind it, into `size` bytes at `token`, of which TP_TOKEN_BYTES are enough: a
/// subscriber that starts TP_START_AFTER it goes on behind all that was handed over. Empty where there is no history, or
/// nothing is known of the topic yet: then there is nothing to go on behind, and TP_START_NOW or TP_START_OLDEST is to be
/// chosen.
tp_status tp_subscriber_token(tp_subscriber *subscriber,
                              char *token,
                              size_t size);

/// The process that publishes the topic: 0 if there is none, -1 where the transport cannot know.
tp_status tp_subscriber_publisher(tp_subscriber *subscriber, int64_t *process);

/// Closes a subscriber and frees it; a null pointer is none.
tp_status tp_subscriber_close(tp_subscriber *subscriber);

/// Opens a queue for pushing, and makes it if it is not there. The handle goes to `out`, which is null if there is none;
/// `config` may be null.
tp_status tp_pusher_open(tp_bus *bus,
                         const char *queue,
                         const tp_queue_config *config,
                         tp_pusher **out);

/// Pushes one message of `len` bytes and a kind of 16 to 255, stamped so, or TP_NOW; returns when the queue has it. On an error
/// nothing of it is pushed, but for TP_OUTCOME_UNKNOWN, behind which it may be, or be so later.
tp_status tp_pusher_push(tp_pusher *pusher,
                         uint64_t stamp,
                         uint8_t kind,
                         const void *data,
                         size_t len);

/// Pushes `count` messages of one kind and one stamp, in one pipeline, confirmed together. `done` is how many of the first ones
/// are surely pushed: on success all. Behind an error messages after those may be pushed too: `fates`, which may be null, or
/// has `count` bytes, says of each message what became of it, a tp_fate, whatever the call returns. Go on from those that are
/// TP_FATE_NOT_PUBLISHED. TP_OUTCOME_UNKNOWN says that there are some that may be pushed, TP_FATE_UNKNOWN.
tp_status tp_pusher_push_batch(tp_pusher *pusher,
                               uint64_t stamp,
                               uint8_t kind,
                               const tp_slice *messages,
                               size_t count,
                               size_t *done,
                               uint8_t *fates);

/// Finds out what has become of what the last call left unknown, and sends it again if need be. Where the transport does not
/// drop the second copy, a message may lie in the queue twice. It is for that moment: the next call that pushes gives them up.
/// TP_OK says that all of them are pushed now. On an error what it says is of those that were unknown, and not of the whole
/// batch; while it is TP_OUTCOME_UNKNOWN, call it again.
tp_status tp_pusher_resend(tp_pusher *pusher);

/// Closes a pusher and frees it; a null pointer is none.
tp_status tp_pusher_close(tp_pusher *pusher);

/// Opens a queue for pulling, whether or not somebody has pushed yet; `wait` is a tp_wait. The handle goes to `out`, which is
/// null if there is none; `config` may be null.
tp_status tp_puller_open(tp_bus *bus,
                         const char *queue,
                         const tp_queue_config *config,
                         uint32_t wait,
                         tp_puller **out);

/// Takes up to `max` messages that are there, and hands them to `on_pulled`; `count` is how many, on every error too. It never
/// waits for one to come.
tp_status tp_puller_pull(tp_puller *puller,
                         size_t max,
                         tp_on_pulled on_pulled,
                         void *user,
                         size_t *count);

/// Everything that was handed over so far is done with, and never comes again; of what comes again all the same
/// TP_NOT_ACKNOWLEDGED tells. At most once, it does nothing.
tp_status tp_puller_acknowledge(tp_puller *puller);

/// One message that was handed over and is not acknowledged goes back by its tag, at once, and comes again, marked, to any
/// puller. Where the transport takes none back, that is refused.
tp_status tp_puller_give_back(tp_puller *puller,
                              uint64_t tag);

/// Passes the time as the puller was opened to: until something may be there, or, where it sleeps, until `timeout_ns`
/// nanoseconds are over. It may return early, also by a signal: pull again, and wait again.
tp_status tp_puller_wait(tp_puller *puller, uint64_t timeout_ns);

/// Closes a puller and frees it; what is not acknowledged comes again. A null pointer is none.
tp_status tp_puller_close(tp_puller *puller);

/// A stamp of this moment, in ticks of the host's clock, of which all processes of the host have the same. The first call of
/// the first process since the host started takes 0.2 s. 0 if the clock cannot be read, as tp_last_error says.
uint64_t tp_now(void);

/// Now, in nanoseconds since the Unix epoch, by the clock that stamps; 0 if it cannot be read.
uint64_t tp_now_ns(void);

/// Nanoseconds from one stamp of this host to another; negative if the second is the earlier one; 0 if the clock cannot be
/// read.
int64_t tp_ns_between(uint64_t from,
                      uint64_t to);

/// When a stamp of this host was made, in nanoseconds since the Unix epoch; 0 if the clock cannot be read.
uint64_t tp_utc_ns(uint64_t stamp);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TICKPATH_H */
