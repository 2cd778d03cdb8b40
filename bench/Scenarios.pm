# What is measured, and how one measurement is made.
#
#	foreach my $scenario (@Scenarios::all) ...
#	my $result = Scenarios::measure($scenario, $contestant, $cluster, ...);
#
# A scenario: name, title, zk (the cluster it runs on: zk, tls or ensemble), kind
# (what each client does, see PgContestants.pm; or a key of %measures below),
# rounds (at most), contestants, cached (0: no contestant caches locks; otherwise
# "uncached" does not), and for most of them clients and names:
# "distinct" is one name per client, "one" one for all, "held" one that another
# server holds (or that of number "holder"), a number that many to draw from.

package Scenarios;

use strict;
use warnings;

use Contestants;
use ScenarioDepth;
use ScenarioFacts;
use ScenarioHandover;
use ScenarioRecall;
use ScenarioSteps;

our $drawn_names = 100_000;
my $all_names = 1_000_000_000;    # hardly one comes twice

sub clients { return $_[0] == 1 ? '1 client' : "$_[0] clients"; }

# Rounds of what something is demanded of, and of all the rest
my ($many, $few) = (99, 3);
my $lone_rate = 100;    # a second
my @peers = qw(zklock curator kazoo);
my @rivals = ('words', 'uncached', @peers, 'etcd', 'mutex');
my $waited = 0.3;    # seconds, see ScenarioHandover.pm

our @all = (
	(map {
			{
				name => "distinct-$_",
				title => clients($_) . ', a name each',
				kind => 'pairs',
				clients => $_,
				names => 'distinct',
				rounds => $_ == 256 ? $few : $many,
				contestants => [qw(zklock words uncached curator kazoo raw advisory sql)],
			}
	} 1, 8, 64, 256),
	(map {
			{
				name => "statement-$_",
				title => clients($_) . ', a name each, both calls in one statement',
				kind => 'onestatement',
				clients => $_,
				names => 'distinct',
				rounds => $few,
				contestants => [qw(zklock advisory)],
			}
	} 1, 64),
	{
		name => 'many',
		title => '64 clients, names drawn from 100 000',
		kind => 'pairs',
		clients => 64,
		names => $drawn_names,
		rounds => $many,
		contestants => [qw(zklock words uncached curator kazoo raw advisory)],
	},
	(map {
			{
				name => "new-$_",
				title => clients($_) . ', names that were never used before',
				kind => 'pairs',
				clients => $_,
				names => $all_names,
				rounds => $few,
				contestants => [qw(zklock words uncached curator kazoo)],
			}
	} 1, 8, 64),
	(map {
			{
				name => "one-$_",
				title => clients($_) . ', one name',
				kind => 'pairs',
				clients => $_,
				names => 'one',
				rounds => $many,
				contestants => [qw(zklock words uncached curator kazoo advisory)],
			}
	} 8, 64),
	{
		name => 'shared',
		title => '10 clients, one name, 1 writer : 9 readers',
		kind => 'shared',
		rounds => $few,
		clients => 10,
		names => 'one',
		contestants => [ 'words', 'uncached', @peers, 'advisory' ],
	},
	{
		name => 'try',
		title => '8 clients, tries of a lock that another server holds',
		kind => 'try',
		rounds => $few,
		clients => 8,
		names => 'held',
		contestants => [ 'words', @peers, 'advisory' ],
	},
	{
		name => 'try-local',
		title => '8 clients, tries of a lock that a session of the same server holds',
		kind => 'try',
		rounds => $many,
		clients => 8,
		names => 'held',
		holder => 0,
		contestants => [qw(zklock advisory)],
	},
	{
		name => 'reentry',
		title => '8 clients, locks that they hold already',
		kind => 'reentry',
		rounds => $few,
		clients => 8,
		names => 'distinct',
		contestants => [ @peers, 'advisory' ],
	},
	{
		name => 'beside',
		title => 'a foreign client beside 64 clients, a name each',
		kind => 'beside',
		rounds => $few,
		contestants => [ 'uncached', @peers, 'sql' ],
	},
	(map {
			{
				name => "lone-$_",
				title => 'a lone session beside ' . clients($_),
				kind => 'lone',
				clients => $_,
				names => 'distinct',
				rounds => $few,
				contestants => [qw(zklock uncached sql)],
			}
	} 8, 64, 256),
	(map {
			{
				name => "handover-$_",
				title => "one name, $_ servers in turn",
				kind => 'handover',
				servers => $_,
				rounds => $_ == 2 ? $many : $few,
				contestants => \@rivals,
			}
	} 2, 3),
	{
		name => 'handover-waited',
		title => '2 servers in turn, the next one has waited',
		kind => 'handover',
		servers => 2,
		waited => $waited,
		rounds => $many,
		contestants => \@rivals,
	},
	{
		name => 'steps',
		title => 'where the time of a hand-over goes',
		kind => 'steps',
		rounds => $few,
		contestants => [qw(zklock words)],
	},
	{
		name => 'alternate',
		title => 'two servers that take one name in turn',
		kind => 'alternate',
		rounds => $many,
		contestants => [ 'words', 'uncached', @peers ],
	},
	{
		name => 'recall',
		title => 'a lock that another server has cached',
		kind => 'recall',
		rounds => $many,
		contestants => [qw(zklock words)],
	},
	(map {
			{
				name => "depth-$_",
				title => "hand-over between two servers, $_ waiters",
				kind => 'depth',
				depth => $_,
				rounds => 2,
				contestants => \@peers,
			}
	} 10, 100, 1000, 5000),
	(map {
			{
				name => "local-$_",
				title => "hand-over within one server, $_ waiters",
				kind => 'depth',
				depth => $_,
				rounds => 2,
				local => 1,
				contestants => ['zklock'],
			}
	} 10, 500),
	{
		name => 'facts',
		title => 'memory, and an idle server',
		kind => 'fact',
		rounds => 1,
		contestants => ['zklock'],
	},
	(map {
			my ($names, $clients) = @$_;

			{
				name => "tls-$names-$clients",
				title => clients($clients)
				  . ($names eq 'one' ? ', one name' : ', a name each')
				  . ', without TLS and with it',
				zk => 'tls',
				kind => 'pairs',
				clients => $clients,
				names => $names,
				rounds => $many,
				cached => 0,
				contestants => [qw(zklock tls)],
			}
	} [ distinct => 1 ], [ distinct => 64 ], [ one => 8 ]),
	(map {
			{
				name => "three-$_",
				title => clients($_) . ', a name each, three ZooKeeper servers',
				zk => 'ensemble',
				rounds => $few,
				kind => 'pairs',
				clients => $_,
				names => 'distinct',
				contestants => [ 'uncached', @peers, 'raw' ],
			}
	} 1, 8, 64),
	{
		name => 'three-handover',
		title => 'one name, 2 servers in turn, three ZooKeeper servers',
		zk => 'ensemble',
		rounds => $few,
		kind => 'handover',
		servers => 2,
		contestants => \@rivals,
	},
	{
		name => 'three-waited',
		title => '2 servers in turn, the next one has waited, three ZooKeeper servers',
		zk => 'ensemble',
		rounds => $many,
		kind => 'handover',
		servers => 2,
		waited => $waited,
		contestants => \@rivals,
	});

