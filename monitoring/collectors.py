#!/usr/bin/env python3
"""Makes the file for sql_exporter from queries.yaml.

    python3 collectors.py > zklock.collector.yml

sql_exporter (github.com/burningalchemist/sql_exporter) takes the place of the
queries of prometheus-postgres-exporter, which later releases of that no longer
have.  The metrics are the same, with the same queries.
"""

import os
import re

FOLDER = os.path.dirname(os.path.abspath(__file__))
TYPES = {"GAUGE": "gauge", "COUNTER": "counter"}


def queries():
    """Each query: its name, its lines, and its columns (name, usage, text)"""
    name = None
    with open(os.path.join(FOLDER, "queries.yaml")) as file:
        for line in file:
            if re.match(r"\w+:$", line):
                name, sql, columns, in_query = line[:-2], [], [], False
                yield name, sql, columns
            elif line.startswith("  query: |"):
                in_query = True
            elif line.startswith("  metrics:"):
                in_query = False
            elif name and in_query:
                sql.append(line)
            elif line.startswith("    - "):
                columns.append([line.strip(" -:\n")])
            elif line.strip().startswith(("usage:", "description:")):
                columns[-1].append(line.split('"')[1])


def main():
    found = list(queries())
    print("# A collector of zklock for sql_exporter, made by collectors.py from")
    print("# queries.yaml.  README.md explains the metrics.")
    print("collector_name: zklock")
    print("metrics:")
    for name, _, columns in found:
        labels = [column[0] for column in columns if column[1] == "LABEL"]
        for column, usage, text in (c for c in columns if c[1] != "LABEL"):
            print("  - metric_name: %s_%s" % (name, column))
            print("    type: %s" % TYPES[usage])
            print('    help: "%s"' % text)
            if labels:
                print("    key_labels: [%s]" % ", ".join(labels))
            print("    values: [%s]" % column)
            print("    query_ref: %s" % name)
    print("queries:")
    for name, sql, _ in found:
        print("  - query_name: %s" % name)
        print("    query: |")
        print("".join("  " + line for line in sql).rstrip())


main()
