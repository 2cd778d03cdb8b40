// Sends the mails on standard input, one a line, to the customers that are named, each under
// a lock of its own.  All locks are awaited through one connection, which may be PgBouncer's.

const readline = require('node:readline');
const { Client } = require('pg');

// A ticket for each name that has none: at first, and again after one that has lapsed or was lost.
// A turn lasts a minute at most, and lapses if it is not taken within 5 seconds of its beginning.
const ENQUEUE = `
	SELECT array_agg(path) AS enqueued, zk_enqueue_all(array_agg(path), '1 min', '5 s')
	FROM (SELECT unnest($1::text[])
		EXCEPT SELECT path FROM zk_tickets WHERE state IN ('waiting', 'granted')) AS lacking (path)
	HAVING count(*) > 0`;

// Calls "work" in a turn on each of the locks, in the order in which they are to be had.
async function takeTurns(client, paths, work) {
	const ask = async (query, ...values) => (await client.query(query, values)).rows[0];
	const left = new Set(paths);

	while (left.size > 0) {
		const some = await ask(ENQUEUE, [...left]);
		if (some)
			console.error('enqueued', ...some.enqueued);
		// Without the names, it takes tickets of other programs of this role, too.
		const { path, token } = await ask("SELECT * FROM zk_claim_next('10 s', $1::text[])", [...left]);
		if (path === null)
			continue;
		try {
			// For how long it is surely held.  Error with code 40001 or 55000: it may be lost.
			await work(path, token, () => ask('SELECT zk_assert_lock($1, $2)::text', path, token));
			left.delete(path);
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
		console.error(...[error.code, error.message].filter(Boolean));
		process.exit(1);
	});
