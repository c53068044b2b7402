package allocation

import (
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// forms lists each policy in the forms that decide differently.
var forms = map[string]struct {
	factory core.Factory[core.Allocator]
	config  map[string]any
}{
	"fifo":                           {NewFIFO(), nil},
	"fifo backfill":                  {NewFIFO(), map[string]any{"queue": queue.Backfill}},
	"fifo all":                       {NewFIFO(), map[string]any{"queue": queue.All}},
	"antman":                         {NewAntMan(), nil},
	"srtf":                           {NewSRTF(), nil},
	"srtf blocking":                  {NewSRTF(), map[string]any{"queue": queue.Blocking}},
	"srtf all":                       {NewSRTF(), map[string]any{"queue": queue.All}},
	"srtf by declared work":          {NewSRTF(), map[string]any{"step_times": false}},
	"srtf without preemption":        {NewSRTF(), map[string]any{"preemptive": false, "weigh_by_devices": true}},
	"las":                            {NewLAS(), nil},
	"las blocking":                   {NewLAS(), map[string]any{"queue": queue.Blocking, "service": wallTime}},
	"las all":                        {NewLAS(), map[string]any{"queue": queue.All, "starvation_after": "1h"}},
	"las in steps":                   {NewLAS(), map[string]any{"quantum_seconds": 3600}},
	"tiresias":                       {NewTiresias(), nil},
	"tiresias with four queues":      {NewTiresias(), map[string]any{"thresholds": []any{60, 600, 6000.5}, "promote_factor": 2}},
	"tiresias blocking by wall time": {NewTiresias(), map[string]any{"thresholds": []any{60}, "service": wallTime, "queue": queue.Blocking}},
	"tiresias running first":         {NewTiresias(), map[string]any{"thresholds": []any{3250}, "inside": insideRunningFirst}},
	"tiresias passed over last":      {NewTiresias(), map[string]any{"thresholds": []any{60, 600}, "inside": insidePassedOver}},
	"tiresias gittins": {NewTiresias(), map[string]any{
		"thresholds": []any{3250}, "inside": insideGittins, "samples": []any{100, 200, 5000, 90000},
	}},
	"elastic_fifo":                   {NewElasticFIFO(), nil},
	"elastic_srtf":                   {NewElasticSRTF(), nil},
	"elastic_srtf by declared work":  {NewElasticSRTF(), map[string]any{"step_times": false}},
	"elastic_tiresias":               {NewElasticTiresias(), nil},
	"elastic_tiresias that compacts": {NewElasticTiresias(), map[string]any{"thresholds": []any{60, 600}, "promote_factor": 2, "compact_above": 0}},
	"elastic_tiresias one by one":    {NewElasticTiresias(), map[string]any{"steps": oneByOne, "compact_above": 1}},
	"elastic_dp":                     {NewElasticDP(), nil},
	"elastic_dp strict":              {NewElasticDP(), map[string]any{"strict": true}},
	"optimus":                        {NewOptimus(), nil},
	"afs":                            {NewAFS(), nil},
	"afs one by one":                 {NewAFS(), map[string]any{"steps": oneByOne}},
	"elasticflow":                    {NewElasticFlow(), nil},
	"elasticflow with overhead":      {NewElasticFlow(), map[string]any{"overhead": "30s", "levels": "all"}},
	"elasticflow by most growth":     {NewElasticFlow(), map[string]any{"expand": mostGrowth, "overhead": "1s"}},
	"edf":                            {NewEDF(), nil},
	"edf with most devices":          {NewEDF(), map[string]any{"devices": edfMost}},
	"edf as requested":               {NewEDF(), map[string]any{"devices": edfRequested}},
	"gpu_fraction":                   {NewGPUFraction(), nil},
	"gpu_fraction of ten minutes":    {NewGPUFraction(), map[string]any{"window": "10m", "turn": "0s", "premium": 1.0, "basic": 0.2}},
	"lucid":                          {NewLucid(), nil},
	"lucid without sharing":          {NewLucid(), map[string]any{"sharing": false, "queue": queue.Backfill}},
	"lucid that packs first":         {NewLucid(), map[string]any{"pack": packFirst, "tolerance": 1.0, "off_below": 2.0}},
	"gandiva":                        {NewGandiva(), nil},
	"gandiva that grows jobs":        {NewGandiva(), map[string]any{"slice": "150s", "grow_shrink": true, "pairs": pairsNone}},
	"gandiva with drawn pairs":       {NewGandiva(), map[string]any{"slice": "1s", "grow_shrink": true, "pairs": pairsRandom}},
	"fifo that preempts":             {NewFIFO(), map[string]any{"queue": queue.All, "preemptive": true}},
	"srtf by present speeds":         {NewSRTF(), map[string]any{"speed": presentSpeed}},
	"drf":                            {NewDRF(), nil},
	"drf with weights":               {NewDRF(), map[string]any{"tenants": []any{map[string]any{"name": "blue", "weight": 2}}, "queue": queue.All}},
	"drf blocking":                   {NewDRF(), map[string]any{"queue": queue.Blocking}},
	"drf by job":                     {NewDRF(), map[string]any{"by": drfByJob, "queue": queue.Blocking}},
	"tetris":                         {NewTetris(), nil},
	"tetris all":                     {NewTetris(), map[string]any{"queue": queue.All, "speed": presentSpeed}},
	"tetris by declared work":        {NewTetris(), map[string]any{"step_times": false, "queue": queue.Blocking}},
	"ftf":                            {NewFTF(), nil},
	"ftf best first":                 {NewFTF(), map[string]any{"first": bestFirst, "queue": queue.All, "step_times": false}},
	"themis":                         {NewThemis(), nil},
	"themis for efficiency":          {NewThemis(), map[string]any{"offered_to": 1.0, "lease": "10m"}},
}

func TestConformance(t *testing.T) {
	for name, tc := range forms {
		t.Run(name, func(t *testing.T) {
			coretest.RunAllocator(t, tc.factory, coretest.WithConfig(tc.config), coretest.Pinning(), coretest.Deadlines(), coretest.Tiers())
		})
	}
}

// Where jobs share devices, of which they ask for parts.
func TestConformanceWhereJobsShare(t *testing.T) {
	for name, tc := range forms {
		if len(tc.factory.Sharing) == 0 {
			t.Run(name, func(t *testing.T) {
				coretest.RunAllocator(t, tc.factory, coretest.WithConfig(tc.config), coretest.Pinning(), coretest.Deadlines(), coretest.Tiers(), coretest.Sharing())
			})
		}
	}
}

// Those that group jobs, where jobs take turns.
func TestConformanceOfGroups(t *testing.T) {
	for name, tc := range forms {
		if strings.HasPrefix(name, "lucid") || strings.HasPrefix(name, "gandiva") || name == "antman" {
			t.Run(name, func(t *testing.T) {
				coretest.RunAllocator(t, tc.factory, coretest.WithConfig(tc.config), coretest.Pinning(), coretest.Sharing())
			})
		}
	}
}
