package tickpath;

/** A system as the loops see it: it opens the two ends of a topic. */
interface Peer {
    /** Makes a topic of this name, and publishes on it. */
    Outlet publish(String topic) throws Exception;

    /** Hears a topic that is there, so many times. */
    Inlet subscribe(String topic, int readers, Messages messages) throws Exception;

    /** Where messages of one size go. */
    interface Outlet {
        /** Sends one; false if there is no room for it now. */
        boolean send(byte[] message);

        /** What a turn without work does. */
        void idle();
    }

    /** Where messages come from. */
    interface Inlet {
        /** Hands over up to so many that are there for one of the readers; gives how many. */
        int poll(int reader, int limit);

        /** What a turn without work does. */
        void idle();

        /** Ends all subscriptions. */
        void close();
    }
}