my %measures = (
	beside => \&measure_beside,
	lone => \&measure_lone,
	handover => \&ScenarioHandover::measure,
	alternate => \&ScenarioRecall::measure_alternate,
	recall => \&ScenarioRecall::measure_recall,
	depth => \&ScenarioDepth::measure,
	steps => \&ScenarioSteps::measure,
	fact => \&ScenarioFacts::measure);

# Returns what to put into the line of results; dies when it fails.
sub measure
{
	my ($scenario, $contestant, $cluster, $seconds, $warmup) = @_;
	my $measure = $measures{ $scenario->{kind} } // \&measure_pairs;

	$cluster->cache($scenario->{cached} // ($contestant->{name} eq 'uncached' ? 0 : 1));
	$cluster->words($contestant->{name} eq 'words');
	return $measure->($scenario, $contestant, $cluster, $seconds, $warmup);
}

# How long a write of somebody else takes who has nothing to do with the locks:
# p50 and p99 are that client's, the rate is the contestant's.
sub measure_beside
{
	my ($scenario, $contestant, $cluster, $seconds, $warmup) = @_;
	my $foreign = Contestants::make('raw', $cluster);
	my $load = { %$scenario, kind => 'pairs', clients => 64, names => 'distinct' };
	my $writes = $foreign->begin({ clients => 1, names => 'distinct' }, $seconds,
		$warmup);
	my $rate = eval { $contestant->run($load, $seconds, $warmup)->{rate} };
	my $error = $@;
	my $result = $foreign->result($writes);

	die $error unless defined $rate;
	return { rate => $rate, p50 => $result->{p50}, p99 => $result->{p99} };
}

# How long somebody waits who seldom wants a lock, of a name of his own: p50 and
# p99 are his, the rate is that of all the others.
sub measure_lone
{
	my ($scenario, $contestant, $cluster, $seconds, $warmup) = @_;
	my $load = { %$scenario, kind => 'pairs' };
	my $lone = {
		name => 'lone',
		kind => 'pairs',
		clients => 1,
		names => 'lone',
		rate => $lone_rate };
	my $others = $contestant->begin($load, $seconds, $warmup);
	my $waits = eval {
		$contestant->run($lone, $seconds + int($scenario->{clients} / 64),
			$warmup);
	};
	my $error = $@;
	my $result = $contestant->result($others);

	die $error unless $waits;
	return { rate => $result->{rate}, p50 => $waits->{p50}, p99 => $waits->{p99} };
}

# So many clients at full speed on server 0
sub measure_pairs
{
	my ($scenario, $contestant, $cluster, $seconds, $warmup) = @_;
	my $held = $scenario->{names} eq 'held';

	if ($held)
	{
		$contestant->acquire($scenario->{holder} // 1, 'holder', '/held');
		$contestant->held('holder');
	}
	my $before = $cluster->meter($contestant->{server} // 0);
	my $result = $contestant->run($scenario, $seconds, $warmup);
	my $used = $cluster->used($before);
	if ($held)
	{
		$contestant->release('holder');
		$contestant->forget;
	}

	my $total = delete $result->{total};
	$result->{requests} = $used->{packets} / $total;
	$result->{batches} /= $total if $result->{batches};
	if ($contestant->{name} =~ /^(?:zklock|words|uncached|tls)$/)
	{
		$result->{$_} = $used->{$_} / $total foreach qw(batches listings);
	}
	foreach my $process (qw(zookeeper worker session))
	{
		$result->{"${process}_us"} = $used->{$process} * 1e6 / $total;
	}
	$result->{busy} = $used->{machine};
	return $result;
}

1;
