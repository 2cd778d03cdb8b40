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

done_testing();
