// Sends mails to the customers on standard input, on one server at a time.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

public class Mails
{
	/** A lock that is held until close().  The connection must be in autocommit mode. */
	static class ZkLock implements AutoCloseable
	{
		private final Connection connection;
		private final String path;
		final long token;

		ZkLock(Connection connection, String path) throws SQLException
		{
			this.connection = connection;
			this.path = path;
			try (PreparedStatement call = connection.prepareStatement("CALL zk_await_lock(?)"))
			{
				call.setString(1, path);
				call.execute();
			}
			token = Long.parseLong(ask("SELECT zk_fencing_token(?)"));
		}

		private String ask(String query) throws SQLException
		{
			try (PreparedStatement statement = connection.prepareStatement(query))
			{
				statement.setString(1, path);
				ResultSet result = statement.executeQuery();
				result.next();
				return result.getString(1);
			}
		}

		/** For how long it is surely held.  SQLSTATE 40001: it may be lost. */
		String assertHeld() throws SQLException
		{
			return ask("SELECT zk_assert_lock(?)");
		}

		@Override
		public void close() throws SQLException
		{
			if (!connection.isClosed()) // else the lock has ended with it
				ask("SELECT zk_unlock(?)");
		}
	}

	public static void main(String[] args) throws Exception
	{
		BufferedReader customers = new BufferedReader(new InputStreamReader(System.in));

		try (Connection connection = DriverManager.getConnection(args[0]);
				ZkLock lock = new ZkLock(connection, "/examples/mails"))
		{
			System.out.println("locked " + lock.token);
			for (String customer; (customer = customers.readLine()) != null;)
			{
				lock.assertHeld();
				System.out.println("mail to " + customer);
			}
		}
		catch (SQLException e)
		{
			System.err.println(e.getSQLState() + " " + e.getMessage());
			System.exit(1);
		}
	}
}
