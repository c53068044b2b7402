package lucid

import (
	"testing"

	"github.com/quartet-sched/quartet/policykit/policytest"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// forms lists the policy in the forms that decide differently.
var forms = map[string]policytest.Form{
	"lucid":                  {Factory: New(), Groups: true},
	"lucid without sharing":  {Factory: New(), Config: map[string]any{"sharing": false, "queue": queue.Backfill}, Groups: true},
	"lucid that packs first": {Factory: New(), Config: map[string]any{"pack": packFirst, "tolerance": 1.0, "off_below": 2.0}, Groups: true},
}

func TestConformance(t *testing.T) { policytest.CheckAllocators(t, forms) }
