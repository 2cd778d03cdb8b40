# Certificates for a test, made by openssl when they are needed.
#
#	my $ca = CertificateAuthority->new('ca');
#	$ca->file;		# its own certificate
#	my $c = $ca->issue('server', names => 'DNS:localhost,IP:127.0.0.1');
#	$c->{file}; $c->{key};		# PEM, each in a file of its own
#
# Options of both: days (how long it is valid; 2 if not said).  Options of issue: names
# (subject alternative names); days 0: it has expired when issue returns.

package CertificateAuthority;

use strict;
use warnings;

use Carp;
use Cwd qw(abs_path);
use IPC::Run ();
use Time::HiRes qw(usleep);

use PostgreSQL::Test::Utils;

my @new_key = ('-newkey', 'rsa:2048', '-nodes');

sub openssl
{
	my ($self, @arguments) = @_;
	my $log = "$self->{dir}/openssl.log";

	IPC::Run::run([ 'openssl', @arguments ], '&>', $log)
	  or croak "openssl @arguments failed: " . slurp_file($log);
	return;
}

sub new
{
	my ($class, $name, %options) = @_;
	my $self = bless {
		name => $name,
		dir => abs_path(PostgreSQL::Test::Utils::tempdir("ca_$name"))
	}, $class;

	$self->openssl('req', '-x509', @new_key, '-days', $options{days} // 2, '-subj',
		"/CN=CA $name", '-keyout', "$self->{dir}/ca.key", '-out', $self->file);
	return $self;
}

sub dir { return $_[0]->{dir}; }
sub file { return "$_[0]->{dir}/ca.pem"; }

sub issue
{
	my ($self, $name, %options) = @_;
	my $base = "$self->{dir}/$name";
	my @extensions;

	if ($options{names})
	{
		append_to_file("$base.ext", "subjectAltName=$options{names}\n");
		@extensions = ('-extfile', "$base.ext");
	}
	$self->openssl('req', '-new', @new_key, '-subj', "/CN=$name", '-keyout',
		"$base.key", '-out', "$base.csr");
	$self->openssl(
		'x509', '-req', '-in', "$base.csr", '-CA', $self->file, '-CAkey',
		"$self->{dir}/ca.key", '-CAcreateserial', '-days',
		$options{days} // 2, @extensions, '-out', "$base.pem");
	# It is valid for the rest of this second; openssl refuses less.
	usleep(20_000)
	  while ($options{days} // 2) == 0
	  && IPC::Run::run([ 'openssl', 'verify', '-CAfile', $self->file, "$base.pem" ],
		'>&', \my $verdict);
	chmod 0600, "$base.key";
	return { file => "$base.pem", key => "$base.key" };
}

1;
