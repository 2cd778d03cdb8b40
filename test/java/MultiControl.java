import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;

/**
 * Curator's InterProcessMultiLock, for CuratorControl:
 *
 *   multi lock KEY PATH...         begins to acquire, in a thread of its own
 *   multi held KEY                 whether it has them
 *   multi unlock KEY
 *   multi try PATH...              whether it gets them at once; gives them back
 *   multi run KEY ROUNDS PATH...   so often: acquires and releases
 *   multi rounds KEY               how often it did
 */
class MultiControl implements CuratorControl.Recipe
{
	private final CuratorFramework client;
	private final Map<String, Holder> holders = new HashMap<>();
	private final Map<String, Runner> runners = new HashMap<>();

	MultiControl(CuratorFramework client)
	{
		this.client = client;
	}

	private InterProcessMultiLock make(List<String> paths)
	{
		return new InterProcessMultiLock(client, paths);
	}

	/** Locks belong to the thread that acquires them. */
	private static class Holder extends Thread
	{
		final InterProcessMultiLock lock;
		final CountDownLatch release = new CountDownLatch(1);
		volatile boolean held;

		Holder(InterProcessMultiLock lock)
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

	private static class Runner extends Thread
	{
		final InterProcessMultiLock lock;
		final int rounds;
		volatile int done;

		Runner(InterProcessMultiLock lock, int rounds)
		{
			this.lock = lock;
			this.rounds = rounds;
			setDaemon(true);
			start();
		}

		@Override
		public void run()
		{
			try
			{
				for (int i = 0; i < rounds; i++)
				{
					lock.acquire();
					lock.release();
					done++;
				}
			}
			catch (Exception e)
			{
				System.err.println(e);
			}
		}
	}

	private boolean attempt(InterProcessMultiLock lock) throws Exception
	{
		boolean got = lock.acquire(0, TimeUnit.SECONDS);

		if (got)
			lock.release();
		return got;
	}

	@Override
	public Object command(List<String> words) throws Exception
	{
		int n = words.size();

		switch (words.get(0))
		{
			case "lock":
				holders.put(words.get(1), new Holder(make(words.subList(2, n))));
				return true;
			case "held":
				return holders.get(words.get(1)).held;
			case "unlock":
				Holder holder = holders.remove(words.get(1));
				holder.release.countDown();
				holder.join();
				return true;
			case "try":
				return attempt(make(words.subList(1, n)));
			case "run":
				runners.put(words.get(1), new Runner(make(words.subList(3, n)),
						Integer.parseInt(words.get(2))));
				return true;
			case "rounds":
				return runners.get(words.get(1)).done;
			default:
				throw new IllegalArgumentException(words.get(0));
		}
	}
}
