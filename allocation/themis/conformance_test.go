package themis

import (
	"testing"

	"github.com/quartet-sched/quartet/policykit/policytest"
)

// forms lists the policy in the forms that decide differently.
var forms = map[string]policytest.Form{
	"themis":                {Factory: New()},
	"themis for efficiency": {Factory: New(), Config: map[string]any{"offered_to": 1.0, "lease": "10m"}},
}

func TestConformance(t *testing.T) { policytest.CheckAllocators(t, forms) }
