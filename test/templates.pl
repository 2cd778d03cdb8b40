# Makes what the servers of the other tests start from, in the directory that
# ZKLOCK_TEST_TEMPLATES names; see perl/ServerTemplates.pm.

use strict;
use warnings;

use ServerTemplates;
use ZooKeeper;

ServerTemplates::make();
