# A copy of zklock whose session process a test can replace by one that
# misbehaves: see fakesession.py.  A server uses one program from its start to
# its end, so what it starts is a script: that runs the fake if there is one, and
# else the real program.
#
#	my $fake = FakeSession->new;
#	my $node = $test->new_node('server1', conf => $fake->conf);
#	$node->start;
#	$fake->create_extension($node);
#	foreach my $mode ($fake->modes) { $fake->once($mode); ... }
#	$fake->always('mute'); $fake->never;
#	$fake->starts;			# how often it was started so far
#	$fake->delay(2.5);		# the real one begins so much later, from now on

package FakeSession;

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename;
use File::Copy qw(cp);

use PostgreSQL::Test::Utils;

my $program = dirname(abs_path(__FILE__)) . '/fakesession.py';
my $pg_config = $ENV{PG_CONFIG} // 'pg_config';

sub new
{
	my ($class) = @_;
	my $dir = abs_path(PostgreSQL::Test::Utils::tempdir('library'));
	my $libdir = qx{$pg_config --pkglibdir};

	chomp $libdir;
	foreach my $file ('zklock.so', 'zklock_session')
	{
		cp("$libdir/$file", "$dir/$file") or die "could not copy $file: $!";
	}
	rename "$dir/zklock_session", "$dir/real" or die "could not rename: $!";
	chmod 0755, "$dir/real";
	append_to_file("$dir/zklock_session", <<"EOS");
#!/bin/sh
[ ! -e '$dir/fake' ] || exec '$dir/fake'
[ ! -e '$dir/delay' ] || sleep "\$(cat '$dir/delay')"
exec '$dir/real' "\$@"
EOS
	chmod 0755, "$dir/zklock_session";
	return bless { dir => $dir }, $class;
}

sub conf { return "dynamic_library_path = '$_[0]->{dir}:\$libdir'\n"; }

# The functions of the copy: CREATE EXTENSION would load another library.
sub create_extension
{
	my ($self, $node) = @_;
	my $share = qx{$pg_config --sharedir};

	chomp $share;
	my $script = slurp_file("$share/extension/zklock--1.0.sql");
	$script =~ s/^\\echo.*$//m;
	$script =~ s/^SELECT pg_catalog\.pg_extension_config_dump\(.*?;$//gms;
	$script =~ s/'MODULE_PATHNAME'/'zklock'/g;
	$node->safe_psql('postgres', $script);
	return;
}

sub modes
{
	my @modes = split /\n/, qx{'$program' list};

	return @modes;
}

sub _write
{
	my ($self, $file, $text) = @_;

	open my $handle, '>', "$self->{dir}/$file" or die "$file: $!";
	print $handle $text;
	close $handle;
	return;
}

# From now on the next session process is the fake, and then the real one.
sub once
{
	my ($self, $mode) = @_;
	my $dir = $self->{dir};

	$self->_write('mode', "$mode\n");
	cp($program, "$dir/fake.new") or die "could not copy $program: $!";
	chmod 0755, "$dir/fake.new";
	rename "$dir/fake.new", "$dir/fake" or die "could not rename: $!";
	return;
}

sub always
{
	my ($self, $mode) = @_;

	$self->_write('stay', '');
	$self->once($mode);
	return;
}

sub never
{
	my ($self) = @_;
	my $dir = $self->{dir};

	unlink "$dir/fake";
	unlink "$dir/stay";
	return;
}

sub delay
{
	my ($self, $seconds) = @_;

	unlink "$self->{dir}/delay";
	$self->_write('delay', $seconds) if $seconds;
	return;
}

sub starts
{
	my ($self) = @_;
	my $file = "$self->{dir}/starts";

	return -e $file ? scalar(() = slurp_file($file) =~ /\n/g) : 0;
}

1;
