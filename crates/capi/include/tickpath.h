/*
 * Tickpath in C: topics and queues over shared-memory logs, Redis, NATS, RabbitMQ and Kafka, and orders to an OMS.
 *
 *   tp_connect(url) -> tp_bus --- tp_publisher_open  -> tp_publisher:  publish, publish_batch, resend, idle
 *                        |------- tp_subscriber_open -> tp_subscriber: poll -> tp_event, wait, token
 *                        |------- tp_pusher_open     -> tp_pusher:     push, push_batch, resend
 *                        `------- tp_puller_open     -> tp_puller:     pull -> tp_pulled, acknowledge, give_back, wait
 *
 *   tp_orders_open(config) -> tp_orders: submit, cancel, replace, poll -> tp_order_event, wait
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
 * config of zeros. No other pointer may be null unless its sentence says so. Of a session with an OMS, and of what it is asked
 * for, some fields have no usual, as their struct says.
 *
 * Made by cbindgen from crates/capi; change it there.
 */

#ifndef TICKPATH_H
#define TICKPATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The version of this interface. It grows when something is appended; what was there stays as it is.
#define TP_ABI_VERSION 2

/// Units of a whole price or quantity: both are whole numbers of 10^-8. 61800.5 is 61800 * TP_SCALE + TP_SCALE / 2.
#define TP_SCALE (int64_t)100000000

/// The kind of a message whose bytes are a tp_top_of_book.
#define TP_KIND_TOP_OF_BOOK 16

/// The kind of a message whose bytes are a tp_trade.
#define TP_KIND_TRADE 17

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
    /// The transport, or the OMS, cannot do this at all.
    TP_UNSUPPORTED = 2,
    /// The server does not answer, or refuses.
    TP_CONNECT = 3,
    /// Somebody else publishes the topic, or pushes to the queue, which has one who does.
    TP_HAS_PUBLISHER = 4,
    /// The transport takes nothing now; nothing of the message is published. Of a request: the OMS is not there, or does not
    /// take requests as fast as they come; it has not left.
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
    /// The session with the OMS is over, as the sentence says; close it, and open another one.
    TP_ENDED = 17,
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

/// With which reports a session begins.
typedef enum {
    /// With what is new.
    TP_SINCE_NOW = 0,
    /// With the first of the day; what is not new is told as such.
    TP_SINCE_START = 1,
} tp_since;

/// The side of an order, or of a trade.
typedef enum {
    /// Buys.
    TP_BUY = 1,
    /// Sells.
    TP_SELL = 2,
} tp_side;

/// How an order is priced.
typedef enum {
    /// At its price or better.
    TP_ORDER_TYPE_LIMIT = 0,
    /// At any price. Its own is 0.
    TP_ORDER_TYPE_MARKET = 1,
} tp_order_type;

/// How long an order works.
typedef enum {
    /// Until the day ends.
    TP_DAY = 0,
    /// Until it is canceled.
    TP_GOOD_TILL_CANCEL = 1,
    /// It fills what it can at once; the rest is canceled.
    TP_IMMEDIATE_OR_CANCEL = 3,
    /// It fills whole at once, or not at all.
    TP_FILL_OR_KILL = 4,
} tp_time_in_force;

/// What an order does to a position.
typedef enum {
    /// The venue decides.
    TP_POSITION_DEFAULT = 0,
    /// It opens.
    TP_POSITION_OPEN = 1,
    /// It closes.
    TP_POSITION_CLOSE = 2,
} tp_position_effect;

