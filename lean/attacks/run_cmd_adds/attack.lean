prelude
import TBMM
import Lean
run_cmd Lean.addDecl default
