package tiresias

import (
	"testing"

	"github.com/quartet-sched/quartet/policykit/policytest"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// forms lists the policy in the forms that decide differently.
var forms = map[string]policytest.Form{
	"tiresias":                       {Factory: New()},
	"tiresias with four queues":      {Factory: New(), Config: map[string]any{"thresholds": []any{60, 600, 6000.5}, "promote_factor": 2}},
	"tiresias blocking by wall time": {Factory: New(), Config: map[string]any{"thresholds": []any{60}, "service": queue.WallTime, "queue": queue.Blocking}},
	"tiresias running first":         {Factory: New(), Config: map[string]any{"thresholds": []any{3250}, "inside": insideRunningFirst}},
	"tiresias passed over last":      {Factory: New(), Config: map[string]any{"thresholds": []any{60, 600}, "inside": insidePassedOver}},
	"tiresias gittins": {Factory: New(), Config: map[string]any{
		"thresholds": []any{3250}, "inside": insideGittins, "samples": []any{100, 200, 5000, 90000},
	}},
}

func TestConformance(t *testing.T) { policytest.CheckAllocators(t, forms) }
