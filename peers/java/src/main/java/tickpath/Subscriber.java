package tickpath;

import java.util.Locale;
import java.util.concurrent.atomic.AtomicBoolean;

/** Receives until every reader has all, or, when the publisher has ended, nothing has come for a while. */
final class Subscriber {
    private static final long PATIENCE_NS = 10_000_000_000L;

    /** Messages that one turn of a counting reader takes. */
    private static final int TURN = 256;

    private final Peer.Inlet inlet;
    private final Messages messages;
    private final int readers;

    Subscriber(Peer.Inlet inlet, Messages messages, int readers) {
        this.inlet = inlet;
        this.messages = messages;
        this.readers = readers;
    }

    void receive(long count, AtomicBoolean hasEnded) {
        int limit = messages.stamps ? 1 : TURN;
        long expected = count * readers;
        long found = 0;
        long quietSince = 0;
        int turns = 0;
        while (found < expected) {
            int now = 0;
            for (int reader = 0; reader < readers; reader++) {
                now += inlet.poll(reader, limit);
            }
            if (now > 0) {
                found += now;
                quietSince = 0;
                messages.last = System.nanoTime();
                continue;
            }
            inlet.idle();
            if ((++turns & 0x3fff) == 0 && hasEnded.get()) {
                long at = System.nanoTime();
                if (quietSince == 0) {
                    quietSince = at;
                } else if (at - quietSince > PATIENCE_NS) {
                    return;
                }
            }
        }
    }

    /** What it tells at its end, as JSON: of several readers, of the slowest. */
    String result() {
        return String.format(
                Locale.ROOT,
                "{\"received\":%d,\"reordered\":0,\"duplicated\":%d,\"reconnects\":0,\"last\":%d}",
                messages.received(), messages.duplicated, messages.last);
    }
}
