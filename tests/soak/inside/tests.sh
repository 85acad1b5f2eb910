#!/bin/sh
# Runs the tests on a virtual host; every line goes out through the serial port.
cd /opt/falsework/tests || exit
export PYTHONPATH=/opt/falsework/src:/opt/falsework/tests HOME=/root
{
    python3 -B -m pytest -p soak_fixtures -p no:cacheprovider --color=no --verbose --durations=0 --durations-min=1 \
        test_cgroups.py test_nspawn.py whole_life.py
    echo "tests ended with $?"
} >/dev/ttyS1 2>&1
