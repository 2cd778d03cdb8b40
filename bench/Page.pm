# A page of results/, which a program writes.
#
#	$text .= Page::table([ 'what', 'how much' ], [ 'a', 1 ], [ 'b', 2 ]);
#	Page::write('results/scale.md', 'Many servers', 'bench/scale-report.pl', $text);

package Page;

use strict;
use warnings;

# A number with its thousands apart
sub thousands
{
	my $digits = reverse sprintf '%.0f', $_[0];

	$digits =~ s/(\d{3})(?=\d)/$1 /g;
	return scalar reverse $digits;
}

# A Markdown table: the head, then the rows
sub table
{
	my ($head, @rows) = @_;

	return join '', map { "$_\n" } '| ' . join(' | ', @$head) . ' |',
	  '|---|' . '---:|' x $#$head, (map { '| ' . join(' | ', @$_) . ' |' } @rows),
	  '';
}

# Writes a page: its heading, the program that makes it, and the text
sub write
{
	my ($page, $heading, $program, $text) = @_;

	open my $out, '>', $page or die "$page: $!\n";
	print $out "# $heading\n\n<!-- $program writes this page. -->\n\n$text";
	close $out or die "$page: $!\n";
	return;
}

1;
