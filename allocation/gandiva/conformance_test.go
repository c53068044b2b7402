package gandiva

import (
	"testing"

	"github.com/quartet-sched/quartet/policykit/policytest"
)

// forms lists the policy in the forms that decide differently.
var forms = map[string]policytest.Form{
	"gandiva":                  {Factory: New(), Groups: true},
	"gandiva that grows jobs":  {Factory: New(), Config: map[string]any{"slice": "150s", "grow_shrink": true, "pairs": pairsNone}, Groups: true},
	"gandiva with drawn pairs": {Factory: New(), Config: map[string]any{"slice": "1s", "grow_shrink": true, "pairs": pairsRandom}, Groups: true},
}

func TestConformance(t *testing.T) { policytest.CheckAllocators(t, forms) }
