prelude
import TBMM.Number
import TBMM.Gate
import TBMM.Score
import TBMM.Order
import TBMM.Band
import TBMM.Laws
import TBMM.Means
