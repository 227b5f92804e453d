/* Misuses a session with an OMS in every way: asks URL USER PASSWORD. Each line has the misuse, the status and the
   error message. */
#define _POSIX_C_SOURCE 200809L
#include <tickpath.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BTCUSDT = 1, ACCOUNT = 1, SESSION = 2, OF_AN_ADMIN = 8, ROOM = 4, MOST_TURNS = 6000 };

static const uint64_t TURN_NS = 10000000;

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

static void tell_whether(const char *what, bool is_so) {
    tell(what, is_so ? TP_OK : TP_OTHER);
}

/* A valid order that never trades: far from the market, and immediate-or-cancel. */
static tp_new_order sound(void) {
    return (tp_new_order){
        .size = sizeof(tp_new_order),
        .symbol = BTCUSDT,
        .side = TP_BUY,
        .price = 61000 * TP_SCALE,
        .quantity = TP_SCALE / 1000,
        .time_in_force = TP_IMMEDIATE_OR_CANCEL,
    };
}

static void null_handles(void) {
    uint64_t id = 7;
    size_t count = 7;
    tp_order_event events[ROOM];
    tp_new_order order = sound();
    tp_cancel_order cancel = {.size = sizeof cancel, .original = 1};
    tp_replace_order replace = {.size = sizeof replace, .original = 1};
    events[0].size = sizeof events[0];
    tell("null orders, submit", tp_orders_submit(NULL, &order, &id));
    tell_whether("id of that submit", id == 0);
    tell("null orders, cancel", tp_orders_cancel(NULL, &cancel, &id));
    tell("null orders, replace", tp_orders_replace(NULL, &replace, &id));
    tell("null orders, poll", tp_orders_poll(NULL, events, ROOM, &count));
    tell_whether("count of that poll", count == 0);
    tell("null orders, wait", tp_orders_wait(NULL, 0));
    tell("close no orders", tp_orders_close(NULL));
}

static void bad_configs(tp_orders_config config) {
    tp_orders *orders;
    tp_orders_config given = config;
    tell("null config", tp_orders_open(NULL, &orders));
    tell("null out", tp_orders_open(&config, NULL));
    given.size = 0;
    tell("size of nothing", tp_orders_open(&given, &orders));
    given.size = sizeof given + 8;
    tell("size of the future", tp_orders_open(&given, &orders));
    given = config;
    given.user = NULL;
    tell("null user", tp_orders_open(&given, &orders));
    given = config;
    given.password = NULL;
    tell("null password", tp_orders_open(&given, &orders));
    given = config;
    given.url = "shm://oms";
    tell("url of a bus", tp_orders_open(&given, &orders));
    given.url = "unix://\xff";
    tell("url of other text", tp_orders_open(&given, &orders));
    given.url = "unix:///nowhere/oms.sock";
    tell("nobody there", tp_orders_open(&given, &orders));
    given = config;
    given.since = 9;
    tell("unknown since", tp_orders_open(&given, &orders));
    given = config;
    given.has_session = 2;
    tell("has_session of 2", tp_orders_open(&given, &orders));
    given.has_session = 1;
    given.session = 65535;
    tell("highest session", tp_orders_open(&given, &orders));
    given.session = OF_AN_ADMIN;
    tell("session of another user", tp_orders_open(&given, &orders));
    given = config;
    given.password = "a guess";
    tell("wrong password", tp_orders_open(&given, &orders));
    tell_whether("handle of a wrong password", orders == NULL);
}

