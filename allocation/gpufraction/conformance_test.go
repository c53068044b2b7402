package gpufraction

import (
	"testing"

	"github.com/quartet-sched/quartet/policykit/policytest"
)

// forms lists the policy in the forms that decide differently.
var forms = map[string]policytest.Form{
	"gpu_fraction":                {Factory: New()},
	"gpu_fraction of ten minutes": {Factory: New(), Config: map[string]any{"window": "10m", "turn": "0s", "premium": 1.0, "basic": 0.2}},
}

func TestConformance(t *testing.T) { policytest.CheckAllocators(t, forms) }
