/* Buys one unit of a symbol as soon as its best offer is at or below a whole PRICE, and prints the events of the order:
   orders BUS TOPIC OMS USER PASSWORD_FILE SYMBOL PRICE, as in orders shm:// oms.ticks unix:///DESK/oms.sock trader
   DESK/trader.password 1 61801 */
#include <tickpath.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ACCOUNT = 1, MOST = 64, PASSWORD_BYTES = 256 };

static const uint64_t TURN_NS = 100000000;

struct strategy {
    tp_orders *orders;
    uint32_t symbol;
    int64_t price;
    /* Id of the order; 0 until the order is sent. */
    uint64_t id;
    tp_status status;
};

static void check(tp_status status, const char *what) {
    if (status != TP_OK) {
        fprintf(stderr, "%s: %s (status %d)\n", what, tp_last_error(), (int)status);
        exit(1);
    }
}

static void on_event(const tp_event *event, void *user) {
    struct strategy *mine = user;
    tp_top_of_book top;
    if (mine->id != 0 || event->type != TP_MESSAGE || event->kind != TP_KIND_TOP_OF_BOOK || event->len != sizeof top) {
        return;
    }
    /* The bytes belong to the library, and may be unaligned: copy them. */
    memcpy(&top, event->data, sizeof top);
    if (top.symbol != mine->symbol || top.ask == 0 || top.ask > mine->price) {
        return;
    }
    tp_new_order order = {
        .size = sizeof order,
        .symbol = top.symbol,
        .side = TP_BUY,
        .price = top.ask,
        .quantity = TP_SCALE,
        .time_in_force = TP_IMMEDIATE_OR_CANCEL,
        /* The stamp of another host's clock gives no time here. */
        .cause = event->is_of_clock ? event->stamp : 0,
    };
    mine->status = tp_orders_submit(mine->orders, &order, &mine->id);
}

/* Prints an event; returns true if the order is finished. */
static bool print(const tp_order_event *event) {
    switch (event->type) {
    case TP_TOLD_REPORT:
        printf("order %" PRIu64 ": exec_type %" PRIu32 ", status %" PRIu32, event->client_order_id, event->exec_type,
               event->status);
        printf(", filled %" PRId64 ", last price %" PRId64 ", in 10^-8\n", event->cumulative_quantity, event->last_price);
        return event->status == TP_ORDER_FILLED || event->status == TP_ORDER_CANCELED ||
               event->status == TP_ORDER_EXPIRED || event->status == TP_ORDER_REJECTED;
    case TP_TOLD_DENIED:
        printf("order %" PRIu64 ": denied, code %" PRIu32 ": %s\n", event->client_order_id, event->code, event->sentence);
        return true;
    case TP_TOLD_DETAIL:
        printf("OMS order %" PRIu64 ": fee %" PRIu64 " x 10^-16 %s\n", event->order_id, event->fee.low,
               event->fee_currency);
        return false;
    case TP_TOLD_NOT_TAKEN:
    case TP_TOLD_IN_DOUBT:
        printf("order %" PRIu64 ": %s\n", event->client_order_id, event->sentence);
        return true;
    default:
        /* Events of the connection, and missing reports. */
        printf("%s\n", event->sentence);
        return false;
    }
}

/* Reads the first line of a file: a password as an argument could be read by every user of the host. */
static void read_password(const char *path, char *password) {
    FILE *file = fopen(path, "r");
    if (file == NULL || fgets(password, PASSWORD_BYTES, file) == NULL) {
        fprintf(stderr, "%s: no password can be read there\n", path);
        exit(1);
    }
    fclose(file);
    password[strcspn(password, "\r\n")] = 0;
}

int main(int argc, char **argv) {
    if (argc != 8) {
        fprintf(stderr, "usage: orders BUS TOPIC OMS USER PASSWORD_FILE SYMBOL PRICE\n");
        return 2;
    }
    if (tp_abi_version() < TP_ABI_VERSION) {
        fprintf(stderr, "the library is older than the header that this was built with; install the newer one\n");
        return 1;
    }
    char password[PASSWORD_BYTES];
    read_password(argv[5], password);
    tp_orders_config config = {.size = sizeof config, .url = argv[3], .user = argv[4], .password = password, .account = ACCOUNT};
    struct strategy mine = {.symbol = (uint32_t)strtoul(argv[6], NULL, 10), .price = strtoll(argv[7], NULL, 10) * TP_SCALE};
    check(tp_orders_open(&config, &mine.orders), "log on");
    memset(password, 0, sizeof password);

    tp_bus *bus;
    tp_subscriber *ticks;
    check(tp_connect(argv[1], &bus), "connect");
    check(tp_subscriber_open(bus, argv[2], NULL, &ticks), "subscribe");

    bool is_over = false;
    while (!is_over) {
        size_t ticked, told;
        check(tp_subscriber_poll(ticks, MOST, on_event, &mine, &ticked), "poll the ticks");
        /* An OMS that is unavailable now may be available at the next tick. */
        if (mine.status != TP_UNAVAILABLE) {
            check(mine.status, "submit");
        }
        /* The size in the first element is the size of every element. */
        tp_order_event events[MOST];
        events[0].size = sizeof events[0];
        check(tp_orders_poll(mine.orders, events, MOST, &told), "poll the OMS");
        for (size_t i = 0; i < told; i++) {
            is_over = print(&events[i]) || is_over;
        }
        if (ticked == 0 && told == 0) {
            /* Waits for ticks before the order is sent, and for reports afterwards. */
            check(mine.id == 0 ? tp_subscriber_wait(ticks, TURN_NS) : tp_orders_wait(mine.orders, TURN_NS), "wait");
        }
    }
    check(tp_subscriber_close(ticks), "close the subscriber");
    check(tp_bus_close(bus), "close the bus");
    check(tp_orders_close(mine.orders), "log out");
    return 0;
}
