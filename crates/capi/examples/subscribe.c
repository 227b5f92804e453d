/* Prints COUNT numbers of a topic, from the oldest message on, or after a token: subscribe URL TOPIC COUNT [TOKEN] */
#include <tickpath.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_NUMBER = 200, MOST = 64 };

static const uint64_t TURN_NS = 100000000;

static void check(tp_status status, const char *what) {
    if (status != TP_OK) {
        fprintf(stderr, "%s: %s (status %d)\n", what, tp_last_error(), (int)status);
        exit(1);
    }
}

static void on_event(const tp_event *event, void *user) {
    uint64_t *left = user;
    switch (event->type) {
    case TP_MESSAGE:
        if (event->kind == KIND_NUMBER && event->len == sizeof(uint64_t)) {
            /* The bytes belong to the library, and may be unaligned: copy them. */
            uint64_t number;
            memcpy(&number, event->data, sizeof number);
            printf("number %" PRIu64, number);
            /* The stamp of another host's clock gives no time here. */
            if (event->is_of_clock) {
                printf(", %" PRId64 " ns old", tp_ns_between(event->stamp, tp_now()));
            }
            printf("\n");
            --*left;
        }
        break;
    case TP_FOREIGN:
        printf("%zu bytes of another program\n", event->len);
        break;
    case TP_GAP:
        if (event->missed > 0) {
            printf("missed %" PRIu64 "\n", event->missed);
        } else {
            printf("missed ?\n");
        }
        break;
    default:
        break;
    }
}

int main(int argc, char **argv) {
    if (argc != 4 && argc != 5) {
        fprintf(stderr, "usage: subscribe URL TOPIC COUNT [TOKEN]\n");
        return 2;
    }
    if (tp_abi_version() < TP_ABI_VERSION) {
        fprintf(stderr, "the library is older than the header that this was built with; install the newer one\n");
        return 1;
    }
    uint64_t left = strtoull(argv[3], NULL, 10);

    tp_bus *bus;
    check(tp_connect(argv[1], &bus), "connect");

    tp_subscriber_config config = {.size = sizeof config, .start = TP_START_OLDEST, .wait = TP_WAIT_BLOCK};
    if (argc == 5) {
        config.start = TP_START_AFTER;
        config.token = argv[4];
    }
    tp_subscriber *subscriber;
    check(tp_subscriber_open(bus, argv[2], &config, &subscriber), "open");

    while (left > 0) {
        size_t count;
        check(tp_subscriber_poll(subscriber, left < MOST ? left : MOST, on_event, &left, &count), "poll");
        if (count == 0) {
            check(tp_subscriber_wait(subscriber, TURN_NS), "wait");
        }
    }
    char token[TP_TOKEN_BYTES];
    check(tp_subscriber_token(subscriber, token, sizeof token), "token");
    printf("token %s\n", token);

    check(tp_subscriber_close(subscriber), "close the subscriber");
    check(tp_bus_close(bus), "close the bus");
    return 0;
}
