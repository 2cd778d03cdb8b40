# The checkers of the chaos run, on histories made by hand: each kind of
# violation is found, and what only looks like one is not.

use strict;
use warnings;

use Test::More;

use ChaosCheck;

my $number = 0;

# A section that was granted, visited the resource and committed; times are
# small numbers, visits too.
sub section
{
	my (%params) = @_;
	my $id = 's' . $number++;

	return {
		id => $id, server => 1, client => '1-1', lock => '/a', shared => 0,
		asked => 0, granted => 1, token => 10, told => 10, znode => $id,
		proved => 2, entered => 1, left => 2, left_at => 3, commit_sent => 3,
		commit_seen => 4, released => 3, ended => 5,
		(defined $params{token} ? (told => $params{token}) : ()), %params
	};
}

# The kinds found, each once
sub kinds
{
	my ($options, @sections) = @_;
	my $check = ChaosCheck->new(%$options);

	foreach my $section (@sections)
	{
		$check->section($section);
		$check->confirm($section->{id}) unless $section->{failed};
	}
	$check->operator(@$_) foreach @{ $options->{acts} // [] };
	my %kinds = map { $_->[0] => 1 } $check->violations;
	return join ' ', sort keys %kinds;
}

my %later = (token => 20, asked => 2, granted => 5, entered => 3, left => 4,
	commit_sent => 6, released => 6, left_at => 6, proved => 7, ended => 7);

is(kinds({}, section(), section(%later)), '', 'one after the other');
is(kinds({}, section(), section(%later, granted => 2.5)),
	'overlap', 'granted before the other one committed');
is(kinds({}, section(), section(%later, granted => 2.5, lock => '/b')),
	'', 'another lock');
is(kinds({},
		section(shared => 1), section(%later, granted => 2.5, shared => 1)),
	'', 'two readers');
is(kinds({}, section(shared => 1), section(%later, granted => 2.5)),
	'overlap', 'a writer beside a reader');
is(kinds({}, section(), section(%later, granted => 2.5, shared => 1)),
	'overlap', 'a reader beside a writer');
is(kinds({},
		section(shared => 1, commit_sent => 9, left => 1.5),
		section(%later, token => 15, shared => 1, left => 1.6),
		section(%later, granted => 7, entered => 5, left => 6)),
	'overlap', 'another reader in between hides nothing');
is(kinds({}, section(), section(%later, granted => 2.5, failed => 1,
			commit_seen => undef)),
	'overlap', 'the later one need not commit');
is(kinds({},
		section(failed => 1, commit_seen => undef, proved => 1.5),
		section(%later, granted => 2.5)),
	'', 'the earlier one failed its commit check');
is(kinds({ believe_all => 1 },
		section(failed => 1, commit_seen => undef, proved => 1.5),
		section(%later, granted => 2.5)),
	'overlap', 'but did not care');
is(kinds({},
		section(failed => 1, commit_seen => undef, released => 9, proved => 9),
		section(%later)),
	'lease', 'granted while the lease of another lasts');
is(kinds({},
		section(failed => 1, commit_seen => undef, released => 4, proved => 9),
		section(%later)),
	'', 'unless it was given back');
is(kinds({}, section(left => 4), section(%later, entered => 3)),
	'stale', 'an update that the later one had not read');
is(kinds({},
		section(token => 20),
		section(%later, token => 10, entered => 3, left => 4, proved => 6)),
	'lease overlap stale', 'tokens against the order of grants');
is(kinds({}, section(), section(%later, token => 10)),
	'token', 'one token twice');
is(kinds({}, section(told => 11)), 'token', 'a token that changed');
is(kinds({}, section(failed => 1)), 'vanished', 'an acknowledged commit is gone');
is(kinds({},
		section(znode => 'z2', token => 20, ahead => ['z1']),
		section(%later, token => 30, znode => 'z1')),
	'order', 'served before who was ahead');
is(kinds({},
		section(znode => 'z1'),
		section(%later, znode => 'z2', ahead => [ 'z1', 'z0' ])),
	'', 'served behind who was ahead');
is(kinds({ trust => 3, acts => [ [ '/a', undef, 2, 2 ] ] },
		section(), section(%later, granted => 2.5)),
	'', 'an operator deleted its znode');
is(kinds({ trust => 3, acts => [ [ '/b', undef, 2, 2 ], [ undef, 2, 2, 2 ] ] },
		section(), section(%later, granted => 2.5)),
	'overlap', 'of another lock, of another server');
is(kinds({ trust => 3, acts => [ [ undef, 1, 2, 2 ] ] },
		section(commit_sent => 8, released => 8, left_at => 8, ended => 9),
		section(%later, granted => 2.5)),
	'overlap', 'and it was to be noticed since');
is(kinds({ trust => 3, acts => [ [ undef, 1, 2, 6 ] ] },
		section(commit_sent => 8, released => 8, left_at => 8, ended => 9),
		section(%later, granted => 2.5)),
	'', 'but its deed took long');


# What is on the server itself, and what a reader sees twice
is(kinds({}, section(own => 1), section(%later, own => 2)), '', 'each writes once');
is(kinds({}, section(own => 1), section(%later, own => 1)),
	'own', 'an update of the server itself was lost');
is(kinds({}, section(own => 1), section(%later, own => 1, server => 2)),
	'', 'another server');
is(kinds({}, section(own => 1), section(%later, own => 1, shared => 1)),
	'', 'a reader writes nothing');
is(kinds({ trust => 3, acts => [ [ '/a', undef, 2, 2 ] ] },
		section(own => 1), section(%later, own => 1)),
	'', 'an operator deleted its znode');
is(kinds({}, section(shared => 1, own => 1, own_changed => 1)),
	'changed', 'a reader looked twice');
is(kinds({}, section(shared => 1, fenced_changed => 't')),
	'changed', 'and so on the resource');
is(kinds({}, section(shared => 1, own_changed => 1, failed => 1, commit_seen => undef)),
	'', 'a reader whose commit failed');

# Refusals, and errors, need a cause.
my %causes = (patience => 5, causes => [
		{ name => 'session process killed', server => 1, begun => 20, done => 20 },
		{ name => 'server drained', server => 2, begun => 30, done => 31 },
		{ name => 'quorum lost', begun => 40, done => 45 },
		{ name => 'backends cancelled', server => 1, begun => 60, done => 60 },
		{ name => 'host died', server => 1, begun => 80, done => 81 },
		{ name => 'postmaster killed', server => 2, begun => 80, done => 81 } ]);

sub refused { return refused_or_failed(refused => 1, @_); }

sub refused_or_failed
{
	my ($field, $value, $asked, %params) = @_;

	return section(failed => 1, token => undef, told => undef, commit_seen => undef,
		asked => $asked, ended => $asked + 1, how => 'try', $field => $value, %params);
}

sub failed
{
	my ($asked, $error, %params) = @_;

	return refused_or_failed(error => "ask $error", $asked, %params);
}

is(kinds(\%causes, refused(10)), 'refused', 'a free lock was refused');
is(kinds(\%causes, section(how => 'try'), refused(4)), '', 'it had a holder');
is(kinds(\%causes, section(how => 'try'), refused(7)),
	'refused', 'which had given it back');
is(kinds(\%causes, section(how => 'try', closed => 1), refused(7)),
	'', 'whose session was just about to end');
is(kinds(\%causes, section(lock => '/b'), refused(4)), 'refused', 'of another lock');
is(kinds(\%causes, section(shared => 1, token => 5), refused(4, shared => 1)),
	'refused', 'a reader beside a reader');
is(kinds(\%causes, refused(22)), '', 'the server may have lost its session');
is(kinds(\%causes, refused(22, server => 2)), 'refused', 'another server');
foreach my $case (
	[ 10, '08006', 1, '', 'no fault' ],
	[ 22, '08006', 1, 1, 'a fault just before' ],
	[ 26, '08006', 1, '', 'a fault long before' ],
	[ 22, '08006', 2, '', 'a fault of another server' ],
	[ 42, '08006', 2, 1, 'a fault of ZooKeeper' ],
	[ 30, '55000', 2, 1, 'a drain' ],
	[ 42, '55000', 2, '', 'no drain' ],
	[ 61, '57014', 1, 1, 'a cancel' ],
	[ 61, '40001', 1, '', 'a cancel, but a lock was lost' ],
	[ 61, '57P02', 1, '', 'a cancel, but the server crashed' ],
	[ 81, '08006', 1, 1, 'a host that died' ],
	[ 81, '57P02', 2, 1, 'a postmaster that was killed' ],
	[ 42, '40P01', 1, '', 'a deadlock of locks taken in order' ],
	[ 42, 'XX000', 1, '', 'whatever happens' ])
{
	my ($asked, $sqlstate, $server, $explained, $name) = @$case;

	is(kinds(\%causes, failed($asked, $sqlstate, server => $server)),
		$explained ? '' : 'unexplained', "$sqlstate: $name");
}
foreach my $case (
	[ '57014', how => 'cancel' ], [ '57014', how => 'timeout' ],
	[ '57014', cancelled_before => 1 ], [ '40P01', how => 'upgrade' ], [ '40001', at_most => 20 ],
	[ '40001', stopped => 1 ], [ '08006', at_most => 20, message => 'connection closed' ])
{
	my ($sqlstate, %own) = @$case;

	is(kinds(\%causes, failed(10, $sqlstate, %own)), '', "$sqlstate: its own doing");
}

done_testing();
