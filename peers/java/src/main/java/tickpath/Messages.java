package tickpath;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * The content of messages, and the record of those received. A message is its payload alone, little-endian: the send
 * time, the number, and the intended time.
 */
final class Messages {
    private static final VarHandle WORD =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    /** Offset of the number. */
    static final int NUMBER = 8;

    private static final int STAMP = 16;

    /** Buffer for the copy of a message. */
    final byte[] copy;

    /** Whether each message is copied and stamped, or only counted. */
    final boolean stamps;

    /** Intended time, send time and copy time of each message, in turn. */
    final long[] rows;

    int filled;

    /** Number of received messages, of all readers together. */
    long taken;

    long duplicated;
    long last;
    private final long[] next;
    private final long[] received;

    Messages(int size, long count, int readers, boolean stamps) {
        this.stamps = stamps;
        copy = new byte[size];
        rows = new long[stamps ? Math.toIntExact(3 * count * readers) : 0];
        // Touches the pages before the first message.
        java.util.Arrays.fill(rows, 1);
        next = new long[readers];
        received = new long[readers];
    }

    /** Writes the content of a message. */
    static void fill(byte[] message, long intended, long actual, long number) {
        WORD.set(message, 0, actual);
        WORD.set(message, NUMBER, number);
        WORD.set(message, STAMP, intended);
    }

    /** Records the message that was just copied. */
    void recordCopy(int reader) {
        long now = System.nanoTime();
        rows[filled++] = (long) WORD.get(copy, STAMP);
        rows[filled++] = (long) WORD.get(copy, 0);
        rows[filled++] = now;
        count(reader, (long) WORD.get(copy, NUMBER));
    }

    /** Counts the message of this number. */
    void count(int reader, long number) {
        taken++;
        received[reader]++;
        if (number >= next[reader]) {
            next[reader] = number + 1;
        } else {
            duplicated++;
        }
    }

    /** Returns the number of messages that the slowest reader has received. */
    long received() {
        long least = Long.MAX_VALUE;
        for (long one : received) {
            least = Math.min(least, one);
        }
        return least;
    }
}
