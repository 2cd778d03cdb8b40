# What makes servers of the tests start fast: data directories to copy, in place
# of initdb, and an archive of ZooKeeper's classes.
#
# They are in the directory that ZKLOCK_TEST_TEMPLATES names; ../templates.pl
# makes it before the tests.  Without it, tests do the same more slowly.
#
# There are several data directories because zklock tells servers apart by their
# system identifiers.  A test with more servers makes the others with initdb.

package ServerTemplates;

use strict;
use warnings;

use File::Path qw(rmtree);

use PostgreSQL::Test::Utils;

my $dir = $ENV{ZKLOCK_TEST_TEMPLATES};
my $servers = 3;
my $used = 0;

# Makes the directory, which is not there yet.
sub make
{
	my $new = "$dir.new";

	rmtree($new);
	mkdir $new or die "could not create $new: $!";
	foreach my $number (1 .. $servers)
	{
		system_or_bail('initdb', '-D', "$new/server$number", '-A', 'trust', '-N');
	}
	_archive_classes("$new/zookeeper.jsa");
	rename $new, $dir or die "could not rename $new: $!";
	return;
}

# Those that a ZooKeeper server has loaded when it has served a client
sub _archive_classes
{
	my ($file) = @_;

	my $zk = ZooKeeper->new('template',
		more_java => ["-XX:ArchiveClassesAtExit=$file"]);
	$zk->start;
	$zk->client->ls('/');
	$zk->stop;
	return;
}

# Options of java for a ZooKeeper server.  The archive is of use only if the class
# path begins as that of the server that made it; otherwise java says nothing and
# does without.
sub java_options
{
	return defined $dir && -f "$dir/zookeeper.jsa"
	  ? "-XX:SharedArchiveFile=$dir/zookeeper.jsa"
	  : ();
}

# Initialises a PostgreSQL::Test::Cluster; parameters as for its init.
sub init
{
	my ($node, %params) = @_;
	my $template = _next_template();

	return $node->init(%params) if !defined $template || $params{extra};

	my $run = \&PostgreSQL::Test::Utils::system_or_bail;
	no warnings 'redefine';
	local *PostgreSQL::Test::Utils::system_or_bail = sub {
		return $run->(@_) if $_[0] ne 'initdb';
		return $run->('cp', '-a', $template, $node->data_dir);
	};
	return $node->init(%params);
}

sub _next_template
{
	return unless defined $dir;
	$used++;
	my $template = "$dir/server$used";
	return -d $template ? $template : undef;
}

1;
