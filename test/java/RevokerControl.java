import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.Revoker;

/**
 * Locks that can be revoked:
 *
 *   revoker hold KEY KIND PATH    begins to acquire; KIND is mutex or write
 *   revoker held KEY
 *   revoker asked KEY             how often it was asked to give the lock up
 *   revoker release KEY
 *   revoker attempt KIND PATH N   asks the Nth in the queue, from 0
 */
class RevokerControl implements CuratorControl.Recipe
{
	private final CuratorFramework client;
	private final Map<String, Holder> holders = new HashMap<>();

	RevokerControl(CuratorFramework client)
	{
		this.client = client;
	}

	private InterProcessMutex make(String kind, String path)
	{
		if (kind.equals("mutex"))
			return new InterProcessMutex(client, path);
		return new InterProcessReadWriteLock(client, path).writeLock();
	}

	/** A lock, and the thread that it belongs to. */
	private static class Holder extends Thread
	{
		final InterProcessMutex lock;
		final CountDownLatch release = new CountDownLatch(1);
		final AtomicInteger asked = new AtomicInteger();
		volatile boolean held;

		Holder(InterProcessMutex lock)
		{
			this.lock = lock;
			lock.makeRevocable(revoked -> asked.incrementAndGet(),
					Executors.newSingleThreadExecutor(task -> {
						Thread thread = new Thread(task);
						thread.setDaemon(true);
						return thread;
					}));
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

	@Override
	public Object command(List<String> words) throws Exception
	{
		switch (words.get(0))
		{
			case "hold":
				holders.put(words.get(1),
						new Holder(make(words.get(2), words.get(3))));
				return true;
			case "held":
				return holders.get(words.get(1)).held;
			case "asked":
				return holders.get(words.get(1)).asked.get();
			case "release":
				Holder holder = holders.remove(words.get(1));
				holder.release.countDown();
				holder.join();
				return true;
			case "attempt":
				Object[] nodes = make(words.get(1), words.get(2))
						.getParticipantNodes().toArray();
				Revoker.attemptRevoke(client,
						(String) nodes[Integer.parseInt(words.get(3))]);
				return true;
			default:
				throw new IllegalArgumentException(words.get(0));
		}
	}
}