/// What a session is told.
typedef enum {
    /// What became of an order, or of a request. A venue's refusal is one, too: its exec_type is TP_EXEC_REJECTED or
    /// TP_EXEC_CANCEL_REJECTED.
    TP_TOLD_REPORT = 1,
    /// The OMS has denied a request: it has number, stamp, is_live, client_order_id, order_id, account, code, limit and value. An
    /// order that it was to change goes on as it was.
    TP_TOLD_DENIED = 2,
    /// Reports are missing and do not come: those from `from` on, up to `to`, which is there.
    TP_TOLD_GAP = 3,
    /// The OMS has not taken a request and never will: it has client_order_id and request. It is not sent again by itself, for
    /// it may be too old.
    TP_TOLD_NOT_TAKEN = 4,
    /// Whether the OMS has taken a request cannot be known any more: it has client_order_id and request.
    TP_TOLD_IN_DOUBT = 5,
    /// The session is there, the first time and each time that its connection was made again: it has session and heartbeat_ms.
    TP_TOLD_CONNECTED = 6,
    /// The connection is lost, and is made again by itself.
    TP_TOLD_DISCONNECTED = 7,
    /// It could not be made again yet; told when the reason is another than the one before.
    TP_TOLD_FAILED = 8,
    /// The OMS has the journal `to` where it had `from`: its numbers begin anew.
    TP_TOLD_OTHER_JOURNAL = 9,
    /// The OMS has lost to a loss of power what it said last: the reports from `from` on, up to `to`, come again, and may say
    /// something else.
    TP_TOLD_SAID_AGAIN = 10,
    /// The OMS took the requests from `from` on, up to `to`, and knows them no more.
    TP_TOLD_FORGOTTEN = 11,
} tp_order_event_type;

/// What a report tells, by FIX's numbers (150).
typedef enum {
    /// The venue has the order.
    TP_EXEC_NEW = 0,
    /// It is canceled, on request or not.
    TP_EXEC_CANCELED = 4,
    /// It is replaced: price and leaves_quantity are the new ones.
    TP_EXEC_REPLACED = 5,
    /// A cancel is on its way.
    TP_EXEC_PENDING_CANCEL = 6,
    /// The venue has refused the order.
    TP_EXEC_REJECTED = 8,
    /// The OMS has the order, the venue not yet.
    TP_EXEC_PENDING_NEW = 10,
    /// It has expired: what an immediate order leaves, or the day's end.
    TP_EXEC_EXPIRED = 12,
    /// A replace is on its way.
    TP_EXEC_PENDING_REPLACE = 14,
    /// A fill, of last_quantity at last_price.
    TP_EXEC_TRADE = 15,
    /// A fill has another quantity or price than was told: the report has what holds.
    TP_EXEC_TRADE_CORRECT = 16,
    /// A fill is taken back.
    TP_EXEC_TRADE_CANCEL = 17,
    /// How the order stands; nothing has happened to it.
    TP_EXEC_ORDER_STATUS = 18,
    /// The venue has refused a cancel or a replace; the order goes on.
    TP_EXEC_CANCEL_REJECTED = 20,
    /// The order's trigger has fired.
    TP_EXEC_TRIGGERED = 21,
} tp_exec_type;

/// How an order stands, by FIX's numbers (39) as far as it has them.
typedef enum {
    /// The venue has it, and nothing is filled.
    TP_ORDER_NEW = 0,
    /// Some is filled, some works.
    TP_ORDER_PARTIALLY_FILLED = 1,
    /// All is filled. A fill can still be taken back.
    TP_ORDER_FILLED = 2,
    /// It is out for the day.
    TP_ORDER_DONE_FOR_DAY = 3,
    /// It is canceled.
    TP_ORDER_CANCELED = 4,
    /// A cancel is on its way.
    TP_ORDER_PENDING_CANCEL = 6,
    /// It was refused.
    TP_ORDER_REJECTED = 8,
    /// The venue has halted it.
    TP_ORDER_SUSPENDED = 9,
    /// It is on its way to the venue, or waits for it at the OMS.
    TP_ORDER_PENDING_NEW = 10,
    /// It has expired.
    TP_ORDER_EXPIRED = 12,
    /// A replace is on its way.
    TP_ORDER_PENDING_REPLACE = 14,
    /// Nobody knows what happened to it; it counts as open.
    TP_ORDER_UNKNOWN = 21,
    /// It waits at the OMS for its trigger.
    TP_ORDER_ARMED = 22,
} tp_order_status;

