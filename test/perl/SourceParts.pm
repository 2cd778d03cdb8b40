# The parts of src/, as src/README.md tells them: in a folder that has a table of
# parts there, each file belongs to a part, from the top down; in the others each file
# is a part by itself.
package SourceParts;
use strict;
use warnings FATAL => 'all';
use Exporter 'import';
our @EXPORT_OK = qw(read_sources read_parts part_of);

# A stem such as core/lock stands for both of its files, unless one of them is named.
my (%part, %order);

# All files of src/ by name, without comments and strings; line breaks stay, and the
# names of headers that are included.
sub read_sources
{
	my $src = shift;
	my %text;
	foreach my $path (glob "$src/*.[ch] $src/*/*.[ch]")
	{
		open my $file, '<', $path or die "$path: $!";
		my $source = do { local $/ = undef; <$file> };
		close $file;
		$source =~ s{^(\#include[^\n]*)|/\*.*?\*/|"(?:\\.|[^"\\\n])*"}
			{ $1 // $& =~ s/[^\n]//gr }gmesx;
		$text{ substr $path, length("$src/") } = $source;
	}
	return %text;
}

# The cells of a row, without the quotes around code
sub cells
{
	my ($row) = @_;
	return map { s/^\s+|\s+$|`//gr } split /\|/, $row =~ s/^\|//r;
}

# Reads the tables.  A hash of what is in them: of each folder its parts in their
# order, the files of each part, and its seams.
sub read_parts
{
	my $src = shift;
	my %found;
	open my $readme, '<', "$src/README.md" or die "README.md: $!";
	my ($folder, $table) = ('', '');
	while (my $line = <$readme>)
	{
		($folder, $table) = ($2, $1) if $line =~ /^### The (parts|seams) of (\w+)\//;
		$table = '' if $line =~ /^##/ && $line !~ /^### The (?:parts|seams) of /;
		next if $table eq '' || $line !~ /^\|/ || $line =~ /^\|(?:-| part | from )/;
		my @cell = cells($line);
		if ($table eq 'seams')
		{
			push @{ $found{$folder}{seams} },
			  { from => $cell[0], to => $cell[1], names => [ split /,\s*/, $cell[2] ] };
			next;
		}
		push @{ $found{$folder}{parts} }, $cell[0];
		$order{"$folder/$cell[0]"} = @{ $found{$folder}{parts} };
		foreach my $name (split /,\s*/, $cell[1])
		{
			push @{ $found{$folder}{files}{$name} }, $cell[0];
			$part{"$folder/$name"} = "$folder/$cell[0]";
		}
	}
	close $readme;
	return %found;
}

# The part of a file, such as core/lock of core/contenders.c, and its place in the
# order of its folder, from the top down.
sub part_of
{
	my $file = shift;
	my $stem = $file =~ s/\.[ch]$//r;
	my $part = $part{$file} // $part{$stem} // $stem;
	return wantarray ? ($part, $order{$part} // 0) : $part;
}

1;
