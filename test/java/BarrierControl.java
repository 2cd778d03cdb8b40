import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;

/**
 * Curator's barrier for tests; MS is a timeout, and may be left out.
 *
 *   barrier enter KEY PATH PARTIES MS    begins to enter, in a thread of its own
 *   barrier leave KEY MS    the same with leaving
 *   barrier answer KEY      what came of the last of these: 1 true, 0 false
 *                           (the timeout), -1 nothing yet
 */
class BarrierControl implements CuratorControl.Recipe
{
	private final CuratorFramework client;
	private final Map<String, DistributedDoubleBarrier> barriers =
			new HashMap<>();
	private final Map<String, Call> calls = new HashMap<>();

	BarrierControl(CuratorFramework client)
	{
		this.client = client;
	}

	private interface Step
	{
		boolean call() throws Exception;
	}

	private static class Call extends Thread
	{
		final Step step;
		volatile int answer = -1;
		volatile String why;

		Call(Step step)
		{
			this.step = step;
			setDaemon(true);
			start();
		}

		@Override
		public void run()
		{
			try
			{
				answer = step.call() ? 1 : 0;
			}
			catch (Exception e)
			{
				why = e.toString();
			}
		}
	}

	private static long limit(List<String> words, int index)
	{
		return words.size() > index ? Long.parseLong(words.get(index)) : -1;
	}

	private static boolean enter(DistributedDoubleBarrier barrier, long ms)
			throws Exception
	{
		if (ms >= 0)
			return barrier.enter(ms, TimeUnit.MILLISECONDS);
		barrier.enter();
		return true;
	}

	private static boolean leave(DistributedDoubleBarrier barrier, long ms)
			throws Exception
	{
		if (ms >= 0)
			return barrier.leave(ms, TimeUnit.MILLISECONDS);
		barrier.leave();
		return true;
	}

	@Override
	public Object command(List<String> words) throws Exception
	{
		String key = words.get(1);

		switch (words.get(0))
		{
			case "enter":
				DistributedDoubleBarrier entered = new DistributedDoubleBarrier(
						client, words.get(2), Integer.parseInt(words.get(3)));
				barriers.put(key, entered);
				calls.put(key,
						new Call(() -> enter(entered, limit(words, 4))));
				return true;
			case "leave":
				DistributedDoubleBarrier left = barriers.remove(key);
				calls.put(key, new Call(() -> leave(left, limit(words, 2))));
				return true;
			case "answer":
				Call call = calls.get(key);
				if (call.why != null)
					throw new IllegalStateException(call.why);
				return call.answer;
			default:
				throw new IllegalArgumentException(words.get(0));
		}
	}
}
