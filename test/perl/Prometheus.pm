# A Prometheus and its exporters, for tests: Debian's programs, on free ports.
#
#	my $missing = Prometheus->missing;	# the name of a program, or undef
#	my $prometheus = Prometheus->new;
#	my $exporter = $prometheus->add_exporter($node, $data_source, @arguments);
#	$prometheus->start($config, $interval);	# YAML with the targets, in seconds
#	$prometheus->rules;				# how many
#	$prometheus->names;				# of all metrics
#	$prometheus->query($expression);	# hashes of metric (labels) and value
#	$prometheus->firing;			# "alert on server", sorted
#	$prometheus->stop_exporter($exporter); $prometheus->start_exporter($exporter);
#	$prometheus->metrics($exporter);	# as the exporter shows them
#	$prometheus->stop;

package Prometheus;

use strict;
use warnings;

use Carp;
use HTTP::Tiny;
use JSON::PP;
use Time::HiRes qw(time usleep);

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;

sub missing
{
	my ($missing) = grep {
		my $program = $_;
		!grep { -x "$_/$program" } split /:/, $ENV{PATH}
	} qw(prometheus promtool prometheus-postgres-exporter);
	return $missing;
}

sub new
{
	my ($class) = @_;

	return bless {
		dir => PostgreSQL::Test::Utils::tempdir('prometheus'),
		port => PostgreSQL::Test::Cluster::get_free_port(),
		http => HTTP::Tiny->new(timeout => 30),
		pids => {},
		exporters => [],
	}, $class;
}

# Runs a program in the background until stop, with its output in a log.
sub _launch
{
	my ($self, $name, $url, @command) = @_;
	my $log = "$PostgreSQL::Test::Utils::log_path/$name.log";
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	my $pid = fork // die "could not fork: $!";

	if ($pid == 0)
	{
		open STDOUT, '>>', $log or die "$log: $!";
		open STDERR, '>&', \*STDOUT or die "could not duplicate: $!";
		exec @command or die "could not start $command[0]: $!";
	}
	$self->{pids}{$name} = $pid;
	until ($self->{http}->get($url)->{success})
	{
		croak "$name does not start: " . slurp_file($log) if time > $deadline;
		usleep(50_000);
	}
	return;
}

sub _end
{
	my ($self, $name) = @_;
	my $pid = delete $self->{pids}{$name} // return;
	my $status = $?;

	kill 'TERM', $pid;
	waitpid $pid, 0;
	$? = $status;
	return;
}

# ---- exporters

sub add_exporter
{
	my ($self, $node, $data_source, @arguments) = @_;
	my $exporter = {
		name => 'exporter-' . $node->name,
		address => '127.0.0.1:' . PostgreSQL::Test::Cluster::get_free_port(),
		data_source => $data_source,
		arguments => \@arguments,
	};

	push @{ $self->{exporters} }, $exporter;
	$self->start_exporter($exporter);
	return $exporter;
}

sub start_exporter
{
	my ($self, $exporter) = @_;

	local $ENV{DATA_SOURCE_NAME} = $exporter->{data_source};
	$self->_launch($exporter->{name}, "http://$exporter->{address}/",
		'prometheus-postgres-exporter', "--web.listen-address=$exporter->{address}",
		@{ $exporter->{arguments} });
	return;
}

sub stop_exporter
{
	my ($self, $exporter) = @_;

	return $self->_end($exporter->{name});
}

sub metrics
{
	my ($self, $exporter) = @_;

	return $self->{http}->get("http://$exporter->{address}/metrics")->{content};
}

# ---- Prometheus

sub start
{
	my ($self, $config, $interval) = @_;
	my $file = "$self->{dir}/prometheus.yml";

	append_to_file($file,
		"global: {scrape_interval: ${interval}s, scrape_timeout: ${interval}s,"
		  . " evaluation_interval: ${interval}s}\n$config");
	$self->_launch('prometheus', "http://127.0.0.1:$self->{port}/-/ready",
		'prometheus', "--config.file=$file",
		"--storage.tsdb.path=$self->{dir}/data",
		"--web.listen-address=127.0.0.1:$self->{port}");
	return;
}

sub _api
{
	my ($self, $path, %parameters) = @_;
	my $url = "http://127.0.0.1:$self->{port}/api/v1/$path?"
	  . $self->{http}->www_form_urlencode(\%parameters);
	my $answer = $self->{http}->get($url);

	croak "$url: $answer->{content}" unless $answer->{success};
	return decode_json($answer->{content})->{data};
}

# How many there are
sub rules
{
	my ($self) = @_;

	return scalar map { @{ $_->{rules} } } @{ $self->_api('rules')->{groups} };
}

sub names
{
	my ($self) = @_;

	return @{ $self->_api('label/__name__/values') };
}

sub query
{
	my ($self, $expression) = @_;

	return map { { metric => $_->{metric}, value => $_->{value}[1] } }
	  @{ $self->_api('query', query => $expression)->{result} };
}

sub firing
{
	my ($self) = @_;
	my %name = map { $_->{address} => $_->{name} =~ s/^exporter-//r }
	  @{ $self->{exporters} };

	return sort map {
		my $labels = $_->{labels};
		join ' ', $labels->{alertname}, $labels->{path} // $name{ $labels->{instance} }
	} grep { $_->{state} eq 'firing' } @{ $self->_api('alerts')->{alerts} };
}

sub stop
{
	my ($self) = @_;

	$self->_end($_) foreach keys %{ $self->{pids} };
	return;
}

sub DESTROY
{
	my ($self) = @_;

	$self->stop;
	return;
}

1;
