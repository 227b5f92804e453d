/* Prints every field of the first COUNT ticks of a topic, from the oldest on: ticks URL TOPIC COUNT */
#include <tickpath.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t TURN_NS = 100000000;

/* Ends the program if a call fails that the rest relies on. */
static void need(const char *what, tp_status status) {
    if (status != TP_OK) {
        fprintf(stderr, "%s: %d %s\n", what, (int)status, tp_last_error());
        exit(1);
    }
}

static void on_event(const tp_event *event, void *user) {
    tp_top_of_book top;
    tp_trade trade;
    if (event->kind == TP_KIND_TOP_OF_BOOK && event->len == sizeof top) {
        memcpy(&top, event->data, sizeof top);
        printf("top %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, top.bid, top.bid_quantity, top.ask, top.ask_quantity);
        printf(" %" PRIu64 " %" PRIu32 " %" PRIu32 "\n", top.event_ns, top.symbol, top.wire_age_ns);
    } else if (event->kind == TP_KIND_TRADE && event->len == sizeof trade) {
        memcpy(&trade, event->data, sizeof trade);
        printf("trade %" PRId64 " %" PRId64 " %" PRIu64, trade.price, trade.quantity, trade.trade_id);
        printf(" %" PRIu64 " %" PRIu32 " %u\n", trade.event_ns, trade.symbol, (unsigned)trade.aggressor);
    }
    --*(uint64_t *)user;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: ticks URL TOPIC COUNT\n");
        return 2;
    }
    uint64_t left = strtoull(argv[3], NULL, 10);
    tp_bus *bus;
    tp_subscriber *subscriber;
    need("connect", tp_connect(argv[1], &bus));
    tp_subscriber_config config = {.size = sizeof config, .start = TP_START_OLDEST};
    need("subscribe", tp_subscriber_open(bus, argv[2], &config, &subscriber));
    while (left > 0) {
        size_t count;
        need("poll", tp_subscriber_poll(subscriber, left, on_event, &left, &count));
        if (count == 0) {
            need("wait", tp_subscriber_wait(subscriber, TURN_NS));
        }
    }
    need("close the subscriber", tp_subscriber_close(subscriber));
    need("close the bus", tp_bus_close(bus));
    return 0;
}
