prelude
import TBMM
import Cheat
