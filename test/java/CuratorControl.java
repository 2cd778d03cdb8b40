import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Curator's own locks for tests, driven over stdin and stdout.
 *
 * Reads one JSON array of strings per line, [command, argument, ...], and
 * answers each with one line, [true, value] or [false, "what is wrong"], as
 * zkctl.py does, and with its commands:
 *
 *   lock KEY KIND PATH    begins to acquire, in a thread of its own;
 *                         KIND is mutex, write or read
 *   held KEY              whether it has it
 *   unlock KEY
 *   participants KIND PATH    how many znodes Curator counts
 *   count KEY KIND PATH FILE ROUNDS    so often: acquires, adds one to the
 *                         number in the file, releases; a reader looks at it
 *                         twice instead
 *   counted KEY           how often it did; -1 while it is at it
 *   attempt KIND PATH     acquires without waiting, and releases: whether it got it
 */
public class CuratorControl
{
	private final CuratorFramework client;
	private final Map<String, Holder> holders = new HashMap<>();
	private final Map<String, Counter> counters = new HashMap<>();
	private final Map<String, Recipe> recipes = new HashMap<>();

	/** What is more than a lock: a command word of its own, then its own. */
	interface Recipe
	{
		Object command(List<String> words) throws Exception;
	}

	private CuratorControl(String hosts) throws Exception
	{
		client = CuratorFrameworkFactory.newClient(hosts, 10_000, 15_000,
				new ExponentialBackoffRetry(100, 5));
		client.start();
		client.blockUntilConnected();
		recipes.put("multi", new MultiControl(client));
		recipes.put("barrier", new BarrierControl(client));
		recipes.put("semaphore", new SemaphoreControl(client));
		recipes.put("revoker", new RevokerControl(client));
		recipes.put("latch", new LatchControl(client));
	}

	private InterProcessMutex make(String kind, String path)
	{
		switch (kind)
		{
			case "mutex":
				return new InterProcessMutex(client, path);
			case "write":
				return new InterProcessReadWriteLock(client, path).writeLock();
			case "read":
				return new InterProcessReadWriteLock(client, path).readLock();
			default:
				throw new IllegalArgumentException(kind);
		}
	}

	/** A lock, and the thread that it belongs to. */
	private static class Holder extends Thread
	{
		final InterProcessMutex lock;
		final CountDownLatch release = new CountDownLatch(1);
		volatile boolean held;

		Holder(InterProcessMutex lock)
		{
			this.lock = lock;
			setDaemon(true);
			start();
		}

		@Override
		public void run()
		{
			try
			{
				lock.acquire();
				held = true;
				release.await();
				lock.release();
			}
			catch (Exception e)
			{
				System.err.println(e);
			}
		}
	}

	/** Somebody who acquires again and again. */
	private static class Counter extends Thread
	{
		final InterProcessMutex lock;
		final boolean reads;
		final Path file;
		final int rounds;
		volatile int done = -1;
		volatile String why;

		Counter(InterProcessMutex lock, boolean reads, String file, int rounds)
		{
			this.lock = lock;
			this.reads = reads;
			this.file = Paths.get(file);
			this.rounds = rounds;
			setDaemon(true);
			start();
		}

		private String read() throws Exception
		{
			return new String(Files.readAllBytes(file)).trim();
		}

		private void inside() throws Exception
		{
			String before = read();
			Thread.sleep(0, 200_000);
			if (!reads)
				Files.write(file, String.valueOf(Integer.parseInt(before) + 1)
						.getBytes());
			else if (!read().equals(before))
				throw new IllegalStateException("changed under a reader");
		}

		@Override
		public void run()
		{
			try
			{
				for (int i = 0; i < rounds; i++)
				{
					lock.acquire();
					try
					{
						inside();
					}
					finally
					{
						lock.release();
					}
				}
				done = rounds;
			}
			catch (Exception e)
			{
				why = e.toString();
			}
		}
	}

	private Object command(List<String> words) throws Exception
	{
		switch (words.get(0))
		{
			case "lock":
				holders.put(words.get(1),
						new Holder(make(words.get(2), words.get(3))));
				return true;
			case "held":
				return holders.get(words.get(1)).held;
			case "unlock":
				Holder holder = holders.remove(words.get(1));
				holder.release.countDown();
				holder.join();
				return true;
			case "participants":
				Collection<String> nodes =
						make(words.get(1), words.get(2)).getParticipantNodes();
				return nodes.size();
			case "count":
				counters.put(words.get(1), new Counter(
						make(words.get(2), words.get(3)),
						words.get(2).equals("read"), words.get(4),
						Integer.parseInt(words.get(5))));
				return true;
			case "counted":
				Counter counter = counters.get(words.get(1));
				if (counter.why != null)
					throw new IllegalStateException(counter.why);
				return counter.done;
			case "attempt":
				InterProcessMutex mutex = make(words.get(1), words.get(2));
				boolean got = mutex.acquire(0, TimeUnit.MILLISECONDS);
				if (got)
					mutex.release();
				return got;
			default:
				Recipe recipe = recipes.get(words.get(0));
				if (recipe == null)
					throw new IllegalArgumentException(words.get(0));
				return recipe.command(words.subList(1, words.size()));
		}
	}

	public static void main(String[] args) throws Exception
	{
		Pattern word = Pattern.compile("\"([^\"]*)\"|(-?[0-9]+)");
		CuratorControl control = new CuratorControl(args[0]);
		BufferedReader in =
				new BufferedReader(new InputStreamReader(System.in));
		String line;

		while ((line = in.readLine()) != null)
		{
			List<String> words = new ArrayList<>();
			Matcher matcher = word.matcher(line);

			while (matcher.find())
				words.add(matcher.group(1) != null ? matcher.group(1)
						: matcher.group(2));
			try
			{
				System.out.println("[true, " + control.command(words) + "]");
			}
			catch (Exception e)
			{
				System.out.println("[false, \""
						+ e.toString().replaceAll("[\"\\\\\n]", " ") + "\"]");
			}
		}
		System.exit(0);
	}
}
