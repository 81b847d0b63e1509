prelude
import TBMM.Number
import TBMM.Gate
import TBMM.Score