static void bad_requests(tp_orders *orders) {
    uint64_t id = 7;
    tp_new_order order = sound();
    tp_cancel_order cancel = {.size = sizeof cancel};
    tp_replace_order replace = {.size = sizeof replace};
    tell("null order", tp_orders_submit(orders, NULL, &id));
    tell_whether("id of a null order", id == 0);
    tell("null cancel", tp_orders_cancel(orders, NULL, &id));
    tell("null replace", tp_orders_replace(orders, NULL, &id));
    order.size = 8;
    tell("size of an order", tp_orders_submit(orders, &order, &id));
    order = sound();
    order.side = 0;
    tell("no side", tp_orders_submit(orders, &order, &id));
    order = sound();
    order.order_type = 2;
    tell("unknown order type", tp_orders_submit(orders, &order, &id));
    order.order_type = TP_ORDER_TYPE_MARKET;
    tell("market order with a price", tp_orders_submit(orders, &order, &id));
    order = sound();
    order.time_in_force = 2;
    tell("unknown time in force", tp_orders_submit(orders, &order, &id));
    order = sound();
    order.position_effect = 3;
    tell("unknown position effect", tp_orders_submit(orders, &order, &id));
    order = sound();
    order.instructions = TP_POST_ONLY + 4;
    tell("unknown instruction", tp_orders_submit(orders, &order, &id));
    order = sound();
    order.self_trade_mode = 4;
    tell("unknown self-trade mode", tp_orders_submit(orders, &order, &id));
    order = sound();
    order.trade_mode = 4;
    tell("unknown trade mode", tp_orders_submit(orders, &order, &id));
    tell("cancel of nothing", tp_orders_cancel(orders, &cancel, &id));
    cancel.original = cancel.order_id = 1;
    tell("cancel of two", tp_orders_cancel(orders, &cancel, &id));
    cancel.size = 1;
    tell("size of a cancel", tp_orders_cancel(orders, &cancel, &id));
    tell("replace of nothing", tp_orders_replace(orders, &replace, &id));
    replace.size = 1;
    tell("size of a replace", tp_orders_replace(orders, &replace, &id));
    order = sound();
    tell("no place for an id", tp_orders_submit(orders, &order, NULL));
    order.id = 77;
    tell("id of the program's own", tp_orders_submit(orders, &order, &id));
    tell_whether("it is that one", id == 77);
}

static void bad_polls(tp_orders *orders) {
    size_t count = 7;
    tp_order_event events[ROOM];
    events[0].size = sizeof events[0];
    tell("null count", tp_orders_poll(orders, events, ROOM, NULL));
    tell("null events", tp_orders_poll(orders, NULL, ROOM, &count));
    tell_whether("count of null events", count == 0);
    events[0].size = 0;
    tell("size of no event", tp_orders_poll(orders, events, ROOM, &count));
    events[0].size = sizeof events[0] + 8;
    tell("size of a later event", tp_orders_poll(orders, events, ROOM, &count));
    tell("no room at all", tp_orders_poll(orders, NULL, 0, &count));
}

static void in_a_fork(tp_orders *orders) {
    size_t count;
    tp_order_event events[ROOM];
    tp_new_order order = sound();
    events[0].size = sizeof events[0];
    tell("submit in a fork", tp_orders_submit(orders, &order, NULL));
    tell("poll in a fork", tp_orders_poll(orders, events, ROOM, &count));
    tell("wait in a fork", tp_orders_wait(orders, 0));
    tell("close in a fork", tp_orders_close(orders));
}

/* The session after another logon has taken it over. */
static void taken_over(tp_orders *orders) {
    size_t count = 0;
    tp_order_event events[ROOM];
    tp_new_order order = sound();
    tp_status status = TP_OK;
    events[0].size = sizeof events[0];
    for (int turn = 0; turn < MOST_TURNS && status == TP_OK; turn++) {
        need("wait", tp_orders_wait(orders, TURN_NS));
        status = tp_orders_poll(orders, events, ROOM, &count);
    }
    tell("poll of what was taken over", status);
    tell_whether("all was told before", count == 0);
    tell("submit to what was taken over", tp_orders_submit(orders, &order, NULL));
    tell("wait for what was taken over", tp_orders_wait(orders, TURN_NS));
    tell("close what was taken over", tp_orders_close(orders));
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: asks URL USER PASSWORD\n");
        return 2;
    }
    tp_orders_config config = {.size = sizeof config, .url = argv[1], .user = argv[2], .password = argv[3], .account = ACCOUNT};
    null_handles();
    bad_configs(config);

    config.has_session = 1;
    config.session = SESSION;
    tp_orders *orders, *second;
    size_t count;
    tp_order_event events[ROOM];
    events[0].size = sizeof events[0];
    need("log on", tp_orders_open(&config, &orders));
    bad_requests(orders);
    bad_polls(orders);

    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        in_a_fork(orders);
        fflush(stdout);
        _exit(0);
    }
    int ended;
    if (child < 0 || waitpid(child, &ended, 0) != child || ended != 0) {
        fprintf(stderr, "the fork did not end well\n");
        return 1;
    }
    tell("poll behind a fork", tp_orders_poll(orders, events, ROOM, &count));

    need("log on again", tp_orders_open(&config, &second));
    taken_over(orders);
    tell("poll of the new one", tp_orders_poll(second, events, ROOM, &count));
    tell_whether("it is connected", count > 0 && events[0].type == TP_TOLD_CONNECTED && events[0].session == SESSION);
    need("log out", tp_orders_close(second));
    return 0;
}
