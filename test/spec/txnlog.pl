#!/usr/bin/perl
# Prints ZooKeeper's transaction log as validate reads it: which ephemeral znodes were
# created and deleted, by which session, in which transaction.
#
#	txnlog.pl DIRECTORY		with its files log.*; ZooKeeper may run
#
# ZooKeeper's own tool reads the files.  It tells times in seconds only, so validate
# compares transaction ids.

use strict;
use warnings;

my ($directory) = @ARGV;
my @files = sort { hex(($a =~ /log\.(.*)/)[0]) <=> hex(($b =~ /log\.(.*)/)[0]) }
  glob "$directory/log.*";
my %owner;    # of each znode that exists
my $last;    # transaction id
my @jars = map { "/usr/share/java/$_.jar" } 'zookeeper', 'slf4j-log4j12', 'log4j-1.2';

die "usage: txnlog.pl DIRECTORY\n" unless @files;

sub created
{
	my ($path, $session, $zxid) = @_;

	$owner{$path} = $session;
	print "0.0 zk create $path zxid=$zxid owner=$session\n";
	return;
}

sub deleted
{
	my ($path, $session, $zxid) = @_;
	my $owner = delete $owner{$path} // return;

	print "0.0 zk delete $path zxid=$zxid owner=$owner session=$session\n";
	return;
}

# One transaction of several operations: what is told of each is its record, with four
# bytes of length ahead of a path.  With an error among them none was carried out.
sub several
{
	my ($text, $session, $zxid) = @_;

	return if $text =~ /(?:^|;)error:/;
	while ($text =~ /(?:^|;)(create|delete):(?=\0\0(..))/gs)
	{
		my $path = substr $text, pos($text) + 4, unpack('n', $2);

		if ($1 eq 'create') { created($path, $session, $zxid); }
		else { deleted($path, $session, $zxid); }
	}
	return;
}

print "0.0 zk by-zxid\n";
foreach my $file (@files)
{
	open my $tool, '-|', 'java', '-cp', join(':', @jars),
	  'org.apache.zookeeper.server.persistence.TxnLogToolkit', '-d', $file
	  or die "could not run ZooKeeper's tool: $!\n";
	local $/ = undef;

	# A record may hold the end of a line.
	foreach my $record (split /^(?=\S+, \S+ \S+ \S+ session 0x)/m, <$tool>)
	{
		my ($session, $zxid, $what, $text) =
		  $record =~ / session (0x[0-9a-f]+) cxid \S+ zxid (0x[0-9a-f]+) (\S+) (.*)\n/s or next;

		# It got a snapshot in between: what it has is not all.
		print "0.0 zk lost\n"
		  if $last && hex($zxid) >> 32 == $last >> 32 && hex($zxid) > $last + 1;
		$last = hex $zxid;
		if ($what eq 'create') { created($text =~ /^(.*?),/, $session, $zxid); }
		elsif ($what eq 'delete') { deleted($text =~ /^'?(.*)/s, $session, $zxid); }
		elsif ($what eq 'multi') { several($text, $session, $zxid); }
		elsif ($what eq 'closeSession')
		{
			my ($paths) = $text =~ /^v\{'(.*?)\}/ or next;

			deleted($_, $session, $zxid) foreach split /,'/, $paths;
		}
	}
	close $tool;
}
