# Curator for tests: the programs of test/java behind a pipe.  Each object
# is one ZooKeeper session of its own.
#
#	my $curator = CuratorClient->new($connect_string);
#	$curator->command('lock', 'w', 'write', '/zklock/batch');
#
# The program is compiled once for a test.

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
  zookeeper zookeeper-jute slf4j-api slf4j-nop);
my $classes;

sub new
{
	my ($class, $connect_string) = @_;

	if (!$classes)
	{
		$classes = PostgreSQL::Test::Utils::tempdir('java');
		system_or_bail('javac', '-d', $classes, '-cp', $jars, @sources);
	}
	return $class->start_command('java', '-Xmx256m', '-cp', "$classes:$jars",
		'CuratorControl', $connect_string);
}

1;
