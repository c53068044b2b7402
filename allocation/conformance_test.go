package allocation

import (
	"testing"

	"github.com/quartet-sched/quartet/policykit/elastic"
	"github.com/quartet-sched/quartet/policykit/policytest"
	"github.com/quartet-sched/quartet/policykit/queue"
	"github.com/quartet-sched/quartet/policykit/synergy"
)

// forms lists each policy of one file in the forms that decide differently.
var forms = map[string]policytest.Form{
	"fifo":                           {Factory: NewFIFO()},
	"fifo backfill":                  {Factory: NewFIFO(), Config: map[string]any{"queue": queue.Backfill}},
	"fifo all":                       {Factory: NewFIFO(), Config: map[string]any{"queue": queue.All}},
	"antman":                         {Factory: NewAntMan(), Groups: true},
	"srtf":                           {Factory: NewSRTF()},
	"srtf blocking":                  {Factory: NewSRTF(), Config: map[string]any{"queue": queue.Blocking}},
	"srtf all":                       {Factory: NewSRTF(), Config: map[string]any{"queue": queue.All}},
	"srtf by declared work":          {Factory: NewSRTF(), Config: map[string]any{"step_times": false}},
	"srtf without preemption":        {Factory: NewSRTF(), Config: map[string]any{"preemptive": false, "weigh_by_devices": true}},
	"las":                            {Factory: NewLAS()},
	"las blocking":                   {Factory: NewLAS(), Config: map[string]any{"queue": queue.Blocking, "service": queue.WallTime}},
	"las all":                        {Factory: NewLAS(), Config: map[string]any{"queue": queue.All, "starvation_after": "1h"}},
	"las in steps":                   {Factory: NewLAS(), Config: map[string]any{"quantum_seconds": 3600}},
	"elastic_fifo":                   {Factory: NewElasticFIFO()},
	"elastic_srtf":                   {Factory: NewElasticSRTF()},
	"elastic_srtf by declared work":  {Factory: NewElasticSRTF(), Config: map[string]any{"step_times": false}},
	"elastic_tiresias":               {Factory: NewElasticTiresias()},
	"elastic_tiresias that compacts": {Factory: NewElasticTiresias(), Config: map[string]any{"thresholds": []any{60, 600}, "promote_factor": 2, "compact_above": 0}},
	"elastic_tiresias one by one":    {Factory: NewElasticTiresias(), Config: map[string]any{"steps": elastic.OneByOne, "compact_above": 1}},
	"elastic_dp":                     {Factory: NewElasticDP()},
	"elastic_dp strict":              {Factory: NewElasticDP(), Config: map[string]any{"strict": true}},
	"optimus":                        {Factory: NewOptimus()},
	"afs":                            {Factory: NewAFS()},
	"afs one by one":                 {Factory: NewAFS(), Config: map[string]any{"steps": elastic.OneByOne}},
	"edf":                            {Factory: NewEDF()},
	"edf with most devices":          {Factory: NewEDF(), Config: map[string]any{"devices": edfMost}},
	"edf as requested":               {Factory: NewEDF(), Config: map[string]any{"devices": edfRequested}},
	"fifo that preempts":             {Factory: NewFIFO(), Config: map[string]any{"queue": queue.All, "preemptive": true}},
	"srtf by present speeds":         {Factory: NewSRTF(), Config: map[string]any{"speed": synergy.PresentSpeed}},
	"drf":                            {Factory: NewDRF()},
	"drf with weights":               {Factory: NewDRF(), Config: map[string]any{"tenants": []any{map[string]any{"name": "blue", "weight": 2}}, "queue": queue.All}},
	"drf blocking":                   {Factory: NewDRF(), Config: map[string]any{"queue": queue.Blocking}},
	"drf by job":                     {Factory: NewDRF(), Config: map[string]any{"by": drfByJob, "queue": queue.Blocking}},
	"tetris":                         {Factory: NewTetris()},
	"tetris all":                     {Factory: NewTetris(), Config: map[string]any{"queue": queue.All, "speed": synergy.PresentSpeed}},
	"tetris by declared work":        {Factory: NewTetris(), Config: map[string]any{"step_times": false, "queue": queue.Blocking}},
	"ftf":                            {Factory: NewFTF()},
	"ftf best first":                 {Factory: NewFTF(), Config: map[string]any{"first": bestFirst, "queue": queue.All, "step_times": false}},
}

func TestConformance(t *testing.T) { policytest.CheckAllocators(t, forms) }
