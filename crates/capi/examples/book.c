/* Prints the order book of an instrument after each message of the exchange, from the oldest event on, for COUNT events
 * of a topic: book URL TOPIC SYMBOL COUNT */
#include <tickpath.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 3, MOST = 64 };

static const uint64_t TURN_NS = 100000000;

/* The book, and the number of events that are left. */
typedef struct {
    tp_book *book;
    uint64_t left;
} reader;

static void check(tp_status status, const char *what) {
    if (status != TP_OK) {
        fprintf(stderr, "%s: %s (status %d)\n", what, tp_last_error(), (int)status);
        exit(1);
    }
}

static void print_side(tp_book *book, const char *name, tp_side side) {
    tp_depth_level levels[DEPTH];
    size_t count;
    check(tp_book_levels(book, side, levels, DEPTH, &count), "levels");
    printf(" %s", name);
    for (size_t i = 0; i < count; i++) {
        printf(" %" PRId64 "@%" PRId64, levels[i].quantity, levels[i].price);
    }
}

static void print_book(tp_book *book) {
    bool is_valid;
    uint32_t reason;
    tp_top_of_book best;
    check(tp_book_is_valid(book, &is_valid, &reason), "is valid");
    if (!is_valid) {
        printf("not valid: %" PRIu32 "\n", reason);
        return;
    }
    check(tp_book_best(book, &best), "best");
    printf("best %" PRId64 " %" PRId64, best.bid, best.ask);
    print_side(book, "bids", TP_BUY);
    print_side(book, "asks", TP_SELL);
    printf("\n");
}

static void on_event(const tp_event *event, void *user) {
    reader *reading = user;
    tp_book_level level;
    tp_feed_status status;
    bool is_complete = true;
    --reading->left;
    if (event->type == TP_GAP) {
        check(tp_book_lost_messages(reading->book), "lost messages");
    } else if (event->type != TP_MESSAGE) {
        return;
    } else if (event->kind == TP_KIND_BOOK_LEVEL && event->len == sizeof level) {
        /* The bytes belong to the library, and may be unaligned: copy them. */
        memcpy(&level, event->data, sizeof level);
        check(tp_book_apply(reading->book, &level, &is_complete), "apply");
    } else if (event->kind == TP_KIND_FEED_STATUS && event->len == sizeof status) {
        memcpy(&status, event->data, sizeof status);
        check(tp_book_status(reading->book, &status), "status");
    } else {
        return;
    }
    if (is_complete) {
        print_book(reading->book);
    }
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: book URL TOPIC SYMBOL COUNT\n");
        return 2;
    }
    if (tp_abi_version() < TP_ABI_VERSION) {
        fprintf(stderr, "the library is older than the header that this was built with; install the newer one\n");
        return 1;
    }
    reader reading = {.left = strtoull(argv[4], NULL, 10)};
    check(tp_book_new((uint32_t)strtoul(argv[3], NULL, 10), &reading.book), "book");

    tp_bus *bus;
    tp_subscriber *subscriber;
    check(tp_connect(argv[1], &bus), "connect");
    tp_subscriber_config config = {.size = sizeof config, .start = TP_START_OLDEST};
    check(tp_subscriber_open(bus, argv[2], &config, &subscriber), "open");
    while (reading.left > 0) {
        size_t count;
        size_t most = reading.left < MOST ? (size_t)reading.left : MOST;
        check(tp_subscriber_poll(subscriber, most, on_event, &reading, &count), "poll");
        if (count == 0) {
            check(tp_subscriber_wait(subscriber, TURN_NS), "wait");
        }
    }
    check(tp_subscriber_close(subscriber), "close the subscriber");
    check(tp_bus_close(bus), "close the bus");
    check(tp_book_free(reading.book), "free the book");
    return 0;
}
