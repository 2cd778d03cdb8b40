# What the project's host reads, in .github/: workflows that begin with what is there and
# keep the logs, forms for issues that ask for what a report needs.  What a release is
# checked for.  And no file names an address that is nobody's.
#
# Runs in the sources.

use strict;
use warnings;

use Cwd qw(abs_path getcwd);
use File::Basename;
use File::Find;
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

plan skip_all => 'there is no python3-yaml'
  if system(q{python3 -c 'import yaml' 2>/dev/null}) != 0;
plan skip_all => 'there is no git' if system('git --version >/dev/null 2>&1') != 0;

my $top = getcwd();
my $temp = tempdir(CLEANUP => 1);

sub slurp
{
	my ($name) = @_;

	open my $file, '<', $name or die "could not open $name: $!\n";
	local $/ = undef;
	return readline($file) // '';
}

sub spill
{
	my ($name, $text) = @_;

	open my $file, '>', $name or die "could not open $name: $!\n";
	print $file $text;
	close $file or die "could not write $name: $!\n";
	return;
}

# Without the rule of YAML 1.1 that "on" is true
sub yaml
{
	my ($name) = @_;
	my $program = 'import json, sys, yaml; yaml.SafeLoader.yaml_implicit_resolvers.pop("o");'
	  . 'print(json.dumps(yaml.safe_load(open(sys.argv[1]))))';

	open my $out, '-|', 'python3', '-c', $program, $name or die "could not run python3: $!\n";
	local $/ = undef;
	my $text = readline $out;
	return close $out ? decode_json($text) : undef;
}

# ---- workflows ----

my %newest = (
	'actions/checkout' => 'v6',
	'actions/upload-artifact' => 'v6',
	'actions/download-artifact' => 'v7');

# What a step runs has no syntax errors, and begins with programs that are there.
sub check_command
{
	my ($command, $what) = @_;

	spill("$temp/step.sh", "#!/bin/bash\n" . $command =~ s/\$\{\{.*?\}\}/x/gr);
	is(system('bash', '-n', "$temp/step.sh"), 0, "$what: a shell script");
	is(join(' ', grep { !-e "$top/$_" } $command =~ m{(?:^|\s)((?:dev|test|\.ci)/[\w./-]+)}g),
		'', "$what: the files are there");
	is(join(' ', grep { !-x "$top/$_" } $command =~ m{^\s*((?:dev|\.ci)/[\w./-]+)}mg),
		'', "$what: and can be run");
	return;
}

