import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.Participant;

/**
 * Leaders:
 *
 *   latch start KEY PATH ID     stands for leader
 *   latch leads KEY
 *   latch close KEY
 *   latch leader PATH           the id of who leads
 *   latch participants PATH     the ids of all, sorted, with commas
 */
class LatchControl implements CuratorControl.Recipe
{
	private final CuratorFramework client;
	private final Map<String, LeaderLatch> latches = new HashMap<>();

	LatchControl(CuratorFramework client)
	{
		this.client = client;
	}

	/** As JSON, in ASCII whatever the locale */
	private static String quote(String text)
	{
		return text.chars()
				.mapToObj(c -> c < ' ' || c > '~' || c == '"' || c == '\\'
						? String.format("\\u%04x", c) : "" + (char) c)
				.collect(Collectors.joining("", "\"", "\""));
	}

	@Override
	public Object command(List<String> words) throws Exception
	{
		switch (words.get(0))
		{
			case "start":
				LeaderLatch latch =
						new LeaderLatch(client, words.get(2), words.get(3));
				latches.put(words.get(1), latch);
				latch.start();
				return true;
			case "leads":
				return latches.get(words.get(1)).hasLeadership();
			case "close":
				latches.remove(words.get(1)).close();
				return true;
			case "leader":
				return quote(new LeaderLatch(client, words.get(1))
						.getLeader().getId());
			case "participants":
				return quote(new LeaderLatch(client, words.get(1))
						.getParticipants().stream().map(Participant::getId)
						.sorted().collect(Collectors.joining(",")));
			default:
				throw new IllegalArgumentException(words.get(0));
		}
	}
}
