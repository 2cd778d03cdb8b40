// Sends mails to the customers on standard input, on one server at a time.

const readline = require('node:readline');
const { Client } = require('pg');

// Holds the lock while "work" runs.  The client must not be in a transaction, nor be used
// by anybody else meanwhile.
async function withLock(client, path, work) {
	const ask = async (query) =>
		Object.values((await client.query(query, [path])).rows[0])[0];
	const release = () =>
		ask('SELECT zk_unlock($1)').catch(async () => {
			await client.end(); // which ends the lock, too
			return false;
		});
	let result;

	await client.query('CALL zk_await_lock($1)', [path]);
	try {
		result = await work({
			token: await ask('SELECT zk_fencing_token($1)'),
			// For how long it is surely held.  Error with code 40001: it may be lost.
			assertHeld: () => ask('SELECT zk_assert_lock($1)::text'),
		});
	} catch (error) {
		await release();
		throw error;
	}
	if (!(await release()))
		throw Object.assign(new Error(`lock ${path} was lost`), { code: '40001' });
	return result;
}

async function main() {
	const client = new Client({ connectionString: process.argv[2] });
	client.on('error', () => {}); // the next query reports it
	await client.connect();
	try {
		await withLock(client, '/examples/mails', async (lock) => {
			console.log('locked', lock.token);
			for await (const customer of readline.createInterface({ input: process.stdin })) {
				await lock.assertHeld();
				console.log('mail to', customer);
			}
		});
	} finally {
		await client.end();
	}
}

module.exports = { withLock };
if (require.main === module)
	main().catch((error) => {
		console.error(...[error.code, error.message].filter(Boolean));
		process.exit(1);
	});
