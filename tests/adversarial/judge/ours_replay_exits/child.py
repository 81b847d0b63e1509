import sys

sys.exit("out of ideas")
