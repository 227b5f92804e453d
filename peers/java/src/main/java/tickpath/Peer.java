package tickpath;

/** A system under test: opens the two ends of a topic. */
interface Peer {
    /** Creates a topic and opens it for sending. */
    Sender publish(String topic) throws Exception;

    /** Opens this number of subscriptions to an existing topic. */
    Receiver subscribe(String topic, int readers, Messages messages) throws Exception;

    /** Sending end of a topic, for messages of one size. */
    interface Sender {
        /** Sends a message; returns false if there is no room for it now. */
        boolean send(byte[] message);

        /** Passes a turn without work. */
        void idle();
    }

    /** Receiving end of a topic. */
    interface Receiver {
        /** Delivers up to {@code limit} available messages of a reader; returns their number. */
        int poll(int reader, int limit);

        /** Passes a turn without work. */
        void idle();

        /** Ends all subscriptions. */
        void close();
    }
}
