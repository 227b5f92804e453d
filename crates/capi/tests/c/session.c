/* A session with an OMS, controlled by commands on standard input: session URL USER PASSWORD
 *
 *   submit SIDE PRICE QUANTITY TIME_IN_FORCE CAUSE INSTRUCTIONS
 *   cancel ID
 *   replace ID PRICE QUANTITY
 *   until TYPE EXEC_TYPE          polls up to an event of this type; EXEC_TYPE is -1 for any
 *
 * The answer to each command ends with a line that holds a point. */
#include <tickpath.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BTCUSDT = 1, ACCOUNT = 1 };

static const uint64_t TURN_NS = 100000000;

/* Ends the program if a call fails that the rest relies on. */
static void need(const char *what, tp_status status) {
    if (status != TP_OK) {
        fprintf(stderr, "%s: %d %s\n", what, (int)status, tp_last_error());
        exit(1);
    }
}

/* Reads the next number of a command. */
static int64_t number(void) {
    int64_t told;
    if (scanf("%" SCNd64, &told) != 1) {
        fprintf(stderr, "a number is missing\n");
        exit(2);
    }
    return told;
}

static void say(tp_status status, uint64_t id) {
    printf("status=%d id=%" PRIu64 " | %s\n", (int)status, id, status == TP_OK ? "" : tp_last_error());
}

static void submit(tp_orders *orders) {
    uint64_t id = 1;
    tp_new_order order = {.size = sizeof order, .symbol = BTCUSDT};
    order.side = (uint32_t)number();
    order.price = number();
    order.quantity = number();
    order.time_in_force = (uint32_t)number();
    order.cause = (uint64_t)number();
    order.instructions = (uint32_t)number();
    tp_status status = tp_orders_submit(orders, &order, &id);
    say(status, id);
}

static void cancel(tp_orders *orders) {
    uint64_t id = 1;
    tp_cancel_order cancel = {.size = sizeof cancel, .original = (uint64_t)number()};
    tp_status status = tp_orders_cancel(orders, &cancel, &id);
    say(status, id);
}

static void replace(tp_orders *orders) {
    uint64_t id = 1;
    tp_replace_order replace = {.size = sizeof replace, .original = (uint64_t)number()};
    replace.price = number();
    replace.quantity = number();
    tp_status status = tp_orders_replace(orders, &replace, &id);
    say(status, id);
}

static void print(const tp_order_event *event) {
    printf("type=%" PRIu32 " exec_type=%" PRIu32 " status=%" PRIu32, event->type, event->exec_type, event->status);
    printf(" side=%" PRIu32 " symbol=%" PRIu32 " account=%" PRIu32, event->side, event->symbol, event->account);
    printf(" number=%" PRIu64 " id=%" PRIu64 " order_id=%" PRIu64, event->number, event->client_order_id, event->order_id);
    printf(" price=%" PRId64 " last_price=%" PRId64, event->price, event->last_price);
    printf(" last_quantity=%" PRId64 " cumulative=%" PRId64, event->last_quantity, event->cumulative_quantity);
    printf(" leaves=%" PRId64 " code=%" PRIu32 " reason=%" PRIu32, event->leaves_quantity, event->code, event->reason);
    printf(" limit_low=%" PRIu64 " limit_high=%" PRId64, event->limit.low, event->limit.high);
    printf(" value_low=%" PRIu64 " value_high=%" PRId64, event->value.low, event->value.high);
    printf(" session=%" PRIu32 " heartbeat_ms=%" PRIu32, event->session, event->heartbeat_ms);
    printf(" exec_id=%" PRIu64 " fee_low=%" PRIu64, event->exec_id, event->fee.low);
    printf(" fee_high=%" PRId64, event->fee.high);
    printf(" is_usdt=%d liquidity=%" PRIu32, strcmp(event->fee_currency, "USDT") == 0, event->liquidity);
    printf(" received_ns=%" PRIu64 " sent_ns=%" PRIu64, event->venue_received_ns, event->venue_sent_ns);
    printf(" is_live=%d | %s\n", event->is_live, event->sentence);
}

static void until(tp_orders *orders) {
    int64_t type = number();
    int64_t exec_type = number();
    for (;;) {
        size_t count;
        /* A single event: further events wait for the next poll. */
        tp_order_event event = {.size = sizeof event};
        need("poll", tp_orders_poll(orders, &event, 1, &count));
        if (count == 0) {
            need("wait", tp_orders_wait(orders, TURN_NS));
            continue;
        }
        print(&event);
        if (event.type == type && (exec_type < 0 || event.exec_type == exec_type)) {
            return;
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: session URL USER PASSWORD\n");
        return 2;
    }
    tp_orders_config config = {.size = sizeof config, .url = argv[1], .user = argv[2], .password = argv[3], .account = ACCOUNT};
    tp_orders *orders;
    char word[16];
    need("log on", tp_orders_open(&config, &orders));
    while (scanf("%15s", word) == 1) {
        if (strcmp(word, "submit") == 0) {
            submit(orders);
        } else if (strcmp(word, "cancel") == 0) {
            cancel(orders);
        } else if (strcmp(word, "replace") == 0) {
            replace(orders);
        } else if (strcmp(word, "until") == 0) {
            until(orders);
        } else {
            fprintf(stderr, "what is '%s'?\n", word);
            return 2;
        }
        printf(".\n");
        fflush(stdout);
    }
    need("log out", tp_orders_close(orders));
    return 0;
}
