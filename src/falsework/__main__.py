import sys

from falsework.cli import main

sys.exit(main())
