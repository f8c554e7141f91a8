import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;

/**
 * The job of bench/recovery.yaml for Flink: keyed counts, which are the state to restore, beside
 * records that an exactly-once file sink writes.
 *
 * <p>Arguments: keys, records a second to count, records a second to write, output directory.
 */
public final class RecoveryJob {
	private RecoveryJob() {}

	/** Lets a number of records a second through. */
	private static final class Pace extends RichMapFunction<Long, Long> {
		private static final int BATCH = 64;
		private final double nsPerRecord;
		private transient long begin;
		private transient long passed;

		Pace(double recordsPerSecond) {
			nsPerRecord = 1e9 / recordsPerSecond;
		}

		@Override
		public void open(OpenContext context) {
			begin = System.nanoTime();
			passed = 0;
		}

		@Override
		public Long map(Long value) throws InterruptedException {
			if (++passed % BATCH == 0) {
				long early = begin + (long) (passed * nsPerRecord) - System.nanoTime();
				if (early > 1_000_000) {
					Thread.sleep(early / 1_000_000);
				}
			}
			return value;
		}
	}

	/** How often each key has come. */
	private static final class Count extends RichMapFunction<Long, Long> {
		private transient ValueState<Long> count;

		@Override
		public void open(OpenContext context) {
			count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Long.class));
		}

		@Override
		public Long map(Long key) throws Exception {
			Long before = count.value();
			long now = before == null ? 1 : before + 1;
			count.update(now);
			return now;
		}
	}

	private static DataStream<Long> paced(
			StreamExecutionEnvironment environment, String name, double recordsPerSecond) {
		return environment
				.fromSource(new NumberSequenceSource(0, Long.MAX_VALUE - 1),
						WatermarkStrategy.noWatermarks(), name)
				.map(new Pace(recordsPerSecond / environment.getParallelism()));
	}

	public static void main(String[] args) throws Exception {
		long keys = Long.parseLong(args[0]);
		StreamExecutionEnvironment environment =
				StreamExecutionEnvironment.getExecutionEnvironment();
		environment.getConfig().enableObjectReuse();
		paced(environment, "make", Double.parseDouble(args[1]))
				.map(n -> n % keys)
				.returns(Long.class)
				.keyBy(key -> key)
				.map(new Count())
				.sinkTo(new DiscardingSink<>());
		paced(environment, "trickle", Double.parseDouble(args[2]))
				.keyBy(n -> n % 16)
				.map(n -> n)
				.returns(Long.class)
				.sinkTo(FileSink.forRowFormat(new Path(args[3]), new SimpleStringEncoder<Long>())
						.withRollingPolicy(OnCheckpointRollingPolicy.build())
						.build());
		environment.execute("recovery");
	}
}
