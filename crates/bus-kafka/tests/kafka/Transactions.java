import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Sends records to a topic, each in a transaction of its own, of which one is aborted: BOOTSTRAP TOPIC COUNT ABORTED. */
public class Transactions {
    public static void main(String[] arguments) throws Exception {
        String text = "org.apache.kafka.common.serialization.StringSerializer";
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", arguments[0], "transactional.id", arguments[1],
            "key.serializer", text, "value.serializer", text);
        int count = Integer.parseInt(arguments[2]);
        int aborted = Integer.parseInt(arguments[3]);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            producer.initTransactions();
            for (int number = 0; number < count; number++) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(arguments[1], Integer.toString(number))).get();
                if (number == aborted) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
    }
}
