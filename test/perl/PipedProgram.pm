# A helper program of the tests, behind a pipe, mostly in Python: it reads one JSON
# array per line, [command, argument, ...], answers each with one line, [true,
# value] or [false, what is wrong], and ends when its input does.

package PipedProgram;

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename;
use IO::Select;
use IPC::Open2;
use JSON::PP;
use Time::HiRes qw(time);

my $directory = dirname(abs_path(__FILE__));
my $python = -x '/usr/bin/python3' ? '/usr/bin/python3' : 'python3';

# Starts a program of this directory, and returns an object for it.
sub start
{
	my ($class, $program, @arguments) = @_;

	return $class->start_command($python, "$directory/$program", @arguments);
}

# The same for any command
sub start_command
{
	my ($class, @command) = @_;
	my $self = bless {
		program => "@command",
		timeout => 60,
		json => JSON::PP->new->ascii->allow_nonref
	}, $class;

	$self->{pid} = open2($self->{out}, $self->{in}, @command);
	return $self;
}

sub pid { return $_[0]->{pid}; }

# Whether there is something to read within so many seconds.  A signal ends a
# wait of IO::Select early, for example the one that tells of the end of a child.
sub can_read
{
	my ($handle, $seconds) = @_;
	my $select = IO::Select->new($handle);
	my $deadline = time + $seconds;

	until ($select->can_read($seconds))
	{
		$seconds = $deadline - time;
		return 0 if $seconds <= 0;
	}
	return 1;
}

# Sends one command; returns its value, or dies.
sub command
{
	my ($self, @command) = @_;
	my $in = $self->{in};

	print $in $self->{json}->encode(\@command), "\n";
	$in->flush;
	die "$self->{program}: no answer to \"@command\" within $self->{timeout} s\n"
	  unless can_read($self->{out}, $self->{timeout});
	my $line = readline $self->{out};
	die "$self->{program} ended at \"@command\"\n" unless defined $line;
	my ($good, $value) = @{ $self->{json}->decode($line) };
	die "$self->{program}: $value at \"@command\"\n" unless $good;
	return $value;
}

sub quit
{
	my ($self) = @_;

	return unless $self->{pid};
	close $self->{in};
	waitpid $self->{pid}, 0;
	delete $self->{pid};
	return;
}

sub DESTROY
{
	my ($self) = @_;

	local ($?, $@);
	$self->quit;
	return;
}

1;
