/* Publishes COUNT numbers, from 0 on: publish URL TOPIC COUNT */
#include <tickpath.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Kinds 200 to 255 are free for programs, which distinguish their messages by them. */
enum { KIND_NUMBER = 200, BATCH = 8 };

static void check(tp_status status, const char *what) {
    if (status != TP_OK) {
        fprintf(stderr, "%s: %s (status %d)\n", what, tp_last_error(), (int)status);
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: publish URL TOPIC COUNT\n");
        return 2;
    }
    if (tp_abi_version() < TP_ABI_VERSION) {
        fprintf(stderr, "the library is older than the header that this was built with; install the newer one\n");
        return 1;
    }
    uint64_t count = strtoull(argv[3], NULL, 10);

    tp_bus *bus;
    check(tp_connect(argv[1], &bus), "connect");

    /* Fields that are not named are zero, and zero is the default. */
    tp_publisher_config config = {.size = sizeof config, .capacity_bytes = 4 << 20};
    tp_publisher *publisher;
    check(tp_publisher_open(bus, argv[2], &config, &publisher), "open");

    for (uint64_t number = 0; number < count;) {
        if (count - number < BATCH) {
            check(tp_publisher_publish(publisher, TP_NOW, KIND_NUMBER, &number, sizeof number), "publish");
            number++;
            continue;
        }
        uint64_t numbers[BATCH];
        tp_slice batch[BATCH];
        for (int i = 0; i < BATCH; i++) {
            numbers[i] = number++;
            batch[i] = (tp_slice){.data = &numbers[i], .len = sizeof numbers[i]};
        }
        size_t done;
        uint8_t fates[BATCH];
        tp_status status = tp_publisher_publish_batch(publisher, TP_NOW, KIND_NUMBER, batch, BATCH, &done, fates);
        for (int i = 0; status != TP_OK && i < BATCH; i++) {
            if (fates[i] != TP_FATE_PUBLISHED) {
                const char *fate = fates[i] == TP_FATE_UNKNOWN ? "perhaps" : "not";
                fprintf(stderr, "number %" PRIu64 " is %s published\n", numbers[i], fate);
            }
        }
        check(status, "publish a batch");
    }
    printf("published %" PRIu64 "\n", count);

    check(tp_publisher_close(publisher), "close the publisher");
    check(tp_bus_close(bus), "close the bus");
    return 0;
}