/// What a request was.
typedef enum {
    /// Of tp_orders_submit.
    TP_REQUEST_SUBMIT = 1,
    /// Of tp_orders_cancel.
    TP_REQUEST_CANCEL = 2,
    /// Of tp_orders_replace.
    TP_REQUEST_REPLACE = 3,
} tp_request;

/// Where topics and queues live.
typedef struct tp_bus tp_bus;

/// A session with an OMS.
typedef struct tp_orders tp_orders;

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

/// How a session with an OMS is opened. Zero is the usual in every field but size, url, user, password and, as a rule, account.
typedef struct {
    /// sizeof(tp_orders_config), as this header has it.
    size_t size;
    /// Where the OMS listens: unix:///PATH, the same over shared memory shm+unix:///PATH, tcp://HOST:PORT, or encrypted
    /// tls://HOST:PORT, with ?ca=FILE for an authority of one's own.
    const char *url;
    /// Who logs on.
    const char *user;
    /// What proves it.
    const char *password;
    /// The id of the first request that is given none, from which on they count up: ids that this session has not had today. 0 is
    /// made of the time.
    uint64_t first_id;
    /// The account of requests that name none.
    uint32_t account;
    /// Whether `session` counts: 0 is the first of the user's sessions that nobody uses, 1 is that one, which is taken from who
    /// has it.
    uint32_t has_session;
    /// Which of the user's sessions.
    uint32_t session;
    /// With which reports it begins: a tp_since.
    uint32_t since;
    /// After so many milliseconds without a word either side takes the other for gone; 0 is the OMS's choice.
    uint32_t heartbeat_ms;
    /// How many milliseconds making a connection may take, the logon included; 0 is 5000.
    uint32_t connect_timeout_ms;
} tp_orders_config;

/// A new order. Zero is the usual in every field but size, price, quantity, symbol and side.
typedef struct {
    /// sizeof(tp_new_order), as this header has it.
    size_t size;
    /// The program's own id of this request, which no other one of this session has had today; 0 is that the library gives the
    /// next of its own.
    uint64_t id;
    /// The limit, in 10^-8; 0 of a market order.
    int64_t price;
    /// How much, in 10^-8.
    int64_t quantity;
    /// The stamp of the event to which this is the answer, in ticks of this host's clock, as a tp_event has it; 0 if it is to
    /// none.
    uint64_t cause;
    /// The instrument's number in the OMS's table, as a tick has it.
    uint32_t symbol;
    /// For whom; 0 is the account of the config.
    uint32_t account;
    /// What it does: a tp_side.
    uint32_t side;
    /// How it is priced: a tp_order_type.
    uint32_t order_type;
    /// How long it works: a tp_time_in_force.
    uint32_t time_in_force;
    /// What it does to the position: a tp_position_effect.
    uint32_t position_effect;
} tp_new_order;

/// Asks to cancel an order. Either original or order_id names it.
typedef struct {
    /// sizeof(tp_cancel_order), as this header has it.
    size_t size;
    /// The program's own id of this request, as in a tp_new_order; 0 is that the library gives it one.
    uint64_t id;
    /// The id of the new order in this session, whatever replaces came after.
    uint64_t original;
    /// The OMS's id of the order, whatever session has sent it: any for an account that this session may trade for.
    uint64_t order_id;
    /// The stamp of the event to which this is the answer, as in a tp_new_order.
    uint64_t cause;
    /// For whom; 0 is the account of the config.
    uint32_t account;
    /// Zero.
    uint32_t reserved;
} tp_cancel_order;

