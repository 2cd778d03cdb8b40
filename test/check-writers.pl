#!/usr/bin/env perl
# Checks that each group of fields is written by one part only, as src/README.md tells
# the parts: the groups of the core's state, and those of a slot in shared memory.
# Prints TAP.
#
# It follows the types of variables and fields.  So it also sees a write through
# a pointer to a group, such as pace->expected++ where pace is &m->pace.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::Bin/perl";
use SourceParts qw(read_sources read_parts part_of);

# Each struct, or single field of one, and who writes it: parts (a file, where a
# folder has no table of parts), or a folder.
my %writers = (
	# of the server
	ZklManager => 'core/manager',
	ZklActions => 'core/host',
	ZklArena => 'core/host',
	ZklOp => 'core/host',
	ZklOperations => 'core/host',
	ZklRequests => 'core/request',
	ZklNodes => 'core/node',
	ZklWrite => 'core/write',
	ZklSeat => 'core/write',
	ZklWrites => 'core/write',
	ZklLooks => 'core/node',
	ZklLocks => 'core/lock',
	ZklReads => 'core/reads',
	ZklDirectories => 'core/reads',
	ZklParentGuess => 'core/reads',
	ZklLeft => 'core/reads',
	ZklBatch => 'core/write',
	ZklBatches => 'core/write',
	ZklPace => 'core/write',
	ZklConnection => 'core/session',
	ZklChain => 'core/session',
	ZklContact => 'core/session',
	ZklSessionLease => 'core/session',
	ZklZxid => 'core/session',
	ZklRevived => 'core/session',
	ZklJanitor => 'core/janitor',
	ZklWaits => 'deadlock/publication',
	ZklPublication => 'deadlock/publication',
	ZklPublications => 'deadlock/publication',
	ZklSearch => 'deadlock/search',
	ZklFound => 'deadlock/found',
	ZklVerdict => 'deadlock/verdict',
	'ZklDeadlock.m' => 'deadlock/deadlock',
	ZklCaching => 'core/cache',
	ZklRewrites => 'core/node',
	ZklWords => 'core/lock',
	ZklDeparted => 'core/contenders',
	ZklDepartedId => 'core/contenders',
	'ZklManager.departed' => 'core/contenders',
	ZklHeat => 'core/cache',
	ZklTrace => 'observe/trace',
	ZklWingState => 'core/host',
	'ZklManager.config' => 'core/manager',
	'ZklManager.owners' => 'core/owner',
	'ZklManager.wings' => 'core/host',
	'ZklManager.kept' => 'core/owner',
	'ZklManager.session' => 'core/session',
	'ZklManager.stuck_until' => 'core/write',
	'ZklManager.unanswered_until' => 'core/answers',

	# of a request
	ZklRequest => 'core/request',
	ZklPlace => 'core/lock',
	ZklRing => 'core/owner',
	ZklKept => 'core/owner',
	ZklWait => 'deadlock/publication',
	ZklDowngrade => 'core/node',
	ZklAsked => 'core/node',
	ZklCache => 'core/cache',
	ZklRewrite => 'core/node',
	ZklLook => 'core/node',
	ZklAskers => 'core/node',
	ZklNode => 'core/node',
	'ZklRequest.perhaps_overtaken' => 'core/session',
	'ZklRequest.attempts' => 'core/reads',
	'ZklRequest.trying' => 'core/reads',

	# of a lock
	ZklLock => 'core/lock',
	ZklLockRequests => 'core/request',
	ZklQueue => 'core/lock',
	ZklForeign => 'core/contenders',
	ZklBase => 'core/contenders',
	ZklDirectory => 'core/reads',
	ZklAhead => 'core/reads',
	ZklListings => 'core/reads',
	ZklTries => 'core/reads',
	ZklParents => 'core/reads',
	'ZklLock.cached' => 'core/cache',
	'ZklLock.checks_holds' => 'core/session',
	'ZklLock.asks_due' => 'core/node',
	'ZklLock.pins' => 'core/host',
	'ZklLock.reader' => 'core/reads',

	# of a slot: see shared/slot.h
	ZklSlotRequest => 'backend/',
	ZklSlotHolder => 'backend/',
	ZklSlotAnswer => 'worker/worker_slot backend/backend_slot shared/slot',
	ZklSlotDependents => 'backend/wait backend/backend_slot',
	'ZklSlot.s_record' => 'worker/worker_slot backend/backend_slot',
	'ZklSlot.s_state' => 'backend/backend_slot worker/worker_slot shared/control shared/slot');

