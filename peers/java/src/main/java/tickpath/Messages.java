package tickpath;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * What a message holds, and what was seen of those that came. A message is its payload alone, little-endian: when it
 * was sent, its number, and when it was meant to be sent.
 */
final class Messages {
    private static final VarHandle WORD =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    /** Where its number lies. */
    static final int NUMBER = 8;

    private static final int STAMP = 16;

    /** Room for the copy of a message. */
    final byte[] copy;

    /** Whether each is copied and stamped, or only counted. */
    final boolean stamps;

    /** Intended, sent and copied, in turn. */
    final long[] rows;

    int filled;

    /** How many came, to all readers together. */
    long taken;

    long duplicated;
    long last;
    private final long[] next;
    private final long[] received;

    Messages(int size, long count, int readers, boolean stamps) {
        this.stamps = stamps;
        copy = new byte[size];
        rows = new long[stamps ? Math.toIntExact(3 * count * readers) : 0];
        // Its pages are there before the first message.
        java.util.Arrays.fill(rows, 1);
        next = new long[readers];
        received = new long[readers];
    }

    /** Writes what a message holds. */
    static void fill(byte[] message, long intended, long actual, long number) {
        WORD.set(message, 0, actual);
        WORD.set(message, NUMBER, number);
        WORD.set(message, STAMP, intended);
    }

    /** One that was copied just now. */
    void copied(int reader) {
        long now = System.nanoTime();
        rows[filled++] = (long) WORD.get(copy, STAMP);
        rows[filled++] = (long) WORD.get(copy, 0);
        rows[filled++] = now;
        counted(reader, (long) WORD.get(copy, NUMBER));
    }

    /** One of this number. */
    void counted(int reader, long number) {
        taken++;
        received[reader]++;
        if (number >= next[reader]) {
            next[reader] = number + 1;
        } else {
            duplicated++;
        }
    }

    /** How many the slowest reader has. */
    long received() {
        long least = Long.MAX_VALUE;
        for (long one : received) {
            least = Math.min(least, one);
        }
        return least;
    }
}
