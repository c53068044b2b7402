package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/internal/refdata"
	"github.com/quartet-sched/quartet/lab/report"
	"github.com/quartet-sched/quartet/lab/study"
)

// pictures is the folder of what the docs show.
const pictures = "../../docs/pictures"

// The pictures of the docs are what the program draws. -update draws them anew.
func TestPictures(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(pictures, "study.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := study.Parse("study.yaml", "pictures", text)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := study.Execute(t.Context(), s, study.Options{Catalog: catalog(), Dir: dir, Workers: 2, Build: "pictures"}); err != nil {
		t.Fatal(err)
	}
	points, err := os.ReadFile(filepath.Join(pictures, "pollux-osdi21.csv"))
	if err != nil {
		t.Fatal(err)
	}
	header, _, _ := strings.Cut(string(points), "\n")
	axes := strings.Split(strings.TrimSuffix(strings.TrimPrefix(header, "figure,metric,"), ",runs,published,ours,difference,ours_low,ours_high,workloads"), ",")
	drawn := map[string]bool{}
	draw := func(folder fs.FS, names map[string]string) {
		s, err := report.ReadStudyFS(folder, "pictures")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range s.Figures() {
			name := names[f.Name]
			if name == "" {
				continue
			}
			var picture bytes.Buffer
			if err := report.Draw(&picture, &f, "svg"); err != nil {
				t.Fatal(err)
			}
			checkPicture(t, name+".svg", picture.Bytes())
			drawn[name+".svg"] = true
		}
	}
	draw(os.DirFS(dir), map[string]string{
		"jct-seconds-mean": "load", "change-jct-seconds.mean": "changes", "jct-s-cdf": "jct-cdf",
	})
	draw(fstest.MapFS{
		"published.csv": {Data: points},
		"runs.csv":      {Data: []byte("run," + strings.Join(axes, ",") + ",replicate\n")},
		"stats.csv":     {Data: []byte("metric," + axes[0] + ",baseline\n")},
	}, map[string]string{
		"table-2-jct-seconds.mean": "pollux-table-2", "figure-8a-jct-seconds.mean": "pollux-figure-8a",
		"figure-8b-jct-seconds.mean": "pollux-figure-8b", "figure-8c-jct-seconds.mean": "pollux-figure-8c",
	})
	for name := range picturesOfPools {
		drawn[name] = true
	}
	drawn[pictureOfASearch], drawn[pictureOfAForecast] = true, true
	kept, err := filepath.Glob(filepath.Join(pictures, "*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	if len(drawn) != 12 || slices.ContainsFunc(kept, func(path string) bool { return !drawn[filepath.Base(path)] }) {
		t.Errorf("drawn %v, kept %v", drawn, kept)
	}
}

// picturesOfPools are those of TestPicturesOfPools, by the figure that each is.
var picturesOfPools = map[string]string{
	"pool-nodes.svg": "nodes-over-time", "pool-cost.svg": "cost-over-time", "pool-efficiency.svg": "efficiency-over-time",
}

// The picture of nodes, cost and efficiency over time is that of one training under three scalers.
func TestPicturesOfPools(t *testing.T) {
	refdata.Path(t, "data", "pollux-osdi21")
	var runs []*report.Run
	for _, scaler := range []struct {
		name string
		sets []string
	}{
		{"throughput", []string{"pipeline.elasticity.job.type=throughput"}},
		{"goodput", nil},
		{"marginal", []string{"pipeline.elasticity.cluster={type: marginal}"}},
	} {
		dir := filepath.Join(t.TempDir(), scaler.name)
		c, err := quartet.Load(catalog(), configs.Options{
			Files: []string{"papers/pollux-osdi21/autoscale.yaml"}, Env: os.LookupEnv,
			Sets: append(scaler.sets, "name="+scaler.name, "output.write=[jobs, rounds, usage]"),
		})
		if err != nil {
			t.Fatal(err)
		}
		c.Dir = dir
		result, err := c.Simulate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		usage, err := os.ReadFile(filepath.Join(dir, "usage.csv"))
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(",%.9g\n", float64(result.Summary.Bill.Cost))
		if !strings.HasSuffix(string(usage), want) {
			t.Errorf("%s: usage.csv does not end with the bill, %s", scaler.name, want)
		}
		r, err := report.ReadRun(dir)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r)
	}
	figures := report.FiguresOfRuns(runs)
	for name, figure := range picturesOfPools {
		at := slices.IndexFunc(figures, func(f report.Figure) bool { return f.Name == figure })
		if at < 0 {
			t.Fatalf("there is no figure %s", figure)
		}
		var picture bytes.Buffer
		if err := report.Draw(&picture, &figures[at], "svg"); err != nil {
			t.Fatal(err)
		}
		checkPicture(t, name, picture.Bytes())
	}
}

// pictureOfASearch is what the trials of a search report, of which ASHA ends those that are not among the best.
const pictureOfASearch = "search.svg"

func TestPictureOfASearch(t *testing.T) {
	refdata.Path(t, "data", "pollux-osdi21")
	dir := t.TempDir()
	c, err := quartet.Load(catalog(), configs.Options{
		Files: []string{"papers/pollux-osdi21/tuning.yaml"}, Env: os.LookupEnv,
		Sets: []string{"workload.config.trials=16", "pipeline.admission=[{type: asha, config: {first: 4, reduction: 4}}]", "output.write=[jobs, reports]"},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Dir = dir
	if _, err := c.Simulate(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := report.ReadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	figures := report.FiguresOfRuns([]*report.Run{r})
	at := slices.IndexFunc(figures, func(f report.Figure) bool { return strings.Contains(f.Name, "cifar10") })
	if at < 0 {
		t.Fatal("there is no figure of the experiment")
	}
	var picture bytes.Buffer
	if err := report.Draw(&picture, &figures[at], "svg"); err != nil {
		t.Fatal(err)
	}
	checkPicture(t, pictureOfASearch, picture.Bytes())
}

func checkPicture(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join(pictures, name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the program draws: make pictures", name)
	}
}
