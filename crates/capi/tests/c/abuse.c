/* Misuses the library in every way: abuse URL. Each line has the misuse, the status and the error message. */
#define _POSIX_C_SOURCE 200809L
#include <tickpath.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KIND = 16, LONG_BYTES = 2 << 20, CAPACITY_BYTES = 32 << 10, MOST_PUBLISHED = 100000 };

static char long_message[LONG_BYTES];

static void tell(const char *what, tp_status status) {
    printf("%s: %d %s\n", what, (int)status, status == TP_OK ? "" : tp_last_error());
}

/* Ends the program if a call fails that the rest relies on. */
static void need(const char *what, tp_status status) {
    if (status != TP_OK) {
        fprintf(stderr, "%s: %d %s\n", what, (int)status, tp_last_error());
        exit(1);
    }
}

/* Reports whether the fate of each message of a batch agrees with `done`. */
static bool fits(const uint8_t *fates, size_t count, size_t done) {
    for (size_t i = 0; i < count; i++) {
        if (fates[i] != (i < done ? TP_FATE_PUBLISHED : TP_FATE_NOT_PUBLISHED)) {
            return false;
        }
    }
    return true;
}

static bool ignores_broken_pipes(void) {
    struct sigaction now;
    return sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static void pass(const tp_event *event, void *user) {
    (void)event;
    (void)user;
}

static void pass_pulled(const tp_pulled *pulled, void *user) {
    (void)pulled;
    (void)user;
}

static void use_again(const tp_event *event, void *user) {
    size_t count;
    (void)event;
    tell("poll in a callback", tp_subscriber_poll(user, 1, pass, NULL, &count));
    tell("close in a callback", tp_subscriber_close(user));
}

static void null_handles(void) {
    size_t count;
    uint64_t waiting;
    int64_t process;
    char token[TP_TOKEN_BYTES];
    tp_publisher *publisher;
    tp_subscriber *subscriber;
    tp_pusher *pusher;
    tp_puller *puller;
    tell("null bus, publisher", tp_publisher_open(NULL, "x", NULL, &publisher));
    tell("null bus, subscriber", tp_subscriber_open(NULL, "x", NULL, &subscriber));
    tell("null bus, pusher", tp_pusher_open(NULL, "x", NULL, &pusher));
    tell("null bus, puller", tp_puller_open(NULL, "x", NULL, TP_WAIT_BLOCK, &puller));
    tell("null bus, remove", tp_bus_remove(NULL, "x"));
    tell("null bus, remove queue", tp_bus_remove_queue(NULL, "x"));
    tell("null bus, waiting", tp_bus_waiting(NULL, "x", &waiting));
    tell("null publisher, publish", tp_publisher_publish(NULL, TP_NOW, KIND, "x", 1));
    tell("null publisher, batch", tp_publisher_publish_batch(NULL, TP_NOW, KIND, NULL, 0, &count, NULL));
    tell("null publisher, resend", tp_publisher_resend(NULL));
    tell("null publisher, idle", tp_publisher_idle(NULL));
    tell("null subscriber, poll", tp_subscriber_poll(NULL, 1, pass, NULL, &count));
    tell("null subscriber, wait", tp_subscriber_wait(NULL, 0));
    tell("null subscriber, token", tp_subscriber_token(NULL, token, sizeof token));
    tell("null subscriber, publisher", tp_subscriber_publisher(NULL, &process));
    tell("null pusher, push", tp_pusher_push(NULL, TP_NOW, KIND, "x", 1));
    tell("null pusher, batch", tp_pusher_push_batch(NULL, TP_NOW, KIND, NULL, 0, &count, NULL));
    tell("null pusher, resend", tp_pusher_resend(NULL));
    tell("null puller, pull", tp_puller_pull(NULL, 1, pass_pulled, NULL, &count));
    tell("null puller, acknowledge", tp_puller_acknowledge(NULL));
    tell("null puller, give back", tp_puller_give_back(NULL, 0));
    tell("null puller, wait", tp_puller_wait(NULL, 0));
    tell("null book, apply", tp_book_apply(NULL, &(tp_book_level){0}, NULL));
    tell("null book, status", tp_book_status(NULL, &(tp_feed_status){0}));
    tell("null book, lost messages", tp_book_lost_messages(NULL));
    tell("null book, is valid", tp_book_is_valid(NULL, &(bool){false}, NULL));
    tell("null book, best", tp_book_best(NULL, &(tp_top_of_book){0}));
    tell("null book, levels", tp_book_levels(NULL, TP_BUY, NULL, 0, &count));
    tell("close nothing", tp_bus_close(NULL));
    tell("close no publisher", tp_publisher_close(NULL));
    tell("close no subscriber", tp_subscriber_close(NULL));
    tell("close no pusher", tp_pusher_close(NULL));
    tell("close no puller", tp_puller_close(NULL));
    tell("free no book", tp_book_free(NULL));
}

static void bad_books(void) {
    tp_book *book;
    tp_depth_level levels[1];
    size_t count = 7;
    bool is_valid;
    uint32_t reason;
    tell("null out of a book", tp_book_new(3, NULL));
    need("book", tp_book_new(3, &book));
    tell("null level", tp_book_apply(book, NULL, NULL));
    tell("null status", tp_book_status(book, NULL));
    tell("null is_valid", tp_book_is_valid(book, NULL, &reason));
    tell("null reason", tp_book_is_valid(book, &is_valid, NULL));
    tell("null best", tp_book_best(book, NULL));
    tell("null count of levels", tp_book_levels(book, TP_BUY, levels, 1, NULL));
    tell("null levels", tp_book_levels(book, TP_BUY, NULL, 1, &count));
    tell("count of null levels", count == 0 ? TP_OK : TP_OTHER);
    tell("unknown side", tp_book_levels(book, 9, levels, 1, &count));
    tell("no room for levels", tp_book_levels(book, TP_SELL, NULL, 0, &count));
    tell("level with an unknown code", tp_book_apply(book, &(tp_book_level){.symbol = 3, .side = 9}, NULL));
    need("is valid", tp_book_is_valid(book, &is_valid, &reason));
    tell("its book", !is_valid && reason == TP_BOOK_UNKNOWN_CODE ? TP_OK : TP_OTHER);
    need("free the book", tp_book_free(book));
}

static void bad_places(tp_bus *bus) {
    tp_bus *other;
    tp_publisher *publisher;
    tp_subscriber *subscriber;
    tell("null url", tp_connect(NULL, &other));
    tell("null out", tp_connect("shm://", NULL));
    tell("bad url", tp_connect("carrier-pigeon://roof", &other));
    tell("url of other text", tp_connect("shm://\xff", &other));
    tell("handle of a bad url", other == NULL ? TP_OK : TP_OTHER);
    tell("null topic", tp_publisher_open(bus, NULL, NULL, &publisher));
    tell("bad topic", tp_publisher_open(bus, "a/b", NULL, &publisher));
    tell("null out of a topic", tp_subscriber_open(bus, "x", NULL, NULL));
    tell("bad topic, subscriber", tp_subscriber_open(bus, "a/b", NULL, &subscriber));
}

static void bad_configs(tp_bus *bus) {
    tp_publisher *publisher;
    tp_subscriber *subscriber;
    tp_pusher *pusher;
    tp_puller *puller;
    tp_publisher_config topic = {0};
    tell("size of nothing", tp_publisher_open(bus, "x", &topic, &publisher));
    topic.size = sizeof topic - 1;
    tell("size too small", tp_publisher_open(bus, "x", &topic, &publisher));
    topic.size = sizeof topic + 8;
    tell("size of the future", tp_publisher_open(bus, "x", &topic, &publisher));
    topic.size = sizeof topic;
    topic.policy = 9;
    tell("unknown policy", tp_publisher_open(bus, "x", &topic, &publisher));
    topic.policy = TP_POLICY_USUAL;
    topic.max_age_ns = 1;
    tell("age on a log", tp_publisher_open(bus, "x", &topic, &publisher));
    tp_subscriber_config start = {.size = sizeof start, .start = 9};
    tell("unknown start", tp_subscriber_open(bus, "x", &start, &subscriber));
    start.start = TP_START_AFTER;
    tell("no token", tp_subscriber_open(bus, "x", &start, &subscriber));
    start.token = "";
    tell("empty token", tp_subscriber_open(bus, "x", &start, &subscriber));
    start.token = "yesterday";
    tell("bad token", tp_subscriber_open(bus, "x", &start, &subscriber));
    start.start = TP_START_NOW;
    start.wait = 9;
    tell("unknown wait", tp_subscriber_open(bus, "x", &start, &subscriber));
    start.size = 4;
    tell("subscriber size too small", tp_subscriber_open(bus, "x", &start, &subscriber));
    tp_queue_config queue = {.size = sizeof queue, .delivery = 9};
    tell("unknown delivery", tp_pusher_open(bus, "x", &queue, &pusher));
    queue.delivery = TP_DELIVERY_USUAL;
    queue.foreign_kind = 3;
    tell("foreign kind", tp_puller_open(bus, "x", &queue, TP_WAIT_BLOCK, &puller));
    queue.foreign_kind = 0;
    queue.most_deliveries = 3;
    tell("counted deliveries on a log", tp_puller_open(bus, "x", &queue, TP_WAIT_BLOCK, &puller));
    tell("unknown wait of a puller", tp_puller_open(bus, "x", NULL, 9, &puller));
    queue.size = sizeof queue + 1;
    tell("queue size of the future", tp_pusher_open(bus, "x", &queue, &pusher));
}

static void bad_messages(tp_bus *bus, tp_publisher *publisher) {
    tp_publisher *second;
    size_t done = 7;
    uint8_t fates[2] = {9, 9};
    tp_slice batch[2] = {{"x", 1}, {NULL, 4}};
    tell("kind 15", tp_publisher_publish(publisher, TP_NOW, 15, "x", 1));
    tell("null data", tp_publisher_publish(publisher, TP_NOW, KIND, NULL, 4));
    tell("length below zero", tp_publisher_publish(publisher, TP_NOW, KIND, "x", (size_t)-1));
    tell("long message", tp_publisher_publish(publisher, TP_NOW, KIND, long_message, sizeof long_message));
    tell("null batch", tp_publisher_publish_batch(publisher, TP_NOW, KIND, NULL, 2, &done, NULL));
    tell("null done", tp_publisher_publish_batch(publisher, TP_NOW, KIND, batch, 1, NULL, NULL));
    tell("null data in a batch", tp_publisher_publish_batch(publisher, TP_NOW, KIND, batch, 2, &done, fates));
    tell("done of that batch", done == 0 && fits(fates, 2, done) ? TP_OK : TP_OTHER);
    batch[1] = (tp_slice){long_message, sizeof long_message};
    fates[0] = fates[1] = 9;
    tell("long message in a batch", tp_publisher_publish_batch(publisher, TP_NOW, KIND, batch, 2, &done, fates));
    tell("fates of that batch", fits(fates, 2, done) ? TP_OK : TP_OTHER);
    batch[1] = (tp_slice){"y", 1};
    tell("batch", tp_publisher_publish_batch(publisher, TP_NOW, KIND, batch, 2, &done, fates));
    tell("fates of a batch", done == 2 && fits(fates, 2, done) ? TP_OK : TP_OTHER);
    tell("second publisher", tp_publisher_open(bus, "ticks", NULL, &second));
    tell("empty message", tp_publisher_publish(publisher, TP_NOW, KIND, NULL, 0));
    tell("resend of nothing", tp_publisher_resend(publisher));
}

static void bad_receiving(tp_bus *bus, tp_subscriber *subscriber) {
    char token[TP_TOKEN_BYTES];
    size_t count;
    int64_t process;
    tp_puller *puller;
    tell("null callback", tp_subscriber_poll(subscriber, 1, NULL, NULL, &count));
    tell("null count", tp_subscriber_poll(subscriber, 1, pass, NULL, NULL));
    tell("small token", tp_subscriber_token(subscriber, token, 4));
    tell("null token", tp_subscriber_token(subscriber, NULL, 4));
    need("token", tp_subscriber_token(subscriber, token, sizeof token));
    need("publisher", tp_subscriber_publisher(subscriber, &process));
    tell("publisher is this process", process == (int64_t)getpid() ? TP_OK : TP_OTHER);
    need("use again", tp_subscriber_poll(subscriber, 1, use_again, subscriber, &count));
    tell("one event was there", count == 1 ? TP_OK : TP_OTHER);
    need("puller", tp_puller_open(bus, "jobs", NULL, TP_WAIT_BUSY, &puller));
    tell("null callback of a puller", tp_puller_pull(puller, 1, NULL, NULL, &count));
    tell("give back on a log", tp_puller_give_back(puller, 1));
    tell("null waiting", tp_bus_waiting(bus, "jobs", NULL));
    need("close the puller", tp_puller_close(puller));
}

static void full_topic(tp_bus *bus) {
    tp_publisher_config config = {.size = sizeof config, .policy = TP_POLICY_FAIL, .capacity_bytes = CAPACITY_BYTES};
    tp_publisher *publisher;
    tp_subscriber *subscriber;
    tp_status status = TP_OK;
    need("fail", tp_publisher_open(bus, "fail", &config, &publisher));
    tell("nobody subscribed", tp_publisher_publish(publisher, TP_NOW, KIND, "x", 1));
    need("subscriber", tp_subscriber_open(bus, "fail", NULL, &subscriber));
    for (int i = 0; i < MOST_PUBLISHED && status == TP_OK; i++) {
        status = tp_publisher_publish(publisher, TP_NOW, KIND, "x", 1);
    }
    tell("full topic", status);
    need("close the subscriber", tp_subscriber_close(subscriber));
    need("close the publisher", tp_publisher_close(publisher));
}

static void in_a_fork(const char *url, tp_bus *bus, tp_publisher *publisher, tp_subscriber *subscriber) {
    size_t count;
    tp_subscriber *second;
    tp_bus *own;
    tell("bus in a fork", tp_subscriber_open(bus, "ticks", NULL, &second));
    tell("publish in a fork", tp_publisher_publish(publisher, TP_NOW, KIND, "x", 1));
    tell("poll in a fork", tp_subscriber_poll(subscriber, 1, pass, NULL, &count));
    tell("close in a fork", tp_publisher_close(publisher));
    need("connect", tp_connect(url, &own));
    need("subscribe", tp_subscriber_open(own, "ticks", NULL, &second));
    tell("poll of its own in a fork", tp_subscriber_poll(second, 1, pass, NULL, &count));
    need("close the subscriber", tp_subscriber_close(second));
    need("close the bus", tp_bus_close(own));
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: abuse URL\n");
        return 2;
    }
    tell("version", tp_abi_version() == TP_ABI_VERSION ? TP_OK : TP_OTHER);
    tell("no error yet", *tp_last_error() == 0 ? TP_OK : TP_OTHER);
    null_handles();
    bad_books();

    tp_bus *bus;
    tp_publisher *publisher;
    tp_subscriber *subscriber;
    signal(SIGPIPE, SIG_DFL);
    need("connect", tp_connect(argv[1], &bus));
    tell("broken pipes without a server", ignores_broken_pipes() ? TP_OTHER : TP_OK);
    tp_bus *served;
    if (tp_connect("redis://127.0.0.1:1", &served) == TP_OK) {
        need("close the bus", tp_bus_close(served));
    }
    tell("broken pipes with a server", ignores_broken_pipes() ? TP_OK : TP_OTHER);
    bad_places(bus);
    bad_configs(bus);
    need("publisher", tp_publisher_open(bus, "ticks", NULL, &publisher));
    need("subscriber", tp_subscriber_open(bus, "ticks", NULL, &subscriber));
    need("publish", tp_publisher_publish(publisher, TP_NOW, KIND, "x", 1));
    bad_messages(bus, publisher);
    bad_receiving(bus, subscriber);
    full_topic(bus);

    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        in_a_fork(argv[1], bus, publisher, subscriber);
        fflush(stdout);
        _exit(0);
    }
    int ended;
    if (child < 0 || waitpid(child, &ended, 0) != child || ended != 0) {
        fprintf(stderr, "the fork did not end well\n");
        return 1;
    }
    tell("publish behind a fork", tp_publisher_publish(publisher, TP_NOW, KIND, "x", 1));
    need("close the subscriber", tp_subscriber_close(subscriber));
    need("close the publisher", tp_publisher_close(publisher));
    need("close the bus", tp_bus_close(bus));
    tell("sentence stays", strlen(tp_last_error()) > 0 ? TP_OK : TP_OTHER);
    return 0;
}
