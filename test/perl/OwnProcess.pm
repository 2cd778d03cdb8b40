# A server program that a test has started, with its process id in $self->{pid}:
# it is stopped by that, at the latest when the object goes away.

package OwnProcess;

use strict;
use warnings;

sub stop
{
	my ($self) = @_;
	my $pid = delete $self->{pid} // return;
	my $status = $?;

	kill 'TERM', $pid;
	waitpid $pid, 0;
	$? = $status;
	return;
}

sub DESTROY
{
	my ($self) = @_;

	$self->stop;
	return;
}

1;
