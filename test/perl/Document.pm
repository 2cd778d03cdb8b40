# A page of documentation: its blocks of code, its links and its tables.
#
#	my $page = Document->new('docs/jobs.md');	# below the top of the sources
#	foreach my $block ($page->blocks('sql'))
#	{
#		print $block->{line}, $block->{text};
#		foreach my $statement (Document::statements($block->{text})) { ... }
#	}
#
# Each block says after its fence what it is.  "sql" and "ini" are tested, by
# test/t/200_documents.pl and 201_reference.pl, "java" and "python" by
# 203_clients.pl, and "sh" by the test of its procedure (Procedure.pm, or
# test/monitoring.pl, also "yaml"); "text" is not.

package Document;

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename;

use PostgreSQL::Test::Utils;

my $top = abs_path(dirname(__FILE__) . '/../..');

sub new
{
	my ($class, $name) = @_;

	return bless { name => $name, text => slurp_file("$top/$name") }, $class;
}

# The files of the sources whose names match; there must be some.
sub files
{
	my ($pattern) = @_;
	my @files = glob("$top/$pattern") or die "no files $pattern\n";

	return @files;
}

# The names of all pages
sub all
{
	my @names = map { s{^\Q$top\E/}{}r } map { files($_) } '*.md', '*/*.md', '*/*/*.md';
	return sort @names;
}

# Those for users, whose examples are run
sub for_users
{
	return grep { $_ eq 'README.md' || m{^docs/} } all();
}

sub path { return "$top/$_[1]"; }
sub text { return $_[0]->{text}; }

# The blocks of a language, or all: hashes of language, line and text
sub blocks
{
	my ($self, $language) = @_;
	my @blocks;
	my $open;
	my $number = 0;

	foreach my $line (split /^/m, $self->{text})
	{
		$number++;
		if ($line =~ /^```(.*)$/)
		{
			push @blocks, $open if $open;
			$open = $open ? undef
			  : { language => $1, line => $number + 1, text => '' };
		}
		elsif ($open)
		{
			$open->{text} .= $line;
		}
	}
	return grep { !defined $language || $_->{language} eq $language } @blocks;
}

# A page that has only the section below that heading, or undef
sub section
{
	my ($self, $heading) = @_;
	my ($level, $text);
	my $in_block = 0;

	foreach my $line (split /^/m, $self->{text})
	{
		$in_block = !$in_block if $line =~ /^```/;
		if (!$in_block && $line =~ /^(#+) +(.*?) *$/)
		{
			last if defined $text && length $1 <= length $level;
			($level, $text) = ($1, '') if $2 eq $heading;
		}
		$text .= $line if defined $text;
	}
	return defined $text ? bless { %$self, text => $text }, ref $self : undef;
}

# The text without its blocks
sub prose
{
	my ($self) = @_;

	return $self->{text} =~ s/^```.*?^```$//gmsr;
}

# Whether a dollar quote is not closed.
sub is_quote_open
{
	my ($sql) = @_;
	my $open;

	foreach my $quote ($sql =~ /(\$\w*\$)/g)
	{
		$open = !defined $open ? $quote : $quote eq $open ? undef : $open;
	}
	return defined $open;
}

# The statements of a block of SQL, each with the comment that follows it.
# Semicolons within dollar quotes do not end a statement.
sub statements
{
	my ($sql) = @_;
	my @statements;
	my $statement = '';

	foreach my $line (split /^/m, $sql)
	{
		my ($code, $comment) = $line =~ /^(.*?)(?:\s*--\s*(.*?))?\s*$/s;

		$statement .= "$code\n" if $code =~ /\S/;
		next if $statement !~ /;\s*$/ || is_quote_open($statement);
		push @statements, { sql => $statement, comment => $comment // '' };
		$statement = '';
	}
	push @statements, { sql => $statement, comment => '' } if $statement =~ /\S/;
	return @statements;
}

# The anchors of the headings, as GitHub makes them
sub anchors
{
	my ($self) = @_;
	my @anchors;

	foreach my $heading ($self->prose =~ /^#+ +(.*?) *$/mg)
	{
		my $anchor = lc $heading;
		$anchor =~ s/\[([^\]]*)\]\([^)]*\)/$1/g;
		$anchor =~ s/[^\w\- ]//g;
		$anchor =~ s/ /-/g;
		push @anchors, $anchor;
	}
	return @anchors;
}

# What the page links to within the sources: pairs of file and anchor
sub links
{
	my ($self) = @_;
	my @links;

	foreach my $target ($self->prose =~ /\]\(([^)\s]+)\)/g)
	{
		next if $target =~ /^\w+:/;
		my ($file, $anchor) = split /#/, $target, 2;
		my $path =
		  $file eq '' ? $self->{name} : dirname($self->{name}) . "/$file";
		$path =~ s{^\./}{};
		1 while $path =~ s{[^/.]+/\.\./}{};
		push @links, [ $path, $anchor ];
	}
	return @links;
}

# The cells of all tables, without what separates them
sub cells
{
	my ($self) = @_;

	return map { s/^\s+|\s+$//gr }
	  map { split /\|/ } $self->prose =~ /^\|(.*)\|\s*$/mg;
}

1;
