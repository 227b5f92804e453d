package tickpath;

import java.util.Arrays;
import java.util.Locale;

/** Sends messages at their intended times, or at full speed. */
final class Publisher {
    /** Time before an intended time during which the thread only reads the clock. */
    private static final long SPIN_NS = 20_000;

    private final Peer.Sender sender;
    private final byte[] message;
    private final long count;

    /** Intended time, send time and return of the call of each message, in turn. */
    final long[] rows;

    private int filled;
    private long refused;
    private long first;
    private long last;
    private long planned;
    private double lateShare;
    private long ownP99;

    Publisher(Peer.Sender sender, int size, long count, boolean isPaced) {
        this.sender = sender;
        this.count = count;
        message = new byte[size];
        rows = new long[isPaced ? Math.toIntExact(3 * count) : 0];
        // Touches the pages before the first message.
        Arrays.fill(rows, 1);
    }

    /** Sends one message at each intended time, and never before it. */
    void paced(double rate) {
        long allowance = Math.max(10_000, (long) (1e9 / rate));
        long[] own = new long[(int) count];
        long late = 0;
        first = System.nanoTime() + 1_000_000;
        long free = first;
        for (long number = 0; number < count; number++) {
            planned = (long) (number * 1e9 / rate);
            long intended = first + planned;
            long actual = until(intended);
            Messages.fill(message, intended, actual, number);
            send();
            long done = System.nanoTime();
            rows[filled++] = intended;
            rows[filled++] = actual;
            rows[filled++] = done;
            // Lateness that the call before did not cause.
            long lateness = actual - Math.max(intended, free);
            if (lateness > allowance) {
                late++;
            }
            own[(int) number] = lateness;
            free = done;
            last = actual;
        }
        Arrays.sort(own);
        ownP99 = Math.min(own[(int) (count * 99 / 100)], Integer.MAX_VALUE);
        lateShare = (double) late / count;
    }

    /** Sends at full speed, in batches that share a stamp. */
    void flood(int batch) {
        first = System.nanoTime();
        for (long sent = 0; sent < count;) {
            long stamp = System.nanoTime();
            for (int i = 0; i < batch && sent < count; i++, sent++) {
                Messages.fill(message, stamp, stamp, sent);
                send();
            }
        }
        last = System.nanoTime();
    }

    private void send() {
        while (!sender.send(message)) {
            refused++;
            sender.idle();
        }
    }

    private long until(long intended) {
        while (true) {
            long now = System.nanoTime();
            long left = intended - now;
            if (left <= 0) {
                return now;
            }
            if (left > SPIN_NS) {
                sender.idle();
            } else {
                Thread.onSpinWait();
            }
        }
    }

    /** Returns the result as JSON. */
    String result() {
        return String.format(
                Locale.ROOT,
                "{\"sent\":%d,\"refused\":%d,\"first\":%d,\"last\":%d,\"planned_ns\":%d,\"late_share\":%.6f,"
                        + "\"own_p99_ns\":%d,\"reconnects\":0}",
                count, refused, first, last, planned, lateShare, Math.max(ownP99, 0));
    }
}
