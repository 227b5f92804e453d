package tickpath;

import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.wire.DocumentContext;

/** Chronicle Queue: one appender, and a spinning tailer for each reader. It keeps every message in files. */
final class ChroniclePeer implements Peer {
    private final String folder;

    ChroniclePeer(String folder) {
        this.folder = folder;
    }

    @Override
    public Sender publish(String topic) {
        ExcerptAppender appender = ChronicleQueue.single(folder + "/" + topic).createAppender();
        return new Sender() {
            @Override
            public boolean send(byte[] message) {
                try (DocumentContext document = appender.writingDocument()) {
                    document.wire().bytes().write(message);
                }
                return true;
            }

            @Override
            public void idle() {
                Thread.onSpinWait();
            }
        };
    }

    @Override
    public Receiver subscribe(String topic, int readers, Messages messages) {
        ChronicleQueue queue = ChronicleQueue.single(folder + "/" + topic);
        ExcerptTailer[] all = new ExcerptTailer[readers];
        for (int reader = 0; reader < readers; reader++) {
            all[reader] = queue.createTailer().toEnd();
        }
        return new Receiver() {
            @Override
            public int poll(int reader, int limit) {
                for (int found = 0; found < limit; found++) {
                    try (DocumentContext document = all[reader].readingDocument()) {
                        if (!document.isPresent()) {
                            return found;
                        }
                        take(reader, document.wire().bytes(), messages);
                    }
                }
                return limit;
            }

            @Override
            public void idle() {
                Thread.onSpinWait();
            }

            @Override
            public void close() {
                queue.close();
            }
        };
    }

    private static void take(int reader, Bytes<?> bytes, Messages messages) {
        if (messages.stamps) {
            bytes.read(messages.copy);
            messages.recordCopy(reader);
        } else {
            messages.count(reader, bytes.readLong(bytes.readPosition() + Messages.NUMBER));
        }
    }
}
