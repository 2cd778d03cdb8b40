// Sends the mails on standard input, one a line, to the customers that are named, each under
// a lock of its own.  All locks are awaited through one connection, which may be PgBouncer's.

const readline = require('node:readline');
const { Client } = require('pg');

// Turns on any number of locks: calls "work" for each, until none is left.  A turn lasts a
// minute at most, and is given up if nobody takes it within 5 seconds.  All programs of a
// role on a server share its tickets.
async function takeTurns(client, paths, work) {
	const ask = async (query, ...values) => (await client.query(query, values)).rows[0];

	await ask("SELECT zk_enqueue_all($1::text[], '1 min', '5 s')", paths);
	while ((await ask("SELECT count(*)::int AS n FROM zk_tickets WHERE state IN ('waiting', 'granted')")).n > 0) {
		const { path, token } = await ask("SELECT * FROM zk_claim_next('10 s')");
		if (path === null)
			continue;
		try {
			// For how long it is surely held.  Error with code 40001 or 55000: it may be lost.
			await work(path, token, () => ask('SELECT zk_assert_lock($1, $2)::text', path, token));
		} finally {
			await ask('SELECT zk_cancel_reservation($1, $2)', path, token);
		}
	}
}

async function main() {
	const [connectionString, ...customers] = process.argv.slice(2);
	const mails = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
	const client = new Client({ connectionString });
	client.on('error', () => {}); // the next query reports it
	await client.connect();
	try {
		await takeTurns(client, customers.map((c) => `/examples/mails/${c}`), async (path, token, assertHeld) => {
			console.log('turn', path, token);
			const mail = (await mails.next()).value ?? '';
			await assertHeld();
			console.log('mail', path, mail);
		});
	} finally {
		await client.end();
		process.stdin.destroy();
	}
}

module.exports = { takeTurns };
if (require.main === module)
	main().catch((error) => {
		console.error(error.code, error.message);
		process.exit(1);
	});
