package tickpath;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.FragmentAssembler;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.BufferClaim;
import io.aeron.logbuffer.FragmentHandler;
import java.util.ArrayList;
import java.util.List;
import org.agrona.concurrent.AgentInvoker;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Aeron over IPC. The manual requires a CPU for each busy thread, and there is one CPU for each end: so the publisher's
 * thread drives the media driver in its idle turns, and the thread of each end drives its client.
 */
final class AeronPeer implements Peer {
    /** Terms of our log's capacity, and frames of the max length: only the longest messages are fragmented. */
    private static final String CHANNEL = "aeron:ipc?term-length=1m|mtu=65504";

    private final AgentInvoker driver;
    private final Aeron aeron;
    private final AgentInvoker client;

    AeronPeer(String folder, boolean drives) {
        String aeronFolder = folder + "/aeron";
        Aeron.Context context = new Aeron.Context().aeronDirectoryName(aeronFolder).useConductorAgentInvoker(true);
        if (drives) {
            MediaDriver launched = MediaDriver.launch(new MediaDriver.Context()
                    .aeronDirectoryName(aeronFolder)
                    .dirDeleteOnStart(true)
                    .threadingMode(ThreadingMode.INVOKER)
                    .termBufferSparseFile(false));
            driver = launched.sharedAgentInvoker();
            context.driverAgentInvoker(driver);
        } else {
            driver = null;
        }
        aeron = Aeron.connect(context);
        client = aeron.conductorAgentInvoker();
    }

    private void work() {
        if (driver != null) {
            driver.invoke();
        }
        client.invoke();
    }

    @Override
    public Sender publish(String topic) {
        ExclusivePublication publication = aeron.addExclusivePublication(CHANNEL, stream(topic));
        BufferClaim claim = new BufferClaim();
        UnsafeBuffer buffer = new UnsafeBuffer(new byte[0]);
        int longest = publication.maxPayloadLength();
        return new Sender() {
            @Override
            public boolean send(byte[] message) {
                if (message.length > longest) {
                    buffer.wrap(message);
                    return publication.offer(buffer, 0, message.length) > 0;
                }
                if (publication.tryClaim(message.length, claim) <= 0) {
                    return false;
                }
                claim.buffer().putBytes(claim.offset(), message, 0, message.length);
                claim.commit();
                return true;
            }

            @Override
            public void idle() {
                work();
            }
        };
    }

    @Override
    public Receiver subscribe(String topic, int readers, Messages messages) {
        List<Subscription> subscriptions = new ArrayList<>();
        List<FragmentAssembler> handlers = new ArrayList<>();
        for (int reader = 0; reader < readers; reader++) {
            Subscription subscription = aeron.addSubscription(CHANNEL, stream(topic));
            while (!subscription.isConnected()) {
                work();
                Thread.onSpinWait();
            }
            subscriptions.add(subscription);
            handlers.add(new FragmentAssembler(handler(reader, messages)));
        }
        Subscription[] all = subscriptions.toArray(new Subscription[0]);
        FragmentAssembler[] each = handlers.toArray(new FragmentAssembler[0]);
        return new Receiver() {
            private int turns;

            @Override
            public int poll(int reader, int limit) {
                long before = messages.taken;
                all[reader].poll(each[reader], limit);
                // A fragment that completes no message does not count.
                return (int) (messages.taken - before);
            }

            @Override
            public void idle() {
                if ((++turns & 0xff) == 0) {
                    work();
                }
                Thread.onSpinWait();
            }

            @Override
            public void close() {
                subscriptions.forEach(Subscription::close);
            }
        };
    }

    private static FragmentHandler handler(int reader, Messages messages) {
        if (messages.stamps) {
            return (buffer, offset, length, header) -> {
                buffer.getBytes(offset, messages.copy, 0, length);
                messages.recordCopy(reader);
            };
        }
        return (buffer, offset, length, header) ->
                messages.count(reader, buffer.getLong(offset + Messages.NUMBER));
    }

    /** Returns the stream id of a topic, different for the measured topic and the warm-up topics. */
    private static int stream(String topic) {
        return 1_000 + (topic.hashCode() & 0xffff);
    }
}
