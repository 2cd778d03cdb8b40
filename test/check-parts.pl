#!/usr/bin/env perl
# Checks the parts of core/, deadlock/ and observe/ against their tables in
# src/README.md: that each file belongs to one part, and that no part calls or includes
# one above it, except through the seams that the table names.  Prints TAP.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::Bin/perl";
use SourceParts qw(read_sources read_parts part_of);

my $most_seams = 10;    # of one folder
my $src = "$FindBin::Bin/../src";
my %text = read_sources($src);
my %found = read_parts($src);
my ($cases, $failed) = (0, 0);

sub report
{
	my ($name, @wrong) = @_;
	$cases++;
	$failed++ if @wrong;
	print @wrong ? 'not ok' : 'ok', " $cases - $name\n", map { "#   $_\n" } @wrong;
	return;
}

# Files in no part or in several, and parts of files that are not there
sub misplaced
{
	my ($folder, @files) = @_;
	my %parts = %{ $found{$folder}{files} };
	my (@wrong, %there);
	foreach my $file (@files)
	{
		my $stem = $file =~ s/\.[ch]$//r;
		my $name = exists $parts{$file} ? $file : $stem;
		my @in = @{ $parts{$name} // [] };
		$there{$name} = 1;
		push @wrong, "$file is in no part" if @in == 0;
		push @wrong, "$file is in @in" if @in > 1;
	}
	push @wrong, map { "no such file: $_" } grep { !$there{$_} } sort keys %parts;
	return @wrong;
}

# The file that has a function, or a table of functions, of all those of a folder
sub homes
{
	my @files = @_;
	my %home;
	foreach my $file (@files)
	{
		$home{$1} = $file while $text{$file} =~ /^(zkl_\w+)\([^;{]*?\)\n\{/mg;
		$home{$1} = $file while $text{$file} =~ /^(?:const )?\w+ (zkl_\w+) = \{/mg;
	}
	return %home;
}

# Whether a part may use a name of another one: that is below, or the name a seam.
sub may_use
{
	my ($folder, $from, $to, $name, $used) = @_;
	my ($low, $n) = part_of($from);
	my ($high, $i) = part_of($to);
	return 1 if $n <= $i;
	foreach my $seam (@{ $found{$folder}{seams} // [] })
	{
		next if "$folder/$seam->{from}" ne $low || "$folder/$seam->{to}" ne $high;
		next if defined $name && !grep { $_ eq $name } @{ $seam->{names} };
		$used->{"$seam->{from} $seam->{to} $name"} = 1 if defined $name;
		return 1;
	}
	return 0;
}

# Names that lead up; notes which seams are used.
sub names_up
{
	my ($folder, $used, @files) = @_;
	my %home = homes(@files);
	my (@wrong, %seen);
	foreach my $file (@files)
	{
		my $code = $text{$file} =~ s/^extern [^;]*;//mgr;
		while ($code =~ /\b(zkl_\w+)/g)
		{
			my $to = $home{$1};
			next if !defined $to || $seen{"$file $1"}++ || part_of($to) eq part_of($file);
			push @wrong, "$file (" . part_of($file) . ") uses $1 of " . part_of($to)
			  if !may_use($folder, $file, $to, $1, $used);
		}
	}
	return @wrong;
}

# Includes that lead up; a seam's include is the way to its functions.
sub includes_up
{
	my ($folder, @files) = @_;
	my @wrong;
	foreach my $file (@files)
	{
		while ($text{$file} =~ /^#include "($folder\/[a-z_]+\.h)"/mg)
		{
			push @wrong, "$file (" . part_of($file) . ") includes $1 of " . part_of($1)
			  if !may_use($folder, $file, $1);
		}
	}
	return @wrong;
}

# Seams that nobody uses any more.  To another folder a seam is the type of a table of
# functions: the part declares it, and that folder has such a table.
sub stale_seams
{
	my ($folder, $used) = @_;
	my @wrong;
	foreach my $seam (@{ $found{$folder}{seams} // [] })
	{
		foreach my $name (@{ $seam->{names} })
		{
			my $there = $used->{"$seam->{from} $seam->{to} $name"};
			$there = grep { /^$seam->{to}/ && $text{$_} =~ /^const $name \w+ = \{/m } keys %text
			  if $seam->{to} =~ /\/$/;
			push @wrong, "$seam->{from} to $seam->{to}: $name" if !$there;
		}
	}
	return @wrong;
}

foreach my $folder (sort keys %found)
{
	my @files = sort grep { /^$folder\// } keys %text;
	my %used;
	report("$folder/: each file belongs to one part",
		misplaced($folder, map { s/.*\///r } @files));
	report("$folder/: what is called is below, or a seam", names_up($folder, \%used, @files));
	report("$folder/: what is included is below, or a seam's", includes_up($folder, @files));
	report("$folder/: each seam is in use", stale_seams($folder, \%used));
	my $seams = @{ $found{$folder}{seams} // [] };
	report("$folder/: at most $most_seams seams",
		$seams > $most_seams ? "there are $seams" : ());
}
report('core/, deadlock/ and observe/ have parts',
	grep { !exists $found{$_} } qw(core deadlock observe));
print "1..$cases\n";
exit($failed ? 1 : 0);
