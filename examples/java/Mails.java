// Sends mails to the customers on standard input, on one server at a time.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;

public class Mails
{
	/** A lock that is held until close().  The connection must be in autocommit mode. */
	static class ZkLock implements AutoCloseable
	{
		private final Connection connection;
		private final String path;

		ZkLock(Connection connection, String path) throws SQLException
		{
			if (!connection.getAutoCommit())
				throw new IllegalArgumentException("ZkLock needs autocommit");
			this.connection = connection;
			this.path = path;
			ask("CALL zk_await_lock(?)");
		}

		private String ask(String query) throws SQLException
		{
			try (PreparedStatement statement = connection.prepareStatement(query))
			{
				statement.setString(1, path);
				return statement.execute() && statement.getResultSet().next() ?
					statement.getResultSet().getString(1) : null;
			}
		}

		long token() throws SQLException
		{
			return Long.parseLong(ask("SELECT zk_fencing_token(?)"));
		}

		/** For how long it is surely held.  SQLSTATE 40001: it may be lost. */
		String assertHeld() throws SQLException
		{
			return ask("SELECT zk_assert_lock(?)");
		}

		/** Releases it.  SQLSTATE 40001: it was lost before that. */
		@Override
		public void close() throws SQLException
		{
			boolean held;

			try
			{
				held = ask("SELECT zk_unlock(?)::text").equals("true");
			}
			catch (SQLException e)
			{
				connection.close(); // which ends the lock, too
				throw e;
			}
			if (!held)
				throw new SQLException("lock " + path + " was lost", "40001");
		}
	}

	public static void main(String[] args) throws Exception
	{
		BufferedReader customers = new BufferedReader(new InputStreamReader(System.in));

		try (Connection connection = DriverManager.getConnection(args[0]);
				ZkLock lock = new ZkLock(connection, "/examples/mails"))
		{
			System.out.println("locked " + lock.token());
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
