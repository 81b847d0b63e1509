"""Run the command line with ``python -m tbmm_env.cli``."""

import sys

from tbmm_env.cli import main

sys.exit(main())
