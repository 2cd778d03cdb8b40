import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;

/**
 * Curator's InterProcessSemaphoreV2, for CuratorControl:
 *
 *   semaphore acquire KEY PATH MAX LEASES   begins to acquire, in a thread
 *   semaphore held KEY                      whether it has them
 *   semaphore release KEY
 *   semaphore try PATH MAX LEASES           whether it gets them at once; gives
 *                                           them back
 *   semaphore participants PATH             how many leases Curator counts
 *   semaphore run KEY PATH MAX DIRECTORY ROUNDS    so often: acquires a lease,
 *                                           and is inside for a moment
 *   semaphore ran KEY                       how often it did; -1 while it does
 *   semaphore most KEY                      how many were inside at most
 */
class SemaphoreControl implements CuratorControl.Recipe
{
	private final CuratorFramework client;
	private final Map<String, Holder> holders = new HashMap<>();
	private final Map<String, Runner> runners = new HashMap<>();

	SemaphoreControl(CuratorFramework client)
	{
		this.client = client;
	}

	private InterProcessSemaphoreV2 make(String path, String max)
	{
		return new InterProcessSemaphoreV2(client, path, Integer.parseInt(max));
	}

	/** Leases belong to no thread, but acquiring them waits. */
	private static class Holder extends Thread
	{
		final InterProcessSemaphoreV2 semaphore;
		final int wanted;
		volatile Collection<Lease> leases;

		Holder(InterProcessSemaphoreV2 semaphore, int wanted)
		{
			this.semaphore = semaphore;
			this.wanted = wanted;
			setDaemon(true);
			start();
		}

		@Override
		public void run()
		{
			try
			{
				leases = semaphore.acquire(wanted);
			}
			catch (Exception e)
			{
				System.err.println(e);
			}
		}
	}

	/** Who is inside has a file there. */
	private static class Runner extends Thread
	{
		final InterProcessSemaphoreV2 semaphore;
		final Path directory;
		final int rounds;
		volatile int done = -1;
		volatile int most;
		volatile String why;

		Runner(InterProcessSemaphoreV2 semaphore, String directory, int rounds)
		{
			this.semaphore = semaphore;
			this.directory = Paths.get(directory);
			this.rounds = rounds;
			setDaemon(true);
			start();
		}

		private void inside() throws Exception
		{
			Path mine = Files.createFile(
					directory.resolve(UUID.randomUUID().toString()));

			try (Stream<Path> all = Files.list(directory))
			{
				most = Math.max(most, (int) all.count());
			}
			Thread.sleep(1);
			Files.delete(mine);
		}

		@Override
		public void run()
		{
			try
			{
				for (int i = 0; i < rounds; i++)
				{
					Lease lease = semaphore.acquire();

					try
					{
						inside();
					}
					finally
					{
						semaphore.returnLease(lease);
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

	private boolean attempt(InterProcessSemaphoreV2 semaphore, int wanted)
			throws Exception
	{
		Collection<Lease> leases =
				semaphore.acquire(wanted, 500, TimeUnit.MILLISECONDS);

		if (leases != null)
			semaphore.returnAll(leases);
		return leases != null;
	}

	private int ran(Runner runner)
	{
		if (runner.why != null)
			throw new IllegalStateException(runner.why);
		return runner.done;
	}

	@Override
	public Object command(List<String> words) throws Exception
	{
		String key = words.get(1);

		switch (words.get(0))
		{
			case "acquire":
				holders.put(key, new Holder(make(words.get(2), words.get(3)),
						Integer.parseInt(words.get(4))));
				return true;
			case "held":
				return holders.get(key).leases != null;
			case "release":
				Holder holder = holders.remove(key);
				holder.join();
				holder.semaphore.returnAll(holder.leases);
				return true;
			case "try":
				return attempt(make(words.get(1), words.get(2)),
						Integer.parseInt(words.get(3)));
			case "participants":
				return make(words.get(1), "1").getParticipantNodes().size();
			case "run":
				runners.put(key, new Runner(make(words.get(2), words.get(3)),
						words.get(4), Integer.parseInt(words.get(5))));
				return true;
			case "ran":
				return ran(runners.get(key));
			case "most":
				return runners.get(key).most;
			default:
				throw new IllegalArgumentException(words.get(0));
		}
	}
}
