#!/usr/bin/env perl
# Checks the direction inside src/core/: that no four files call each other in a
# cycle.  Prints TAP.
use strict;
use warnings FATAL => 'all';
use FindBin;

my (%text, %home, %calls, %number, %low, @open, @cycles);
my $cases = 0;

# The files without comments and strings; line breaks stay.
sub read_sources
{
	foreach my $path (glob "$FindBin::Bin/../src/core/*.[ch]")
	{
		open my $file, '<', $path or die "$path: $!";
		my $source = do { local $/ = undef; <$file> };
		close $file;
		$source =~ s{/\*.*?\*/|"(?:\\.|[^"\\\n])*"}{$& =~ s/[^\n]//gr}gesx;
		$text{ $path =~ s/.*\///r } = $source;
	}
	return;
}

sub name_of { return $_[0] =~ s/\.[ch]$//r }

# Which file defines what, and who calls that.
sub read_calls
{
	foreach my $path (keys %text)
	{
		$home{$1} = name_of($path)
		  while $text{$path} =~ /^(zkl_\w+)\([^;{]*?\)\n\{/mg;
	}
	foreach my $path (keys %text)
	{
		my $from = name_of($path);
		my $code = $text{$path} =~ s/^extern [^;]*;//mgr;
		while ($code =~ /\b(zkl_\w+)/g)
		{
			my $to = $home{$1};
			$calls{$from}{$to} = 1 if defined $to && $to ne $from;
		}
	}
	return;
}

# Tarjan: files that reach each other
sub visit
{
	my $file = shift;
	$number{$file} = $low{$file} = keys %number;
	push @open, $file;
	foreach my $next (sort keys %{ $calls{$file} })
	{
		visit($next) if !exists $number{$next};
		$low{$file} = $low{$next}
		  if (grep { $_ eq $next } @open) && $low{$next} < $low{$file};
	}
	return if $low{$file} != $number{$file};
	my @cycle;
	do { push @cycle, pop @open } while $cycle[-1] ne $file;
	push @cycles, [ sort @cycle ] if @cycle > 1;
	return;
}

sub report
{
	my ($name, @wrong) = @_;
	$cases++;
	print @wrong ? 'not ok' : 'ok', " $cases - $name\n", map { "#   $_\n" } @wrong;
	return scalar @wrong;
}

read_sources();
read_calls();
foreach my $file (sort keys %calls) { visit($file) if !exists $number{$file} }
my $failed = report('core/: no cycle of more than three files',
	map { "@$_" } grep { @$_ > 3 } @cycles);
print "1..$cases\n";
exit($failed ? 1 : 0);