# Structs of which every group must have a writer, and groups that are written as
# fields of the struct around them.
my @complete = qw(ZklManager ZklRequest ZklLock ZklDeadlock);
my %plain = map { $_ => 1 } qw(ZklLink ZklList ZklTable ZklUuid);

# The file that makes a struct makes its empty lists; the others only read.
my $no_write = qr/^(?:zkl_list_init|zkl_foreach|zkl_container|sizeof|offsetof)$/;
my $fills = qr/^(?:memset|memcpy|memmove|strncpy|strlcpy)$/;

my $index = qr/(\[(?:[^\[\]]++|(?-1))*+\])/;
my $arguments = qr/(\((?:[^()]++|(?-1))*+\))/;
my $path = qr/\w+(?:$arguments)?(?:\s*(?:->|\.)\s*\w+|$index)+/;

my (%text, %fields, %returns, %constant, %home, %global, %wrong);
my $cases = 0;

# The arguments of a call, given as "(a, b)"
sub split_arguments
{
	my $list = substr $_[0], 1, -1;
	my @found;
	push @found, $1 =~ s/^\s+|\s+$//gr
	  while $list =~ /((?:[^,()\[\]]++|$arguments|$index)+)/g;
	return @found;
}

# Declarations such as "type *name, other": a hash of name => [type, stars]
sub declarations
{
	my %found;
	foreach (@_)
	{
		my ($type, $rest) =
		  /^\s*(?:(?:static|extern|const|struct)\s+)*([A-Za-z]\w*)\s*([\s*].*)$/s
		  or next;
		$rest =~ s/(\*+)(\w+)\[/$1*$2\[/g;    # an array of pointers
		1 while $rest =~ s/([\[({])[^\[\](){}]*[\])}]/ /;
		foreach my $name (split /,/, $rest)
		{
			$found{$2} = [ $type, length $1 ]
			  if $name =~ /^\s*(\**)\s*(?:const\s+)?(\w+)/;
		}
	}
	return %found;
}

sub read_types
{
	my ($file, $source) = @_;
	while ($source =~ /^(?:typedef )?struct\s*(\w*)\s*\n\{(.*?)^\}\s*(\w*)/gms)
	{
		my %found = declarations(split /;/, $2);
		my $name = $3 || $1;
		$fields{$name} = \%found;
	}
	while ($source =~ /^(?:(?:static|inline|const|extern|struct) )*(\w+)\s[\s*]*(\w+)\(([^;{}]*?)\)(?:;|\n\{)/gm)
	{
		my ($type, $name, $parameters) = ($1, $2, $3);
		$returns{$name} = $type;
		$constant{$name} = [ map { /^\s*const\b/ ? 1 : 0 } split /,/, $parameters ];
		$home{$name} = $file if substr($source, $+[0] - 1, 1) eq '{';
	}
	%global = (%global, declarations($source =~ /^extern ([^;()]*);/gm));
	return;
}

# What a path leads to: the innermost struct or field that has a writer, and
# whether it is that struct as a whole.  A copy in a local variable has none.
sub owned_field
{
	my ($where, $variables) = @_;
	my ($root, $call) = $where =~ /^(\w+)($arguments)?/ or return;
	my $rest = substr $where, length($root) + length($call // '');
	my ($type, $pointers) = @{ $variables->{$root} // $global{$root} // [ '', 0 ] };
	($type, $pointers) = ($returns{$root} // '', 1) if defined $call;
	($type) = $call =~ /^\((\w+)/ if $root eq 'zkl_container';
	return if $pointers == 0 && $rest !~ /->/;
	my $owned;
	while ($rest =~ /(?:->|\.)\s*(\w+)|$index/g)
	{
		$pointers-- if defined $2;
		next if defined $2;
		$owned = $type if exists $writers{$type};
		$owned = "$type.$1" if exists $writers{"$type.$1"};
		($type, $pointers) = @{ ($fields{$type} // {})->{$1} // [ '', 0 ] };
	}
	return exists $writers{$type} && ($pointers <= 0 || $rest eq '') ? ($type, 1) : ($owned, 0);
}

# Whether one of the files may write to it
sub may_write
{
	my ($owned, @files) = @_;
	foreach my $writer (split / /, $writers{$owned})
	{
		return 1 if grep { $writer =~ /\/$/ ? /^$writer/ : part_of($_) eq $writer } @files;
	}
	return 0;
}

sub note_write
{
	my ($file, $line, $where, $variables, @through) = @_;
	my ($owned) = owned_field($where, $variables);
	push @{ $wrong{$owned} }, "$file:$line: $where"
	  if defined $owned && !may_write($owned, $file, @through);
	return;
}

# What a call writes: what memset() and the like fill, and each field whose
# address it takes, unless the parameter is constant.  A function of the part
# that owns the field may write it for others; one that takes a whole struct is
# looked at itself.
sub read_call
{
	my ($file, $line, $function, $list, $variables) = @_;
	my @given = split_arguments($list);
	return if $function =~ $no_write;
	note_write($file, $line, $given[0] =~ s/^&//r, $variables)
	  if $function =~ $fills && $given[0] =~ /^&?(?:$path|\w+)$/;
	return if $function =~ $fills;
	foreach my $i (0 .. $#given)
	{
		next if $given[$i] !~ /^&($path)$/ || $constant{$function}[$i];
		my $where = $1;
		my ($owned, $whole) = owned_field($where, $variables);
		note_write($file, $line, $where, $variables, $home{$function} // ()) if !$whole;
	}
	return;
}

sub read_function
{
	my ($file, $line, $parameters, $body) = @_;
	my %variables = (declarations(split /,/, $parameters),
		declarations($body =~ /^[ \t]+((?:(?:static|const|struct)\s+)*[A-Z]\w*\s[^;()]*(?:[=(][^;]*)?);/gm));
	my $at = sub { $line + (substr($body, 0, $_[0]) =~ tr/\n//) };
	note_write($file, $at->($-[1]), $1, \%variables)
	  while $body =~ /($path)\s*(?:(?:[-+*\/|&^%]|<<|>>)?=(?!=)|\+\+|--)/g;
	note_write($file, $at->($-[1]), $1, \%variables)
	  while $body =~ /(?:\+\+|--)($path)/g;
	note_write($file, $at->($-[1]), $1, \%variables)
	  while $body =~ /[;{}]\s*\*(\w+)\s*=/g;
	read_call($file, $at->($-[1]), $1, $2, \%variables)
	  while $body =~ /(\w+)(?=($arguments))/g;

	# A pointer to what is no group of its own
	while ($body =~ /^[ \t]+(const )?(?:struct )?(\w+)[ \t]+\**\w+ = &($path)/gm)
	{
		note_write($file, $at->($-[3]), $3, \%variables)
		  if !defined $1 && !exists $writers{$2};
	}
	return;
}

sub report
{
	my ($name, @lines) = @_;
	$cases++;
	print @lines ? 'not ok' : 'ok', " $cases - $name\n", map { "#   $_\n" } @lines;
	return scalar @lines;
}

# The groups in a struct that nobody owns
sub ownerless
{
	my $struct = shift;
	return map { "$_ of $struct" }
	  grep {
		my ($type, $pointer) = @{ $fields{$struct}{$_} };
		!$pointer && exists $fields{$type} && !$plain{$type}
		  && !exists $writers{$type} && !exists $writers{"$struct.$_"}
	  } sort keys %{ $fields{$struct} };
}

%text = read_sources("$FindBin::Bin/../src");
read_parts("$FindBin::Bin/../src");
read_types($_, $text{$_}) foreach sort keys %text;
foreach my $file (sort keys %text)
{
	while ($text{$file} =~ /^\w[^\n;]*\(([^{};]*)\)\n\{\n(.*?)^\}/gms)
	{
		my $line = 1 + (substr($text{$file}, 0, $-[2]) =~ tr/\n//);
		read_function($file, $line, $1, $2);
	}
}
my $failed = 0;
$failed += report("all groups of $_ have a writer", ownerless($_)) foreach @complete;
$failed += report("$_ is written by $writers{$_} only", @{ $wrong{$_} // [] })
  foreach sort keys %writers;
print "1..$cases\n";
exit($failed ? 1 : 0);
