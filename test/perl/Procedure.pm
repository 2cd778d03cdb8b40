# The shell commands of a section of a page, run as an operator would run them.
#
#	my $procedure = Procedure->new('docs/procedures.md', 'Make a clone',
#		"5433" => $clone->port);	# what differs here
#	$procedure->services(db1 => $one, db2 => $two);
#	$procedure->run;					# all blocks that say sh, until they end
#	$procedure->run(1);					# the second of them
#	my $shell = $procedure->start(0);	# does not wait for the end
#	$shell->says(qr/press Enter/);		# waits until it has said that
#	$shell->enter;						# presses Enter
#	$shell->has_ended; $shell->status;	# polls; waits
#
# "psql -d service=db1" connects to a server of "services", and "ssh db1 sudo
# systemctl restart postgresql" restarts it.  test/t/201_reference.pl finds blocks
# whose section no test names.

package Procedure;

use strict;
use warnings;

use Carp;
use IPC::Open2;
use POSIX ();
use Test::More;

use Document;
use PostgreSQL::Test::Utils;
use ZklockTest;

sub new
{
	my ($class, $page, $heading, %here) = @_;
	my $section = Document->new($page)->section($heading);

	croak "$page has no section \"$heading\"" unless defined $section;
	return bless {
		name => "$page, $heading",
		blocks => [ map { $_->{text} } $section->blocks('sh') ],
		here => \%here,
		nodes => {},
		dir => PostgreSQL::Test::Utils::tempdir(),
	}, $class;
}

# Makes servers known by names of services and hosts.
sub services
{
	my ($self, %nodes) = @_;
	my $restart = '';

	foreach my $name (sort keys %nodes)
	{
		my $node = $nodes{$name};
		append_to_file("$self->{dir}/pg_service.conf",
			"[$name]\nhost=@{[ $node->host ]}\nport=@{[ $node->port ]}\ndbname=postgres\n");
		$restart .= "'$name sudo systemctl restart postgresql')"
		  . " exec pg_ctl -D '@{[ $node->data_dir ]}' -l '@{[ $node->logfile ]}' -w -m fast restart ;;\n";
	}
	append_to_file("$self->{dir}/ssh", "#!/bin/sh\ncase \"\$*\" in\n$restart*) exit 255 ;;\nesac\n");
	chmod 0755, "$self->{dir}/ssh" or die "could not chmod: $!";
	$self->{nodes} = \%nodes;
	return;
}

# Those that were restarted have another process id.
sub _look_for_pids
{
	my ($self) = @_;

	$_->_update_pid(-1) foreach values %{ $self->{nodes} };
	return;
}

sub start
{
	my ($self, $number) = @_;
	my $text = $self->{blocks}[$number] // croak "$self->{name}: no block $number";
	my $file = "$self->{dir}/block$number.sh";

	foreach my $there (keys %{ $self->{here} })
	{
		$text =~ s/\Q$there\E/$self->{here}{$there}/g;
	}
	unlink $file, "$file.out";
	append_to_file($file, $text);
	append_to_file("$file.out", '');

	local $ENV{PATH} = "$self->{dir}:$ENV{PATH}:/usr/share/zookeeper/bin";
	local $ENV{PGSERVICEFILE} = "$self->{dir}/pg_service.conf";
	open my $out, '>>', "$file.out" or die "$file.out: $!";
	my $pid = open2('>&' . fileno $out, my $in, 'bash', '-c', 'exec bash "$1" 2>&1', 'bash', $file);
	return bless {
		name => "$self->{name}, block $number",
		pid => $pid,
		in => $in,
		out => "$file.out",
		procedure => $self
	}, 'Procedure::Shell';
}

sub run
{
	my ($self, @numbers) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	@numbers = 0 .. $#{ $self->{blocks} } unless @numbers;
	foreach my $number (@numbers)
	{
		my $shell = $self->start($number);
		is($shell->status, 0, "$shell->{name} ends well") or diag $shell->output;
	}
	return;
}

package Procedure::Shell;

sub output { return PostgreSQL::Test::Utils::slurp_file($_[0]->{out}); }

sub says
{
	my ($self, $pattern) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ZklockTest::wait_for(sub { $self->output =~ $pattern || $self->has_ended },
		"$self->{name}: $pattern")
	  && Test::More::like($self->output, $pattern, "$self->{name} says so");
}

sub enter
{
	my ($self) = @_;
	my $in = $self->{in};

	print $in "\n";
	$in->flush;
	return;
}

sub has_ended
{
	my ($self) = @_;

	return 1 if defined $self->{status};
	return 0 if waitpid($self->{pid}, POSIX::WNOHANG()) == 0;
	$self->{status} = $?;
	$self->{procedure}->_look_for_pids;
	return 1;
}

# Its exit status, once it has ended
sub status
{
	my ($self) = @_;

	ZklockTest::wait_for(sub { $self->has_ended }, "$self->{name} ends")
	  or kill 'TERM', $self->{pid};
	return $self->{status};
}

1;
