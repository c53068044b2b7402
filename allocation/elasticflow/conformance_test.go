package elasticflow

import (
	"testing"

	"github.com/quartet-sched/quartet/policykit/policytest"
)

// forms lists the policy in the forms that decide differently.
var forms = map[string]policytest.Form{
	"elasticflow":                {Factory: New()},
	"elasticflow with overhead":  {Factory: New(), Config: map[string]any{"overhead": "30s", "levels": "all"}},
	"elasticflow by most growth": {Factory: New(), Config: map[string]any{"expand": mostGrowth, "overhead": "1s"}},
}

func TestConformance(t *testing.T) { policytest.CheckAllocators(t, forms) }