sub check_job
{
	my ($job, $what) = @_;
	my @steps = @{ $job->{steps} };

	ok($job->{'timeout-minutes'}, "$what: ends");
	foreach my $step (@steps)
	{
		check_command($step->{run}, $what) if $step->{run};
		next unless $step->{uses};
		my ($action, $version) = split /@/, $step->{uses};
		is($version, $newest{$action}, "$what: $action");
	}

	# The logs are kept if it fails and if it takes too long.
	my ($tests) = grep { ($_->{run} // '') =~ m{^\.ci/run} } @steps;
	return unless $tests;
	my ($keep) = grep { ($_->{with}{name} // '') =~ /^logs/ } @steps;
	cmp_ok($tests->{'timeout-minutes'}, '<', $job->{'timeout-minutes'},
		"$what: the tests end before the job");
	like($keep->{if}, qr/failure\(\) \|\| cancelled\(\)/, "$what: logs are kept");
	like($keep->{with}{path}, qr{^\Q$_\E$}m, "$what: those in $_")
	  foreach $job->{env}{ZKLOCK_LOGS}, '/tmp/zklock-test.*/log', '/tmp/zklock-test.*/tmp_check/log';
	return;
}

my %workflow;
foreach my $file (glob '.github/workflows/*.yml')
{
	my $name = basename($file, '.yml');
	my $workflow = $workflow{$name} = yaml($file);

	ok($workflow, "$file: YAML") or next;
	ok($workflow->{on}, "$name: begins");
	is_deeply($workflow->{permissions}, { contents => 'read' }, "$name: may read, only");
	ok($workflow->{concurrency}{group}, "$name: one at a time");
	my $jobs = $workflow->{jobs};
	foreach my $job (sort keys %$jobs)
	{
		my $needs = $jobs->{$job}{needs} // [];

		check_job($jobs->{$job}, "$name/$job");
		ok($jobs->{$_}, "$name/$job needs $_") foreach ref $needs ? @$needs : $needs;
	}
}

sub runs
{
	return map { $_->{run} // () } @{ $_[0]->{steps} };
}

foreach my $name ('test', 'matrix')
{
	ok((grep { $_ eq '.ci/run' } runs($workflow{$name}{jobs}{test})), "$name runs .ci/run");
}
my @rows = @{ $workflow{matrix}{jobs}{test}{strategy}{matrix}{include} };
foreach my $wanted ([ postgresql => '16' ], [ postgresql => '19' ], [ compiler => 'clang' ],
	[ runner => 'ubuntu-24.04-arm' ])
{
	my ($name, $value) = @$wanted;
	ok((grep { ($_->{$name} // '') eq $value } @rows), "matrix has $value");
}
my $settings = $workflow{matrix}{jobs}{test}{env};
like($settings->{PG_CONFIG}, qr/matrix\.postgresql/, 'matrix: and takes that PostgreSQL');
like($settings->{ZKLOCK_CC}, qr/matrix\.compiler/, 'matrix: and that compiler');
my $packages = $workflow{release}{jobs}{packages};
is($packages->{env}{PG_SUPPORTED_VERSIONS}, '15 16 17 18', 'release: packages for 15 to 18');
is(scalar(@{ $_->{strategy}{matrix}{runner} }), 2, 'release: for two architectures')
  foreach $packages, $workflow{release}{jobs}{image};

# ---- forms ----

foreach my $file (glob '.github/ISSUE_TEMPLATE/*.yml')
{
	my $form = yaml($file);

	ok($form, "$file: YAML") or next;
	next if basename($file) eq 'config.yml';
	ok($form->{$_}, "$file: $_") foreach qw(name description);
	foreach my $field (@{ $form->{body} })
	{
		like($field->{type}, qr/^(?:markdown|textarea|input|dropdown|checkboxes)$/, "$file: a type");
		ok($field->{attributes}{ $field->{type} eq 'markdown' ? 'value' : 'label' },
			"$file: and a label");
	}
}
my %asked = map { $_->{id} // '' => $_ } @{ yaml('.github/ISSUE_TEMPLATE/bug.yml')->{body} };
ok($asked{$_}{validations}{required}, "a report of a bug has its $_") foreach qw(version health log);
foreach my $function ('zk_version', 'zk_healthcheck')
{
	my @labels = map { $_->{attributes}{label} // '' } values %asked;
	ok((grep { /\b\Q$function\E\(\)/ } @labels), "it asks for $function()");
	like(slurp('sql/zklock--1.0.sql'), qr/FUNCTION $function\(/, 'which exists');
}

# ---- addresses ----

# Names of hosts in samples of settings and commands, and in the data of tests
my $sample = qr/\b(?:zk|db)\d\.example\.com\b/;
my @files;
find(
	{
		no_chdir => 1,
		wanted => sub {
			my $name = $_ =~ s{^\./}{}r;
			$File::Find::prune = 1 if $name =~ m{^(?:\.git|test|bench|results|tmp_check.*)$};
			push @files, $name if -f && -T && !$File::Find::prune;
		}
	},
	'.');
cmp_ok(scalar(@files), '>', 200, 'there are files to look at');
is(join(' ', grep { slurp($_) =~ s/$sample//gr =~ /example\.(?:org|com)/ } sort @files),
	'', 'no address that is nobody\'s, but for samples');

# ---- what a release is checked for ----

chdir $temp or die "could not change the directory: $!\n";

sub git { return system('git', '-c', 'user.name=x', '-c', 'user.email=x@x', @_) == 0; }

sub commit
{
	git('add', '-A') && git('commit', '-q', '-m', 'x') or die "git failed\n";
	chomp(my $commit = qx{git rev-parse --short HEAD});
	return $commit;
}

# What release.pl says is not ok
sub refused
{
	my ($tag) = @_;
	my $said = qx{$^X $top/test/release.pl $tag 2>/dev/null};

	return join "\n", map { s/^not ok \d+ - //r } grep { /^not ok/ } split /\n/, $said;
}

sub matrix
{
	my ($commit, $failed) = @_;

	spill('test/matrix.md',
		"| release | PostgreSQL | ZooKeeper | gcc | Python | tests | passed | failed | commit | date |\n"
		  . "|---|---|---|---|---|---|---|---|---|---|\n"
		  . join '', map { "| r | $_.1 | 3.9.4 | 12 | 3 | all | 5 | $failed | $commit | 2026-01-01 |\n" } 15, 16);
	return;
}

git('init', '-q') or die "git failed\n";
mkdir $_ foreach 'src', 'test';
spill('src/a.c', "int a;\n");
spill('META.json', '{"version": "1.2.3"}');
spill('CHANGELOG.md', "## [1.2.3] - 2026-01-02\n");
spill('README.md', "PostgreSQL 15 to 16\n");
matrix(commit(), 0);
commit();
is(refused('v1.2.3'), '', 'a release');
like(refused('v1.2.4'), qr/^the tag is/, 'not under another number');
matrix('0000000', 0);
like(refused('v1.2.3'), qr/src\/ has not changed/, 'nor with rows of a commit that is unknown');
matrix('HEAD', 0);
like(refused('v1.2.3'), qr/src\/ has not changed/, 'or of none');
matrix(my $tested = commit(), 1);
like(refused('v1.2.3'), qr/nothing failed/, 'nor if tests have failed');
matrix($tested, 0);
spill('README.md', "PostgreSQL 15 to 17\n");
is(refused('v1.2.3'), 'PostgreSQL 17 was tested', 'nor if a version has no row');
spill('README.md', "PostgreSQL 15 to 16\n");
spill('src/a.c', "int b;\n");
commit();
is(scalar(my @old = split /\n/, refused('v1.2.3')), 2, 'nor if src/ has changed since the rows');
spill('CHANGELOG.md', "## [1.2.3] - unreleased\n");
like(refused('v1.2.3'), qr/CHANGELOG/, 'nor without a date');
chdir $top or die "could not change the directory: $!\n";
done_testing();