/// Asks for another price and another total quantity of an order.
typedef struct {
    /// sizeof(tp_replace_order), as this header has it.
    size_t size;
    /// The program's own id of this request, as in a tp_new_order; 0 is that the library gives it one.
    uint64_t id;
    /// The id of the new order in this session, whatever replaces came before.
    uint64_t original;
    /// The new limit, in 10^-8.
    int64_t price;
    /// The new total quantity, what is filled already included, in 10^-8.
    int64_t quantity;
    /// The stamp of the event to which this is the answer, as in a tp_new_order.
    uint64_t cause;
    /// For whom; 0 is the account of the config.
    uint32_t account;
    /// Zero.
    uint32_t reserved;
} tp_replace_order;

/// A whole number of 128 bits: high * 2^64 + low.
typedef struct {
    /// Its lower half.
    uint64_t low;
    /// Its upper half, which has the sign: 0 or -1 if the number fits in 64 bits.
    int64_t high;
} tp_int128;

/// Something that a session is told. What its type does not have is 0; prices and quantities are in 10^-8. A later version may
/// know other types, exec_types, statuses and codes.
typedef struct {
    /// sizeof(tp_order_event), as this header has it.
    size_t size;
    /// What it is: a tp_order_event_type.
    uint32_t type;
    /// Of a report, what it tells: a tp_exec_type.
    uint32_t exec_type;
    /// Of a report, how the order stands now: a tp_order_status.
    uint32_t status;
    /// Of a report, the side of the order: a tp_side.
    uint32_t side;
    /// Of a report, the instrument's number.
    uint32_t symbol;
    /// For whom.
    uint32_t account;
    /// Of reports and denials, their count in the session, from 0.
    uint64_t number;
    /// When the OMS sent it, in ticks of its host's clock.
    uint64_t stamp;
    /// The id of the request that it answers, as tp_orders_submit, cancel or replace gave it; 0 if it answers none.
    uint64_t client_order_id;
    /// The OMS's id of the order.
    uint64_t order_id;
    /// The venue's id of the order.
    uint64_t venue_order_id;
    /// The venue's id of this fill; 0 if it is none.
    uint64_t exec_id;
    /// The venue's count of events of this order, from 1; 0 where it gives none.
    uint64_t venue_sequence;
    /// When the venue had the request or made the event, in ticks of its host's clock; 0 if that is not known.
    uint64_t venue_stamp;
    /// The order's limit after this.
    int64_t price;
    /// The price of this fill; 0 if it is none.
    int64_t last_price;
    /// The quantity of this fill; 0 if it is none.
    int64_t last_quantity;
    /// Filled so far.
    int64_t cumulative_quantity;
    /// Still working after this.
    int64_t leaves_quantity;
    /// Of a denial, the limit of its check; what it is a number of docs/risk-checks.md says: 10^-8 of a quantity or a price,
    /// 10^-16 of money, nanoseconds, or a count.
    tp_int128 limit;
    /// Of a denial, the value that broke the limit, in the same unit.
    tp_int128 value;
    /// Where a range begins, as its type says; of TP_TOLD_OTHER_JOURNAL, the journal of before.
    uint64_t from;
    /// What comes behind the range; of TP_TOLD_OTHER_JOURNAL, the journal of now.
    uint64_t to;
    /// For people: why, and what to do; empty where there is nothing to say. It is the library's, and stays until the next poll
    /// of this session, or its close.
    const char *sentence;
    /// The venue's own reason of a refusal; 0 if it is none.
    uint32_t reason;
    /// Which venue.
    uint32_t venue;
    /// Of a denial, which check: its code in docs/risk-checks.md.
    uint32_t code;
    /// Of what was not taken or is in doubt, what it was: a tp_request, or 0.
    uint32_t request;
    /// Of TP_TOLD_CONNECTED, which of the user's sessions it is.
    uint32_t session;
    /// Of TP_TOLD_CONNECTED: who neither polls nor waits for so many milliseconds is taken for gone.
    uint32_t heartbeat_ms;
    /// Whether a report or a denial is new; it is of the past if it was said while this session did not listen.
    bool is_live;
    /// Whether an admin has entered it by hand.
    bool is_manual;
    /// Zero.
    uint8_t reserved[6];
} tp_order_event;

