import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Apache Curator as a contestant: one of these is one server, with one
 * ZooKeeper session and a thread for each client.
 *
 * It reads commands, one a line, and answers each with a line "ok name=value
 * ..." or "error why":
 *
 *   run KIND CLIENTS NAMES SECONDS WARMUP   KIND: pairs, shared (one in ten
 *                                 writes), try (each fails), reentry
 *   lock ID PATH      begins to acquire, in a thread of its own
 *   held ID           waits until that has the lock; at=ns when it had
 *   unlock ID         begins to release it; at=ns when it began
 *   forget            releases all that is held or comes to be held
 *
 * NAMES is "distinct", "one" or the number of names to draw from.  Times are
 * those of CLOCK_MONOTONIC, as all programs on this machine see it.
 */
public class CuratorBench
{
	private static final int MAX_SAMPLES = 1_000_000;

	private final CuratorFramework client;
	private final String root;
	private final Map<String, Holder> holders = new HashMap<>();

	private CuratorBench(String hosts, String root) throws Exception
	{
		client = CuratorFrameworkFactory.newClient(hosts, 10_000, 15_000,
				new ExponentialBackoffRetry(100, 5));
		client.start();
		client.blockUntilConnected();
		this.root = root;
	}

	/** A lock that the driver has taken by name, and the thread it belongs to. */
	private class Holder extends Thread
	{
		final InterProcessMutex lock;
		final CountDownLatch held = new CountDownLatch(1);
		final CountDownLatch release = new CountDownLatch(1);
		final CountDownLatch releasing = new CountDownLatch(1);
		volatile long heldAt;
		volatile long releasedAt;
		volatile Exception failure;

		Holder(String path)
		{
			lock = new InterProcessMutex(client, root + path);
			setDaemon(true);
			start();
		}

		@Override
		public void run()
		{
			try
			{
				lock.acquire();
				heldAt = System.nanoTime();
				held.countDown();
				release.await();
				releasedAt = System.nanoTime();
				releasing.countDown();
				lock.release();
			}
			catch (Exception e)
			{
				failure = e;
				held.countDown();
				releasing.countDown();
			}
		}
	}

	/** One client of a run. */
	private class Worker extends Thread
	{
		final String kind;
		final String names;
		final int number;
		final long warmAt;
		final long endAt;
		long total;
		int measured;
		long[] samples = new long[1024];
		Exception failure;

		Worker(String kind, String names, int number, long warmAt, long endAt)
		{
			this.kind = kind;
			this.names = names;
			this.number = number;
			this.warmAt = warmAt;
			this.endAt = endAt;
		}

		private String path()
		{
			switch (names)
			{
				case "distinct":
					return root + "/distinct/" + number;
				case "one":
					return root + "/one";
				case "held":
					return root + "/held";
				default:
					return root + "/many/" + ThreadLocalRandom.current()
							.nextInt(Integer.parseInt(names));
			}
		}

		private void pair(InterProcessLock lock) throws Exception
		{
			lock.acquire();
			lock.release();
		}

		private void tryOnce(InterProcessLock lock) throws Exception
		{
			if (lock.acquire(0, TimeUnit.MILLISECONDS))
				throw new Exception("a try that had to fail did not");
		}

		private void loop() throws Exception
		{
			boolean drawn = Character.isDigit(names.charAt(0));
			InterProcessLock fixed = drawn ? null : new InterProcessMutex(client, path());
			InterProcessReadWriteLock rw = kind.equals("shared")
					? new InterProcessReadWriteLock(client, path()) : null;

			if (kind.equals("reentry"))
				fixed.acquire();
			for (;;)
			{
				long begin = System.nanoTime();
				if (begin >= endAt)
					break;
				if (rw != null)
					pair(ThreadLocalRandom.current().nextInt(10) == 0
							? rw.writeLock() : rw.readLock());
				else if (kind.equals("try"))
					tryOnce(fixed);
				else
					pair(drawn ? new InterProcessMutex(client, path()) : fixed);
				count(begin, System.nanoTime());
			}
			if (kind.equals("reentry"))
				fixed.release();
		}

		private void count(long begin, long end)
		{
			total++;
			if (begin < warmAt || end > endAt)
				return;
			if (measured < MAX_SAMPLES)
			{
				if (measured == samples.length)
					samples = Arrays.copyOf(samples, 2 * samples.length);
				samples[measured] = end - begin;
			}
			measured++;
		}

		@Override
		public void run()
		{
			try
			{
				loop();
			}
			catch (Exception e)
			{
				failure = e;
			}
		}
	}

	private String run(String[] words) throws Exception
	{
		int clients = Integer.parseInt(words[2]);
		double seconds = Double.parseDouble(words[4]);
		long warmAt = System.nanoTime()
				+ (long) (Double.parseDouble(words[5]) * 1e9);
		long endAt = warmAt + (long) (seconds * 1e9);
		Worker[] workers = new Worker[clients];
		long total = 0;
		long measured = 0;
		int count = 0;

		for (int i = 0; i < clients; i++)
		{
			workers[i] = new Worker(words[1], words[3], i, warmAt, endAt);
			workers[i].start();
		}
		for (Worker worker : workers)
		{
			worker.join();
			if (worker.failure != null)
				throw worker.failure;
			total += worker.total;
			measured += worker.measured;
			count += Math.min(worker.measured, MAX_SAMPLES);
		}
		if (count == 0)
			throw new Exception("no pair was done");
		long[] samples = new long[count];
		int at = 0;
		for (Worker worker : workers)
		{
			int n = Math.min(worker.measured, MAX_SAMPLES);
			System.arraycopy(worker.samples, 0, samples, at, n);
			at += n;
		}
		Arrays.sort(samples);
		return String.format("ok rate=%.1f total=%d p50=%.4f p99=%.4f",
				measured / seconds, total, samples[count / 2] / 1e6,
				samples[count - 1 - count / 100] / 1e6);
	}

	private String command(String[] words) throws Exception
	{
		if (words[0].equals("run"))
			return run(words);
		if (words[0].equals("lock"))
		{
			holders.put(words[1], new Holder(words[2]));
			return "ok";
		}
		if (words[0].equals("forget"))
		{
			for (Holder holder : holders.values())
				holder.release.countDown();
			for (Holder holder : holders.values())
				holder.join();
			holders.clear();
			return "ok";
		}
		Holder holder = holders.get(words[1]);
		if (words[0].equals("held"))
		{
			holder.held.await();
			if (holder.failure != null)
				throw holder.failure;
			return "ok at=" + holder.heldAt;
		}
		holder.release.countDown();
		holder.releasing.await();
		if (holder.failure != null)
			throw holder.failure;
		return "ok at=" + holder.releasedAt;
	}

	public static void main(String[] args) throws Exception
	{
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		CuratorBench bench = new CuratorBench(args[0], args[1]);
		String line;

		System.out.println("ok");
		while ((line = in.readLine()) != null)
		{
			try
			{
				System.out.println(bench.command(line.split(" ")));
			}
			catch (Exception e)
			{
				System.out.println("error " + String.valueOf(e).replace('\n', ' '));
			}
		}
		bench.client.close();
		System.exit(0);
	}
}
