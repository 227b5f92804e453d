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

/** One end of a topic in a process of its own, which speaks as docs/clients.md says: {@code Main PEER END}. */
public final class Main {
    /** Messages that warm the loops up, and the most bytes of them together. */
    private static final long WARM_MESSAGES = 30_000;

    private static final long WARM_BYTES = 64 << 20;
    private static final double WARM_RATE = 200_000;

    private final LinkedBlockingQueue<String> lines = new LinkedBlockingQueue<>();
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
            say("{\"error\":\"" + what + "; look at what Java said before, and try again\"}");
            System.exit(1);
        }
    }

    private void run(String name, String end) throws Exception {
        boolean publishes = end.equals("publisher");
        Peer peer = switch (name) {
            case "aeron" -> new AeronPeer(text("place"), publishes);
            case "chronicle" -> new ChroniclePeer(text("place"));
            default -> throw new IllegalArgumentException("there is no peer " + name);
        };
        listen();
        if (publishes) {
            publisher(peer);
        } else {
            subscriber(peer);
        }
    }

    private void publisher(Peer peer) throws Exception {
        if (!text("arrivals").equals("Steady")) {
            throw new IllegalArgumentException("the peers in Java send at equal distances only");
        }
        boolean isPaced = has("rate");
        int bytes = (int) number("size");
        warmUp(peer, bytes, "publisher");
        Peer.Outlet outlet = peer.publish("topic");
        Publisher publisher = new Publisher(outlet, bytes, count, isPaced);
        pin();
        say("\"ready\"");
        await(outlet);
        if (isPaced) {
            publisher.paced(Double.parseDouble(found("rate")));
        } else {
            publisher.flood((int) number("batch"));
        }
        save(publisher.rows, publisher.rows.length);
        say("{\"result\":" + publisher.result() + "}");
        // Who reads may need this end until it has everything.
        await(outlet);
    }

    private void subscriber(Peer peer) throws Exception {
        boolean stamps = found("stamps").equals("true");
        // Of its size a subscriber is not told: the target says it, behind the scheme.
        int bytes = Integer.parseInt(text("target").split("/")[2]);
        warmUp(peer, bytes, "subscriber");
        Messages messages = new Messages(bytes, count, readers, stamps);
        Peer.Inlet inlet = peer.subscribe("topic", readers, messages);
        Subscriber subscriber = new Subscriber(inlet, messages, readers);
        pin();
        say("\"ready\"");
        subscriber.receive(count, hasEnded);
        save(messages.rows, messages.filled);
        say("{\"result\":" + subscriber.result() + "}");
        while (true) {
            lines.take();
        }
    }

    /** Runs both loops on a topic of this process alone, each with the other inside its idle turns. */
    private void warmUp(Peer peer, int bytes, String end) throws Exception {
        long few = Math.max(16, Math.min(WARM_MESSAGES, WARM_BYTES / bytes));
        Peer.Outlet outlet = peer.publish("warm-up-" + end);
        for (boolean stamps : new boolean[] {true, false}) {
            Messages messages = new Messages(bytes, few, 1, stamps);
            Peer.Inlet inlet = peer.subscribe("warm-up-" + end, 1, messages);
            Peer.Outlet drained = new Peer.Outlet() {
                @Override
                public boolean send(byte[] message) {
                    return outlet.send(message);
                }

                @Override
                public void idle() {
                    outlet.idle();
                    inlet.poll(0, 1);
                }
            };
            Publisher publisher = new Publisher(drained, bytes, few, stamps);
            if (stamps) {
                publisher.paced(WARM_RATE);
            } else {
                publisher.flood(32);
            }
            // What has been sent is still to come, as far as it was not taken in between.
            new Subscriber(inlet, messages, 1).receive(few - messages.taken, hasEnded);
            inlet.close();
        }
    }

    /** Waits for the bench's next line while the peer's own work goes on; ends the process when the bench is gone. */
    private void await(Peer.Outlet outlet) {
        while (lines.poll() == null) {
            outlet.idle();
            LockSupport.parkNanos(50_000);
        }
    }

    /** Hears what the bench says, beside the loops. */
    private void listen() {
        Thread thread = new Thread(() -> {
            try (BufferedReader input = new BufferedReader(new InputStreamReader(System.in))) {
                for (String line = input.readLine(); line != null; line = input.readLine()) {
                    if (line.equals("ended")) {
                        hasEnded.set(true);
                    } else {
                        lines.add(line);
                    }
                }
            } catch (java.io.IOException gone) {
                // As good as closed.
            }
            Runtime.getRuntime().halt(0);
        });
        thread.setDaemon(true);
        thread.start();
    }

    /** Binds this thread to its CPU; those of the virtual machine run where there is room. */
    private void pin() throws Exception {
        if (!has("cpu")) {
            return;
        }
        String thread = Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName().toString();
        new ProcessBuilder("taskset", "-p", "-c", found("cpu"), thread)
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .start()
                .waitFor();
    }

    /** Writes stamps, little-endian. */
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

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    /** A setting as its JSON has it, of whichever object; the names are told once each. */
    private String found(String name) {
        Matcher found = Pattern.compile("\"" + name + "\":(\"[^\"]*\"|[^,}]*)").matcher(settings);
        if (!found.find()) {
            throw new IllegalArgumentException("the settings have no " + name);
        }
        return found.group(1);
    }

    private String text(String name) {
        return found(name).replace("\"", "");
    }

    private long number(String name) {
        return Long.parseLong(found(name));
    }

    private boolean has(String name) {
        return settings.contains("\"" + name + "\":") && !found(name).equals("null");
    }
}
