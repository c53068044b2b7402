package generators

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core/workload/exchange"
	"github.com/quartet-sched/quartet/internal/refdata"
)

var update = flag.Bool("update", false, "fit fits.json to the published data")

// published are the traces that fits are made of.
var published = map[string]struct {
	source string
	path   []string
	maps   map[string]string
}{
	"philly": {
		"Jeon et al., ATC 2019: msr-fiddle/philly-traces as CSV of petuum/adaptdl; hours from Thursday 00:00 of the trace's clock",
		[]string{"data", "pollux-osdi21", "philly.csv.gz"},
		map[string]string{"submit_s": "timestamp", "duration_s": "duration", "replicas": "num_gpus", "tenant": "cluster"},
	},
	"openb": {
		"Weng et al., ATC 2023: Alibaba cluster-trace-gpu-v2023, tasks that were scheduled; hours from the trace's begin",
		[]string{"data", "alibaba-openb-2023", "openb_pod_list_default.csv.gz"},
		map[string]string{"submit_s": "creation_time", "observed_start_s": "scheduled_time", "end_s": "deletion_time", "replicas": "num_gpu", "tenant": "qos"},
	},
	"helios": {
		"Hu et al., SC 2021: Helios, its last 15,000 jobs, those with devices; hours from the excerpt's begin",
		[]string{"data", "helios", "helios_15000.csv.gz"},
		map[string]string{"duration_s": "run_time", "replicas": "gpu_num", "tenant": "user", "submit_s": "interval"},
	},
}

// load reads a published trace. That of Helios tells times between submissions.
func load(t *testing.T, name string) *exchange.Trace {
	t.Helper()
	p := published[name]
	file, err := os.Open(refdata.Path(t, p.path...))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	trace, _, err := exchange.Import(context.Background(), name, file, exchange.Options{From: exchange.CSV, Map: p.maps})
	if err != nil {
		t.Fatal(err)
	}
	if name == "helios" {
		at := 0.0
		for i := range trace.Len() {
			at += trace.At(i).Submit
			trace.At(i).Submit = at
		}
	}
	return trace
}

func TestFits(t *testing.T) {
	fits := map[string]*Fit{}
	if err := json.Unmarshal(fitted, &fits); err != nil {
		t.Fatal(err)
	}
	for name, p := range published {
		fits[name] = Of(load(t, name), p.source)
	}
	text, err := json.MarshalIndent(fits, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(bytes.ReplaceAll(text, []byte(",\n    "), []byte(", ")), '\n')
	if *update {
		if err := os.WriteFile("fits.json", text, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(text, fitted) {
		t.Error("fits.json is not what the published data yield; -update fits it")
	}
}

// What is drawn resembles what was fitted.
func TestGenerateIsLikeThePublished(t *testing.T) {
	for name := range published {
		t.Run(name, func(t *testing.T) {
			fit, err := Named(name)
			if err != nil {
				t.Fatal(err)
			}
			want := load(t, name)
			got := fit.Generate(20000, 0, 1)
			for _, d := range Compare(got, want) {
				t.Logf("%s: KS %.3f, Wasserstein %.3f %s", d.What, d.KS, d.Wasserstein, d.Unit)
				if d.KS > 0.05 {
					t.Errorf("%s: KS %.3f", d.What, d.KS)
				}
			}
		})
	}
}

func TestGenerate(t *testing.T) {
	for _, name := range Names {
		fit, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		var first, second bytes.Buffer
		for _, b := range []*bytes.Buffer{&first, &second} {
			if err := exchange.WriteCSV(b, fit.Generate(200, 86400, 3)); err != nil {
				t.Fatal(err)
			}
		}
		if first.String() != second.String() || strings.Count(first.String(), "\n") != 201 {
			t.Errorf("%s: two draws of one seed differ, or lack jobs", name)
		}
	}
	if _, err := Named("phily"); err == nil || !strings.Contains(err.Error(), `did you mean "philly"`) {
		t.Errorf("error %v", err)
	}
}

func TestApart(t *testing.T) {
	cases := map[string]struct {
		a, b            []float64
		ks, wasserstein float64
	}{
		"equal":           {[]float64{3, 1, 2}, []float64{1, 2, 3}, 0, 0},
		"shifted":         {[]float64{1, 2}, []float64{4, 5}, 1, 3},
		"half of it":      {[]float64{0, 0, 0, 0}, []float64{0, 0, 2, 2}, 0.5, 1},
		"unequal lengths": {[]float64{0, 1}, []float64{0, 0, 0, 1}, 0.25, 0.25},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ks, wasserstein := Apart(tc.a, tc.b)
			if math.Abs(ks-tc.ks) > 1e-12 || math.Abs(wasserstein-tc.wasserstein) > 1e-12 {
				t.Errorf("%v, %v, want %v, %v", ks, wasserstein, tc.ks, tc.wasserstein)
			}
		})
	}
	if ks, _ := Apart(nil, []float64{1}); !math.IsNaN(ks) {
		t.Errorf("KS %v of an empty sample", ks)
	}
}
