# A disturbed network for tests: TCP proxies on loopback, each a route with a
# name.  tcpproxy.py does the work, in one process that ends with the test.
#
#	my $net = TcpProxy->new;
#	my $port = $net->route('one-zk', $zk->port);	# its own port; or
#	$net->route('one-zk', $zk->port, port => 12345);
#
#	$net->hold('one-*');		# nothing gets through, in either direction
#	$net->hold('*', 'up');		# only what goes to the target waits, or 'down'
#	$net->pass('*');			# all is well again; what was held arrives late
#	$net->drop('one-zk', 'down');	# bytes vanish: reset before it passes again
#	$net->delay('*', 0.05);		# seconds, per direction
#	$net->greet('*', 2);		# seconds that the target's first answer takes
#	$net->release('*', '3.9.4');	# what the target says of its version; not framed
#	$net->release('*', 'v24.8', 'ClickHouse Keeper');	# and of what it is
#	$net->reset('one-zk');		# connections end with a RST; how many
#	$net->refuse('one-zk');		# the same, and nobody listens any more
#	$net->cut('one-zk', 6, 'down');	# a RST after so many more bytes
#	$net->lose_reply('one-zk', $regex);	# see below
#	$net->answer('one-zk', 'list', $regex, -102);	# see below
#	$net->catch('one-zk', $regex);	# see below
#	$net->sever('one-zk');	# a RST for the client; the target hears nothing
#	$net->retarget('one-zk', $port);	# for connections made from now on
#	$net->stats('one-zk');		# port, accepted, open, cuts, lost, bytes
#	$net->names;
#
# Commands take the name of a route or a pattern (* ? [ ]), and hold until
# pass.  A connection that is made while a direction is held gets no further
# than the proxy, as with a host that does not answer; if its client has given
# up by the time that it passes, the target never sees it.
#
# lose_reply waits for a request of ZooKeeper's protocol that the regular
# expression (of Python's, on bytes) matches, lets it through, and resets the
# connection when its reply comes: done, but nobody knows.  It works once.  With
# a true third argument the route is held from that moment on.
#
# answer waits for a request of that kind (of the keys of %kinds) that the regular
# expression matches, and answers it with that result code, on a connection that
# goes on.  Of a multi, the first operation that matches is the one that failed.
# The request does not get through, unless the option done is true: then it is
# done, but its answer says otherwise.  It works once, or as often as the option
# times says, 0 being for ever; stats says how often (answered).
#
# catch waits for a request that the regular expression matches, and holds what
# goes to the target from that request on, until pass; stats says how often
# (caught).  It works once.
#
# Options of route: port (its own; by default a free one), framed (1: of
# ZooKeeper's client protocol; 0: any other), patience (for how many seconds to
# go on when the target refuses a connection), announce (for a ZooKeeper election
# port: the address that the connecting server is to be called back at), tls (a
# CertificateAuthority's certificate: the route speaks TLS to its clients).

package TcpProxy;

use strict;
use warnings;

use parent 'PipedProgram';

use PostgreSQL::Test::Cluster;

# ZooKeeper's numbers of its requests
my %kinds = (
	delete => 2,
	get => 4,
	list => 12,
	sync => 9,
	multi => 14,
	container => 19);

sub new { return $_[0]->start('tcpproxy.py'); }

sub route
{
	my ($self, $name, $target, %options) = @_;
	my $port =
	  delete $options{port} // PostgreSQL::Test::Cluster::get_free_port();

	return $self->command('route', $name, $port + 0, "$target", \%options);
}

sub pass { return shift->command('pass', @_); }
sub hold { return shift->command('hold', @_); }
sub drop { return shift->command('drop', @_); }
sub reset { return shift->command('reset', @_); }
sub refuse { return shift->command('refuse', @_); }
sub sever { return shift->command('sever', @_); }
sub retarget { return shift->command('retarget', $_[0], "$_[1]"); }
sub stats { return shift->command('stats', @_); }
sub names { return @{ $_[0]->command('names') }; }

sub delay
{
	my ($self, $pattern, $seconds, $direction) = @_;

	return $self->command('delay', $pattern, $seconds + 0,
		$direction // 'both');
}

sub greet { return $_[0]->command('greet', $_[1], $_[2] + 0); }

sub release { return $_[0]->command('release', $_[1], "$_[2]", $_[3] // 'Zookeeper'); }

sub cut
{
	my ($self, $pattern, $count, $direction) = @_;

	return $self->command('cut', $pattern, $count + 0, $direction);
}

sub answer
{
	my ($self, $pattern, $kind, $regex, $code, %options) = @_;

	return $self->command('answer', $pattern, $kinds{$kind} // die("no kind: $kind"),
		$regex, $code + 0, ($options{times} // 1) + 0,
		$options{done} ? JSON::PP::true : JSON::PP::false);
}

sub catch { return shift->command('catch', @_); }

sub lose_reply
{
	my ($self, $pattern, $regex, $hold) = @_;

	return $self->command('lose_reply', $pattern, $regex,
		$hold ? JSON::PP::true : JSON::PP::false);
}

# Lets everything pass, once a reply has been lost since the last lose_reply: what
# the request does can be seen before the reply comes by here.
sub pass_once_lost
{
	my ($self, $name) = @_;

	ZklockTest::wait_for(sub { !$self->stats($name)->{loss_is_due} }, "$name loses a reply")
	  or return 0;
	$self->pass($name);
	return 1;
}

1;