/// The best bid and offer: the 48 bytes of a message of kind TP_KIND_TOP_OF_BOOK, little-endian. Copy them out of it: they lie
/// anywhere in memory.
typedef struct {
    /// Best bid, in 10^-8; 0 if there is none.
    int64_t bid;
    /// Open at the best bid, in 10^-8.
    int64_t bid_quantity;
    /// Best offer, in 10^-8; 0 if there is none.
    int64_t ask;
    /// Open at the best offer, in 10^-8.
    int64_t ask_quantity;
    /// The exchange's own time, in nanoseconds since the Unix epoch, as precise as it gives it.
    uint64_t event_ns;
    /// The instrument's number, as orders name it.
    uint32_t symbol;
    /// Zero.
    uint32_t reserved;
} tp_top_of_book;

/// One trade at the exchange: the 40 bytes of a message of kind TP_KIND_TRADE, little-endian. Copy them out of it: they lie
/// anywhere in memory.
typedef struct {
    /// At this price, in 10^-8.
    int64_t price;
    /// So much, in 10^-8.
    int64_t quantity;
    /// The exchange's id of the trade.
    uint64_t trade_id;
    /// The exchange's own time, in nanoseconds since the Unix epoch.
    uint64_t event_ns;
    /// The instrument's number, as orders name it.
    uint32_t symbol;
    /// The side of the taker: a tp_side.
    uint8_t aggressor;
    /// Zero.
    uint8_t reserved[3];
} tp_trade;

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

/// The process that publishes the topic: 0 if there is none, -1 where the transport cannot know, -2 if it is in another
/// container.
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

/// Logs on to an OMS, and waits for that as long as the config says. The handle goes to `out`, which is null if there is none:
/// TP_CONNECT says that the OMS does not answer, or does not let the user in. From then on the session outlives losses of its
/// connection. Poll or wait more often than its heartbeat_ms: nothing else listens, and who says nothing is taken for gone. As
/// by tp_connect to a server, SIGPIPE is ignored from then on if nobody has chosen otherwise.
tp_status tp_orders_open(const tp_orders_config *config,
                         tp_orders **out);

/// Sends a new order, stamped now, and never waits. `id`, which may be null, gets the id by which reports name it, and by which
/// it is canceled and replaced; 0 on an error, behind which it has not left. TP_OK is no proof that it has left either, nor
/// that the OMS has taken it: what it is told by tp_orders_poll is.
tp_status tp_orders_submit(tp_orders *orders,
                           const tp_new_order *order,
                           uint64_t *id);

/// Asks to cancel an order, like tp_orders_submit; `id` gets the id of this request.
tp_status tp_orders_cancel(tp_orders *orders, const tp_cancel_order *cancel, uint64_t *id);

/// Asks for another price and another total quantity of an order, like tp_orders_submit; `id` gets the id of this request.
tp_status tp_orders_replace(tp_orders *orders,
                            const tp_replace_order *replace,
                            uint64_t *id);

/// Copies up to `max` events that are there to the array `events`, of which the first element's `size` is sizeof(tp_order_event);
/// `count` is how many, on every error too. It never waits, and with a `max` of 0 it only keeps the session alive. TP_ENDED
/// says that the session is over and that all was told.
tp_status tp_orders_poll(tp_orders *orders,
                         tp_order_event *events,
                         size_t max,
                         size_t *count);

/// Sleeps until there may be something to poll, or `timeout_ns` nanoseconds are over. It may return early, also by a signal, and
/// does when a sign of life is due: poll, and wait again. Who does not want to sleep polls alone.
tp_status tp_orders_wait(tp_orders *orders,
                         uint64_t timeout_ns);

/// Logs out, closes a session and frees it; what was sent gets up to 0.2 s to leave. Orders that work go on working, unless the
/// OMS is set to cancel them then. A null pointer is none.
tp_status tp_orders_close(tp_orders *orders);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TICKPATH_H */
