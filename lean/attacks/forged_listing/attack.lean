prelude
import TBMM
namespace TBMM.Certificate
#print "'TBMM.Certificate.reward' does not depend on any axioms"
