# Whether the traces of real servers obey the specification (test/spec).
#
#	my $spec = Specification->new;				# builds the reader
#	my $trace = $spec->trace($node);			# a copy of zklock.trace
#	my $log = $spec->log(@zookeepers);			# ZooKeeper's transaction log
#	my ($status, $said) = $spec->validate($trace, $log);
#
# The log of an ensemble is that of the member that has most of it.  It is to be read
# behind the traces, so that it has all that they tell of.

package Specification;

use strict;
use warnings;

use Carp;
use Cwd qw(abs_path);
use File::Basename;
use File::Copy;
use File::Spec::Functions qw(rel2abs);

use PostgreSQL::Test::Utils;

my $spec = dirname(abs_path(__FILE__)) . '/../spec';

sub new
{
	my ($class) = @_;
	my $self = bless { dir => rel2abs(PostgreSQL::Test::Utils::tempdir()) }, $class;

	system('make', '-s', '-C', $spec, "BUILD=$self->{dir}") == 0
	  or croak 'could not build test/spec';
	return $self;
}

sub trace
{
	my ($self, $node) = @_;
	my $copy = "$self->{dir}/" . $node->name;

	foreach my $part ('.old', '')
	{
		my $file = $node->data_dir . "/zklock.trace$part";

		copy($file, "$copy$part") or croak "could not copy $file: $!" if -e $file;
	}
	return $copy;
}

sub log
{
	my ($self, @zookeepers) = @_;
	my @logs;

	foreach my $zookeeper (@zookeepers)
	{
		push @logs, "$self->{dir}/" . $zookeeper->name . '.log';
		system("perl '$spec/txnlog.pl' '" . $zookeeper->log_directory
			  . "' >'$logs[-1]' 2>/dev/null");
	}
	@logs = sort { -s $a <=> -s $b } @logs;
	return $logs[-1];
}

# A copy with a change, which is made to $_.  False: it changes nothing.
sub change
{
	my ($self, $file, $change) = @_;
	my $copy = "$self->{dir}/changed";
	local $_ = slurp_file($file);

	$change->() or return;
	unlink $copy;
	append_to_file($copy, $_);
	return $copy;
}

# The exit status, and what it says
sub validate
{
	my ($self, @files) = @_;
	my $said = `'$self->{dir}/validate' @files 2>&1`;

	return ($? >> 8, $said);
}

1;
