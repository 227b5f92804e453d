/* Measures the cost of a call from C: calls URL. `calls.rs` measures the same from Rust:
   `cargo run --profile wheel -p tickpath-capi --example calls` */
#include <tickpath.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIND = 200, BURST = 512, BURSTS = 2000, ROUNDS = 9 };

static void check(tp_status status) {
    if (status != TP_OK) {
        fprintf(stderr, "%s (status %d)\n", tp_last_error(), (int)status);
        exit(1);
    }
}

static void add(const tp_event *event, void *sum) {
    *(uint64_t *)sum += event->len;
}

/* Returns the nanoseconds per call since `begun`, over `count` calls. */
static double each(uint64_t begun, double count) {
    return (double)tp_ns_between(begun, tp_now()) / count;
}

int main(int argc, char **argv) {
    if (tp_abi_version() < TP_ABI_VERSION) {
        fprintf(stderr, "the library is older than the header that this was built with; install the newer one\n");
        return 1;
    }
    const char *url = argc > 1 ? argv[1] : "shm://", *topic = "measure-c";
    char data[48];
    memset(data, 'x', sizeof data);

    tp_bus *bus;
    tp_publisher *publisher;
    tp_subscriber *subscriber;
    check(tp_connect(url, &bus));
    tp_publisher_config to = {.size = sizeof to};
    check(tp_publisher_open(bus, topic, &to, &publisher));
    tp_subscriber_config from = {.size = sizeof from};
    check(tp_subscriber_open(bus, topic, &from, &subscriber));

    double publish = 1e9, poll = 1e9, empty = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double publishing = 0, polling = 0;
        uint64_t sum = 0;
        size_t count;
        for (int burst = 0; burst < BURSTS; burst++) {
            uint64_t begun = tp_now();
            for (int number = 0; number < BURST; number++) {
                check(tp_publisher_publish(publisher, 1, KIND, data, sizeof data));
            }
            publishing += each(begun, BURST);
            begun = tp_now();
            check(tp_subscriber_poll(subscriber, BURST, add, &sum, &count));
            polling += each(begun, BURST);
        }
        uint64_t begun = tp_now();
        for (int number = 0; number < BURST * BURSTS; number++) {
            check(tp_subscriber_poll(subscriber, 1, add, &sum, &count));
        }
        double emptied = each(begun, (double)BURST * BURSTS);
        if (sum != (uint64_t)BURST * BURSTS * sizeof data) {
            fprintf(stderr, "some were lost\n");
            return 1;
        }
        publish = publishing / BURSTS < publish ? publishing / BURSTS : publish;
        poll = polling / BURSTS < poll ? polling / BURSTS : poll;
        empty = emptied < empty ? emptied : empty;
    }
    printf("C: publish %.1f ns, poll %.1f ns a message, empty poll %.1f ns\n", publish, poll, empty);

    check(tp_subscriber_close(subscriber));
    check(tp_publisher_close(publisher));
    check(tp_bus_remove(bus, topic));
    check(tp_bus_close(bus));
    return 0;
}
