package tickpath;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** One end of a topic in a process of its own, which follows the protocol of docs/clients.md: {@code Main PEER END}. */
public final class Main {
    /** Number of messages of the warm-up, bounded by their bytes together. */
    private static final long WARM_MESSAGES = 30_000;

    private static final long WARM_BYTES = 64 << 20;
    private static final double WARM_RATE = 200_000;

    private final LinkedBlockingQueue<String> commands = new LinkedBlockingQueue<>();
    private final AtomicBoolean hasEnded = new AtomicBoolean();
    private final String settings = System.getenv("TICKPATH_SETTINGS");
    private final long count = number("count");
    private final int readers = (int) number("readers");

    public static void main(String[] args) {
        try {
            new Main().run(args[0], args[1]);
            System.exit(0);
        } catch (Throwable error) {
            String what = String.valueOf(error).replace('\\', '/').replace('"', '\'').replace('\n', ' ');
            writeLine("{\"error\":\"" + what + "; see the output of Java above, and run this again\"}");
            System.exit(1);
        }
    }

    private void run(String name, String end) throws Exception {
        boolean publishes = end.equals("publisher");
        Peer peer = switch (name) {
            case "aeron" -> new AeronPeer(text("folder"), publishes);
            case "chronicle" -> new ChroniclePeer(text("folder"));
            default -> throw new IllegalArgumentException("no peer is called " + name + "; use aeron or chronicle");
        };
        readCommands();
        if (publishes) {
            publisher(peer);
        } else {
            subscriber(peer);
        }
    }

    private void publisher(Peer peer) throws Exception {
        if (!text("arrivals").equals("Steady")) {
            throw new IllegalArgumentException("the peers in Java support only steady arrivals");
        }
        boolean isPaced = has("rate");
        int bytes = (int) number("size");
        warmUp(peer, bytes, "publisher");
        Peer.Sender sender = peer.publish("topic");
        Publisher publisher = new Publisher(sender, bytes, count, isPaced);
        pin();
        writeLine("\"ready\"");
        await(sender);
        if (isPaced) {
            publisher.paced(Double.parseDouble(setting("rate")));
        } else {
            publisher.flood((int) number("batch"));
        }
        save(publisher.rows, publisher.rows.length);
        writeLine("{\"result\":" + publisher.result() + "}");
        // The subscriber may need this end until it has received everything.
        await(sender);
    }

    private void subscriber(Peer peer) throws Exception {
        boolean stamps = setting("stamps").equals("true");
        // The settings of a subscriber have no message size: the target has it, after the scheme.
        int bytes = Integer.parseInt(text("target").split("/")[2]);
        warmUp(peer, bytes, "subscriber");
        Messages messages = new Messages(bytes, count, readers, stamps);
        Peer.Receiver receiver = peer.subscribe("topic", readers, messages);
        Subscriber subscriber = new Subscriber(receiver, messages, readers);
        pin();
        writeLine("\"ready\"");
        subscriber.receive(count, hasEnded);
        save(messages.rows, messages.filled);
        writeLine("{\"result\":" + subscriber.result() + "}");
        while (true) {
            commands.take();
        }
    }

    /** Runs both loops on a topic of this process, with the receiver polled in the idle turns of the publisher. */
    private void warmUp(Peer peer, int bytes, String end) throws Exception {
        long total = Math.max(16, Math.min(WARM_MESSAGES, WARM_BYTES / bytes));
        Peer.Sender sender = peer.publish("warm-up-" + end);
        for (boolean stamps : new boolean[] {true, false}) {
            Messages messages = new Messages(bytes, total, 1, stamps);
            Peer.Receiver receiver = peer.subscribe("warm-up-" + end, 1, messages);
            Peer.Sender drained = new Peer.Sender() {
                @Override
                public boolean send(byte[] message) {
                    return sender.send(message);
                }

                @Override
                public void idle() {
                    sender.idle();
                    receiver.poll(0, 1);
                }
            };
            Publisher publisher = new Publisher(drained, bytes, total, stamps);
            if (stamps) {
                publisher.paced(WARM_RATE);
            } else {
                publisher.flood(32);
            }
            // Receives the messages that are still in flight.
            new Subscriber(receiver, messages, 1).receive(total - messages.taken, hasEnded);
            receiver.close();
        }
    }

    /** Waits for the bench's next command, and passes idle turns of the sender meanwhile. */
    private void await(Peer.Sender sender) {
        while (commands.poll() == null) {
            sender.idle();
            LockSupport.parkNanos(50_000);
        }
    }

    /** Reads the commands of the bench on a thread of its own; ends the process when the bench is gone. */
    private void readCommands() {
        Thread thread = new Thread(() -> {
            try (BufferedReader input = new BufferedReader(new InputStreamReader(System.in))) {
                for (String line = input.readLine(); line != null; line = input.readLine()) {
                    if (line.equals("ended")) {
                        hasEnded.set(true);
                    } else {
                        commands.add(line);
                    }
                }
            } catch (java.io.IOException closed) {
                // Counts as the end of the input.
            }
            Runtime.getRuntime().halt(0);
        });
        thread.setDaemon(true);
        thread.start();
    }

    /** Pins this thread to its CPU, but not the other threads of the virtual machine. */
    private void pin() throws Exception {
        if (!has("cpu")) {
            return;
        }
        String thread = Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName().toString();
        new ProcessBuilder("taskset", "-p", "-c", setting("cpu"), thread)
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .start()
                .waitFor();
    }

    /** Writes stamps to the file {@code out}, little-endian. */
    private void save(long[] stamps, int length) throws Exception {
        ByteBuffer bytes = ByteBuffer.allocate(8 * length).order(ByteOrder.LITTLE_ENDIAN);
        bytes.asLongBuffer().put(stamps, 0, length);
        try (FileChannel file =
                FileChannel.open(Path.of(text("out")), StandardOpenOption.CREATE, StandardOpenOption.WRITE,
                        StandardOpenOption.TRUNCATE_EXISTING)) {
            while (bytes.hasRemaining()) {
                file.write(bytes);
            }
        }
    }

    private static synchronized void writeLine(String line) {
        System.out.println(line);
        System.out.flush();
    }

    /** Returns a setting in JSON, from any nested object; each name occurs once. */
    private String setting(String name) {
        Matcher found = Pattern.compile("\"" + name + "\":(\"[^\"]*\"|[^,}]*)").matcher(settings);
        if (!found.find()) {
            throw new IllegalArgumentException("TICKPATH_SETTINGS has no " + name);
        }
        return found.group(1);
    }

    private String text(String name) {
        return setting(name).replace("\"", "");
    }

    private long number(String name) {
        return Long.parseLong(setting(name));
    }

    private boolean has(String name) {
        return settings.contains("\"" + name + "\":") && !setting(name).equals("null");
    }
}
