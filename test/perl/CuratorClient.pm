# Curator for tests: the programs of test/java behind a pipe.  Each object
# is one ZooKeeper session of its own.
#
#	my $curator = CuratorClient->new($connect_string);
#	$curator->command('lock', 'w', 'write', '/zklock/batch');
#
# The program is compiled once for a test.
#
#	my @java = CuratorClient::compile($directory, 'Other.java');
#	system(@java, 'Other');				# a program of the test's own

package CuratorClient;

use strict;
use warnings;

use parent 'PipedProgram';

use Cwd qw(abs_path);
use File::Basename;

use PostgreSQL::Test::Utils;

my @sources = glob dirname(abs_path(__FILE__)) . '/../java/*.java';
my $jars = join ':', map { "/usr/share/java/$_.jar" }
  qw(curator-recipes curator-framework curator-client guava failureaccess
  zookeeper zookeeper-jute slf4j-api slf4j-nop postgresql);
my @java;

# Compiles programs into a directory; returns the command that runs them.
sub compile
{
	my ($directory, @programs) = @_;

	system_or_bail('javac', '-d', $directory, '-cp', $jars, @programs);
	return ('java', '-Xmx256m', '-cp', "$directory:$jars");
}

sub new
{
	my ($class, $connect_string) = @_;

	@java = compile(PostgreSQL::Test::Utils::tempdir('java'), @sources) unless @java;
	return $class->start_command(@java, 'CuratorControl', $connect_string);
}

1;
