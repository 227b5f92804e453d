package tickpath;

import java.util.Locale;
import java.util.concurrent.atomic.AtomicBoolean;

/** Receives until every reader has all messages, or until none arrives for a while after the end of the publisher. */
final class Subscriber {
    private static final long DRAIN_TIMEOUT_NS = 10_000_000_000L;

    /** Max messages per turn of a counting reader. */
    private static final int MAX_PER_TURN = 256;

    private final Peer.Receiver receiver;
    private final Messages messages;
    private final int readers;

    Subscriber(Peer.Receiver receiver, Messages messages, int readers) {
        this.receiver = receiver;
        this.messages = messages;
        this.readers = readers;
    }

    void receive(long count, AtomicBoolean hasEnded) {
        int limit = messages.stamps ? 1 : MAX_PER_TURN;
        long expected = count * readers;
        long found = 0;
        long quietSince = 0;
        int turns = 0;
        while (found < expected) {
            int now = 0;
            for (int reader = 0; reader < readers; reader++) {
                now += receiver.poll(reader, limit);
            }
            if (now > 0) {
                found += now;
                quietSince = 0;
                messages.last = System.nanoTime();
                continue;
            }
            receiver.idle();
            if ((++turns & 0x3fff) == 0 && hasEnded.get()) {
                long at = System.nanoTime();
                if (quietSince == 0) {
                    quietSince = at;
                } else if (at - quietSince > DRAIN_TIMEOUT_NS) {
                    return;
                }
            }
        }
    }

    /** Returns the result as JSON; with several readers that of the slowest. */
    String result() {
        return String.format(
                Locale.ROOT,
                "{\"received\":%d,\"reordered\":0,\"duplicated\":%d,\"reconnects\":0,\"last\":%d}",
                messages.received(), messages.duplicated, messages.last);
    }
}
