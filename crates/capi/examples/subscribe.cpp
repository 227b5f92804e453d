// Prints COUNT numbers of a topic, from the oldest message on: subscribe URL TOPIC COUNT
#include <tickpath.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

constexpr std::uint8_t kind_number = 200;
constexpr std::uint64_t turn_ns = 100'000'000;

struct Close {
    void operator()(tp_bus *bus) const { tp_bus_close(bus); }
    void operator()(tp_subscriber *subscriber) const { tp_subscriber_close(subscriber); }
};

using Bus = std::unique_ptr<tp_bus, Close>;
using Subscriber = std::unique_ptr<tp_subscriber, Close>;

void check(tp_status status) {
    if (status != TP_OK) {
        throw std::runtime_error(tp_last_error());
    }
}

Bus connect(const char *url) {
    tp_bus *bus = nullptr;
    check(tp_connect(url, &bus));
    return Bus(bus);
}

Subscriber subscribe(const Bus &bus, const char *topic) {
    tp_subscriber_config config{};
    config.size = sizeof config;
    config.start = TP_START_OLDEST;
    tp_subscriber *subscriber = nullptr;
    check(tp_subscriber_open(bus.get(), topic, &config, &subscriber));
    return Subscriber(subscriber);
}

// Callback of the library, which is not C++: no exception may leave the function.
void on_event(const tp_event *event, void *user) noexcept {
    auto &left = *static_cast<std::size_t *>(user);
    std::uint64_t number = 0;
    if (event->type == TP_MESSAGE && event->kind == kind_number && event->len == sizeof number) {
        std::memcpy(&number, event->data, sizeof number);
        std::cout << "number " << number << '\n';
        --left;
    } else if (event->type == TP_GAP) {
        std::cout << "missed " << (event->missed > 0 ? std::to_string(event->missed) : "?") << '\n';
    }
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 4) {
        std::cerr << "usage: subscribe URL TOPIC COUNT\n";
        return 2;
    }
    if (tp_abi_version() < TP_ABI_VERSION) {
        std::cerr << "the library is older than the header that this was built with; install the newer one\n";
        return 1;
    }
    try {
        std::size_t left = std::strtoull(argv[3], nullptr, 10);
        const Bus bus = connect(argv[1]);
        const Subscriber subscriber = subscribe(bus, argv[2]);
        while (left > 0) {
            std::size_t count = 0;
            check(tp_subscriber_poll(subscriber.get(), left, on_event, &left, &count));
            if (count == 0) {
                check(tp_subscriber_wait(subscriber.get(), turn_ns));
            }
        }
    } catch (const std::exception &failure) {
        std::cerr << failure.what() << '\n';
        return 1;
    }
    return 0;
}
