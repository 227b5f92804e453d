/* Pushes COUNT numbers into a queue, or pulls COUNT numbers: queue URL QUEUE push|pull COUNT */
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

/* Returns true for the two statuses that are reported once, after which pulling continues. */
static bool is_told_once(tp_status status) {
    return status == TP_GONE || status == TP_NOT_ACKNOWLEDGED;
}

/* Like check, but continues after a status that is reported once. */
static void note(tp_status status, const char *what) {
    if (is_told_once(status)) {
        fprintf(stderr, "%s: %s\n", what, tp_last_error());
    } else {
        check(status, what);
    }
}

static void push(tp_bus *bus, const char *queue, uint64_t count) {
    tp_pusher *pusher;
    check(tp_pusher_open(bus, queue, NULL, &pusher), "open");
    for (uint64_t number = 0; number < count; number++) {
        check(tp_pusher_push(pusher, TP_NOW, KIND_NUMBER, &number, sizeof number), "push");
    }
    uint64_t waiting;
    check(tp_bus_waiting(bus, queue, &waiting), "waiting");
    printf("waiting %" PRIu64 "\n", waiting);
    check(tp_pusher_close(pusher), "close the pusher");
}

static void on_pulled(const tp_pulled *pulled, void *user) {
    uint64_t *left = user;
    uint64_t number;
    if (pulled->kind == KIND_NUMBER && pulled->len == sizeof number) {
        memcpy(&number, pulled->data, sizeof number);
        printf("number %" PRIu64 "%s\n", number, pulled->redelivered ? ", again" : "");
        --*left;
    }
}

static void pull(tp_bus *bus, const char *queue, uint64_t count) {
    tp_puller *puller;
    check(tp_puller_open(bus, queue, NULL, TP_WAIT_BLOCK, &puller), "open");
    for (uint64_t left = count; left > 0;) {
        size_t pulled;
        note(tp_puller_pull(puller, left < MOST ? left : MOST, on_pulled, &left, &pulled), "pull");
        if (pulled == 0) {
            check(tp_puller_wait(puller, TURN_NS), "wait");
            continue;
        }
        /* The work is done: acknowledges the messages, so that none is redelivered. */
        note(tp_puller_acknowledge(puller), "acknowledge");
    }
    check(tp_puller_close(puller), "close the puller");
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: queue URL QUEUE push|pull COUNT\n");
        return 2;
    }
    if (tp_abi_version() < TP_ABI_VERSION) {
        fprintf(stderr, "the library is older than the header that this was built with; install the newer one\n");
        return 1;
    }
    uint64_t count = strtoull(argv[4], NULL, 10);
    tp_bus *bus;
    check(tp_connect(argv[1], &bus), "connect");
    if (strcmp(argv[3], "push") == 0) {
        push(bus, argv[2], count);
    } else {
        pull(bus, argv[2], count);
    }
    check(tp_bus_close(bus), "close the bus");
    return 0;
}
